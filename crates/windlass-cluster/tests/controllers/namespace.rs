//! Namespaces on a server in this process.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Secret};
use kube::api::{Api, DeleteParams, ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::json;
use windlass::Env;
use windlass_cluster::{Controllers, Running};
use windlass_testing::TestCluster;

use crate::world::eventually;

async fn cluster() -> (TestCluster, Running) {
    let cluster = TestCluster::new().await;
    let running = Controllers::named(["namespace"]).unwrap().start(cluster.client(), &Env::system());
    let namespace = Namespace {
        metadata: ObjectMeta { name: Some("team".into()), ..ObjectMeta::default() },
        ..Namespace::default()
    };
    Api::all(cluster.client()).create(&PostParams::default(), &namespace).await.unwrap();
    (cluster, running)
}

fn is_gone(cluster: &TestCluster) -> bool {
    cluster.world().get::<Namespace>("", "team").is_none()
}

async fn delete(cluster: &TestCluster) {
    Api::<Namespace>::all(cluster.client()).delete("team", &DeleteParams::default()).await.unwrap();
}

#[tokio::test]
async fn all_content_goes_and_then_the_namespace() {
    let (cluster, running) = cluster().await;
    for name in ["a", "b"] {
        let map = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        Api::<ConfigMap>::namespaced(cluster.client(), "team")
            .create(&PostParams::default(), &map)
            .await
            .unwrap();
    }
    let secret = serde_json::from_value(json!({"metadata": {"name": "s"}})).unwrap();
    Api::<Secret>::namespaced(cluster.client(), "team")
        .create(&PostParams::default(), &secret)
        .await
        .unwrap();
    delete(&cluster).await;
    eventually(&cluster, "gone", || is_gone(&cluster)).await;
    assert!(cluster.world().list::<ConfigMap>(Some("team")).is_empty());
    assert!(cluster.world().list::<Secret>(Some("team")).is_empty());
    assert!(cluster.world().get::<Namespace>("", "default").is_some());
    running.stop().await;
}

#[tokio::test]
async fn what_holds_it_is_told() {
    let (cluster, running) = cluster().await;
    let map = json!({"metadata": {"name": "a", "finalizers": ["example.com/held"]}});
    let maps = Api::<ConfigMap>::namespaced(cluster.client(), "team");
    maps.create(&PostParams::default(), &serde_json::from_value(map).unwrap()).await.unwrap();
    delete(&cluster).await;
    let told = || {
        let namespace = cluster.world().get::<Namespace>("", "team").unwrap();
        let conditions = namespace.status.unwrap().conditions.unwrap_or_default();
        conditions
            .into_iter()
            .filter(|condition| condition.status == "True")
            .map(|condition| {
                format!("{} {}: {}", condition.type_, condition.reason.unwrap(), condition.message.unwrap())
            })
            .collect::<Vec<_>>()
    };
    eventually(&cluster, "told", || !told().is_empty()).await;
    assert_eq!(
        told(),
        [
            "NamespaceContentRemaining SomeResourcesRemain: Some resources are remaining: configmaps. has 1 resource \
             instances",
            "NamespaceFinalizersRemaining SomeFinalizersRemain: Some content in the namespace has finalizers remaining: \
             example.com/held in 1 resource instances",
        ]
    );
    let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    maps.patch("a", &PatchParams::default(), &patch).await.unwrap();
    eventually(&cluster, "gone", || is_gone(&cluster)).await;
    running.stop().await;
}

#[tokio::test]
async fn pods_go_before_the_rest() {
    let (cluster, running) = cluster().await;
    let pod = json!({
        "metadata": {"name": "p"},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "busybox"}]},
    });
    let pods = Api::<Pod>::namespaced(cluster.client(), "team");
    pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    let map = serde_json::from_value(json!({"metadata": {"name": "a"}})).unwrap();
    Api::<ConfigMap>::namespaced(cluster.client(), "team")
        .create(&PostParams::default(), &map)
        .await
        .unwrap();
    delete(&cluster).await;
    let ends = || cluster.world().get::<Pod>("team", "p").unwrap().metadata.deletion_timestamp.is_some();
    eventually(&cluster, "the pod ends", ends).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(cluster.world().get::<ConfigMap>("team", "a").is_some(), "the pod may need it while it ends");
    pods.delete("p", &DeleteParams::default().grace_period(0)).await.unwrap();
    eventually(&cluster, "gone", || is_gone(&cluster)).await;
    running.stop().await;
}
