//! Nodes.

use serde_json::{Value, json};

use crate::field::{Errors, Path};
use crate::kinds::check::{one_of, required, required_by};
use crate::kinds::tree::{get, list, same, set, sub, text};
use crate::kinds::{Context, Hooks, names};
use crate::status::Status;

pub(super) const NODE: Hooks = Hooks {
    default,
    admit,
    resets_status: false,
    validate_create: |node, _, errors| validate(node, errors),
    validate_update: |new, old, _, errors| {
        validate(new, errors);
        validate_update(new, old, errors);
    },
    ..Hooks::NONE
};

/// What a node does not say to be allocatable is all it has; its network stands under an old name, too.
fn default(node: &mut Value) {
    let spec = sub(node, "spec");
    match (text(spec, "podCIDR").to_owned(), list(spec, "podCIDRs").first().cloned()) {
        (one, Some(first)) if one.is_empty() => set(spec, "podCIDR", first),
        (one, None) if !one.is_empty() => set(spec, "podCIDRs", json!([one])),
        (one, Some(first)) if first != one.as_str() => set(spec, "podCIDRs", json!([one])),
        _ => {}
    }
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

fn validate(node: &Value, errors: &mut Errors) {
    // The real server looks for taints in the metadata, in its words at least.
    let path = Path::Root.child("metadata");
    let path = path.child("taints");
    for (index, taint) in list(&node["spec"], "taints").iter().enumerate() {
        let path = path.index(index);
        required_by(taint, "key", names::label_key, &path, errors);
        required(taint, "effect", "", &path, errors);
        if text(taint, "effect").is_empty() {
            continue;
        }
        one_of(taint, "effect", &["NoSchedule", "PreferNoSchedule", "NoExecute"], &path, errors);
    }
}

fn validate_update(new: &Value, old: &Value, errors: &mut Errors) {
    let (new, old, path) = (&new["spec"], &old["spec"], Path::Root.child("spec"));
    if !list(old, "podCIDRs").is_empty() && !same(new.get("podCIDRs"), old.get("podCIDRs")) {
        let detail = "node updates may not change podCIDR except from \"\" to valid";
        errors.forbidden(&path.child("podCIDRs"), detail);
    }
    if !text(old, "providerID").is_empty() && text(new, "providerID") != text(old, "providerID") {
        let detail = "node updates may not change providerID except from \"\" to valid";
        errors.forbidden(&path.child("providerID"), detail);
    }
}
