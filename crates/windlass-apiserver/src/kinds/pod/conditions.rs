//! The conditions of a pod, as the server itself writes and reads them.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kinds::tree::{self, list, seconds, sub, text};

/// Sets a condition. Its time changes when its status does.
pub(crate) fn set(pod: &mut Value, mut condition: Value, now: Timestamp) {
    let status = sub(pod, "status");
    if list(status, "conditions").is_empty() {
        tree::set(status, "conditions", json!([]));
    }
    let all = status["conditions"].as_array_mut().expect("made above");
    let same = |had: &&mut Value| text(had, "type") == text(&condition, "type");
    let had = all.iter_mut().find(same);
    let time = had
        .as_ref()
        .filter(|had| text(had, "status") == text(&condition, "status"))
        .and_then(|had| had.get("lastTransitionTime").cloned());
    tree::set(&mut condition, "lastProbeTime", Value::Null);
    tree::set(&mut condition, "lastTransitionTime", time.unwrap_or_else(|| json!(seconds(now))));
    match had {
        Some(had) => *had = condition,
        None => all.push(condition),
    }
}

/// Whether a pod is ready.
pub(crate) fn is_ready(pod: &Value) -> bool {
    let conditions = pod.get("status").map(|status| list(status, "conditions")).unwrap_or_default();
    conditions
        .iter()
        .any(|condition| text(condition, "type") == "Ready" && text(condition, "status") == "True")
}
