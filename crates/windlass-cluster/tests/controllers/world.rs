//! What the tests share: a server, controllers, and somebody who answers for the pods.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass::{Env, Object};
use windlass_cluster::{Controllers, Running};
use windlass_testing::TestCluster;

/// A server, and controllers at work on it.
pub struct World {
    pub cluster: TestCluster,
    running: Option<Running>,
    kubelet: Option<tokio::task::JoinHandle<()>>,
}

impl World {
    /// A server with these controllers.
    pub async fn with<const N: usize>(controllers: [&str; N]) -> World {
        let cluster = TestCluster::new().await;
        let running = Controllers::named(controllers).unwrap().start(cluster.client(), &Env::system());
        World { cluster, running: Some(running), kubelet: None }
    }

    /// From now on every pod is ready that `is_well`.
    pub fn pods_are_ready(&mut self, is_well: impl Fn(&Pod) -> bool + Send + 'static) {
        let (cluster, pods) = (self.cluster.clone(), self.api::<Pod>());
        self.kubelet = Some(tokio::spawn(async move {
            loop {
                for pod in cluster.world().list::<Pod>(Some("default")) {
                    let told = pod.status.as_ref().is_some_and(|status| status.conditions.is_some());
                    if told || !is_well(&pod) {
                        continue;
                    }
                    let status = json!({"status": {"phase": "Running", "conditions": [
                        {"type": "Ready", "status": "True", "lastTransitionTime": jiff::Timestamp::now().to_string()},
                    ]}});
                    // A pod may be gone by now.
                    let name = pod.metadata.name.unwrap_or_default();
                    let _ = pods.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }));
    }

    pub fn api<K: Object<Scope = k8s_openapi::NamespaceResourceScope>>(&self) -> Api<K> {
        Api::default_namespaced(self.cluster.client())
    }

    pub async fn create<K>(&self, object: Value) -> K
    where
        K: Object<Scope = k8s_openapi::NamespaceResourceScope> + DeserializeOwned,
    {
        let object: K = serde_json::from_value(object).unwrap();
        self.api::<K>().create(&PostParams::default(), &object).await.unwrap()
    }

    pub async fn patch<K>(&self, name: &str, patch: Value) -> K
    where
        K: Object<Scope = k8s_openapi::NamespaceResourceScope> + DeserializeOwned,
    {
        self.api::<K>().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap()
    }

    /// The objects of a kind.
    pub fn list<K: Object + DeserializeOwned>(&self) -> Vec<K> {
        self.cluster.world().list::<K>(Some("default"))
    }

    /// Waits until one object is as it should be.
    pub async fn until<K: Object + DeserializeOwned>(
        &self,
        name: &str,
        what: &str,
        is: impl Fn(&K) -> bool,
    ) -> K {
        self.cluster.wait_for("default", name, what, is).await.unwrap()
    }

    /// Waits until all objects of a kind together are as they should be.
    pub async fn until_all<K: Object + DeserializeOwned>(
        &self,
        what: &str,
        is: impl Fn(&[K]) -> bool,
    ) -> Vec<K> {
        for _ in 0..1000 {
            let all = self.list::<K>();
            if is(&all) {
                return all;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("not so after ten seconds: {what}\n{}", self.cluster.world().dump());
    }

    /// Ends the controllers; all that they told until then.
    pub async fn stop(mut self) -> Vec<String> {
        if let Some(kubelet) = self.kubelet.take() {
            kubelet.abort();
        }
        self.running.take().unwrap().stop().await;
        let events = self.cluster.world().list::<Event>(None);
        events.into_iter().filter_map(|event| event.message).collect()
    }
}

/// Waits until something is so of a whole cluster.
pub async fn eventually(cluster: &TestCluster, what: &str, is: impl Fn() -> bool) {
    for _ in 0..1000 {
        if is() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("not so after ten seconds: {what}\n{}", cluster.world().dump());
}
