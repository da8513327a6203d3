//! The garbage collector on a server in this process.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Event, Namespace};
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams, PropagationPolicy};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use windlass::Env;
use windlass_cluster::{Controllers, Running};
use windlass_testing::TestCluster;

use crate::world::eventually;

async fn cluster() -> (TestCluster, Running) {
    let cluster = TestCluster::new().await;
    let running = Controllers::named(["garbagecollector"]).unwrap().start(cluster.client(), &Env::system());
    (cluster, running)
}

fn maps(client: Client, namespace: &str) -> Api<ConfigMap> {
    Api::namespaced(client, namespace)
}

/// Creates a ConfigMap with these references, and answers a reference to it that blocks.
async fn map(api: &Api<ConfigMap>, name: &str, owners: &[&Value]) -> Value {
    let object = json!({"metadata": {"name": name, "ownerReferences": owners}});
    let created = api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": created.metadata.uid,
        "blockOwnerDeletion": true,
    })
}

async fn delete(api: &Api<ConfigMap>, name: &str, policy: PropagationPolicy) {
    let parameters = DeleteParams { propagation_policy: Some(policy), ..DeleteParams::default() };
    api.delete(name, &parameters).await.unwrap();
}

/// The names of the ConfigMaps of a namespace, but for the one that every namespace may have.
fn names(cluster: &TestCluster, namespace: &str) -> Vec<String> {
    let all = cluster.world().list::<ConfigMap>(Some(namespace)).into_iter();
    all.filter_map(|map| map.metadata.name).filter(|name| name != "kube-root-ca.crt").collect()
}

async fn only(cluster: &TestCluster, namespace: &str, left: &[&str]) {
    eventually(cluster, &format!("only {left:?}"), || names(cluster, namespace) == left).await;
}

/// Long enough for a mistake to show: everything else here takes milliseconds.
async fn a_while() {
    tokio::time::sleep(Duration::from_millis(300)).await;
}

#[tokio::test]
async fn what_depends_on_a_deleted_object_goes_after_it() {
    let (cluster, running) = cluster().await;
    let api = maps(cluster.client(), "default");
    let a = map(&api, "a", &[]).await;
    let b = map(&api, "b", &[&a]).await;
    map(&api, "c", &[&b]).await;
    map(&api, "other", &[]).await;
    a_while().await;
    assert_eq!(names(&cluster, "default"), ["a", "b", "c", "other"]);
    delete(&api, "a", PropagationPolicy::Background).await;
    only(&cluster, "default", &["other"]).await;
    running.stop().await;
}

#[tokio::test]
async fn what_blocks_goes_before_its_owner() {
    let (cluster, running) = cluster().await;
    let api = maps(cluster.client(), "default");
    let a = map(&api, "a", &[]).await;
    let b = map(&api, "b", &[&a]).await;
    map(&api, "c", &[&b]).await;
    let patch = Patch::Merge(json!({"metadata": {"finalizers": ["example.com/held"]}}));
    api.patch("c", &PatchParams::default(), &patch).await.unwrap();
    delete(&api, "a", PropagationPolicy::Foreground).await;
    let ends = |name: &str| {
        let map = cluster.world().get::<ConfigMap>("default", name);
        map.is_some_and(|map| map.metadata.deletion_timestamp.is_some())
    };
    eventually(&cluster, "all end", || ["a", "b", "c"].into_iter().all(ends)).await;
    a_while().await;
    assert_eq!(names(&cluster, "default"), ["a", "b", "c"], "the last one is held, and so are all");
    let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    api.patch("c", &PatchParams::default(), &patch).await.unwrap();
    only(&cluster, "default", &[]).await;
    running.stop().await;
}

#[tokio::test]
async fn what_does_not_block_goes_after_an_owner_that_waits() {
    let (cluster, running) = cluster().await;
    let api = maps(cluster.client(), "default");
    let mut a = map(&api, "a", &[]).await;
    a["blockOwnerDeletion"] = false.into();
    map(&api, "b", &[&a]).await;
    let patch = Patch::Merge(json!({"metadata": {"finalizers": ["example.com/held"]}}));
    api.patch("b", &PatchParams::default(), &patch).await.unwrap();
    delete(&api, "a", PropagationPolicy::Foreground).await;
    only(&cluster, "default", &["b"]).await;
    running.stop().await;
}

#[tokio::test]
async fn orphans_stay_without_their_owner() {
    let (cluster, running) = cluster().await;
    let api = maps(cluster.client(), "default");
    let a = map(&api, "a", &[]).await;
    let z = map(&api, "z", &[]).await;
    map(&api, "b", &[&a]).await;
    map(&api, "c", &[&a, &z]).await;
    delete(&api, "a", PropagationPolicy::Orphan).await;
    only(&cluster, "default", &["b", "c", "z"]).await;
    a_while().await;
    assert_eq!(names(&cluster, "default"), ["b", "c", "z"]);
    let owners = |name: &str| {
        let map = cluster.world().get::<ConfigMap>("default", name).unwrap();
        let owners = map.metadata.owner_references.unwrap_or_default();
        owners.into_iter().map(|owner| owner.name).collect::<Vec<_>>()
    };
    assert_eq!((owners("b"), owners("c")), (vec![], vec!["z".to_owned()]));
    running.stop().await;
}

#[tokio::test]
async fn of_several_owners_one_is_enough() {
    let (cluster, running) = cluster().await;
    let api = maps(cluster.client(), "default");
    let (a, z) = (map(&api, "a", &[]).await, map(&api, "z", &[]).await);
    map(&api, "b", &[&a, &z]).await;
    delete(&api, "a", PropagationPolicy::Foreground).await;
    only(&cluster, "default", &["b", "z"]).await;
    let left = cluster.world().get::<ConfigMap>("default", "b").unwrap().metadata.owner_references.unwrap();
    assert_eq!(left.len(), 1);
    delete(&api, "z", PropagationPolicy::Background).await;
    only(&cluster, "default", &[]).await;
    running.stop().await;
}

#[tokio::test]
async fn what_never_had_its_owner_goes() {
    let (cluster, running) = cluster().await;
    let api = maps(cluster.client(), "default");
    let z = map(&api, "z", &[]).await;
    let mut other = z.clone();
    other["uid"] = "00000000-0000-4000-8000-000000000000".into();
    map(&api, "another-of-that-name", &[&other]).await;
    other["name"] = "nobody".into();
    map(&api, "nobody", &[&other]).await;
    map(&api, "good", &[&z]).await;
    only(&cluster, "default", &["good", "z"]).await;
    running.stop().await;
}

#[tokio::test]
async fn what_has_an_owner_of_a_kind_that_nobody_serves_stays() {
    let (cluster, running) = cluster().await;
    let api = maps(cluster.client(), "default");
    let unknown = json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "name": "w",
        "uid": "00000000-0000-4000-8000-000000000000",
    });
    map(&api, "a", &[&unknown]).await;
    a_while().await;
    assert_eq!(names(&cluster, "default"), ["a"]);
    running.stop().await;
}

#[tokio::test]
async fn an_owner_in_another_namespace_is_none() {
    let (cluster, running) = cluster().await;
    let other = Namespace {
        metadata: kube::api::ObjectMeta { name: Some("other".into()), ..Default::default() },
        ..Default::default()
    };
    Api::all(cluster.client()).create(&PostParams::default(), &other).await.unwrap();
    let (here, there) = (maps(cluster.client(), "default"), maps(cluster.client(), "other"));
    let a = map(&here, "a", &[]).await;
    a_while().await;
    map(&there, "b", &[&a]).await;
    only(&cluster, "other", &[]).await;
    assert_eq!(names(&cluster, "default"), ["a"]);
    running.stop().await;
    let told: Vec<String> =
        cluster.world().list::<Event>(Some("other")).into_iter().filter_map(|event| event.message).collect();
    let uid = a["uid"].as_str().unwrap();
    assert_eq!(
        told,
        [format!(
            "ownerRef [v1/ConfigMap, namespace: other, name: a, uid: {uid}] does not exist in namespace \"other\""
        )]
    );
}

#[tokio::test]
async fn an_owner_of_the_cluster_owns_in_every_namespace() {
    let (cluster, running) = cluster().await;
    let roles: Api<k8s_openapi::api::rbac::v1::ClusterRole> = Api::all(cluster.client());
    let role = serde_json::from_value(json!({"metadata": {"name": "r"}})).unwrap();
    let role = roles.create(&PostParams::default(), &role).await.unwrap();
    let owner = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "r", "uid": role.metadata.uid,
    });
    map(&maps(cluster.client(), "default"), "a", &[&owner]).await;
    a_while().await;
    assert_eq!(names(&cluster, "default"), ["a"]);
    roles.delete("r", &DeleteParams::background()).await.unwrap();
    only(&cluster, "default", &[]).await;
    running.stop().await;
}

#[tokio::test]
async fn custom_resources_own_and_are_owned() {
    let (cluster, running) = cluster().await;
    running.ready().await;
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
        },
    });
    cluster.apply_yaml(&definition.to_string()).await.unwrap();
    let resource =
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("example.com", "v1", "Widget"), "widgets");
    let widgets: Api<DynamicObject> = Api::namespaced_with(cluster.client(), "default", &resource);
    let api = maps(cluster.client(), "default");
    let a = map(&api, "a", &[]).await;
    let widget =
        DynamicObject::new("w", &resource).data(json!({"metadata": {"name": "w", "ownerReferences": [a]}}));
    let widget: DynamicObject = serde_json::from_value(serde_json::to_value(&widget).unwrap()).unwrap();
    let created = widgets.create(&PostParams::default(), &widget).await.unwrap();
    let owner =
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": created.metadata.uid});
    map(&api, "b", &[&owner]).await;
    a_while().await;
    assert_eq!(names(&cluster, "default"), ["a", "b"]);
    delete(&api, "a", PropagationPolicy::Background).await;
    only(&cluster, "default", &[]).await;
    assert!(widgets.get_opt("w").await.unwrap().is_none());
    running.stop().await;
}

#[tokio::test]
async fn a_circle_goes() {
    let (cluster, running) = cluster().await;
    let api = maps(cluster.client(), "default");
    let a = map(&api, "a", &[]).await;
    let b = map(&api, "b", &[&a]).await;
    let patch = Patch::Merge(json!({"metadata": {"ownerReferences": [b]}}));
    api.patch("a", &PatchParams::default(), &patch).await.unwrap();
    a_while().await;
    delete(&api, "a", PropagationPolicy::Foreground).await;
    only(&cluster, "default", &[]).await;
    running.stop().await;
}
