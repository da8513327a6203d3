//! ReplicaSets on a server in this process.

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use windlass::Env;
use windlass_cluster::{Controllers, Running};
use windlass_testing::TestCluster;

async fn cluster() -> (TestCluster, Running) {
    let cluster = TestCluster::new().await;
    let running = Controllers::named(["replicaset"]).unwrap().start(cluster.client(), &Env::system());
    (cluster, running)
}

fn web(replicas: i32) -> ReplicaSet {
    serde_json::from_value(json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "busybox"}]},
            },
        },
    }))
    .unwrap()
}

fn replicas(count: i32) -> impl Fn(&ReplicaSet) -> bool {
    move |set| set.status.as_ref().is_some_and(|status| status.replicas == count)
}

#[tokio::test]
async fn has_as_many_pods_as_it_wants() {
    let (cluster, running) = cluster().await;
    let sets: Api<ReplicaSet> = Api::default_namespaced(cluster.client());
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    sets.create(&PostParams::default(), &web(3)).await.unwrap();
    cluster.wait_for("default", "web", "three replicas", replicas(3)).await.unwrap();
    assert_eq!(pods.list(&Default::default()).await.unwrap().items.len(), 3);

    let patch = Patch::Merge(json!({"spec": {"replicas": 1}}));
    sets.patch("web", &PatchParams::default(), &patch).await.unwrap();
    cluster.wait_for("default", "web", "one replica", replicas(1)).await.unwrap();

    let last = &pods.list(&Default::default()).await.unwrap().items[0];
    let lost = last.metadata.name.clone().unwrap();
    pods.delete(&lost, &DeleteParams::default()).await.unwrap();
    let replaced = |world: &[Pod]| world.len() == 1 && world[0].metadata.name.as_deref() != Some(&lost);
    for _ in 0..200 {
        if replaced(&cluster.world().list::<Pod>(Some("default"))) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert!(replaced(&cluster.world().list::<Pod>(Some("default"))), "{}", cluster.world().dump());
    running.stop().await;
    let told: Vec<String> =
        cluster.world().list::<Event>(None).into_iter().filter_map(|event| event.message).collect();
    assert!(told.iter().any(|note| note.starts_with("Created pod: web-")), "{told:?}");
    assert!(
        told.iter()
            .any(|note| note == &format!("Deleted pod: {lost}") || note.starts_with("Deleted pod: web-"))
    );
}

#[tokio::test]
async fn adopts_what_matches_and_releases_what_no_longer_does() {
    let (cluster, running) = cluster().await;
    let sets: Api<ReplicaSet> = Api::default_namespaced(cluster.client());
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    let lonely: Pod = serde_json::from_value(json!({
        "metadata": {"name": "lonely", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "busybox"}]},
    }))
    .unwrap();
    pods.create(&PostParams::default(), &lonely).await.unwrap();
    sets.create(&PostParams::default(), &web(1)).await.unwrap();
    let owned =
        |pod: &Pod| pod.metadata.owner_references.as_ref().is_some_and(|owners| owners[0].name == "web");
    cluster.wait_for("default", "lonely", "adopted", owned).await.unwrap();
    cluster.wait_for("default", "web", "one replica", replicas(1)).await.unwrap();

    let patch = Patch::Merge(json!({"metadata": {"labels": {"app": "other"}}}));
    pods.patch("lonely", &PatchParams::default(), &patch).await.unwrap();
    let free = |pod: &Pod| pod.metadata.owner_references.is_none();
    cluster.wait_for("default", "lonely", "released", free).await.unwrap();
    cluster.wait_for("default", "web", "one replica", replicas(1)).await.unwrap();
    running.stop().await;
}
