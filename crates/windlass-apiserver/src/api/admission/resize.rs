//! NodeDeclaredFeatureValidator and PodResizeValidator: a pod becomes what its node can do, and has room for.

use serde_json::Value;
use windlass_core::amounts::{Amounts, Side, Summed, amounts, total};

use super::Admission;
use crate::kinds::tree::{at, int, list, same, text, text_at};
use crate::status::{Result, Status};

/// What some updates need, which not every node can do.
pub(super) fn features(pod: &Value, admission: &mut Admission<'_>) -> Result<()> {
    let is_asked = admission.is_in("", "pods") && matches!(admission.context.subresource, "" | "resize");
    let Some(old) = admission.old.filter(|old| is_asked && is_bound_and_changed(pod, old)) else {
        return Ok(());
    };
    let (new_spec, old_spec) = (&pod["spec"], &old["spec"]);
    let mut needed = Vec::new();
    if !same(new_spec.get("resources"), old_spec.get("resources")) {
        needed.push("InPlacePodLevelResourcesVerticalScaling");
    }
    let begins = list(new_spec, "initContainers").iter().zip(list(old_spec, "initContainers"));
    let mut begins = begins.filter(|(_, old)| text(old, "restartPolicy") != "Always");
    if begins.any(|(new, old)| !same(new.get("resources"), old.get("resources"))) {
        needed.push("InPlacePodVerticalScalingInitContainers");
    }
    if needed.is_empty() {
        return Ok(());
    }
    let node = node_of(pod, admission)?;
    let declared = list(&node["status"], "declaredFeatures");
    needed.retain(|feature| !declared.iter().any(|known| known == feature));
    if needed.is_empty() {
        return Ok(());
    }
    let (all, name) = (needed.join(", "), text_at(&node, &["metadata", "name"]));
    let why = format!("pod update requires features {all} which are not available on node {name:?}");
    Err(admission.refuse(pod, &why))
}

/// A pod is not made larger than its node.
pub(super) fn room(pod: &Value, admission: &mut Admission<'_>) -> Result<()> {
    let is_asked = admission.is_in("", "pods") && admission.context.subresource == "resize";
    if !is_asked || !admission.old.is_some_and(|old| is_bound_and_changed(pod, old)) {
        return Ok(());
    }
    let node = node_of(pod, admission)?;
    let system = at(&node, &["metadata", "labels", "kubernetes.io/os"]).and_then(Value::as_str);
    if let Some(system) = system.filter(|system| *system != "linux") {
        let name = text_at(&node, &["metadata", "name"]);
        let why = format!("pod resize is only supported on linux nodes, node {name:?} is {system:?}");
        return Err(admission.refuse(pod, &why).cause("UnsupportedPlatform", "", ""));
    }
    let (requests, has) =
        (total(pod, Side::Requests, Summed::Needed), amounts(&node["status"], "allocatable"));
    let mut faults = Vec::new();
    for name in ["cpu", "memory"] {
        let of = |amounts: &Amounts| {
            let amount = amounts.get(name)?;
            if name == "cpu" { amount.as_milli() } else { amount.as_i64() }
        };
        let is_more = match (requests.get(name), has.get(name)) {
            (Some(requested), Some(allocatable)) => requested > allocatable,
            (Some(requested), None) => requested.signum() > 0,
            _ => false,
        };
        if is_more {
            let (requested, allocatable) = (of(&requests).unwrap_or(i64::MAX), of(&has).unwrap_or(0));
            faults.push(format!("{name}, requested: {requested}, allocatable: {allocatable}"));
        }
    }
    if faults.is_empty() {
        return Ok(());
    }
    let why = format!("node didn't have enough allocatable resources: {}", faults.join("; "));
    Err(admission.refuse(pod, &why).cause("NodeCapacity", "", ""))
}

fn is_bound_and_changed(pod: &Value, old: &Value) -> bool {
    let generation = |pod: &Value| int(&pod["metadata"], "generation");
    !text_at(pod, &["spec", "nodeName"]).is_empty() && generation(pod) != generation(old)
}

fn node_of(pod: &Value, admission: &Admission<'_>) -> std::result::Result<Value, Status> {
    let name = text_at(pod, &["spec", "nodeName"]);
    let found = admission.context.world.get("", "Node", "", name);
    found.ok_or_else(|| admission.refuse(pod, &format!("node {name:?} not found")))
}
