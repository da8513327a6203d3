//! What the tests of controllers share.

#![allow(dead_code, reason = "not every test uses all of it")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use windlass::core::ObjectKey;
use windlass::{Env, Operator, Running, Settings};
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
    for _ in 0..60_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("it did not come to hold within a minute");
}

pub async fn config_map(cluster: &TestCluster, name: &str, value: &str) {
    let text = format!(
        "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}, data: {{value: '{value}'}}}}"
    );
    cluster.apply_yaml(&text).await.unwrap();
}
