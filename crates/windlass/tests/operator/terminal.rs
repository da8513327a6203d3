//! What only a change of the spec can mend.

use std::time::Duration;

use k8s_openapi::api::events::v1::Event;
use serde_json::json;
use windlass::core::{ObjectKey, condition};
use windlass::executor::STALLED;
use windlass_testing::TestCluster;

use crate::support::{Log, start, until, until_told};
use crate::widget::{Outside, apply, boxed, conditions, delete, get, is_ready, operator};

/// A widget that was well is given a spec that cannot be done, for this reason.
async fn stalls(fault: &str, reason: &str, message: &str) {
    let cluster = TestCluster::new().await;
    let (log, outside) = (Log::default(), Outside::default());
    let running = start(&cluster, operator(&log, &outside)).await;
    apply(&cluster, "default", "one", json!({"size": 1})).await;
    until(|| is_ready(&cluster, "default", "one")).await;

    apply(&cluster, "default", "one", json!({"size": 1, "bells": ["a"], "fault": fault})).await;
    let stalled = || condition::is_true(conditions(&get(&cluster, "one").unwrap()), STALLED);
    until(stalled).await;
    let widget = get(&cluster, "one").unwrap();
    let shown = condition::find(conditions(&widget), STALLED).unwrap();
    assert_eq!((&*shown.reason, &*shown.message), (reason, message));
    assert_eq!(shown.observed_generation, widget.metadata.generation);
    let told = |event: &Event| {
        let regarding = event.regarding.as_ref().and_then(|object| object.name.as_deref());
        regarding == Some("one")
            && event.note.as_deref() == Some(&format!("{reason}: {message}"))
            && event.reason.as_deref() == Some("ReconcileStalled")
    };
    until_told(&cluster, told).await;

    let passes = log.count("default/one");
    tokio::time::sleep(Duration::from_secs(24 * 3600)).await;
    assert_eq!(log.count("default/one"), passes, "a day later nobody has tried again");
    assert_eq!(boxed(&cluster, "one").as_deref(), Some("1"), "what the last good spec asked for is there");

    apply(&cluster, "default", "one", json!({"size": 2, "bells": ["a"]})).await;
    until(|| is_ready(&cluster, "default", "one")).await;
    let widget = get(&cluster, "one").unwrap();
    assert_eq!(condition::find(conditions(&widget), STALLED), None, "it is mended");
    assert_eq!(boxed(&cluster, "one").as_deref(), Some("2"));
    assert_eq!(outside.ringing(&ObjectKey::namespaced("default", "one")), ["a"]);
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_terminal_error_of_observe_shows_and_is_mended_by_the_spec() {
    stalls("observe", "NotObservable", "there is nothing to observe").await;
}

#[tokio::test(start_paused = true)]
async fn a_terminal_plan_shows_and_is_mended_by_the_spec() {
    stalls("plan", "NotPlannable", "there is no plan for this").await;
}

#[tokio::test(start_paused = true)]
async fn a_terminal_error_of_an_effect_shows_and_is_mended_by_the_spec() {
    stalls("perform", "NotDoable", "the bell is cracked").await;
}

#[tokio::test(start_paused = true)]
async fn what_is_stalled_can_be_deleted() {
    let cluster = TestCluster::new().await;
    let running = start(&cluster, operator(&Log::default(), &Outside::default())).await;
    apply(&cluster, "default", "one", json!({"size": 1})).await;
    until(|| is_ready(&cluster, "default", "one")).await;
    apply(&cluster, "default", "one", json!({"size": 1, "fault": "plan"})).await;
    until(|| condition::is_true(conditions(&get(&cluster, "one").unwrap()), STALLED)).await;
    delete(&cluster, "one").await;
    until(|| get(&cluster, "one").is_none() && boxed(&cluster, "one").is_none()).await;
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stalled_object_of_an_operator_that_restarts_is_looked_at_once_and_not_written() {
    let cluster = TestCluster::new().await;
    let log = Log::default();
    let running = start(&cluster, operator(&log, &Outside::default())).await;
    apply(&cluster, "default", "one", json!({"fault": "observe"})).await;
    until(|| condition::is_true(conditions(&get(&cluster, "one").unwrap()), STALLED)).await;
    running.stop().await.unwrap();
    let (before, version) =
        (log.count("default/one"), get(&cluster, "one").unwrap().metadata.resource_version);
    let running = start(&cluster, operator(&log, &Outside::default())).await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(log.count("default/one"), before + 1);
    assert_eq!(get(&cluster, "one").unwrap().metadata.resource_version, version);
    running.stop().await.unwrap();
}
