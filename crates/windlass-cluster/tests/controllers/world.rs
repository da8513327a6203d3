//! What the tests share: a server, controllers, and somebody who answers for the pods.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
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

    /// From now on every pod is ready that `is_well`, and one that is deleted goes.
    pub fn pods_are_ready(&mut self, is_well: impl Fn(&Pod) -> bool + Send + 'static) {
        let (cluster, pods) = (self.cluster.clone(), self.api::<Pod>());
        let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        self.kubelet = Some(tokio::spawn(async move {
            loop {
                for pod in cluster.world().list::<Pod>(Some("default")) {
                    let name = pod.metadata.name.clone().unwrap_or_default();
                    if pod.metadata.deletion_timestamp.is_some() {
                        let _ = pods.delete(&name, &now).await;
                        continue;
                    }
                    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref());
                    let told = conditions.is_some_and(|all| all.iter().any(|one| one.type_ == "Ready"));
                    if told || !is_well(&pod) {
                        continue;
                    }
                    let status = json!({"status": {"phase": "Running", "conditions": [
                        {"type": "Ready", "status": "True", "lastTransitionTime": jiff::Timestamp::now().to_string()},
                    ]}});
                    // A pod may be gone by now.
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

    /// A node that is ready, and has one processor, unless more is said of it.
    pub async fn node(&self, name: &str, more: Value) {
        let nodes: Api<Node> = Api::all(self.cluster.client());
        let mut node = json!({
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "spec": {},
            "status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "10"}},
        });
        for part in ["metadata", "spec", "status"] {
            for (key, value) in more[part].as_object().into_iter().flatten() {
                match (&mut node[part][key], value) {
                    (Value::Object(has), Value::Object(more)) => has.extend(more.clone()),
                    (has, value) => *has = value.clone(),
                }
            }
        }
        let status = json!({"status": node["status"]});
        // A new node is not ready: the server says so by a taint, and nobody else is here to take it away.
        let taints = json!({"spec": {"taints": more["spec"]["taints"]}});
        let node: Node = serde_json::from_value(node).unwrap();
        nodes.create(&PostParams::default(), &node).await.unwrap();
        nodes.patch(name, &PatchParams::default(), &Patch::Merge(taints)).await.unwrap();
        nodes.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
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
