//! What is deleted, and what never is.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};
use windlass::core::plan::Delete;
use windlass::core::{Action, Kind, ObjectKey, Outcome, Plan};
use windlass::executor::Failure;

use crate::world::{Widget, WidgetPlan, World, map, plan};

async fn make(world: &World, object: Value) -> ConfigMap {
    let object = serde_json::from_value(object).unwrap();
    world.api::<ConfigMap>().create(&PostParams::default(), &object).await.unwrap()
}

fn deleting(object: &ConfigMap, because: &str) -> WidgetPlan {
    Plan::new().delete(object, because)
}

#[tokio::test]
async fn children_that_left_the_plan_go() {
    let world = World::new().await;
    let not_ours = make(&world, json!({"metadata": {"name": "theirs"}, "data": {}})).await;
    world.settle(&plan([map("a", json!({})), map("b", json!({})), map("c", json!({}))])).await;
    let report = world.pass(&plan([map("b", json!({}))])).await;
    assert_eq!(report.writes, ["delete ConfigMap default/a", "delete ConfigMap default/c"]);
    assert_eq!(report.outcome, Outcome::Again);
    assert!(world.map("a").await.is_none() && world.map("c").await.is_none());
    assert!(world.map("b").await.is_some());
    assert_eq!(world.map("theirs").await.unwrap().uid(), not_ours.uid());
    let (_, mutations) = world.mutations_of(world.pass(&plan([map("b", json!({}))]))).await;
    assert_eq!(mutations, [""; 0]);
}

#[tokio::test]
async fn a_kind_that_is_not_pruned_keeps_its_children() {
    let cluster = World::new().await;
    let world = World::with_owned(&cluster, false).await;
    world.settle(&plan([map("a", json!({}))])).await;
    world.settle(&plan([])).await;
    assert!(world.map("a").await.is_some());
}

#[tokio::test]
async fn the_successor_of_a_child_is_not_pruned() {
    let mut world = World::new().await;
    world.settle(&plan([map("a", json!({}))])).await;
    world.stop_watching();
    world.api::<ConfigMap>().delete("a", &DeleteParams::default()).await.unwrap();
    let new = make(&world, json!({"metadata": {"name": "a"}})).await;
    let report = world.pass(&plan([])).await;
    assert!(report.conflicted && report.failures.is_empty(), "{report:?}");
    assert_eq!(world.map("a").await.unwrap().uid(), new.uid());
}

#[tokio::test]
async fn a_child_that_was_given_away_is_not_pruned() {
    let mut world = World::new().await;
    world.settle(&plan([map("a", json!({}))])).await;
    world.stop_watching();
    let owner = json!([{"apiVersion": "v1", "kind": "Secret", "name": "s", "uid": "9", "controller": true}]);
    let patch = kube::api::Patch::Merge(json!({"metadata": {"ownerReferences": owner}}));
    world.api::<ConfigMap>().patch("a", &kube::api::PatchParams::default(), &patch).await.unwrap();
    let report = world.pass(&plan([])).await;
    assert!(report.conflicted, "{report:?}");
    assert!(world.map("a").await.is_some());
}

#[tokio::test]
async fn nothing_is_deleted_by_the_plan_for_an_old_spec() {
    let mut world = World::new().await;
    world.settle(&plan([map("a", json!({}))])).await;
    world.stop_watching();
    let stale = world.parent();
    let patch = kube::api::Patch::Merge(json!({"spec": {"size": 2}}));
    world.api::<Widget>().patch("one", &kube::api::PatchParams::default(), &patch).await.unwrap();
    let a = world.map("a").await.unwrap();
    for plan in [plan([]), deleting(&a, "it is too large")] {
        let report = world.pass_for(&stale, &plan).await;
        assert!(report.conflicted && matches!(report.outcome, Outcome::After(_)), "{report:?}");
        assert!(world.map("a").await.is_some());
    }
}

#[tokio::test]
async fn nothing_is_pruned_before_the_cache_is_complete() {
    let before = World::new().await;
    before.settle(&plan([map("a", json!({"k": "0"}))])).await;
    let world = World::without_cache(&before).await;
    let parent = before.parent();
    let report = world.pass_for(&parent, &plan([])).await;
    assert!(report.failures.is_empty() && report.writes.is_empty(), "{report:?}");
    assert!(world.map("a").await.is_some());
    // Children are still compared, with what the server says.
    let (_, mutations) =
        world.mutations_of(world.pass_for(&parent, &plan([map("a", json!({"k": "0"}))]))).await;
    assert_eq!(mutations, [""; 0]);
    world.pass_for(&parent, &plan([map("a", json!({"k": "1"}))])).await;
    assert_eq!(world.data("a").await, json!({"k": "1"}));
}

#[tokio::test]
async fn a_delete_needs_to_say_which_one_and_why() {
    let world = World::new().await;
    let object = make(&world, json!({"metadata": {"name": "a"}})).await;
    world.caught_up().await;
    let nameless: ConfigMap =
        serde_json::from_value(json!({"metadata": {"name": "a", "namespace": "default"}})).unwrap();
    for (plan, missing) in [(deleting(&nameless, "it is old"), "UID"), (deleting(&object, " "), "reason")] {
        let report = world.pass(&plan).await;
        let said = report.failures.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(said, [format!("will not delete ConfigMap default/a: it has no {missing}")]);
        assert!(world.map("a").await.is_some());
    }
    let report = world.pass(&deleting(&object, "it is old")).await;
    assert_eq!(report.writes[0], "delete ConfigMap default/a");
    assert!(world.map("a").await.is_none());
}

#[tokio::test]
async fn a_delete_hits_the_one_that_was_meant() {
    let mut world = World::new().await;
    let old = make(&world, json!({"metadata": {"name": "a"}})).await;
    world.caught_up().await;
    world.stop_watching();
    world.api::<ConfigMap>().delete("a", &DeleteParams::default()).await.unwrap();
    let new = make(&world, json!({"metadata": {"name": "a"}})).await;
    let report = world.pass(&deleting(&old, "it is old")).await;
    assert!(report.conflicted, "{report:?}");
    assert_eq!(world.map("a").await.unwrap().uid(), new.uid());

    let mut unchanged = deleting(&new, "nobody uses it");
    let Action::Delete(delete) = &mut unchanged.actions[0] else { unreachable!() };
    delete.resource_version = Some("1".to_owned());
    let report = World::after(&world).await.pass(&unchanged).await;
    assert!(report.conflicted, "{report:?}");
    assert!(world.map("a").await.is_some());
}

#[tokio::test]
async fn what_is_going_is_not_deleted_again() {
    let world = World::new().await;
    let object = make(&world, json!({"metadata": {"name": "a", "finalizers": ["example.com/hold"]}})).await;
    world.caught_up().await;
    let plan = deleting(&object, "it is old");
    let (_, mutations) = world.mutations_of(world.pass(&plan)).await;
    assert_eq!(mutations, ["delete configmaps a 200"]);
    let (report, mutations) = world.mutations_of(world.pass(&plan)).await;
    assert_eq!((report.outcome, mutations), (Outcome::AwaitChange, vec![]));
}

#[tokio::test]
async fn an_object_that_nobody_watches_can_be_deleted() {
    let world = World::new().await;
    let secret: Secret = serde_json::from_value(json!({"metadata": {"name": "s"}})).unwrap();
    let secret = world.api::<Secret>().create(&PostParams::default(), &secret).await.unwrap();
    let delete = Delete {
        kind: Kind::of::<Secret>(),
        key: ObjectKey::of(&secret.metadata),
        uid: secret.uid().unwrap(),
        resource_version: secret.resource_version(),
        because: "it has leaked".to_owned(),
    };
    let mut plan: WidgetPlan = Plan::new();
    plan.actions.push(Action::Delete(delete));
    assert_eq!(world.pass(&plan).await.writes, ["delete Secret default/s"]);
    assert!(world.api::<Secret>().get_opt("s").await.unwrap().is_none());
    // Gone is what it should be.
    let report = world.pass(&plan).await;
    assert!(report.failures.iter().all(|failure| !matches!(failure, Failure::Write(_))), "{report:?}");
}
