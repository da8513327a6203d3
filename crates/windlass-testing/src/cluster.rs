//! The cluster of a test.

use std::net::Ipv4Addr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use windlass_apiserver::api::audit::Record;
use windlass_apiserver::api::{Config, Issuer, User};
use windlass_apiserver::front::credentials::Credentials;
use windlass_apiserver::front::{ApiServer, Clock, Options, Random};
use windlass_apiserver::store::Unreadable;

use crate::check::{Recorder, Report};
use crate::world::World;

/// An API server for one test. Clones are the same cluster; [`TestCluster::fork`] makes another.
#[derive(Clone)]
pub struct TestCluster {
    inner: Arc<Inner>,
    timeout: Duration,
}

struct Inner {
    server: ApiServer,
    recorder: Option<Recorder>,
    /// They end with the cluster.
    #[cfg(feature = "controllers")]
    controllers: OnceLock<windlass_cluster::Running>,
}

/// How long waits wait unless they are told otherwise. Nothing in the process takes a second; a loaded machine may.
const TIMEOUT: Duration = Duration::from_secs(10);

impl TestCluster {
    /// A new cluster. After the first of a process it takes microseconds: it is a fork of the first.
    pub async fn new() -> TestCluster {
        TestCluster::builder().start().await
    }

    /// A cluster with a seed, a clock, or checks of its own.
    pub fn builder() -> Builder {
        Builder { seed: None, clock: None, tokens: false, self_check: false, timeout: TIMEOUT }
    }

    /// An independent cluster with the same objects and history, and no requests behind it.
    pub fn fork(&self) -> TestCluster {
        let server = self.inner.server.fork();
        TestCluster::of(server, self.inner.recorder.is_some(), self.timeout)
    }

    fn of(server: ApiServer, self_check: bool, timeout: Duration) -> TestCluster {
        let recorder = self_check.then(|| Recorder::new(server.clone()));
        let inner = Inner {
            server,
            recorder,
            #[cfg(feature = "controllers")]
            controllers: OnceLock::new(),
        };
        TestCluster { inner: Arc::new(inner), timeout }
    }

    /// Runs some of the controllers that Kubernetes ships with beside the server, until the cluster is dropped: an owner's
    /// children go with it, a Deployment has pods. Their time and randomness come from `env`, which should show the
    /// server's time. A fork has none.
    ///
    /// # Panics
    /// When the cluster has controllers already.
    #[cfg(feature = "controllers")]
    pub fn run(&self, controllers: windlass_cluster::Controllers, env: &windlass::Env) {
        let running = controllers.start(self.client(), env);
        let first = self.inner.controllers.set(running).is_ok();
        assert!(first, "the controllers of a test cluster are started once, all together");
    }

    /// A client of the administrator, with `default` as its namespace.
    pub fn client(&self) -> kube::Client {
        match &self.inner.recorder {
            Some(recorder) => kube::Client::new(recorder.service(), "default"),
            None => kube::Client::new(self.inner.server.service(), "default"),
        }
    }

    /// A client of somebody else, who may do what the roles and bindings in the cluster allow him.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use windlass_testing::{TestCluster, User};
    ///
    /// let cluster = TestCluster::new().await;
    /// let bob = cluster.client_as(User::new("bob", []));
    /// let refused = kube::Api::<ConfigMap>::default_namespaced(bob).get("a").await.unwrap_err();
    /// assert!(refused.to_string().contains("User \"bob\" cannot get resource \"configmaps\""), "{refused}");
    /// # }
    /// ```
    pub fn client_as(&self, user: User) -> kube::Client {
        kube::Client::new(self.inner.server.service_as(user), "default")
    }

    /// The server itself.
    pub fn server(&self) -> &ApiServer {
        &self.inner.server
    }

    /// Who signs its tokens of service accounts, where it [has such](Builder::tokens).
    pub fn tokens(&self) -> Option<Issuer> {
        self.server().inspect(|server| server.config().tokens.clone())
    }

    /// The same cluster, whose waits take this long before they give up.
    pub fn with_timeout(&self, timeout: Duration) -> TestCluster {
        TestCluster { timeout, ..self.clone() }
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// All objects as they are now.
    pub fn world(&self) -> World {
        World::now(&self.server().snapshot())
    }

    /// All objects as they were at a revision that is still known.
    ///
    /// # Errors
    /// When the revision is forgotten, or has not happened.
    pub fn world_at(&self, revision: u64) -> Result<World, Unreadable> {
        World::at(self.server().snapshot(), revision)
    }

    /// All objects as YAML, sorted by kind, namespace and name.
    pub fn dump(&self) -> String {
        self.world().dump()
    }

    /// The latest 10,000 requests that were answered, oldest first.
    pub fn requests(&self) -> Vec<Record> {
        self.server().inspect(|server| server.audit().records().cloned().collect())
    }

    /// How many of the [requests](TestCluster::requests) were of a verb (`get`, `list`, `watch`, `create`, `update`,
    /// `patch`, `delete`, `deletecollection`) on a resource (`pods`, `deployments/status`).
    pub fn count(&self, verb: &str, resource: &str) -> usize {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        self.server().inspect(|server| {
            let records = server.audit().records();
            records
                .filter(|r| r.verb == verb && r.resource == resource && r.subresource == subresource)
                .count()
        })
    }

    /// What the self-check has to say of the watches that were served so far; `None` where it is off.
    pub fn check_watches(&self) -> Option<Report> {
        Some(self.inner.recorder.as_ref()?.report())
    }
}

/// With the self-check on, a test whose watches were served wrongly fails.
impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(recorder) = &self.recorder
            && !std::thread::panicking()
        {
            let report = recorder.report();
            assert!(report.violations.is_empty(), "watches were served wrongly:\n{report}");
        }
    }
}

/// What a [`TestCluster`] is made of.
#[derive(Clone, Debug)]
pub struct Builder {
    seed: Option<u64>,
    clock: Option<Clock>,
    tokens: bool,
    self_check: bool,
    timeout: Duration,
}

impl Builder {
    /// Uids and name suffixes come from this seed. Without it they are the same for every cluster of a process, and
    /// others in the next.
    pub fn seed(self, seed: u64) -> Builder {
        Builder { seed: Some(seed), ..self }
    }

    /// The server's clock; the machine's by default.
    pub fn clock(self, clock: Clock) -> Builder {
        Builder { clock: Some(clock), ..self }
    }

    /// Whether the server signs tokens of service accounts and knows them, by a key of its own. What
    /// [signs](TestCluster::tokens) is for a controller that puts them into Secrets, too. Off, unless it is asked for: a
    /// signature is never twice the same.
    pub fn tokens(self, on: bool) -> Builder {
        Builder { tokens: on, ..self }
    }

    /// Record every watch that is served to a [client](TestCluster::client), and fail the test when one was not ordered,
    /// unique, atomic, reliable, resumable, bookmarkable, filtered, or wrong about what was before. See
    /// [`check`](crate::check).
    pub fn self_check(self, on: bool) -> Builder {
        Builder { self_check: on, ..self }
    }

    /// How long waits take before they give up; ten seconds by default.
    pub fn timeout(self, timeout: Duration) -> Builder {
        Builder { timeout, ..self }
    }

    /// Starts the cluster.
    pub async fn start(self) -> TestCluster {
        static FIRST: OnceLock<ApiServer> = OnceLock::new();
        let server = match (self.seed, self.clock) {
            (None, None) if !self.tokens => FIRST.get_or_init(|| ApiServer::start(Options::default())).fork(),
            (seed, clock) => ApiServer::start(Options {
                config: Config { tokens: self.tokens.then(new_issuer), ..Config::default() },
                clock: clock.unwrap_or(Clock::System),
                random: seed.map_or_else(Random::from_os, Random::from_seed),
                ..Options::default()
            }),
        };
        TestCluster::of(server, self.self_check, self.timeout)
    }
}

fn new_issuer() -> Issuer {
    let here = Ipv4Addr::LOCALHOST.into();
    Credentials::generate(here).expect("certificates can be made of nothing").tokens()
}
