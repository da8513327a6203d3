//! What the tests of controllers share.

#![allow(dead_code, reason = "not every test uses all of it")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;
use windlass::core::{ObjectKey, Outcome};
use windlass::{Controller, Env, Operator, Running, Settings};
use windlass_testing::TestCluster;

/// What a controller looked at.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    counts: BTreeMap<String, usize>,
    running: Vec<String>,
    overlapped: bool,
}

impl Log {
    pub fn note(&self, key: &ObjectKey) {
        *self.0.lock().unwrap().counts.entry(key.to_string()).or_default() += 1;
    }

    pub fn begin(&self, key: &ObjectKey) {
        self.note(key);
        let mut state = self.0.lock().unwrap();
        state.overlapped |= state.running.contains(&key.to_string());
        state.running.push(key.to_string());
    }

    pub fn end(&self, key: &ObjectKey) {
        self.0.lock().unwrap().running.retain(|other| *other != key.to_string());
    }

    pub fn count(&self, key: &str) -> usize {
        self.0.lock().unwrap().counts.get(key).copied().unwrap_or_default()
    }

    pub fn is_running(&self, key: &str) -> bool {
        self.0.lock().unwrap().running.iter().any(|other| other == key)
    }

    pub fn overlapped(&self) -> bool {
        self.0.lock().unwrap().overlapped
    }
}

/// Starts an operator as tests do: calls that nobody declared fail.
pub async fn start(cluster: &TestCluster, operator: Operator) -> Running {
    operator.start(cluster.client(), Settings::for_tests(Env::system())).await.unwrap()
}

/// Waits until something holds. On paused time this costs no time.
pub async fn until(holds: impl Fn() -> bool) {
    let begin = tokio::time::Instant::now();
    while begin.elapsed() < Duration::from_secs(60) {
        if holds() {
            return;
        }
        // What takes long need not be known to the millisecond.
        let step = if begin.elapsed() < Duration::from_secs(1) { 1 } else { 50 };
        tokio::time::sleep(Duration::from_millis(step)).await;
    }
    panic!("it did not come to hold within a minute");
}

/// Waits until somebody was told something, by an event.
pub async fn until_told(cluster: &TestCluster, told: impl Fn(&Event) -> bool) -> Event {
    let api: Api<Event> = Api::all(cluster.client());
    for _ in 0..600 {
        let events = api.list(&ListParams::default()).await.unwrap();
        if let Some(event) = events.items.into_iter().find(&told) {
            return event;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("nobody was told within a minute:\n{}", cluster.dump());
}

pub async fn config_map(cluster: &TestCluster, name: &str, value: &str) {
    let text = format!(
        "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}, data: {{value: '{value}'}}}}"
    );
    cluster.apply_yaml(&text).await.unwrap();
}

/// A controller of ConfigMaps that notes which it looked at.
pub fn noting(log: &Log) -> Controller<ConfigMap> {
    let log = log.clone();
    Controller::raw(move |ctx, _: Arc<ConfigMap>| {
        log.note(ctx.key());
        async { Ok(Outcome::AwaitChange) }
    })
}

pub fn operator(controller: Controller<ConfigMap>) -> Operator {
    Operator::new("test-operator", "0.0.0").controller(controller)
}

pub async fn annotate(cluster: &TestCluster, name: &str, key: &str, value: &str) {
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    let patch = json!({"metadata": {"annotations": {key: value}}});
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}
