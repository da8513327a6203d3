//! A cache on a cluster, and someone who writes down what it tells.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use windlass::Env;
use windlass::cache::{Cache, Delta, Observer, Subscriber};
use windlass::core::{ObjectKey, Origin};
use windlass::env::Task;
use windlass_testing::TestCluster;

pub const MANAGER: &str = "test-operator";

/// The time of a test: paused, and the same each time.
pub fn env() -> Env {
    Env::seeded(7, "2026-01-01T00:00:00Z".parse().unwrap())
}

pub fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("default", name)
}

pub fn start(cache: &Cache, cluster: &TestCluster) -> Task<()> {
    start_with(cache, cluster.client(), Arc::new(()))
}

pub fn start_with(cache: &Cache, client: kube::Client, observer: Arc<dyn Observer>) -> Task<()> {
    cache.start(client, &env(), observer)
}

pub async fn config_map(cluster: &TestCluster, name: &str, value: &str) {
    let yaml =
        format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}, data: {{is: {value}}}}}");
    cluster.apply_yaml(&yaml).await.unwrap();
}

pub async fn delete_config_map(cluster: &TestCluster, name: &str) {
    let api: kube::Api<ConfigMap> = kube::Api::default_namespaced(cluster.client());
    api.delete(name, &Default::default()).await.unwrap();
}

/// Waits, in the runtime's own time, until something holds.
pub async fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..2000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("never happened: {what}");
}

/// Writes down what it is told: `+` for new, `~` for changed, `-` for gone.
#[derive(Default)]
pub struct Notes(Mutex<Vec<String>>);

impl Notes {
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    pub fn len(&self) -> usize {
        self.0.lock().unwrap().len()
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
        self.0.lock().unwrap().push(format!("{sign}{}{by}{initial}", delta.key.name()));
    }

    fn own(&self, key: &ObjectKey, _version: u64, _origin: &Origin) {
        self.0.lock().unwrap().push(format!("own {}", key.name()));
    }
}
