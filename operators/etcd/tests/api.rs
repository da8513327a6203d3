//! What the server takes, refuses and shows of an EtcdCluster.

mod support;

use etcd_operator::api::EtcdCluster;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use support::World;

async fn refusal(world: &World, name: &str, spec: Value) -> String {
    world.apply(name, spec).await.expect_err("it is refused").to_string()
}

#[tokio::test(start_paused = true)]
async fn the_stored_object_shows_the_defaults() {
    let (world, running) = World::start().await;
    world.apply("db", json!({"size": 3, "paused": true})).await.unwrap();
    // As the server has it, not as our own type would complete it.
    let kind = ApiResource::erase::<EtcdCluster>(&());
    let objects: Api<DynamicObject> = Api::default_namespaced_with(world.cluster.client(), &kind);
    insta::assert_json_snapshot!(objects.get("db").await.unwrap().data["spec"]);
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_is_refused_with_its_reason() {
    let (world, running) = World::start().await;
    let cases = [
        (json!({"size": 2}), "size must be odd"),
        (json!({"size": 9}), "spec.size"),
        (json!({"version": "2.3.8"}), "spec.version"),
        (json!({"extraArgs": ["data-dir=/tmp"]}), "each argument must look like --name=value"),
        (json!({"extraArgs": ["--data-dir=/tmp"]}), "an argument that the operator sets itself"),
        (json!({"extraArgs": ["--initial-cluster-state=new"]}), "an argument that the operator sets itself"),
        (json!({"extraArgs": ["--force-new-cluster"]}), "an argument that the operator sets itself"),
        (
            json!({"options": {"heartbeatMilliseconds": 300, "electionTimeoutMilliseconds": 1000}}),
            "five times",
        ),
        (json!({"healing": {"suspectAfterSeconds": 60, "failedAfterSeconds": 30}}), "failedAfterSeconds"),
        (json!({"podTemplate": {"labels": {"etcd.cloud.io/voter": "true"}}}), "operator's own"),
        (json!({"storage": {"medium": "Tape"}}), "spec.storage.medium"),
        (
            json!({"storage": {"medium": "Memory"}, "healing": {"quorumLoss": "FromSurvivor"}}),
            "it would end the last copy",
        ),
    ];
    for (spec, reason) in cases {
        let said = refusal(&world, "db", spec.clone()).await;
        assert!(said.contains(reason), "{spec}: {said}");
    }
    let said = refusal(&world, "a.b", json!({"size": 1})).await;
    assert!(said.contains("the name becomes part of host names"), "{said}");
    world.apply("db", json!({"extraArgs": ["--log-level=debug"], "paused": true})).await.unwrap();
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_cannot_change_is_refused() {
    let (world, running) = World::start().await;
    world.apply("db", json!({"paused": true, "storage": {"size": "8Gi"}})).await.unwrap();
    let said = refusal(&world, "db", json!({"paused": true, "storage": {"size": "4Gi"}})).await;
    assert!(said.contains("volumes do not shrink"), "{said}");
    let said = refusal(&world, "db", json!({"paused": true, "storage": {"medium": "Memory"}})).await;
    assert!(said.contains("medium cannot be changed"), "{said}");
    let said = refusal(&world, "db", json!({"paused": true, "storage": {"class": "fast"}})).await;
    assert!(said.contains("class cannot be changed"), "{said}");
    world.apply("db", json!({"paused": true, "storage": {"size": "16Gi"}})).await.unwrap();
    let even = json!({"spec": {"replicas": 4}});
    let scaled = world.clusters.patch_scale("db", &PatchParams::default(), &Patch::Merge(&even)).await;
    assert!(scaled.unwrap_err().to_string().contains("size must be odd"));
    running.stop().await.unwrap();
}
