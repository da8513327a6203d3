//! Nodes.

use serde_json::{Value, json};

use crate::kinds::tree::{get, list, set, sub, text};
use crate::kinds::{Context, Hooks};
use crate::status::Status;

pub(super) const NODE: Hooks = Hooks { default, admit, resets_status: false, ..Hooks::NONE };

/// What a node does not say to be allocatable is all it has.
fn default(node: &mut Value) {
    let Some(capacity) = node.pointer("/status/capacity").filter(|capacity| !capacity.is_null()).cloned()
    else {
        return;
    };
    let status = sub(node, "status");
    if get(status, "allocatable").is_none() {
        set(status, "allocatable", capacity);
    }
}

/// TaintNodesByCondition: a new node takes no pods until it is found ready.
fn admit(node: &mut Value, old: Option<&Value>, _: &Context<'_>) -> Result<(), Status> {
    const NOT_READY: &str = "node.kubernetes.io/not-ready";
    if old.is_some() {
        return Ok(());
    }
    let spec = sub(node, "spec");
    let mut taints = list(spec, "taints").to_vec();
    if !taints.iter().any(|taint| text(taint, "key") == NOT_READY && text(taint, "effect") == "NoSchedule") {
        taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
        set(spec, "taints", taints);
    }
    Ok(())
}
