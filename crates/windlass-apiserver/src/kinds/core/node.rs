//! Nodes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::field::{Errors, Path, Reason};
use crate::kinds::check::{by_rule, cidr, one_of, required};
use crate::kinds::meta::Check;
use crate::kinds::pod::value_of;
use crate::kinds::tree::{entries, get, list, same, set, sub, text};
use crate::kinds::{Hooks, names, warn};

pub(super) const NODE: Hooks = Hooks {
    default,
    resets_status: false,
    warnings: |node, _| warnings(&node["spec"]),
    validate_create: |node, _, errors| validate(node, errors),
    rechecks: &[Check::Whole, Check::Update],
    validate_update: |new, old, _, errors| {
        validate(new, errors);
        validate_update(new, old, errors);
    },
    validate_status: |new, old, _, errors| validate_update(new, old, errors),
    ..Hooks::NONE
};

fn warnings(spec: &Value) -> Vec<String> {
    let mut out = Vec::new();
    if get(spec, "configSource").is_some() {
        out.push("spec.configSource: the feature is removed".to_owned());
    }
    if !text(spec, "externalID").is_empty() {
        out.push("spec.externalID: this field is deprecated, and is unused by Kubernetes".to_owned());
    }
    let path = Path::Root.child("spec");
    let path = path.child("podCIDRs");
    for (index, range) in list(spec, "podCIDRs").iter().filter_map(Value::as_str).enumerate() {
        warn::cidr(range, &path.index(index), &mut out);
    }
    out
}

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

fn validate(node: &Value, errors: &mut Errors) {
    taints(node, errors);
    resources(node, errors);
    let spec = Path::Root.child("spec");
    let path = spec.child("podCIDRs");
    let blocks = list(&node["spec"], "podCIDRs").iter().filter_map(Value::as_str).collect::<Vec<_>>();
    let parsed = blocks.iter().enumerate().map(|(index, block)| cidr(block, &path.index(index), errors));
    let parsed = parsed.collect::<Vec<_>>();
    if blocks.len() < 2 {
        return;
    }
    if let Some(index) = parsed.iter().position(Option::is_none) {
        let why = format!("invalid CIDR[{index}]: <nil> (invalid CIDR address: {})", blocks[index]);
        let why =
            format!("Internal error: invalid PodCIDRs. failed to check with dual stack with error:{why}");
        errors.push(Reason::Internal, &path, why);
    }
    if !matches!(&parsed[..], [Some(one), Some(other)] if one.width != other.width) {
        let detail = "may specify no more than one CIDR for each IP family";
        errors.invalid(&path, &node["spec"]["podCIDRs"], detail);
    }
}

fn taints(node: &Value, errors: &mut Errors) {
    // The real server looks for taints in the metadata, in its words at least.
    let path = Path::Root.child("metadata");
    let path = path.child("taints");
    let mut seen = BTreeSet::new();
    for (index, taint) in list(&node["spec"], "taints").iter().enumerate() {
        let path = path.index(index);
        let (key, value, effect) = (text(taint, "key"), text(taint, "value"), text(taint, "effect"));
        by_rule(key, names::label_key, &path.child("key"), errors);
        let faults = names::label_value(value);
        if !faults.is_empty() {
            errors.invalid(&path.child("value"), &json!(value), &faults.join(";"));
        }
        if required(taint, "effect", "", &path, errors) {
            one_of(taint, "effect", &["NoSchedule", "PreferNoSchedule", "NoExecute"], &path, errors);
        }
        if !seen.insert((effect, key)) {
            let time = taint.get("timeAdded").unwrap_or(&Value::Null);
            let shown = json!({"Key": key, "Value": value, "Effect": effect, "TimeAdded": time});
            let detail = "taints must be unique by key and effect pair";
            errors.push(Reason::Duplicate, &path, format!("Duplicate value: {shown}: {detail}"));
        }
    }
}

fn resources(node: &Value, errors: &mut Errors) {
    let status = Path::Root.child("status");
    for field in ["capacity", "allocatable"] {
        for (name, amount) in entries(&node["status"], field) {
            value_of(name, amount, &status.child(field).child(name), errors);
        }
    }
}

fn validate_update(node: &Value, before: &Value, errors: &mut Errors) {
    resources(node, errors);
    let addresses = list(&node["status"], "addresses");
    for (index, address) in addresses.iter().enumerate() {
        if addresses[..index].contains(address) {
            let status = Path::Root.child("status");
            errors.duplicate(&status.child("addresses").index(index), address);
        }
    }
    let (new, old, path) = (&node["spec"], &before["spec"], Path::Root.child("spec"));
    if !list(old, "podCIDRs").is_empty() && !same(new.get("podCIDRs"), old.get("podCIDRs")) {
        let detail = "node updates may not change podCIDR except from \"\" to valid";
        errors.forbidden(&path.child("podCIDRs"), detail);
    }
    if !text(old, "providerID").is_empty() && text(new, "providerID") != text(old, "providerID") {
        let detail = "node updates may not change providerID except from \"\" to valid";
        errors.forbidden(&path.child("providerID"), detail);
    }
    taints(node, errors);
}
