//! Resource quotas on a server in this process.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Pod, ResourceQuota};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass::Env;
use windlass::jiff::Timestamp;
use windlass_cluster::Controllers;
use windlass_testing::{Clock, Record, TestCluster};

use crate::world::World;

fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

fn quota(hard: Value) -> Value {
    json!({"metadata": {"name": "q"}, "spec": {"hard": hard}})
}

/// What a quota says is used of something.
fn used(quota: &ResourceQuota, name: &str) -> String {
    let used = quota.status.as_ref().and_then(|status| status.used.as_ref()?.get(name));
    used.map(|amount| amount.0.clone()).unwrap_or_default()
}

#[tokio::test]
async fn a_pod_too_many_is_refused_and_taken_when_another_goes() {
    let world = World::with(["resourcequota"]).await;
    world.create::<ResourceQuota>(quota(json!({"pods": "2", "count/pods": "10"}))).await;
    world.until::<ResourceQuota>("q", "counted", |quota| used(quota, "pods") == "0").await;
    world.create::<Pod>(pod("a")).await;
    world.create::<Pod>(pod("b")).await;
    let pods: Api<Pod> = world.api();
    let refused = pods.create(&PostParams::default(), &serde_json::from_value(pod("c")).unwrap()).await;
    let refused = refused.unwrap_err().to_string();
    let why = "pods \"c\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2";
    assert!(refused.contains(why), "{refused}");

    pods.delete("a", &DeleteParams::default()).await.unwrap();
    world.until::<ResourceQuota>("q", "given back", |quota| used(quota, "pods") == "1").await;
    world.create::<Pod>(pod("c")).await;

    let ended = Patch::Merge(json!({"status": {"phase": "Succeeded"}}));
    pods.patch_status("b", &PatchParams::default(), &ended).await.unwrap();
    let quota = world.until::<ResourceQuota>("q", "ended", |quota| used(quota, "pods") == "1").await;
    assert_eq!(used(&quota, "count/pods"), "2");
    world.stop().await;
}

#[tokio::test]
async fn a_kind_that_is_defined_later_is_counted_from_then_on() {
    let world = World::with(["resourcequota"]).await;
    let hard =
        json!({"count/tickets.example.com": "5", "count/configmaps": "5", "count/nothing.example.com": "5"});
    world.create::<ResourceQuota>(quota(hard)).await;
    let counted = |quota: &ResourceQuota| used(quota, "count/configmaps") == "0";
    let quota = world.until::<ResourceQuota>("q", "counted", counted).await;
    assert_eq!(quota.status.unwrap().used.unwrap().len(), 1, "of the others nobody knows");
    let definition = json!({
        "metadata": {"name": "tickets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "tickets", "kind": "Ticket"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    let definitions: Api<CustomResourceDefinition> = Api::all(world.cluster.client());
    definitions.create(&PostParams::default(), &serde_json::from_value(definition).unwrap()).await.unwrap();
    let counted = |quota: &ResourceQuota| used(quota, "count/tickets.example.com") == "0";
    world.until::<ResourceQuota>("q", "counted", counted).await;
    world.stop().await;
}

/// Only quotas and definitions of kinds are watched, until a quota names something. And when all is counted, nobody asks
/// anything: what is counted anew every five minutes comes from memory.
#[tokio::test(start_paused = true)]
async fn what_no_quota_names_is_not_watched_and_at_rest_nothing_is_written() {
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let cluster = TestCluster::builder().seed(1).clock(Clock::runtime(now)).start().await;
    let controllers = Controllers::named(["resourcequota"]).unwrap();
    let running = controllers.start(cluster.client(), &Env::seeded(1, now));
    running.ready().await;
    let watched = |cluster: &TestCluster| {
        let all = cluster.requests();
        let mut watched: Vec<_> =
            all.iter().filter(|one| one.verb == "watch").map(|one| one.resource.to_string()).collect();
        watched.sort();
        watched.dedup();
        watched
    };
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(watched(&cluster), ["customresourcedefinitions", "resourcequotas"]);

    let quotas: Api<ResourceQuota> = Api::default_namespaced(cluster.client());
    let hard = quota(json!({"configmaps": "5", "services": "5"}));
    quotas.create(&PostParams::default(), &serde_json::from_value(hard).unwrap()).await.unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    let map = serde_json::from_value(json!({"metadata": {"name": "a"}})).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(used(&quotas.get("q").await.unwrap(), "configmaps"), "1");
    assert_eq!(watched(&cluster), ["configmaps", "customresourcedefinitions", "resourcequotas", "services"]);

    let before = cluster.requests().len();
    tokio::time::sleep(Duration::from_secs(20 * 60)).await;
    let reads = |one: &Record| matches!(one.verb, "watch" | "list");
    let late: Vec<_> = cluster.requests().into_iter().skip(before).filter(|one| !reads(one)).collect();
    assert!(late.is_empty(), "{late:#?}");

    // Somebody has written nonsense: it is put right within five minutes.
    let nonsense = Patch::Merge(json!({"status": {"used": {"configmaps": "4"}}}));
    quotas.patch_status("q", &PatchParams::default(), &nonsense).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5 * 60)).await;
    assert_eq!(used(&quotas.get("q").await.unwrap(), "configmaps"), "1");
    running.stop().await;
}
