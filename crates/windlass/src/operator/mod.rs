//! The operator: the one definition behind `run`, `plan`, `manifests`, and every test.

mod args;
mod crds;
mod main;
pub mod manifests;
mod preview;
mod ready;
mod running;
mod start;
mod supervise;

pub use crds::InstallError;
pub use running::{Ended, Running};
pub use start::{Settings, StartError};

use std::fmt;
use std::future::Future;

use axum::Router;
use futures_util::future::BoxFuture;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

use crate::Rules;
use crate::cache::Cached;
use crate::context::States;
use crate::controller::{AnyController, Controller};
use crate::metrics::Registry;

/// An operator: its controllers, and everything around them.
///
/// ```no_run
/// use std::process::ExitCode;
/// use windlass::{Controller, Operator};
/// # use windlass::core::Outcome;
/// # use k8s_openapi::api::core::v1::ConfigMap;
///
/// fn operator() -> Operator {
///     Operator::new("my-operator", env!("CARGO_PKG_VERSION"))
///         .controller(Controller::raw(|_, _: std::sync::Arc<ConfigMap>| async { Ok(Outcome::AwaitChange) }))
/// }
///
/// fn main() -> ExitCode {
///     operator().main()
/// }
/// ```
pub struct Operator {
    name: &'static str,
    version: &'static str,
    controllers: Vec<Box<dyn AnyController>>,
    crds: Vec<CustomResourceDefinition>,
    rules: Rules,
    states: States,
    routes: Router,
    registrations: Vec<Registration>,
    runnables: Vec<Runnable>,
    monitoring: Vec<Document>,
}

/// Something to install, for a namespace.
type Document = Box<dyn Fn(&str) -> serde_json::Value + Send>;

/// Adds metrics of the user's own.
type Registration = Box<dyn FnOnce(&mut Registry) + Send>;

/// Something of the user's that runs beside the controllers.
struct Runnable {
    name: &'static str,
    /// Only on the replica that leads.
    leads: bool,
    start: Box<dyn FnOnce(Beside) -> BoxFuture<'static, Result<(), crate::Error>> + Send>,
}

/// What a runnable has at hand.
#[derive(Clone)]
pub struct Beside {
    /// The client of the operator.
    pub client: kube::Client,
    /// Its cache.
    pub cache: crate::cache::Cache,
    /// Clock, randomness and tasks.
    pub env: crate::Env,
    /// Cancelled when the operator is told to stop: a runnable should end then.
    pub stopping: tokio_util::sync::CancellationToken,
    states: States,
}

impl Beside {
    /// The operator's own state; see [`Context::state`](crate::Context::state).
    ///
    /// # Panics
    /// When there is no state of this type.
    pub fn state<T: Send + Sync + 'static>(&self) -> std::sync::Arc<T> {
        self.states.get()
    }
}

impl Operator {
    /// An operator without controllers. The name is that of its field manager, its lease, its ServiceAccount and of the
    /// controller in its events; changing it later leaves the fields that it applied under the old one.
    pub fn new(name: &'static str, version: &'static str) -> Operator {
        Operator {
            name,
            version,
            controllers: Vec::new(),
            crds: Vec::new(),
            rules: Rules::new(),
            states: States::default(),
            routes: Router::new(),
            registrations: Vec::new(),
            runnables: Vec::new(),
            monitoring: Vec::new(),
        }
    }

    /// Adds a controller.
    #[must_use]
    pub fn controller<K>(mut self, controller: Controller<K>) -> Operator
    where
        K: Cached,
    {
        self.controllers.push(Box::new(controller));
        self
    }

    /// A kind that the operator brings: `manifests` prints its definition, `--install-crds` applies it.
    #[must_use]
    pub fn crd<K: CustomResourceExt>(mut self) -> Operator {
        self.crds.push(K::crd());
        self
    }

    /// Calls that the controllers do not declare, for what effects and raw functions do: verbs on a resource
    /// (`configmaps`, `pods/exec`) of a group (empty for the core group).
    #[must_use]
    pub fn permits(mut self, group: &str, resource: &str, verbs: &[&str]) -> Operator {
        self.rules.allow(group, resource, verbs);
        self
    }

    /// A value of the operator's own, which every pass gets by its type.
    #[must_use]
    pub fn state<T: Send + Sync + 'static>(mut self, state: T) -> Operator {
        self.states.insert(state);
        self
    }

    /// HTTP routes of the operator's own, beside `/metrics` on the metrics address.
    #[must_use]
    pub fn routes(mut self, routes: Router) -> Operator {
        self.routes = self.routes.merge(routes);
        self
    }

    /// Metrics of the operator's own, in the registry that `/metrics` shows.
    #[must_use]
    pub fn metrics(mut self, register: impl FnOnce(&mut Registry) + Send + 'static) -> Operator {
        self.registrations.push(Box::new(register));
        self
    }

    /// Something that watches the operator and its objects: alert rules, a dashboard. `manifests --monitoring` prints it for
    /// the namespace that the operator runs in; without that it is left out, since its kind may not be there.
    #[must_use]
    pub fn monitored_by(mut self, document: impl Fn(&str) -> serde_json::Value + Send + 'static) -> Operator {
        self.monitoring.push(Box::new(document));
        self
    }

    /// Something that runs beside the controllers, on every replica, from the start: a server, a poller. When it ends
    /// before the operator is told to stop, the operator ends with it.
    #[must_use]
    pub fn runs<F, R>(self, name: &'static str, start: F) -> Operator
    where
        F: FnOnce(Beside) -> R + Send + 'static,
        R: Future<Output = Result<(), crate::Error>> + Send + 'static,
    {
        self.runnable(name, false, start)
    }

    /// As [`runs`](Operator::runs), only on the replica that leads: a plain kube `Controller`, for those who migrate.
    #[must_use]
    pub fn runs_when_leading<F, R>(self, name: &'static str, start: F) -> Operator
    where
        F: FnOnce(Beside) -> R + Send + 'static,
        R: Future<Output = Result<(), crate::Error>> + Send + 'static,
    {
        self.runnable(name, true, start)
    }

    fn runnable<F, R>(mut self, name: &'static str, leads: bool, start: F) -> Operator
    where
        F: FnOnce(Beside) -> R + Send + 'static,
        R: Future<Output = Result<(), crate::Error>> + Send + 'static,
    {
        let start = Box::new(move |beside| -> BoxFuture<'static, Result<(), crate::Error>> {
            Box::pin(start(beside))
        });
        self.runnables.push(Runnable { name, leads, start });
        self
    }

    /// Everything that it may ask of the server, without the lease of its election.
    pub fn rules(&self) -> Rules {
        let mut rules = self.rules.clone();
        for controller in &self.controllers {
            rules.extend(controller.rules());
        }
        rules
    }

    /// The documents that install it, in the order in which they have to be applied.
    pub fn manifests(
        &self,
        namespace: &str,
        namespaced: bool,
        image: &str,
        replicas: u32,
    ) -> Vec<serde_json::Value> {
        manifests::documents(&manifests::Install {
            name: self.name.to_owned(),
            namespace: namespace.to_owned(),
            namespaced,
            image: image.to_owned(),
            replicas,
            crds: self.crds.clone(),
            rules: self.rules(),
            lease: self.name.to_owned(),
        })
    }
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let controllers: Vec<String> = self.controllers.iter().map(|controller| controller.name()).collect();
        f.debug_struct("Operator")
            .field("name", &self.name)
            .field("controllers", &controllers)
            .finish_non_exhaustive()
    }
}
