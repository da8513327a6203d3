//! A cache on a cluster, and someone who writes down what it tells.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::core::v1::ObjectReference;
use windlass::Env;
use windlass::cache::{Cache, Declared, Delta, Informer, Observer, State, Subscriber, Target};
use windlass::core::{ObjectKey, Origin};
use windlass::env::Task;
use windlass::source;
use windlass_testing::{Clock, TestCluster};

use crate::faults::Faults;

pub const MANAGER: &str = "test-operator";

fn start() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

/// A cluster whose clock is that of the runtime, which is paused.
pub async fn cluster() -> TestCluster {
    TestCluster::builder().seed(1).clock(Clock::runtime(start())).start().await
}

pub fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("default", name)
}

/// A cache of ConfigMaps that is running, with someone who takes notes.
pub struct Running {
    pub cache: Cache,
    pub informer: Informer<ConfigMap>,
    pub notes: Arc<Notes>,
    pub faults: Faults,
    _task: Task<()>,
}

impl Running {
    pub fn new(cluster: &TestCluster, faults: Faults, declared: Declared<ConfigMap>) -> Running {
        let cache = Cache::new(MANAGER);
        let informer = cache.declare(declared);
        let notes = Arc::new(Notes::default());
        informer.subscribe(notes.clone());
        let task = run(&cache, faults.client(cluster), notes.clone());
        Running { cache, informer, notes, faults, _task: task }
    }

    /// All ConfigMaps, and the first list is there.
    pub async fn all(cluster: &TestCluster) -> Running {
        let running = Running::new(cluster, Faults::default(), Declared::typed());
        running.informer.synced().await;
        running
    }

    pub fn state(&self) -> State {
        self.informer.health().remove(0).state
    }

    pub fn names(&self) -> Vec<String> {
        let all = self.informer.list(Some("default"));
        all.iter().map(|object| object.metadata.name.clone().unwrap()).collect()
    }
}

pub fn run(cache: &Cache, client: kube::Client, observer: Arc<dyn Observer>) -> Task<()> {
    cache.start(client, &Env::seeded(7, start()), observer)
}

pub async fn config_map(cluster: &TestCluster, name: &str, value: &str) {
    config_map_in(cluster, "default", name, value).await;
}

pub async fn config_map_in(cluster: &TestCluster, namespace: &str, name: &str, value: &str) {
    let metadata = format!("{{name: {name}, namespace: {namespace}}}");
    let yaml =
        format!("{{apiVersion: v1, kind: ConfigMap, metadata: {metadata}, data: {{is: \"{value}\"}}}}");
    cluster.apply_yaml(&yaml).await.unwrap();
}

pub async fn delete_config_map(cluster: &TestCluster, name: &str) {
    let api: kube::Api<ConfigMap> = kube::Api::default_namespaced(cluster.client());
    api.delete(name, &Default::default()).await.unwrap();
}

/// Waits, in the runtime's own time, until something holds.
pub async fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..60_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("never happened: {what}");
}

/// Lets everything happen that is about to.
pub async fn settle() {
    tokio::time::sleep(Duration::from_millis(100)).await;
}

/// Writes down what it is told: `+` for new, `~` for changed, `-` for gone; and what is wrong.
#[derive(Default)]
pub struct Notes {
    deltas: Mutex<Vec<String>>,
    pub states: Mutex<Vec<String>>,
    pub failures: Mutex<Vec<String>>,
    pub undecodable: Mutex<Vec<String>>,
}

impl Notes {
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.deltas.lock().unwrap())
    }

    pub fn len(&self) -> usize {
        self.deltas.lock().unwrap().len()
    }
}

impl<K> Subscriber<K> for Notes {
    fn changed(&self, delta: &Delta<K>) {
        // Every cluster has objects of its own in other namespaces.
        if delta.key.namespace().is_some_and(|namespace| namespace.starts_with("kube-")) {
            return;
        }
        let sign = match (&delta.old, &delta.new) {
            (None, _) => '+',
            (Some(_), Some(_)) => '~',
            (Some(_), None) => '-',
        };
        let by = if delta.origin.is_some() { " by us" } else { "" };
        let initial = if delta.initial { " initial" } else { "" };
        self.deltas.lock().unwrap().push(format!("{sign}{}{by}{initial}", delta.key.name()));
    }

    fn own(&self, key: &ObjectKey, _version: u64, _origin: &Origin) {
        self.deltas.lock().unwrap().push(format!("own {}", key.name()));
    }
}

impl Observer for Notes {
    fn state(&self, target: &Target, state: &State) {
        let word = match state {
            State::Syncing => "syncing",
            State::Live => "live",
            State::Failing { .. } => "failing",
            State::Absent => "absent",
        };
        self.states.lock().unwrap().push(format!("{} {word}", target.kind));
    }

    fn watch_failed(&self, target: &Target, error: &source::Error) {
        self.failures.lock().unwrap().push(format!("{}: {error}", target.kind));
    }

    fn undecodable(&self, target: &Target, object: &ObjectReference, error: &str) {
        let name = object.name.as_deref().unwrap_or_default();
        self.undecodable.lock().unwrap().push(format!("{} {name}: {error}", target.kind));
    }
}
