//! TaintNodesByCondition: a new node takes no pods until it is found ready.

use serde_json::{Value, json};

use super::Admission;
use crate::kinds::tree::{list, set, sub, text};
use crate::status::Result;

const NOT_READY: &str = "node.kubernetes.io/not-ready";

pub(super) fn taint(node: &mut Value, admission: &mut Admission<'_>) -> Result<()> {
    if !admission.is_of("", "nodes") {
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
