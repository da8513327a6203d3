//! A kind that comes and goes.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams};
use kube::{CustomResourceExt as _, ResourceExt as _};
use serde_json::json;
use windlass_testing::{Clock, TestCluster};

use crate::support::{Log, start, until};
use crate::widget::{Outside, Widget, apply, base, boxed, controller, get, is_ready};

async fn install(cluster: &TestCluster) {
    cluster.apply_yaml(&serde_json::to_string(&Widget::crd()).unwrap()).await.unwrap();
}

async fn uninstall(cluster: &TestCluster) {
    let api: Api<CustomResourceDefinition> = Api::all(cluster.client());
    let name = Widget::crd().name_any();
    api.delete(&name, &DeleteParams::default()).await.unwrap();
    until(|| cluster.world().get::<CustomResourceDefinition>("", &name).is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn a_controller_waits_for_its_kind_stops_when_it_goes_and_starts_again() {
    // Its clock is the runtime's, so that watches live as long as they should.
    let clock = Clock::runtime("2026-01-01T00:00:00Z".parse().unwrap());
    let cluster = TestCluster::builder().clock(clock).start().await;
    let log = Log::default();
    // Every object is looked at every minute: what is forgotten is not.
    let controller = controller(&log).declared(|declared| declared.optional()).every(Duration::from_secs(60));
    let running = start(&cluster, base(&Outside::default()).controller(controller)).await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert!(running.readiness().report("readyz", &[]).passed, "nothing is wrong: it may be missing");

    for round in 1..=2 {
        install(&cluster).await;
        apply(&cluster, "default", "one", json!({"size": round})).await;
        until(|| is_ready(&cluster, "default", "one")).await;
        assert_eq!(boxed(&cluster, "one"), Some(round.to_string()));
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert!(log.count("default/one") >= 10, "it is looked at every minute");

        // Its objects go first, with their finalizers: the operator cleans up.
        uninstall(&cluster).await;
        assert_eq!(boxed(&cluster, "one"), None, "what it made is gone with it");
        until(|| running.cache().list::<Widget>(None).is_ok_and(|all| all.is_empty())).await;
        let (passes, requests) = (log.count("default/one"), cluster.requests().len());
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(log.count("default/one"), passes, "an hour without the kind, and no pass");
        let report = running.readiness().report("readyz", &[]);
        assert!(report.passed, "{}", report.text);
        let asked = cluster.requests().len() - requests;
        assert!(asked < 1000, "{asked} requests in an hour of waiting");
        assert!(get(&cluster, "one").is_none());
    }
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_has_only_begun_to_look_is_not_ready() {
    let cluster = TestCluster::new().await;
    let running = start(&cluster, crate::widget::operator(&Log::default(), &Outside::default())).await;
    let report = running.readiness().report("readyz", &[]);
    assert!(
        !report.passed && report.text.contains("Widget.test.example.com is not listed yet"),
        "{}",
        report.text
    );
    until(|| running.readiness().report("readyz", &[]).passed).await;
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_has_to_be_there_and_is_not_shows_in_readiness() {
    let cluster = TestCluster::new().await;
    let running = start(&cluster, base(&Outside::default()).controller(controller(&Log::default()))).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let report = running.readiness().report("readyz", &[]);
    assert!(!report.passed);
    assert!(report.text.contains("the server has no Widget.test.example.com"), "{}", report.text);
    install(&cluster).await;
    until(|| running.readiness().report("readyz", &[]).passed).await;
    apply(&cluster, "default", "one", json!({"size": 1})).await;
    until(|| is_ready(&cluster, "default", "one")).await;
    running.stop().await.unwrap();
}
