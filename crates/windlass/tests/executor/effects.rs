//! The operator's own effects, and what a plan would do.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;
use windlass::core::{Outcome, Plan};

use crate::world::{FINALIZER, Ring, WidgetPlan, World, child, map, phase, plan};

#[tokio::test]
async fn one_effect_is_done_in_a_pass() {
    let world = World::new().await;
    let plan = plan([map("a", json!({}))]).effect(Ring("first")).effect(Ring("second"));
    let report = world.pass(&plan).await;
    assert_eq!(report.writes, ["apply ConfigMap default/a", "ring first"]);
    assert_eq!(report.outcome, Outcome::Again, "the next pass observes what came of it");
    assert_eq!(*world.rung.lock().unwrap(), ["first"]);
}

#[tokio::test]
async fn an_effect_waits_for_the_children() {
    let world = World::new().await;
    let bad = map("bad", json!({"not a key!": "x"}));
    let report = world.pass(&plan([bad]).effect(Ring("bell"))).await;
    assert_eq!(report.failures.len(), 1);
    assert!(world.rung.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_effect_that_fails_is_reported_with_its_cause() {
    let world = World::new().await;
    world.failing.lock().unwrap().push("bell");
    let plan: WidgetPlan = Plan::new().effect(Ring("bell")).status(phase("Up"));
    let report = world.pass(&plan).await;
    assert_eq!(report.failures[0].to_string(), "cannot ring bell");
    assert_eq!(report.failures[0].problem().message, "cannot ring bell: bell is broken");
    assert_eq!(
        world.widget().status.unwrap().phase.as_deref(),
        Some("Up"),
        "the status is written all the same"
    );
}

#[tokio::test]
async fn a_preview_says_what_a_pass_would_do_and_does_nothing() {
    let world = World::with(|executor| executor.finalizer(FINALIZER)).await;
    let secret = child::<Secret>("s", json!({"stringData": {"password": "hunter2"}}));
    let before = plan([map("a", json!({"k": "1", "old": "x"})), map("gone", json!({})), secret]);
    world.settle(&before.status(phase("Idle"))).await;
    let secret = child::<Secret>("s", json!({"stringData": {"password": "hunter3"}}));
    let next = plan([map("a", json!({"k": "2"})), map("new", json!({})), secret]);
    let next = next.effect(Ring("bell")).status(phase("Up"));
    let parent = world.parent();
    let (steps, mutations) = world.mutations_of(world.executor.preview(&parent, &next)).await;
    assert_eq!(mutations, [""; 0]);
    let text: Vec<_> = steps.unwrap().iter().map(ToString::to_string).collect();
    let text = text.join("\n");
    assert!(!text.contains("hunter"), "{text}");
    insta::assert_snapshot!(text);

    world.settle(&plan([map("a", json!({"k": "2"})), map("new", json!({}))]).status(phase("Up"))).await;
    let same = plan([map("a", json!({"k": "2"})), map("new", json!({}))]).status(phase("Up"));
    assert_eq!(world.executor.preview(&world.parent(), &same).await.unwrap(), []);
    assert!(world.map("new").await.is_some_and(|map: ConfigMap| map.data.is_none()));
}
