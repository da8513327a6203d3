//! A parent's finalizer and its cleanup.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use windlass::core::{Outcome, Plan};

use crate::world::{FINALIZER, Ring, Widget, WidgetPlan, World, map, phase, plan};

async fn world() -> World {
    World::with(|executor| executor.finalizer(FINALIZER)).await
}

async fn delete(world: &World) {
    world.api::<Widget>().delete("one", &DeleteParams::default()).await.unwrap();
    world.caught_up().await;
}

async fn exists(world: &World) -> bool {
    world.api::<Widget>().get_opt("one").await.unwrap().is_some()
}

#[tokio::test]
async fn the_finalizer_is_there_before_the_first_child() {
    let world = world().await;
    let (_, mutations) =
        world.mutations_of(world.pass(&plan([map("a", json!({}))]).status(phase("Up")))).await;
    assert_eq!(
        mutations,
        ["patch widgets one 200", "patch configmaps a 201", "patch widgets/status one 200"],
    );
    assert_eq!(world.widget().finalizers(), [FINALIZER]);
}

#[tokio::test]
async fn finalizers_of_others_stay() {
    let world = world().await;
    world.edit::<Widget>("one", json!({"metadata": {"finalizers": ["example.com/theirs"]}})).await;
    world.settle(&plan([map("a", json!({}))])).await;
    assert_eq!(world.widget().finalizers(), ["example.com/theirs", FINALIZER]);
    delete(&world).await;
    world.settle(&plan([])).await;
    assert_eq!(world.api::<Widget>().get("one").await.unwrap().finalizers(), ["example.com/theirs"]);
}

#[tokio::test]
async fn without_anything_to_clean_up_there_is_no_finalizer() {
    let world = world().await;
    let plan: WidgetPlan = Plan::new().status(phase("Idle"));
    world.settle(&plan).await;
    assert!(world.widget().finalizers().is_empty());
    delete(&world).await;
    assert!(!exists(&world).await);
}

#[tokio::test]
async fn a_cleanup_deletes_the_children_and_then_lets_go() {
    let world = world().await;
    world.settle(&plan([map("a", json!({})), map("b", json!({}))])).await;
    delete(&world).await;
    let cleanup: WidgetPlan = Plan::new();
    let report = world.pass(&cleanup).await;
    assert_eq!(report.writes, ["delete ConfigMap default/a", "delete ConfigMap default/b"]);
    assert!(exists(&world).await, "what came of it has to be looked at");
    let report = world.pass(&cleanup).await;
    assert_eq!(report.writes, ["set finalizers of Widget.test.example.com default/one"]);
    assert!(!exists(&world).await);
}

#[tokio::test]
async fn a_cleanup_waits_for_children_that_are_going() {
    let world = world().await;
    world.settle(&plan([map("a", json!({}))])).await;
    world.edit::<ConfigMap>("a", json!({"metadata": {"finalizers": ["example.com/hold"]}})).await;
    delete(&world).await;
    let cleanup: WidgetPlan = Plan::new();
    world.pass(&cleanup).await;
    let (_, mutations) = world.mutations_of(world.pass(&cleanup)).await;
    assert_eq!(mutations, [""; 0]);
    assert!(exists(&world).await);
    world.edit::<ConfigMap>("a", json!({"metadata": {"finalizers": null}})).await;
    world.pass(&cleanup).await;
    assert!(!exists(&world).await);
}

#[tokio::test]
async fn a_cleanup_is_done_when_its_plan_is_empty_and_waits_for_nothing() {
    let world = world().await;
    world.settle(&plan([map("a", json!({}))])).await;
    delete(&world).await;
    world.settle(&plan([]).requeue_after(Duration::from_secs(5))).await;
    assert!(exists(&world).await);
    world.failing.lock().unwrap().push("bell");
    let report = world.pass(&plan([]).effect(Ring("bell"))).await;
    assert_eq!(report.failures.len(), 1);
    assert!(exists(&world).await);
    world.failing.lock().unwrap().clear();
    let report = world.pass(&plan([]).effect(Ring("bell"))).await;
    assert_eq!(report.outcome, Outcome::Again);
    assert!(exists(&world).await);
    world.pass(&plan([])).await;
    assert!(!exists(&world).await);
}

#[tokio::test]
async fn children_of_a_parent_that_is_deleted_without_them_stay() {
    let world = world().await;
    world.settle(&plan([map("a", json!({}))])).await;
    let orphan = DeleteParams::default();
    let orphan = DeleteParams { propagation_policy: Some(kube::api::PropagationPolicy::Orphan), ..orphan };
    world.api::<Widget>().delete("one", &orphan).await.unwrap();
    world.caught_up().await;
    world.pass(&plan([])).await;
    assert!(world.map("a").await.is_some());
    assert_eq!(world.api::<Widget>().get("one").await.unwrap().finalizers(), ["orphan"]);
}

#[tokio::test]
async fn nothing_is_made_for_a_parent_that_is_going_without_us() {
    let world = world().await;
    world.edit::<Widget>("one", json!({"metadata": {"finalizers": ["example.com/theirs"]}})).await;
    delete(&world).await;
    let wanted = plan([map("a", json!({}))]).effect(Ring("bell")).status(phase("Up"));
    let (report, mutations) = world.mutations_of(world.pass(&wanted)).await;
    assert_eq!((mutations, report.outcome), (vec![], Outcome::AwaitChange));
    assert!(world.rung.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_old_view_of_the_parent_makes_no_children() {
    let mut world = world().await;
    world.stop_watching();
    let patch = Patch::Merge(json!({"spec": {"size": 2}}));
    world.api::<Widget>().patch("one", &PatchParams::default(), &patch).await.unwrap();
    let report = world.pass(&plan([map("a", json!({}))])).await;
    assert!(
        report.conflicted && matches!(report.outcome, Outcome::After(_)) && report.failures.is_empty(),
        "{report:?}"
    );
    assert!(world.map("a").await.is_none());
}

#[tokio::test]
async fn a_parent_that_went_meanwhile_is_no_failure() {
    let mut world = world().await;
    world.stop_watching();
    world.api::<Widget>().delete("one", &DeleteParams::default()).await.unwrap();
    let report = world.pass(&plan([map("a", json!({}))])).await;
    assert!(report.conflicted && report.failures.is_empty(), "{report:?}");
    assert!(world.map("a").await.is_none());
}
