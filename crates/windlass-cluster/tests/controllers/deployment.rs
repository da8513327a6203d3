//! Deployments.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use crate::world::World;

const REVISION: &str = "deployment.kubernetes.io/revision";

fn web(replicas: i32, more: Value) -> Value {
    let mut web = json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "one"}]},
            },
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

fn size(set: &ReplicaSet) -> i32 {
    set.spec.as_ref().unwrap().replicas.unwrap()
}

fn note<'a>(set: &'a ReplicaSet, key: &str) -> &'a str {
    set.metadata.annotations.as_ref().unwrap().get(key).map_or("", String::as_str)
}

fn condition(deployment: &Deployment, kind: &str) -> (String, String, String) {
    let conditions = deployment.status.as_ref().and_then(|status| status.conditions.clone());
    let found = conditions.unwrap_or_default().into_iter().find(|condition| condition.type_ == kind);
    found.map_or_else(Default::default, |found| {
        (found.status, found.reason.unwrap_or_default(), found.message.unwrap_or_default())
    })
}

fn is_done(deployment: &Deployment) -> bool {
    deployment
        .status
        .as_ref()
        .is_some_and(|status| status.observed_generation == deployment.metadata.generation)
        && condition(deployment, "Progressing").1 == "NewReplicaSetAvailable"
        && deployment.status.as_ref().unwrap().unavailable_replicas.is_none()
        && deployment.status.as_ref().unwrap().updated_replicas
            == deployment.status.as_ref().unwrap().replicas
}

async fn running(replicas: i32, more: Value) -> World {
    let mut world = World::with(["deployment", "replicaset"]).await;
    world.pods_are_ready(|pod| !image_of(pod).starts_with("bad"));
    world.create::<Deployment>(web(replicas, more)).await;
    world.until::<Deployment>("web", "rolled out", is_done).await;
    world
}

#[tokio::test]
async fn has_a_replica_set_with_its_template() {
    let world = running(3, json!({})).await;
    let deployment = world.until::<Deployment>("web", "available", is_done).await;
    let sets = world.list::<ReplicaSet>();
    let [set] = &*sets else { panic!("one set: {sets:?}") };
    let hash = &set.metadata.labels.as_ref().unwrap()["pod-template-hash"];
    let name = format!("web-{hash}");
    assert_eq!(set.metadata.name.as_deref(), Some(name.as_str()));
    assert_eq!(
        set.spec.as_ref().unwrap().selector.match_labels.as_ref().unwrap()["pod-template-hash"],
        *hash
    );
    assert_eq!(note(set, REVISION), "1");
    assert_eq!(note(set, "deployment.kubernetes.io/desired-replicas"), "3");
    assert_eq!(note(set, "deployment.kubernetes.io/max-replicas"), "4");
    assert_eq!(deployment.metadata.annotations.as_ref().unwrap()[REVISION], "1");
    let says = |status: &str, reason: &str, message: String| (status.to_owned(), reason.to_owned(), message);
    let enough = says("True", "MinimumReplicasAvailable", "Deployment has minimum availability.".into());
    assert_eq!(condition(&deployment, "Available"), enough);
    let done = format!("ReplicaSet {name:?} has successfully progressed.");
    assert_eq!(condition(&deployment, "Progressing"), says("True", "NewReplicaSetAvailable", done));
    let told = world.stop().await;
    assert!(told.contains(&format!("Scaled up replica set {name} from 0 to 3")), "{told:?}");
}

#[tokio::test]
async fn rolls_to_a_new_template_and_back() {
    let world = running(4, json!({})).await;
    let first = world.list::<ReplicaSet>()[0].metadata.name.clone();
    world.patch::<Deployment>("web", image("two")).await;
    world
        .until_all::<Pod>("four new pods", |pods| {
            pods.len() == 4 && pods.iter().all(|pod| image_of(pod) == "two")
        })
        .await;
    let at = |revision: &'static str| {
        move |deployment: &Deployment| {
            is_done(deployment) && deployment.metadata.annotations.as_ref().unwrap()[REVISION] == revision
        }
    };
    world.until::<Deployment>("web", "second revision", at("2")).await;

    world.patch::<Deployment>("web", image("one")).await;
    world.until::<Deployment>("web", "third revision", at("3")).await;
    let sets =
        world.until_all::<ReplicaSet>("one with pods", |sets| sets.iter().map(size).sum::<i32>() == 4).await;
    assert_eq!(sets.len(), 2, "the first set is found again");
    let back = sets.iter().find(|set| set.metadata.name == first).unwrap();
    assert_eq!((note(back, REVISION), note(back, "deployment.kubernetes.io/revision-history")), ("3", "1"));
    assert_eq!(size(back), 4);
    world.stop().await;
}

#[tokio::test]
async fn a_bad_template_stops_at_the_limits_and_times_out() {
    let world = running(
        4,
        json!({"progressDeadlineSeconds": 1, "strategy": {
            "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1},
        }}),
    )
    .await;
    world.patch::<Deployment>("web", image("bad")).await;
    let late = |deployment: &Deployment| condition(deployment, "Progressing").1 == "ProgressDeadlineExceeded";
    let deployment = world.until::<Deployment>("web", "timed out", late).await;
    let (status, _, message) = condition(&deployment, "Progressing");
    assert_eq!(status, "False");
    assert!(message.ends_with(" has timed out progressing."), "{message}");
    let count = |bad: bool| world.list::<Pod>().iter().filter(|pod| (image_of(pod) == "bad") == bad).count();
    assert_eq!((count(true), count(false)), (2, 3));
    assert_eq!(condition(&deployment, "Available").0, "True");
    world.stop().await;
}

#[tokio::test]
async fn resizing_while_it_rolls_keeps_the_shares() {
    let world =
        running(8, json!({"strategy": {"rollingUpdate": {"maxSurge": 2, "maxUnavailable": 2}}})).await;
    world.patch::<Deployment>("web", image("bad")).await;
    world
        .until_all::<ReplicaSet>("stuck", |sets| {
            let mut sizes: Vec<i32> = sets.iter().map(size).collect();
            sizes.sort_unstable();
            sizes == [4, 6]
        })
        .await;
    world.patch::<Deployment>("web", json!({"spec": {"replicas": 18}})).await;
    let sets = world
        .until_all::<ReplicaSet>("twice as large", |sets| sets.iter().map(size).sum::<i32>() == 20)
        .await;
    let mut sizes: Vec<i32> = sets.iter().map(size).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [8, 12]);
    world.stop().await;
}

#[tokio::test]
async fn a_paused_one_is_resized_and_not_rolled() {
    let world = running(2, json!({})).await;
    world.patch::<Deployment>("web", json!({"spec": {"paused": true}})).await;
    let paused = |deployment: &Deployment| condition(deployment, "Progressing").1 == "DeploymentPaused";
    world.until::<Deployment>("web", "paused", paused).await;
    world.patch::<Deployment>("web", image("two")).await;
    world.patch::<Deployment>("web", json!({"spec": {"replicas": 3}})).await;
    world.until_all::<Pod>("three old pods", |pods| pods.len() == 3).await;
    assert!(world.list::<Pod>().iter().all(|pod| image_of(pod) == "one"));
    world.patch::<Deployment>("web", json!({"spec": {"paused": false}})).await;
    let new = |pods: &[Pod]| pods.len() == 3 && pods.iter().all(|pod| image_of(pod) == "two");
    world.until_all::<Pod>("three new pods", new).await;
    world.until::<Deployment>("web", "rolled out", is_done).await;
    world.stop().await;
}

#[tokio::test]
async fn who_recreates_never_has_old_and_new_pods() {
    let world = running(2, json!({"strategy": {"type": "Recreate"}})).await;
    world.patch::<Deployment>("web", image("two")).await;
    let mut mixed = false;
    for _ in 0..1000 {
        let pods = world.list::<Pod>();
        let new = pods.iter().filter(|pod| image_of(pod) == "two").count();
        mixed |= new > 0 && new < pods.len();
        if new == 2 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    world.until::<Deployment>("web", "rolled out", is_done).await;
    assert!(!mixed);
    assert_eq!(world.list::<Pod>().len(), 2);
    world.stop().await;
}

#[tokio::test]
async fn keeps_as_many_old_sets_as_it_should() {
    let world = running(1, json!({"revisionHistoryLimit": 1})).await;
    for name in ["two", "three", "four"] {
        world.patch::<Deployment>("web", image(name)).await;
        let new = |pods: &[Pod]| pods.len() == 1 && image_of(&pods[0]) == name;
        world.until_all::<Pod>("a new pod", new).await;
        world.until::<Deployment>("web", "rolled out", is_done).await;
    }
    let mut kept: Vec<String> = world
        .until_all::<ReplicaSet>("one old and one new set", |sets| sets.len() == 2)
        .await
        .iter()
        .map(|set| note(set, REVISION).to_owned())
        .collect();
    kept.sort();
    assert_eq!(kept, ["3", "4"]);
    world.stop().await;
}

#[tokio::test]
async fn another_name_where_the_set_of_its_name_is_somebody_elses() {
    let world = running(1, json!({})).await;
    let name = world.list::<ReplicaSet>()[0].metadata.name.clone().unwrap();
    // It is released, and stays: the next one with the same template needs another name.
    world.patch::<ReplicaSet>(&name, json!({"metadata": {"labels": {"app": "other"}}})).await;
    let deployment = world
        .until::<Deployment>("web", "a collision", |one| {
            one.status.as_ref().unwrap().collision_count == Some(1)
        })
        .await;
    assert_eq!(deployment.metadata.annotations.as_ref().unwrap()[REVISION], "1");
    let sets = world.until_all::<ReplicaSet>("a second set", |sets| sets.len() == 2).await;
    let (other, own): (Vec<_>, Vec<_>) =
        sets.iter().partition(|set| set.metadata.name.as_ref() == Some(&name));
    assert!(other[0].metadata.owner_references.is_none());
    assert!(own[0].metadata.owner_references.is_some());
    world.stop().await;
}

#[tokio::test]
async fn adopts_a_set_with_its_template() {
    let world = running(2, json!({})).await;
    let set = world.list::<ReplicaSet>()[0].clone();
    let name = set.metadata.name.clone().unwrap();
    let deployments = world.api::<Deployment>();
    deployments.delete("web", &kube::api::DeleteParams::orphan()).await.unwrap();
    // There is no garbage collector here to take the reference away.
    world.patch::<ReplicaSet>(&name, json!({"metadata": {"ownerReferences": null}})).await;
    let gone = json!({"metadata": {"finalizers": null}});
    deployments.patch("web", &Default::default(), &kube::api::Patch::Merge(gone)).await.unwrap();
    let again = world.create::<Deployment>(web(2, json!({}))).await;
    let owned = |set: &ReplicaSet| {
        set.metadata
            .owner_references
            .as_ref()
            .is_some_and(|all| Some(&all[0].uid) == again.metadata.uid.as_ref())
    };
    world.until::<ReplicaSet>(&name, "adopted", owned).await;
    world.until::<Deployment>("web", "rolled out", is_done).await;
    assert_eq!(world.list::<ReplicaSet>().len(), 1);
    world.stop().await;
}
