//! Nodes and what becomes of their pods, on a server in this process.

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::world::{World, eventually};

/// A node that says this of its readiness.
async fn node(world: &World, name: &str, ready: &str) {
    let nodes: Api<Node> = Api::all(world.cluster.client());
    let node = json!({"metadata": {"name": name, "labels": {"kubernetes.io/os": "linux"}}});
    nodes.create(&PostParams::default(), &serde_json::from_value(node).unwrap()).await.unwrap();
    let now = jiff::Timestamp::now().to_string();
    let status = json!({"status": {"conditions": [
        {"type": "Ready", "status": ready, "lastHeartbeatTime": now, "lastTransitionTime": now},
    ]}});
    nodes.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
}

fn taints(world: &World, name: &str) -> Vec<String> {
    let node = world.cluster.world().get::<Node>("", name).unwrap();
    let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
    taints.into_iter().map(|taint| format!("{}:{}", taint.key, taint.effect)).collect()
}

async fn patch(world: &World, name: &str, patch: Value) {
    let nodes: Api<Node> = Api::all(world.cluster.client());
    nodes.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

fn pod(node: &str) -> Value {
    json!({
        "metadata": {"name": "p", "finalizers": ["example.com/seen"]},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "busybox"}]},
    })
}

#[tokio::test]
async fn a_node_that_is_not_ready_is_tainted_until_it_is() {
    let world = World::with(["nodelifecycle"]).await;
    node(&world, "a", "True").await;
    node(&world, "b", "False").await;
    let not_ready = "node.kubernetes.io/not-ready";
    let both = [format!("{not_ready}:NoSchedule"), format!("{not_ready}:NoExecute")];
    eventually(&world.cluster, "tainted", || taints(&world, "b") == both).await;
    assert!(taints(&world, "a").is_empty());
    let labels = world.cluster.world().get::<Node>("", "b").unwrap().metadata.labels.unwrap();
    assert_eq!(labels.get("beta.kubernetes.io/os").map(String::as_str), Some("linux"));
    patch(&world, "b", json!({"spec": {"unschedulable": true}})).await;
    eventually(&world.cluster, "cordoned", || taints(&world, "b").len() == 3).await;
    let nodes: Api<Node> = Api::all(world.cluster.client());
    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    nodes.patch_status("b", &PatchParams::default(), &Patch::Merge(ready)).await.unwrap();
    let left = ["node.kubernetes.io/unschedulable:NoSchedule"];
    eventually(&world.cluster, "only cordoned", || taints(&world, "b") == left).await;
    let told = world.stop().await;
    assert!(told.contains(&"Node b event: Registered Node b in Controller".to_owned()), "{told:?}");
}

#[tokio::test]
async fn nobody_is_driven_away_when_no_node_is_ready() {
    let world = World::with(["nodelifecycle"]).await;
    node(&world, "a", "False").await;
    let only = ["node.kubernetes.io/not-ready:NoSchedule"];
    eventually(&world.cluster, "tainted", || taints(&world, "a") == only).await;
    world.stop().await;
}

#[tokio::test]
async fn a_taint_drives_pods_away() {
    let world = World::with(["taint-eviction"]).await;
    node(&world, "a", "True").await;
    world.create::<Pod>(pod("a")).await;
    patch(&world, "a", json!({"spec": {"taints": [{"key": "k", "value": "v", "effect": "NoExecute"}]}}))
        .await;
    let gone = world.until::<Pod>("p", "going", |pod| pod.metadata.deletion_timestamp.is_some()).await;
    let conditions = gone.status.unwrap().conditions.unwrap();
    let why = conditions.iter().find(|condition| condition.type_ == "DisruptionTarget").unwrap();
    assert_eq!(why.reason.as_deref(), Some("DeletionByTaintManager"));
    let told = world.stop().await;
    assert_eq!(told, ["Marking for deletion Pod default/p"]);
}

#[tokio::test]
async fn a_pod_that_should_end_and_has_no_node_is_ended() {
    let world = World::with(["podgc"]).await;
    world.create::<Pod>(pod("")).await;
    world.api::<Pod>().delete("p", &Default::default()).await.unwrap();
    world
        .until::<Pod>("p", "failed", |pod| {
            pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Failed"))
        })
        .await;
    world.stop().await;
}
