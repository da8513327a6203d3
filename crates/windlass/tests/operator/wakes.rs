//! What wakes an object beside its changes, and what does not in spite of them.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use windlass::core::Outcome;
use windlass::core::queue::{Bucket, Config};
use windlass::{Controller, Env, PAUSED, RECONCILE_NOW, Settings};
use windlass_testing::TestCluster;

use crate::support::{Log, annotate, config_map, noting, operator, start, until};
use crate::widget::{Outside, apply, base, boxed, controller, delete, get, is_ready};

#[tokio::test(start_paused = true)]
async fn every_object_is_looked_at_every_so_often_and_not_all_at_once() {
    let cluster = TestCluster::new().await;
    for number in 0..10 {
        config_map(&cluster, &format!("map-{number}"), "1").await;
    }
    let log = Log::default();
    let operator = operator(noting(&log).every(Duration::from_secs(600)));
    let settings = Settings::for_tests(Env::seeded(1, "2026-01-01T00:00:00Z".parse().unwrap()));
    let running = operator.start(cluster.client(), settings).await.unwrap();
    until(|| (0..10).all(|number| log.count(&format!("default/map-{number}")) == 1)).await;
    tokio::time::sleep(Duration::from_secs(599)).await;
    let again = || (0..10).filter(|number| log.count(&format!("default/map-{number}")) > 1).count();
    assert_eq!(again(), 0);
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!((1..10).contains(&again()), "{} of 10 in the first 30 s of their minute", again());
    tokio::time::sleep(Duration::from_secs(32)).await;
    assert_eq!(again(), 10);
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_predicate_sees_what_was_and_what_is_and_one_that_panics_lets_pass() {
    let cluster = TestCluster::new().await;
    config_map(&cluster, "one", "1").await;
    let log = Log::default();
    // Only changes of the value; a value that is no number is a bug.
    let value = |map: &Option<Arc<ConfigMap>>| -> Option<i32> {
        map.as_ref().map(|map| map.data.as_ref().unwrap()["value"].parse().expect("a number"))
    };
    let controller = noting(&log).predicate(move |delta| value(&delta.old) != value(&delta.new));
    let running = start(&cluster, operator(controller)).await;
    until(|| log.count("default/one") == 1).await;
    annotate(&cluster, "one", "note", "irrelevant").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(log.count("default/one"), 1);
    config_map(&cluster, "one", "2").await;
    until(|| log.count("default/one") == 2).await;
    config_map(&cluster, "one", "three").await;
    until(|| log.count("default/one") == 3).await;
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn deletions_and_what_is_asked_for_pass_every_predicate() {
    let cluster = TestCluster::new().await;
    let log = Log::default();
    // Nothing passes but the first sight of an object.
    let controller = controller(&log).predicate(|delta| delta.old.is_none());
    let operator = base(&Outside::default()).crd::<crate::widget::Widget>().controller(controller);
    let running = start(&cluster, operator).await;
    apply(&cluster, "default", "one", json!({"size": 1})).await;
    until(|| is_ready(&cluster, "default", "one")).await;
    let api: Api<crate::widget::Widget> = Api::default_namespaced(cluster.client());
    let annotate = async |key: &str, value: &str| {
        let patch = json!({"metadata": {"annotations": {key: value}}});
        api.patch("one", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    };
    apply(&cluster, "default", "one", json!({"size": 2})).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(boxed(&cluster, "one").as_deref(), Some("1"), "the predicate is in the way");
    annotate(RECONCILE_NOW, "1").await;
    until(|| boxed(&cluster, "one").as_deref() == Some("2")).await;

    annotate(PAUSED, "true").await;
    apply(&cluster, "default", "one", json!({"size": 3})).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(boxed(&cluster, "one").as_deref(), Some("2"));
    annotate(PAUSED, "false").await;
    until(|| boxed(&cluster, "one").as_deref() == Some("3")).await;

    delete(&cluster, "one").await;
    until(|| get(&cluster, "one").is_none()).await;
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_paused_object_waits_with_its_deletion_too() {
    let cluster = TestCluster::new().await;
    let operator =
        base(&Outside::default()).crd::<crate::widget::Widget>().controller(controller(&Log::default()));
    let running = start(&cluster, operator).await;
    apply(&cluster, "default", "one", json!({"size": 1})).await;
    until(|| is_ready(&cluster, "default", "one")).await;
    let api: Api<crate::widget::Widget> = Api::default_namespaced(cluster.client());
    let paused = |value: serde_json::Value| json!({"metadata": {"annotations": {PAUSED: value}}});
    api.patch("one", &PatchParams::default(), &Patch::Merge(paused(json!("true")))).await.unwrap();
    delete(&cluster, "one").await;
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    maps.delete("one-box", &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(get(&cluster, "one").is_some() && boxed(&cluster, "one").is_none(), "it is left alone");
    api.patch("one", &PatchParams::default(), &Patch::Merge(paused(json!(null)))).await.unwrap();
    until(|| get(&cluster, "one").is_none()).await;
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_happens_goes_before_what_was_there_at_the_start() {
    let cluster = TestCluster::new().await;
    for number in 0..100 {
        config_map(&cluster, &format!("map-{number}"), "1").await;
    }
    let log = Log::default();
    let controller = {
        let log = log.clone();
        Controller::raw(move |ctx, _: Arc<ConfigMap>| {
            log.note(ctx.key());
            async move {
                ctx.env().sleep(Duration::from_secs(1)).await;
                Ok(Outcome::AwaitChange)
            }
        })
    };
    let running = start(&cluster, operator(controller.concurrency(1))).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    config_map(&cluster, "new", "1").await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(log.count("default/new"), 1, "it did not wait for the rest of a hundred seconds");
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_queue_hands_out_no_more_than_it_is_allowed_to() {
    let cluster = TestCluster::new().await;
    for number in 0..10 {
        config_map(&cluster, &format!("map-{number}"), "1").await;
    }
    let log = Log::default();
    let config = Config { bucket: Some(Bucket::per_second(1.0, 1)), ..Config::default() };
    let running = start(&cluster, operator(noting(&log).queue(config))).await;
    let looked_at = || (0..10).map(|number| log.count(&format!("default/map-{number}"))).sum::<usize>();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!((3..=6).contains(&looked_at()), "{} in five seconds", looked_at());
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(looked_at(), 10);
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn one_that_is_never_done_is_slowed_down() {
    let cluster = TestCluster::new().await;
    config_map(&cluster, "one", "1").await;
    let log = Log::default();
    let restless = {
        let log = log.clone();
        Controller::raw(move |ctx, _: Arc<ConfigMap>| {
            log.note(ctx.key());
            async { Ok(Outcome::Again) }
        })
    };
    let running = start(&cluster, operator(restless)).await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let passes = log.count("default/one");
    assert!((25..60).contains(&passes), "{passes} passes in an hour");
    running.stop().await.unwrap();
}
