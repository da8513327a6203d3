//! DaemonSets.

use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::world::World;

fn agent(more: Value) -> Value {
    let mut agent = json!({
        "metadata": {"name": "agent"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {"containers": [{"name": "c", "image": "one"}]},
            },
        },
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        agent["spec"][key] = value.clone();
    }
    agent
}

fn image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}})
}

fn image_of(pod: &Pod) -> &str {
    pod.spec.as_ref().unwrap().containers[0].image.as_deref().unwrap()
}

fn nodes_of(pods: &[Pod]) -> Vec<&str> {
    let mut nodes: Vec<&str> =
        pods.iter().map(|pod| pod.spec.as_ref().unwrap().node_name.as_deref().unwrap_or_default()).collect();
    nodes.sort_unstable();
    nodes
}

fn counts(set: &DaemonSet) -> (i32, i32, i32, i32) {
    let status = set.status.clone().unwrap_or_default();
    let updated = status.updated_number_scheduled.unwrap_or_default();
    (status.desired_number_scheduled, status.current_number_scheduled, updated, status.number_ready)
}

fn is_done(nodes: i32) -> impl Fn(&DaemonSet) -> bool {
    move |set| {
        set.status.as_ref().is_some_and(|status| status.observed_generation == set.metadata.generation)
            && counts(set) == (nodes, nodes, nodes, nodes)
    }
}

async fn running(more: Value) -> World {
    let mut world = World::with(["daemonset", "scheduler"]).await;
    world.pods_are_ready(|pod| {
        pod.spec.as_ref().unwrap().node_name.is_some() && !image_of(pod).starts_with("bad")
    });
    for name in ["a", "b", "c"] {
        world.node(name, json!({})).await;
    }
    world.create::<DaemonSet>(agent(more)).await;
    world.until::<DaemonSet>("agent", "a pod on each node", is_done(3)).await;
    world
}

#[tokio::test]
async fn has_a_pod_on_each_node_that_takes_it() {
    let world = running(json!({})).await;
    let pods = world.list::<Pod>();
    assert_eq!(nodes_of(&pods), ["a", "b", "c"]);
    let spec = pods[0].spec.as_ref().unwrap();
    let affinity = serde_json::to_value(spec.affinity.as_ref().unwrap()).unwrap();
    let fields =
        "/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0/key";
    assert_eq!(affinity.pointer(fields), Some(&json!("metadata.name")));
    let keys: Vec<&str> =
        spec.tolerations.as_ref().unwrap().iter().map(|one| one.key.as_deref().unwrap_or_default()).collect();
    let tail = |name: &str| format!("node.kubernetes.io/{name}");
    let wanted =
        ["not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure", "unschedulable"]
            .map(tail);
    assert_eq!(keys, wanted);

    // A new node gets one, a tainted one loses its own, a cordoned one keeps it.
    world.node("d", json!({})).await;
    world.until::<DaemonSet>("agent", "four", is_done(4)).await;
    let nodes: Api<Node> = Api::all(world.cluster.client());
    let taint = json!({"spec": {"taints": [{"key": "broken", "effect": "NoExecute"}]}});
    nodes.patch("a", &PatchParams::default(), &Patch::Merge(taint)).await.unwrap();
    let cordon = json!({"spec": {"unschedulable": true, "taints": [
        {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
    ]}});
    nodes.patch("b", &PatchParams::default(), &Patch::Merge(cordon)).await.unwrap();
    world.until::<DaemonSet>("agent", "three", is_done(3)).await;
    let pods = world.until_all::<Pod>("three pods", |pods| pods.len() == 3).await;
    assert_eq!(nodes_of(&pods), ["b", "c", "d"]);
    let told = world.stop().await;
    assert!(told.iter().filter(|note| note.starts_with("Created pod: agent-")).count() >= 4, "{told:?}");
}

#[tokio::test]
async fn only_nodes_that_are_selected() {
    let world = running(json!({})).await;
    world
        .patch::<DaemonSet>(
            "agent",
            json!({"spec": {"template": {"spec": {"nodeSelector": {"kubernetes.io/hostname": "b"}}}}}),
        )
        .await;
    world.until::<DaemonSet>("agent", "one", is_done(1)).await;
    let pods = world.until_all::<Pod>("one pod", |pods| pods.len() == 1).await;
    assert_eq!(nodes_of(&pods), ["b"]);
    world.stop().await;
}

#[tokio::test]
async fn rolls_one_by_one_and_remembers() {
    let world = running(json!({})).await;
    world.patch::<DaemonSet>("agent", image("bad")).await;
    let one_bad = |pods: &[Pod]| {
        let bad = pods.iter().filter(|pod| image_of(pod) == "bad").count();
        bad == 1 && pods.len() == 3
    };
    world.until_all::<Pod>("one is replaced", one_bad).await;
    // It never gets ready, so that the others stay.
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    assert!(one_bad(&world.list::<Pod>()));
    world.patch::<DaemonSet>("agent", image("two")).await;
    world.until::<DaemonSet>("agent", "rolled out", is_done(3)).await;
    assert!(world.list::<Pod>().iter().all(|pod| image_of(pod) == "two"));
    let mut revisions = world.list::<ControllerRevision>();
    revisions.sort_by_key(|one| one.revision);
    assert_eq!(revisions.iter().map(|one| one.revision).collect::<Vec<_>>(), [1, 2, 3]);
    let first = &revisions[0].data.as_ref().unwrap().0;
    assert_eq!(first.pointer("/spec/template/$patch"), Some(&json!("replace")));

    // Back to the first: it is the latest again, under its old name.
    let name = revisions[0].metadata.name.clone();
    world.patch::<DaemonSet>("agent", image("one")).await;
    let is_back = |all: &[ControllerRevision]| {
        all.len() == 3 && all.iter().any(|one| one.metadata.name == name && one.revision == 4)
    };
    world.until_all::<ControllerRevision>("the first is the fourth", is_back).await;
    world.until::<DaemonSet>("agent", "rolled back", is_done(3)).await;
    world.stop().await;
}

#[tokio::test]
async fn on_delete_waits_for_somebody_to_delete() {
    let world = running(json!({"updateStrategy": {"type": "OnDelete"}})).await;
    world.patch::<DaemonSet>("agent", image("two")).await;
    let observed = |set: &DaemonSet| {
        set.status.as_ref().unwrap().observed_generation == set.metadata.generation
            && counts(set) == (3, 3, 0, 3)
    };
    world.until::<DaemonSet>("agent", "none updated", observed).await;
    let pods = world.list::<Pod>();
    let name = pods[0].metadata.name.as_deref().unwrap();
    world.api::<Pod>().delete(name, &DeleteParams::default()).await.unwrap();
    world.until::<DaemonSet>("agent", "one updated", |set| counts(set) == (3, 3, 1, 3)).await;
    world.stop().await;
}

#[tokio::test]
async fn with_surge_a_node_is_never_without() {
    let world =
        running(json!({"updateStrategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}})).await;
    world.patch::<DaemonSet>("agent", image("two")).await;
    let mut least = 3;
    for _ in 0..2000 {
        let pods = world.list::<Pod>();
        let ready = pods.iter().filter(|pod| {
            let conditions =
                pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
            pod.metadata.deletion_timestamp.is_none() && conditions.iter().any(|one| one.type_ == "Ready")
        });
        least = least.min(ready.count());
        if pods.len() == 3 && pods.iter().all(|pod| image_of(pod) == "two") {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    world.until::<DaemonSet>("agent", "rolled out", is_done(3)).await;
    assert_eq!(least, 3);
    world.stop().await;
}

#[tokio::test]
async fn a_failed_pod_is_replaced() {
    let world = running(json!({})).await;
    let name = world.list::<Pod>()[0].metadata.name.clone().unwrap();
    let failed = json!({"status": {"phase": "Failed"}});
    world.api::<Pod>().patch_status(&name, &PatchParams::default(), &Patch::Merge(failed)).await.unwrap();
    let replaced =
        |pods: &[Pod]| pods.len() == 3 && pods.iter().all(|pod| pod.metadata.name.as_ref() != Some(&name));
    world.until_all::<Pod>("another pod", replaced).await;
    world.until::<DaemonSet>("agent", "a pod on each node", is_done(3)).await;
    let told = world.stop().await;
    let note = format!("Found failed daemon pod default/{name} on node ");
    assert!(
        told.iter().any(|one| one.starts_with(&note) && one.ends_with(", will try to kill it")),
        "{told:?}"
    );
}
