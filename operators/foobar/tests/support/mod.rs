//! What the tests of FooBar share.

#![allow(dead_code, reason = "not every test uses all of it")]

use std::time::Duration;

use foobar_operator::api::FooBar;
use foobar_operator::goal;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use windlass_testing::TestCluster;

/// A cluster, and hands on it.
pub struct World {
    pub cluster: TestCluster,
    pub foobars: Api<FooBar>,
    pub maps: Api<ConfigMap>,
}

impl World {
    pub fn of(cluster: TestCluster) -> World {
        let client = cluster.client();
        World {
            cluster,
            foobars: Api::default_namespaced(client.clone()),
            maps: Api::default_namespaced(client),
        }
    }

    pub async fn create(&self, name: &str, target: &str) {
        let spec = json!({"target": target, "type": "host"});
        self.apply(name, spec).await;
    }

    pub async fn apply(&self, name: &str, spec: Value) {
        let foobar = json!({"apiVersion": "test.example.com/v1", "kind": "FooBar", "metadata": {"name": name}, "spec": spec});
        let params = PatchParams::apply("user").force();
        self.foobars.patch(name, &params, &Patch::Apply(&foobar)).await.unwrap();
    }

    pub async fn delete(&self, name: &str) {
        self.foobars.delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub async fn child(&self, name: &str) -> Option<ConfigMap> {
        self.maps.get_opt(&format!("{name}-foobar")).await.unwrap()
    }

    pub async fn is_done(&self, name: &str) -> bool {
        let Some(foobar) = self.foobars.get_opt(name).await.unwrap() else { return false };
        goal::done(&foobar, self.child(name).await.as_ref())
    }

    pub async fn is_gone(&self, name: &str) -> bool {
        self.foobars.get_opt(name).await.unwrap().is_none() && self.child(name).await.is_none()
    }

    pub async fn until_done(&self, name: &str) {
        self.until("the FooBar is done", async || self.is_done(name).await).await;
    }

    /// Waits until something holds. On paused time this takes no time.
    pub async fn until(&self, what: &str, holds: impl AsyncFn() -> bool) {
        for _ in 0..3000 {
            if holds().await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("not within half a minute: {what}\n{}", self.cluster.dump());
    }

    /// The FooBars and ConfigMaps as they are, without what is never the same twice.
    pub fn objects(&self) -> Value {
        let world = self.cluster.world();
        let foobars = world.list::<FooBar>(Some("default"));
        let maps = world.list::<ConfigMap>(Some("default"));
        let mut objects = json!({"foobars": foobars, "maps": maps});
        strip(&mut objects);
        objects
    }

    /// The writes that the server received so far, by verb and resource.
    pub fn writes(&self) -> Vec<String> {
        let requests = self.cluster.requests();
        let writes = requests.iter().filter(|one| !matches!(one.verb, "get" | "list" | "watch"));
        writes.map(|one| format!("{} {}/{} {}", one.verb, one.resource, one.subresource, one.name)).collect()
    }
}

/// Removes what is never the same twice.
fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !matches!(name.as_str(), "uid" | "resourceVersion" | "managedFields"));
            fields.retain(|name, _| !name.ends_with("Timestamp") && name != "lastTransitionTime");
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}
