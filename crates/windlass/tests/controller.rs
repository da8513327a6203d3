//! Controllers on the in-process server: what wakes them, what does not, and what a bad object does to the others.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use support::{Log, annotate, config_map, noting, operator, start, until};
use windlass::core::{ObjectKey, Outcome};
use windlass::{Controller, Error, Operator, PAUSED, RECONCILE_NOW};
use windlass_testing::TestCluster;

#[tokio::test(start_paused = true)]
async fn every_object_is_looked_at_and_changes_are_too() {
    let cluster = TestCluster::new().await;
    config_map(&cluster, "one", "1").await;
    let log = Log::default();
    let running = start(&cluster, operator(noting(&log))).await;
    until(|| log.count("default/one") == 1).await;
    config_map(&cluster, "two", "1").await;
    until(|| log.count("default/two") == 1).await;
    config_map(&cluster, "one", "2").await;
    until(|| log.count("default/one") == 2).await;
    running.stop().await.unwrap();
    config_map(&cluster, "one", "3").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(log.count("default/one"), 2, "a stopped operator looks at nothing");
}

#[tokio::test(start_paused = true)]
async fn a_paused_object_is_left_alone_and_reconcile_now_is_now() {
    let cluster = TestCluster::new().await;
    config_map(&cluster, "one", "1").await;
    let log = Log::default();
    let failing = {
        let log = log.clone();
        Controller::raw(move |ctx, _: Arc<ConfigMap>| {
            log.note(ctx.key());
            async { Err(Error::terminal("Broken", "cannot be done")) }
        })
    };
    let running = start(&cluster, operator(failing)).await;
    until(|| log.count("default/one") == 1).await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(log.count("default/one"), 1, "what cannot be done is not tried again");
    annotate(&cluster, "one", RECONCILE_NOW, "please").await;
    until(|| log.count("default/one") == 2).await;
    annotate(&cluster, "one", PAUSED, "true").await;
    annotate(&cluster, "one", RECONCILE_NOW, "again").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(log.count("default/one"), 2, "a paused object is left alone");
    annotate(&cluster, "one", PAUSED, "false").await;
    annotate(&cluster, "one", RECONCILE_NOW, "now").await;
    until(|| log.count("default/one") == 3).await;
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_of_one_object_which_backs_off_and_says_so() {
    let cluster = TestCluster::new().await;
    config_map(&cluster, "bad", "1").await;
    let log = Log::default();
    let panicking = {
        let log = log.clone();
        Controller::raw(move |ctx, _: Arc<ConfigMap>| {
            log.note(ctx.key());
            let bad = ctx.key().name() == "bad";
            async move {
                assert!(!bad, "oh no");
                Ok(Outcome::AwaitChange)
            }
        })
    };
    let running = start(&cluster, operator(panicking)).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let tries = log.count("default/bad");
    assert!((4..=9).contains(&tries), "5 ms, 10 ms, 20 ms, …: {tries} tries in a second");
    config_map(&cluster, "good", "1").await;
    until(|| log.count("default/good") == 1).await;
    until(|| cluster.dump().contains("the operator panicked: oh no")).await;
    let text = running.metrics().render(windlass::metrics::Format::Text);
    let line = text.lines().find(|line| line.starts_with("controller_runtime_reconcile_panics_total{"));
    let counted = line.and_then(|line| line.rsplit(' ').next()?.parse().ok());
    assert_eq!(counted, Some(log.count("default/bad")), "{text}");
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_change_that_is_no_change_of_the_spec_does_not_cut_a_backoff_short() {
    // A Deployment counts generations; a change of a label is none.
    use k8s_openapi::api::apps::v1::Deployment;
    let cluster = TestCluster::new().await;
    let text = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {selector: {matchLabels: {a: b}}, \
                template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: nginx}]}}}}";
    cluster.apply_yaml(text).await.unwrap();
    let log = Log::default();
    let failing = {
        let log = log.clone();
        Controller::raw(move |ctx, _: Arc<Deployment>| {
            log.note(ctx.key());
            async { Err::<Outcome, _>(Error::retry("not yet")) }
        })
    };
    let running = start(&cluster, Operator::new("test-operator", "0.0.0").controller(failing)).await;
    // After eleven failures the next try is more than five seconds away.
    until(|| log.count("default/web") == 11).await;
    let api: Api<Deployment> = Api::default_namespaced(cluster.client());
    for number in 0..20 {
        let patch = json!({"metadata": {"labels": {"number": number.to_string()}}});
        api.patch("web", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(log.count("default/web"), 11);
    api.patch("web", &PatchParams::default(), &Patch::Merge(json!({"spec": {"replicas": 3}}))).await.unwrap();
    until(|| log.count("default/web") == 12).await;
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_mapper_sees_old_and_new() {
    let cluster = TestCluster::new().await;
    for name in ["one", "two"] {
        config_map(&cluster, name, "1").await;
    }
    let log = Log::default();
    // A Secret leads to the ConfigMap that its label names, and to the one that it named before.
    let controller = noting(&log).watches::<Secret>(|delta, _| {
        let named = |secret: &Arc<Secret>| secret.metadata.labels.as_ref()?.get("of").cloned();
        let both = [&delta.old, &delta.new].into_iter().flatten();
        both.filter_map(named).map(|name| ObjectKey::namespaced("default", &name)).collect()
    });
    let running = start(&cluster, operator(controller)).await;
    until(|| log.count("default/one") == 1 && log.count("default/two") == 1).await;
    let secret =
        |of: &str| format!("{{apiVersion: v1, kind: Secret, metadata: {{name: s, labels: {{of: {of}}}}}}}");
    cluster.apply_yaml(&secret("one")).await.unwrap();
    until(|| log.count("default/one") == 2).await;
    cluster.apply_yaml(&secret("two")).await.unwrap();
    until(|| log.count("default/one") == 3 && log.count("default/two") == 2).await;
    let api: Api<Secret> = Api::default_namespaced(cluster.client());
    api.delete("s", &DeleteParams::default()).await.unwrap();
    until(|| log.count("default/two") == 3).await;
    assert_eq!(log.count("default/one"), 3);
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn no_more_than_allowed_run_at_once_and_none_twice() {
    let cluster = TestCluster::new().await;
    for number in 0..20 {
        config_map(&cluster, &format!("map-{number}"), "1").await;
    }
    let (running_now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let log = Log::default();
    let controller = {
        let (now, most, log) = (running_now.clone(), most.clone(), log.clone());
        Controller::raw(move |ctx, _: Arc<ConfigMap>| {
            let (now, most, log) = (now.clone(), most.clone(), log.clone());
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                log.begin(ctx.key());
                ctx.env().sleep(Duration::from_millis(100)).await;
                log.end(ctx.key());
                now.fetch_sub(1, Ordering::Relaxed);
                Ok(Outcome::After(Duration::from_millis(10)))
            }
        })
        .concurrency(3)
    };
    let running = start(&cluster, operator(controller)).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(most.load(Ordering::Relaxed), 3);
    assert!(!log.overlapped(), "an object was reconciled twice at once");
    for number in 0..20 {
        let times = log.count(&format!("default/map-{number}"));
        assert!((13..=16).contains(&times), "map-{number} was looked at {times} times, its share is 15");
    }
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_pass_that_takes_too_long_is_ended() {
    let cluster = TestCluster::new().await;
    config_map(&cluster, "slow", "1").await;
    let log = Log::default();
    let controller = {
        let log = log.clone();
        Controller::raw(move |ctx, _: Arc<ConfigMap>| {
            log.note(ctx.key());
            async { std::future::pending().await }
        })
        .timeout(Duration::from_secs(5))
    };
    let running = start(&cluster, operator(controller)).await;
    until(|| log.count("default/slow") == 2).await;
    let text = running.metrics().render(windlass::metrics::Format::Text);
    assert!(
        !text.contains("controller_runtime_reconcile_timeouts_total{controller=\"configmap\"} 0"),
        "{text}"
    );
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn events_from_outside_wake_by_key() {
    let cluster = TestCluster::new().await;
    config_map(&cluster, "one", "1").await;
    let log = Log::default();
    let (sender, receiver) = tokio::sync::mpsc::channel(8);
    let running = start(&cluster, operator(noting(&log).channel("doorbell", receiver))).await;
    until(|| log.count("default/one") == 1).await;
    sender.send(ObjectKey::namespaced("default", "one")).await.unwrap();
    until(|| log.count("default/one") == 2).await;
    sender.send(ObjectKey::namespaced("default", "nobody")).await.unwrap();
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_declared_names_the_line_to_add() {
    let cluster = TestCluster::new().await;
    config_map(&cluster, "one", "1").await;
    let said = Arc::new(std::sync::Mutex::new(Vec::new()));
    let controller = {
        let said = said.clone();
        Controller::raw(move |ctx, _: Arc<ConfigMap>| {
            let said = said.clone();
            async move {
                let read = ctx.list::<Secret>(None).unwrap_err().to_string();
                let secrets: Api<Secret> = Api::default_namespaced(ctx.client().clone());
                let called = secrets.delete("s", &DeleteParams::default()).await.unwrap_err();
                let called = Error::from(called).to_string();
                said.lock().unwrap().extend([read, called]);
                Ok(Outcome::AwaitChange)
            }
        })
    };
    let running = start(&cluster, operator(controller)).await;
    until(|| said.lock().unwrap().len() >= 2).await;
    let said = said.lock().unwrap().clone();
    assert!(said[0].contains("add `.reads::<Secret>()`"), "{}", said[0]);
    assert!(said[1].contains(".permits(\"\", \"secrets\", &[\"delete\"])"), "{}", said[1]);
    running.stop().await.unwrap();
}
