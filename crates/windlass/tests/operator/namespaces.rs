//! Where an operator works: in one namespace, in several, in all, and elsewhere from now on.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use windlass::cache::Namespaces;
use windlass::core::{ObjectKey, Outcome};
use windlass::{Controller, Env, Operator, Running, Settings};
use windlass_testing::TestCluster;

use crate::support::{Log, until};

async fn world() -> TestCluster {
    let cluster = TestCluster::new().await;
    for name in ["a", "b", "c"] {
        let text = format!(
            "{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}}}}}\n---\n\
             {{apiVersion: v1, kind: ConfigMap, metadata: {{name: map, namespace: {name}}}}}"
        );
        cluster.apply_yaml(&text).await.unwrap();
    }
    cluster
}

/// An operator that looks at every ConfigMap every minute.
async fn start(cluster: &TestCluster, log: &Log, namespaces: &[&str]) -> Running {
    let log = log.clone();
    let controller = Controller::raw(move |ctx, _: Arc<ConfigMap>| {
        log.note(ctx.key());
        async { Ok(Outcome::AwaitChange) }
    });
    let operator =
        Operator::new("test-operator", "0.0.0").controller(controller.every(Duration::from_secs(60)));
    let namespaces = namespaces.iter().map(ToString::to_string).collect();
    let settings = Settings { namespaces, ..Settings::for_tests(Env::system()) };
    operator.start(cluster.client(), settings).await.unwrap()
}

/// In which of the namespaces something is looked at during the next ten minutes.
async fn looked_at(log: &Log) -> String {
    let counts = || ["a", "b", "c"].map(|name| log.count(&format!("{name}/map")));
    let before = counts();
    tokio::time::sleep(Duration::from_secs(600)).await;
    let after = counts();
    (0..3).filter(|&at| after[at] > before[at]).map(|at| ["a", "b", "c"][at]).collect()
}

#[tokio::test(start_paused = true)]
async fn one_several_or_all_and_changed_at_run_time() {
    let cluster = world().await;
    let log = Log::default();
    let running = start(&cluster, &log, &["a"]).await;
    assert_eq!(looked_at(&log).await, "a");
    running.cache().set_namespaces(Namespaces::only(["a", "c"]));
    assert_eq!(looked_at(&log).await, "ac");
    running.cache().set_namespaces(Namespaces::only(["b"]));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(looked_at(&log).await, "b", "what it has left is forgotten, with its timers");
    running.cache().set_namespaces(Namespaces::All);
    assert_eq!(looked_at(&log).await, "abc");
    running.stop().await.unwrap();

    let clusterwide = |one: &windlass_testing::Record| {
        matches!(one.verb, "list" | "watch") && one.resource == "configmaps" && one.namespace.is_empty()
    };
    let first =
        cluster.requests().iter().position(clusterwide).expect("all namespaces are watched in the end");
    let before: Vec<_> = cluster.requests()[..first].iter().map(|one| one.namespace.to_string()).collect();
    for name in ["a", "b", "c"] {
        assert!(before.iter().any(|namespace| namespace == name), "only where it works: {before:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_restriction_it_works_everywhere() {
    let cluster = world().await;
    let log = Log::default();
    let running = start(&cluster, &log, &[]).await;
    assert_eq!(looked_at(&log).await, "abc");
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_is_outside_is_not_taken_for_absent() {
    let cluster = world().await;
    let said = Arc::new(Mutex::new(String::new()));
    let controller = {
        let said = said.clone();
        Controller::raw(move |ctx, _: Arc<ConfigMap>| {
            let error = ctx.get::<ConfigMap>(&ObjectKey::namespaced("b", "map")).unwrap_err();
            *said.lock().unwrap() = error.to_string();
            async { Ok(Outcome::AwaitChange) }
        })
    };
    let operator = Operator::new("test-operator", "0.0.0").controller(controller);
    let settings = Settings { namespaces: vec!["a".to_owned()], ..Settings::for_tests(Env::system()) };
    let running = operator.start(cluster.client(), settings).await.unwrap();
    until(|| *said.lock().unwrap() == "ConfigMap is not watched in namespace \"b\"").await;
    running.stop().await.unwrap();
}
