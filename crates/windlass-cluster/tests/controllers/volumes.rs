//! Claims and volumes.

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::world::World;

async fn world() -> World {
    World::with(["persistentvolume-binder", "pv-protection", "pvc-protection"]).await
}

async fn make<K>(world: &World, object: Value) -> K
where
    K: windlass::Object<Scope = k8s_openapi::ClusterResourceScope>,
{
    let object: K = serde_json::from_value(object).unwrap();
    Api::all(world.cluster.client()).create(&PostParams::default(), &object).await.unwrap()
}

async fn class(world: &World, mode: &str, policy: &str) {
    let class = json!({
        "metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "windlass.dev/folder",
        "parameters": {"path": "/data/{namespace}-{claim}-{volume}"},
        "volumeBindingMode": mode,
        "reclaimPolicy": policy,
        "allowVolumeExpansion": true,
    });
    make::<StorageClass>(world, class).await;
    make::<Node>(world, json!({"metadata": {"name": "n", "labels": {"kubernetes.io/hostname": "n"}}})).await;
}

fn claim(more: Value) -> Value {
    let mut spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    json!({"metadata": {"name": "data"}, "spec": spec})
}

fn phase(claim: &PersistentVolumeClaim) -> &str {
    claim.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

fn volume(name: &str, size: &str, more: Value) -> Value {
    let mut spec = json!({
        "capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/somewhere"},
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    json!({"metadata": {"name": name}, "spec": spec})
}

fn volumes(world: &World) -> Vec<(String, String)> {
    let all = world.cluster.world().list::<PersistentVolume>(None);
    all.into_iter()
        .map(|volume| {
            (volume.metadata.name.unwrap(), volume.status.and_then(|status| status.phase).unwrap_or_default())
        })
        .collect()
}

async fn until_volumes(world: &World, what: &str, is: impl Fn(&[(String, String)]) -> bool) {
    crate::world::eventually(&world.cluster, what, || is(&volumes(world))).await;
}

#[tokio::test]
async fn the_smallest_that_will_do_is_taken_and_kept_when_its_claim_goes() {
    let world = world().await;
    make::<PersistentVolume>(&world, volume("large", "10Gi", json!({}))).await;
    make::<PersistentVolume>(&world, volume("small", "512Mi", json!({}))).await;
    make::<PersistentVolume>(&world, volume("right", "2Gi", json!({}))).await;
    make::<PersistentVolume>(&world, volume("other", "1Gi", json!({"storageClassName": "other"}))).await;
    let free = |all: &[(String, String)]| all.iter().all(|(_, phase)| phase == "Available");
    until_volumes(&world, "all free", free).await;
    world.create::<PersistentVolumeClaim>(claim(json!({"storageClassName": ""}))).await;
    let bound = world.until::<PersistentVolumeClaim>("data", "bound", |claim| phase(claim) == "Bound").await;
    assert_eq!(bound.spec.unwrap().volume_name.as_deref(), Some("right"));
    assert_eq!(bound.status.unwrap().capacity.unwrap()["storage"].0, "2Gi");
    until_volumes(&world, "bound", |all| all.contains(&("right".into(), "Bound".into()))).await;

    world.api::<PersistentVolumeClaim>().delete("data", &DeleteParams::default()).await.unwrap();
    until_volumes(&world, "released", |all| all.contains(&("right".into(), "Released".into()))).await;
    world.create::<PersistentVolumeClaim>(claim(json!({"storageClassName": ""}))).await;
    let bound = world.until::<PersistentVolumeClaim>("data", "bound", |claim| phase(claim) == "Bound").await;
    assert_eq!(bound.spec.unwrap().volume_name.as_deref(), Some("large"), "what was released holds data");
    world.stop().await;
}

#[tokio::test]
async fn a_folder_is_made_where_the_pod_goes_and_grows() {
    let world = world().await;
    class(&world, "WaitForFirstConsumer", "Delete").await;
    world.create::<PersistentVolumeClaim>(claim(json!({}))).await;
    world.until::<PersistentVolumeClaim>("data", "waiting", |claim| phase(claim) == "Pending").await;
    assert!(volumes(&world).is_empty());
    let node = json!({"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n"}}});
    world.patch::<PersistentVolumeClaim>("data", node).await;
    let bound = world.until::<PersistentVolumeClaim>("data", "bound", |claim| phase(claim) == "Bound").await;
    let name = bound.spec.unwrap().volume_name.unwrap();
    assert_eq!(name, format!("pvc-{}", bound.metadata.uid.unwrap()));
    let made = world.cluster.world().list::<PersistentVolume>(None).remove(0);
    let made = serde_json::to_value(made).unwrap();
    assert_eq!(made["spec"]["hostPath"]["path"], json!(format!("/data/default-data-{name}")));
    let term = &made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]["matchExpressions"][0];
    assert_eq!((&term["key"], &term["values"]), (&json!("kubernetes.io/hostname"), &json!(["n"])));

    world
        .patch::<PersistentVolumeClaim>(
            "data",
            json!({"spec": {"resources": {"requests": {"storage": "3Gi"}}}}),
        )
        .await;
    let grown = |claim: &PersistentVolumeClaim| {
        let capacity = claim.status.as_ref().and_then(|status| status.capacity.clone()).unwrap_or_default();
        capacity.get("storage").is_some_and(|storage| storage.0 == "3Gi")
    };
    world.until::<PersistentVolumeClaim>("data", "grown", grown).await;

    // The node holds the volume until the folder is gone.
    world.api::<PersistentVolumeClaim>().delete("data", &DeleteParams::default()).await.unwrap();
    until_volumes(&world, "released", |all| all[0].1 == "Released").await;
    let held = |volume: &PersistentVolume| {
        volume.metadata.deletion_timestamp.is_some()
            && volume.metadata.finalizers.as_deref() == Some(&["windlass.dev/folder".to_owned()])
    };
    crate::world::eventually(&world.cluster, "only the node holds it", || {
        world.cluster.world().list::<PersistentVolume>(None).iter().all(held)
    })
    .await;
    let told = world.stop().await;
    for note in
        ["waiting for first consumer to be created before binding", "Successfully provisioned volume pvc-"]
    {
        assert!(told.iter().any(|text| text.starts_with(note)), "{note}: {told:?}");
    }
}

#[tokio::test]
async fn a_claim_that_a_pod_uses_stays() {
    let world = world().await;
    class(&world, "Immediate", "Retain").await;
    world.create::<PersistentVolumeClaim>(claim(json!({}))).await;
    world.until::<PersistentVolumeClaim>("data", "bound", |claim| phase(claim) == "Bound").await;
    let pod = json!({
        "metadata": {"name": "user"},
        "spec": {
            "nodeName": "n",
            "containers": [{"name": "c", "image": "i"}],
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
        },
    });
    world.create::<Pod>(pod).await;
    world.api::<PersistentVolumeClaim>().delete("data", &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(150)).await;
    assert_eq!(world.list::<PersistentVolumeClaim>().len(), 1);
    world.api::<Pod>().delete("user", &DeleteParams::default().grace_period(0)).await.unwrap();
    world.until_all::<PersistentVolumeClaim>("gone", |all| all.is_empty()).await;
    until_volumes(&world, "kept", |all| all[0].1 == "Released").await;
    let kept = &world.cluster.world().list::<PersistentVolume>(None)[0];
    assert!(kept.metadata.deletion_timestamp.is_none());
    world.stop().await;
}

#[tokio::test]
async fn one_that_is_named_is_had_or_the_reason_told() {
    let world = world().await;
    make::<PersistentVolume>(&world, volume("mine", "1Mi", json!({}))).await;
    let wants = json!({"storageClassName": "", "volumeName": "mine"});
    world.create::<PersistentVolumeClaim>(claim(wants)).await;
    world.until::<PersistentVolumeClaim>("data", "pending", |claim| phase(claim) == "Pending").await;
    let larger = Patch::Merge(json!({"spec": {"capacity": {"storage": "5Gi"}}}));
    let all: Api<PersistentVolume> = Api::all(world.cluster.client());
    all.patch("mine", &PatchParams::default(), &larger).await.unwrap();
    world.until::<PersistentVolumeClaim>("data", "bound", |claim| phase(claim) == "Bound").await;
    let told = world.stop().await;
    let note = "Cannot bind to requested volume \"mine\": requested PV is too small";
    assert!(told.iter().any(|text| text == note), "{told:?}");
}
