//! StatefulSets.

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::world::World;

fn web(replicas: i32, more: Value) -> Value {
    let mut web = json!({
        "metadata": {"name": "web"},
        "spec": {
            "serviceName": "nginx",
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "one"}]},
            },
            "volumeClaimTemplates": [{
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            }],
        },
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        web["spec"][key] = value.clone();
    }
    web
}

fn image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}})
}

fn image_of(pod: &Pod) -> &str {
    pod.spec.as_ref().unwrap().containers[0].image.as_deref().unwrap()
}

fn names<K: windlass::Object>(objects: &[K]) -> Vec<String> {
    objects.iter().map(|object| object.meta().name.clone().unwrap()).collect()
}

/// All pods are there, ready, and of the newest revision.
fn is_done(set: &StatefulSet) -> bool {
    let (spec, status) = (set.spec.as_ref().unwrap(), set.status.as_ref());
    status.is_some_and(|status| {
        status.observed_generation == set.metadata.generation
            && status.replicas == spec.replicas.unwrap()
            && status.ready_replicas.unwrap_or_default() == status.replicas
            && status.current_revision == status.update_revision
    })
}

async fn running(replicas: i32, more: Value) -> World {
    let mut world = World::with(["statefulset"]).await;
    world.pods_are_ready(|pod| !image_of(pod).starts_with("bad"));
    world.create::<StatefulSet>(web(replicas, more)).await;
    world.until::<StatefulSet>("web", "done", is_done).await;
    world
}

#[tokio::test]
async fn pods_have_names_and_claims_of_their_own() {
    let world = running(2, json!({})).await;
    let pods = world.list::<Pod>();
    assert_eq!(names(&pods), ["web-0", "web-1"]);
    assert_eq!(names(&world.list::<PersistentVolumeClaim>()), ["data-web-0", "data-web-1"]);
    let pod = serde_json::to_value(&pods[1]).unwrap();
    assert_eq!(pod["spec"]["hostname"], "web-1");
    assert_eq!(pod["spec"]["subdomain"], "nginx");
    assert_eq!(pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"], "web-1");
    assert_eq!(pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"], "1");
    let revisions = names(&world.list::<ControllerRevision>());
    assert_eq!(pod["metadata"]["labels"]["controller-revision-hash"], json!(revisions[0]));
    assert_eq!(pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"], "data-web-1");

    // A pod that is gone comes back with its name and its claim.
    let claims = world.list::<PersistentVolumeClaim>();
    world.api::<Pod>().delete("web-0", &DeleteParams::default()).await.unwrap();
    let old = pods[0].metadata.uid.clone();
    world.until::<Pod>("web-0", "another", |pod| pod.metadata.uid != old).await;
    assert_eq!(names(&world.list::<PersistentVolumeClaim>()), names(&claims));
    let told = world.stop().await;
    for note in [
        "Create Claim data-web-0 Pod web-0 in StatefulSet web success",
        "Create Pod web-0 in StatefulSet web successful",
    ] {
        assert!(told.iter().any(|text| text == note), "{note}: {told:?}");
    }
}

#[tokio::test]
async fn a_pod_waits_for_the_one_before_it() {
    let mut world = World::with(["statefulset"]).await;
    world.pods_are_ready(|pod| pod.metadata.name.as_deref() != Some("web-1"));
    world.create::<StatefulSet>(web(3, json!({}))).await;
    world.until::<Pod>("web-1", "there", |_| true).await;
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    assert_eq!(names(&world.list::<Pod>()), ["web-0", "web-1"]);
    world.stop().await;
}

#[tokio::test]
async fn parallel_pods_wait_for_nobody() {
    let mut world = World::with(["statefulset"]).await;
    world.pods_are_ready(|_| false);
    world.create::<StatefulSet>(web(3, json!({"podManagementPolicy": "Parallel"}))).await;
    world.until_all::<Pod>("all three", |pods| pods.len() == 3).await;
    world.stop().await;
}

#[tokio::test]
async fn an_update_goes_from_the_last_pod_to_the_partition() {
    let world = running(3, json!({"updateStrategy": {"rollingUpdate": {"partition": 1}}})).await;
    world.patch::<StatefulSet>("web", image("two")).await;
    let updated = |set: &StatefulSet| {
        set.status.as_ref().is_some_and(|status| {
            status.updated_replicas == Some(2)
                && status.ready_replicas == Some(3)
                && status.current_replicas == Some(1)
        })
    };
    world.until::<StatefulSet>("web", "two of three", updated).await;
    let images =
        |world: &World| world.list::<Pod>().iter().map(image_of).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(images(&world), ["one", "two", "two"]);

    // Pods before the partition come back as they were, and all are new when it is gone.
    let old = world.list::<Pod>()[0].metadata.uid.clone();
    world.api::<Pod>().delete("web-0", &DeleteParams::default()).await.unwrap();
    world.until::<Pod>("web-0", "another", |pod| pod.metadata.uid != old).await;
    world.until::<StatefulSet>("web", "two of three again", updated).await;
    assert_eq!(images(&world), ["one", "two", "two"]);
    world
        .patch::<StatefulSet>("web", json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}}))
        .await;
    world.until::<StatefulSet>("web", "done", is_done).await;
    assert_eq!(images(&world), ["two", "two", "two"]);

    // Back to the first template: its revision is the newest again.
    world.patch::<StatefulSet>("web", image("one")).await;
    world.until::<StatefulSet>("web", "back", is_done).await;
    world.until_all::<Pod>("all as before", |pods| pods.iter().all(|pod| image_of(pod) == "one")).await;
    let revisions = world.list::<ControllerRevision>();
    let mut numbers: Vec<i64> = revisions.iter().map(|revision| revision.revision).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [2, 3]);
    world.stop().await;
}

#[tokio::test]
async fn claims_go_with_what_the_policy_says() {
    let policy = json!({"whenDeleted": "Delete", "whenScaled": "Delete"});
    let world = running(2, json!({"persistentVolumeClaimRetentionPolicy": policy})).await;
    let owner = |claim: &PersistentVolumeClaim| {
        let owners = claim.metadata.owner_references.clone().unwrap_or_default();
        owners.first().map(|owner| format!("{}/{}", owner.kind, owner.name)).unwrap_or_default()
    };
    world
        .until::<PersistentVolumeClaim>("data-web-1", "of the set", |claim| owner(claim) == "StatefulSet/web")
        .await;
    world.patch::<StatefulSet>("web", json!({"spec": {"replicas": 1}})).await;
    world
        .until::<PersistentVolumeClaim>("data-web-1", "of the pod", |claim| owner(claim) == "Pod/web-1")
        .await;
    world.until_all::<Pod>("one", |pods| names(pods) == ["web-0"]).await;
    world.stop().await;
}

#[tokio::test]
async fn only_as_much_history_as_is_wanted() {
    let world = running(1, json!({"revisionHistoryLimit": 1})).await;
    for one in ["two", "three", "four"] {
        world.patch::<StatefulSet>("web", image(one)).await;
        let done = |set: &StatefulSet| is_done(set);
        world.until::<StatefulSet>("web", one, done).await;
        world.until_all::<Pod>("new", |pods| pods.len() == 1 && image_of(&pods[0]) == one).await;
    }
    world.until_all::<ControllerRevision>("two revisions", |all| all.len() == 2).await;
    world.stop().await;
}
