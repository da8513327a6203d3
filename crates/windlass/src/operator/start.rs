//! From a definition to an operator at work.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio_util::sync::CancellationToken;

use super::crds::{self, InstallError};
use super::ready::ready;
use super::running::Running;
use super::supervise::{Ground, Parts, supervise};
use super::{Beside, Operator};
use crate::cache::{Cache, Namespaces, Reporter};
use crate::client::{self, ConnectError, Retry, Server};
use crate::context::Shared;
use crate::controller::AnyController;
use crate::election::{self, Election, Leadership, Telling};
use crate::env::Env;
use crate::events::Recorder;
use crate::health::Checks;
use crate::http::{self, BindError, Listening};
use crate::metrics::Metrics;

/// How to run an operator.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Clock, randomness and tasks.
    pub env: Env,
    /// The namespaces to watch; none for all of them.
    pub namespaces: Vec<String>,
    /// Apply the operator's own definitions first, and wait until they are served.
    pub install_crds: bool,
    /// Where to serve `/metrics` and the operator's own routes: `:8080`, `127.0.0.1:0`, or `0` for nowhere.
    pub metrics_address: String,
    /// Where to serve `/healthz` and `/readyz`, written likewise.
    pub health_address: String,
    /// How long running passes may take to end when it is told to stop.
    pub shutdown_timeout: Duration,
    /// Replicas elect a leader; `None` for an operator that is alone.
    pub election: Option<election::Settings>,
    /// Refuse calls that no declaration covers, with the line to add: for tests, where no RBAC is in the way.
    pub only_declared_calls: bool,
}

impl Settings {
    /// For a test in this process: no sockets, no election, and calls that nobody declared fail.
    pub fn for_tests(env: Env) -> Settings {
        Settings {
            env,
            namespaces: Vec::new(),
            install_crds: true,
            metrics_address: "0".to_owned(),
            health_address: "0".to_owned(),
            shutdown_timeout: Duration::from_secs(30),
            election: None,
            only_declared_calls: true,
        }
    }
}

/// Why an operator did not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// Its kinds could not be installed.
    #[error("cannot install the operator's kinds")]
    Install(#[from] InstallError),
    /// The configuration does not make a client.
    #[error("cannot reach the API server")]
    Connect(#[from] ConnectError),
    /// The times of the election do not go together.
    #[error("the leader election cannot work")]
    Election(#[from] election::Invalid),
    /// An address cannot be listened at.
    #[error("no address to serve {}: choose another by {flag}", source.purpose)]
    Bind {
        /// What chooses it.
        flag: &'static str,
        /// Why it cannot be had.
        source: BindError,
    },
    /// Two controllers have the same name.
    #[error("two controllers are named {0}: name one of them with `.named(…)`")]
    SameName(String),
}

impl Operator {
    /// Starts it in this process: what `run` does, and what a test does.
    ///
    /// # Errors
    /// When the server cannot be reached at all, its kinds cannot be installed, an address cannot be listened at, or the
    /// definition contradicts itself.
    pub async fn start(
        mut self,
        server: impl Into<Server>,
        settings: Settings,
    ) -> Result<Running, StartError> {
        distinct(&self.controllers)?;
        settings.election.as_ref().map_or(Ok(()), election::Settings::check)?;
        let (server, env) = (server.into(), settings.env.clone());
        let metrics = Metrics::new();
        for register in std::mem::take(&mut self.registrations) {
            metrics.register(register);
        }
        let agent = format!("{}/{}", self.name, self.version);
        let client = |change: &dyn Fn(&mut client::Settings)| {
            let mut settings =
                client::Settings { agent: agent.clone(), ..client::Settings::new(&env, &metrics) };
            change(&mut settings);
            server.client(settings)
        };
        // Ports are taken before anything is written: an operator that nobody can look into does not start.
        let bind = async |purpose, address: &str, flag| {
            http::bind(purpose, address).await.map_err(|source| StartError::Bind { flag, source })
        };
        let probes = bind("probes", &settings.health_address, "--health-probe-bind-address").await?;
        let shown = bind("metrics", &settings.metrics_address, "--metrics-bind-address").await?;
        let addresses = (probes.as_ref().map(Listening::address), shown.as_ref().map(Listening::address));
        if settings.install_crds {
            crds::install(&client(&|_| ())?, &env, self.name, &self.crds).await?;
        }
        let identity = match &settings.election {
            Some(election) => election.identity.clone(),
            None => election::identity(&env),
        };
        let told = CancellationToken::new();
        let telling = Arc::new(Telling::default());
        let teller = client(&|settings| settings.fence = Some(telling.clone()))?;
        let (recorder, events) = Recorder::start(teller, &env, &metrics, self.name, &identity, told.clone());
        let election = match settings.election {
            // The election tries again at its own pace.
            Some(settings) => {
                let client = client(&|settings| settings.retry = Retry::never())?;
                Some(Election::new(client, settings, &env, &metrics, recorder.clone())?)
            }
            None => None,
        };
        let leadership = election.as_ref().map_or_else(Leadership::always, Election::leadership);
        // Nobody else sets it.
        let _ = telling.0.set(leadership.clone());
        let rules = settings.only_declared_calls.then(|| self.rules());
        let client = client(&|settings| {
            settings.guard = rules.clone();
            settings.fence = Some(Arc::new(leadership.clone()));
        })?;
        let cache = Cache::new(self.name);
        if !settings.namespaces.is_empty() {
            cache.set_namespaces(Namespaces::only(settings.namespaces));
        }
        let shared = Arc::new(Shared {
            metrics,
            recorder,
            states: self.states.clone(),
            ..Shared::new(self.name, client.clone(), cache.clone(), env.clone())
        });
        let controllers = self.controllers.into_iter().map(|controller| controller.wire(&shared)).collect();
        let observer = Arc::new(Reporter::new(&cache, &shared.metrics, shared.recorder.clone()));
        let mut ground = vec![Ground::new("cache", cache.start(client.clone(), &env, observer))];
        let listening = CancellationToken::new();
        let routes = http::metrics(shared.metrics.clone()).merge(self.routes);
        let readiness = ready(&cache, &env);
        let servers = [(probes, http::probes(Checks::new(), readiness.clone())), (shown, routes)];
        for (server, routes) in servers {
            ground.extend(
                server.map(|server| Ground::new("http", server.serve(&env, routes, listening.clone()))),
            );
        }
        let parts = Parts {
            ground,
            listening,
            controllers,
            runnables: self.runnables,
            beside: Beside {
                client,
                cache,
                env: env.clone(),
                stopping: shared.shutdown.clone(),
                states: self.states,
            },
            election,
            events: (events, told),
            shutdown_timeout: settings.shutdown_timeout,
            shared: shared.clone(),
        };
        let supervisor = env.spawn("operator", supervise(parts));
        let (health, metrics) = addresses;
        Ok(Running { shared, leadership, readiness, supervisor, health, metrics })
    }
}

/// Names are those of metrics, logs and the origin of writes: one that two controllers share would mix them up.
fn distinct(controllers: &[Box<dyn AnyController>]) -> Result<(), StartError> {
    let mut names = BTreeSet::new();
    match controllers.iter().map(|controller| controller.name()).find(|name| !names.insert(name.clone())) {
        Some(name) => Err(StartError::SameName(name)),
        None => Ok(()),
    }
}
