//! The scheduler.

use k8s_openapi::api::core::v1::{Event, Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::world::World;

fn pod(name: &str, spec: Value) -> Value {
    let mut pod = json!({
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "one"}]},
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        pod["spec"][key] = value.clone();
    }
    pod
}

fn asks(cpu: &str) -> Value {
    json!({"containers": [{"name": "c", "image": "one", "resources": {"requests": {"cpu": cpu}}}]})
}

fn node_of(pod: &Pod) -> &str {
    pod.spec.as_ref().unwrap().node_name.as_deref().unwrap_or_default()
}

fn why(pod: &Pod) -> &str {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let scheduled = conditions.iter().find(|one| one.type_ == "PodScheduled" && one.status == "False");
    scheduled.map_or("", |one| one.message.as_deref().unwrap_or_default())
}

async fn placed(world: &World, name: &str) -> String {
    let pod = world.until::<Pod>(name, "has a node", |pod| !node_of(pod).is_empty()).await;
    node_of(&pod).to_owned()
}

#[tokio::test]
async fn spreads_pods_and_says_so() {
    let world = World::with(["scheduler"]).await;
    world.node("a", json!({})).await;
    world.node("b", json!({})).await;
    for name in ["one", "two", "three", "four"] {
        world.create::<Pod>(pod(name, asks("100m"))).await;
    }
    let mut nodes = Vec::new();
    for name in ["one", "two", "three", "four"] {
        nodes.push(placed(&world, name).await);
    }
    nodes.sort();
    assert_eq!(nodes, ["a", "a", "b", "b"]);
    let one =
        world.list::<Pod>().into_iter().find(|pod| pod.metadata.name.as_deref() == Some("one")).unwrap();
    let text = format!("Successfully assigned default/one to {}", node_of(&one));
    let cluster = world.cluster.clone();
    world.stop().await;
    let events = cluster.world().list::<Event>(Some("default"));
    let told = events.iter().find(|event| event.message.as_ref() == Some(&text)).unwrap();
    assert_eq!(told.reporting_component.as_deref(), Some("default-scheduler"));
    assert_eq!(told.reason.as_deref(), Some("Scheduled"));
}

#[tokio::test]
async fn a_pod_that_does_not_fit_waits_until_there_is_room() {
    let world = World::with(["scheduler"]).await;
    world.create::<Pod>(pod("first", asks("600m"))).await;
    let none = |pod: &Pod| why(pod) == "no nodes available to schedule pods";
    world.until::<Pod>("first", "no nodes", none).await;
    world.node("a", json!({})).await;
    assert_eq!(placed(&world, "first").await, "a");
    world.create::<Pod>(pod("second", asks("600m"))).await;
    let full = "0/1 nodes are available: 1 Insufficient cpu. \
                no new claims to deallocate, preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.";
    world.until::<Pod>("second", "no room", |pod| why(pod) == full).await;
    let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    world.api::<Pod>().delete("first", &now).await.unwrap();
    assert_eq!(placed(&world, "second").await, "a");
    let told = world.stop().await;
    assert!(told.iter().any(|note| note == full), "{told:?}");
}

#[tokio::test]
async fn many_at_once_never_overfill_a_node() {
    let world = World::with(["scheduler"]).await;
    world.node("a", json!({})).await;
    world.node("b", json!({"status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "2"}}})).await;
    for number in 0..9 {
        world.create::<Pod>(pod(&format!("p{number}"), asks("250m"))).await;
    }
    let placed = |pods: &[Pod]| pods.iter().filter(|pod| !node_of(pod).is_empty()).count() == 6;
    world.until_all::<Pod>("six have a node", placed).await;
    let told =
        |pods: &[Pod]| pods.iter().filter(|pod| !why(pod).is_empty() && node_of(pod).is_empty()).count() == 3;
    let pods = world.until_all::<Pod>("three do not", told).await;
    assert_eq!(pods.iter().filter(|pod| node_of(pod) == "b").count(), 2);
    let waiting = pods.iter().find(|pod| node_of(pod).is_empty()).unwrap();
    assert!(
        why(waiting).starts_with("0/2 nodes are available: 1 Insufficient cpu, 1 Too many pods. "),
        "{}",
        why(waiting)
    );
    world.stop().await;
}

#[tokio::test]
async fn selectors_taints_and_cordons_count() {
    let world = World::with(["scheduler"]).await;
    world.node("a", json!({"metadata": {"labels": {"disk": "ssd"}}, "spec": {"unschedulable": true}})).await;
    world.node("b", json!({"spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}})).await;
    world.node("c", json!({"metadata": {"labels": {"zone": "z"}}})).await;
    world.create::<Pod>(pod("ssd", json!({"nodeSelector": {"disk": "ssd"}}))).await;
    let says = "0/3 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, \
                1 node(s) had untolerated taint(s), 1 node(s) were unschedulable. \
                no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.";
    world.until::<Pod>("ssd", "nowhere", |pod| why(pod) == says).await;
    let tolerant = json!({
        "nodeSelector": {"kubernetes.io/hostname": "b"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
    });
    world.create::<Pod>(pod("tolerant", tolerant)).await;
    assert_eq!(placed(&world, "tolerant").await, "b");
    let zone = json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}]}],
    }}}});
    world.create::<Pod>(pod("zoned", zone)).await;
    assert_eq!(placed(&world, "zoned").await, "c");
    let nodes: Api<Node> = Api::all(world.cluster.client());
    let open = Patch::Merge(json!({"spec": {"unschedulable": false, "taints": null}}));
    nodes.patch("a", &PatchParams::default(), &open).await.unwrap();
    assert_eq!(placed(&world, "ssd").await, "a");
    world.stop().await;
}

#[tokio::test]
async fn pods_that_repel_each_other_are_apart_and_those_that_attract_together() {
    let world = World::with(["scheduler"]).await;
    world.node("a", json!({})).await;
    world.node("b", json!({})).await;
    let term =
        json!([{"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}]);
    let apart =
        json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}});
    for name in ["one", "two", "three"] {
        world.create::<Pod>(pod(name, apart.clone())).await;
    }
    let two = |pods: &[Pod]| pods.iter().filter(|pod| !node_of(pod).is_empty()).count() == 2;
    world.until_all::<Pod>("two have a node", two).await;
    let third = |pods: &[Pod]| {
        pods.iter().any(|pod| why(pod).contains(": 2 node(s) didn't match pod anti-affinity rules. "))
    };
    let pods = world.until_all::<Pod>("the third has none", third).await;
    let mut nodes: Vec<&str> = pods.iter().map(node_of).collect();
    nodes.sort_unstable();
    assert_eq!(nodes, ["", "a", "b"]);

    let mut lone = pod("lone", json!({"nodeSelector": {"kubernetes.io/hostname": "b"}}));
    lone["metadata"]["labels"]["app"] = "db".into();
    world.create::<Pod>(lone).await;
    placed(&world, "lone").await;
    let db =
        json!([{"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "db"}}}]);
    let together =
        json!({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": db}}});
    let mut near = pod("near", together);
    near["metadata"]["labels"]["app"] = "cache".into();
    world.create::<Pod>(near).await;
    assert_eq!(placed(&world, "near").await, "b");
    world.stop().await;
}

#[tokio::test]
async fn constraints_keep_pods_even() {
    let world = World::with(["scheduler"]).await;
    world.node("a", json!({"status": {"allocatable": {"cpu": "9", "memory": "9Gi", "pods": "99"}}})).await;
    world.node("b", json!({})).await;
    let even = json!({"topologySpreadConstraints": [{
        "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }]});
    for number in 0..6 {
        world.create::<Pod>(pod(&format!("p{number}"), even.clone())).await;
    }
    let all = |pods: &[Pod]| pods.iter().all(|pod| !node_of(pod).is_empty()) && pods.len() == 6;
    let pods = world.until_all::<Pod>("all have a node", all).await;
    assert_eq!(pods.iter().filter(|pod| node_of(pod) == "a").count(), 3);
    world.stop().await;
}

#[tokio::test]
async fn a_pod_follows_its_volume_and_a_claim_waits_for_its_pod() {
    let world = World::with(["scheduler"]).await;
    world.node("a", json!({})).await;
    world.node("b", json!({})).await;
    let classes: Api<StorageClass> = Api::all(world.cluster.client());
    let class: StorageClass = serde_json::from_value(json!({
        "metadata": {"name": "late"}, "provisioner": "example.com/late",
        "volumeBindingMode": "WaitForFirstConsumer",
    }))
    .unwrap();
    classes.create(&PostParams::default(), &class).await.unwrap();
    let uses = json!({"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]});
    world.create::<Pod>(pod("db", uses)).await;
    let missing = |pod: &Pod| {
        why(pod).starts_with("0/2 nodes are available: persistentvolumeclaim \"data\" not found. ")
    };
    world.until::<Pod>("db", "no claim", missing).await;
    world
        .create::<PersistentVolumeClaim>(json!({
            "metadata": {"name": "data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": "late",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }))
        .await;
    let place = |claim: &PersistentVolumeClaim| {
        claim
            .metadata
            .annotations
            .as_ref()
            .and_then(|all| all.get("volume.kubernetes.io/selected-node"))
            .cloned()
    };
    let claim = world.until::<PersistentVolumeClaim>("data", "a place", |claim| place(claim).is_some()).await;
    let place = place(&claim).unwrap();
    assert_eq!(node_of(&world.list::<Pod>()[0]), "", "the volume comes first");

    let volumes: Api<PersistentVolume> = Api::all(world.cluster.client());
    let volume: PersistentVolume = serde_json::from_value(json!({
        "metadata": {"name": "v"},
        "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "late",
            "local": {"path": "/v"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "kubernetes.io/hostname", "operator": "In", "values": [place]},
            ]}]}},
        },
    }))
    .unwrap();
    volumes.create(&PostParams::default(), &volume).await.unwrap();
    let bound = json!({
        "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": "v"},
    });
    world.patch::<PersistentVolumeClaim>("data", bound).await;
    assert_eq!(placed(&world, "db").await, place);
    world.stop().await;
}
