//! RuntimeClass: the overhead of the class is the pod's, and its place is among nodes that can run it.

use serde_json::Value;

use super::Admission;
use crate::kinds::names;
use crate::kinds::tree::{at, entries, fill, get, int, list, set, sub, text};
use crate::status::{Result, Status};

pub(super) fn admit(pod: &mut Value, admission: &mut Admission<'_>) -> Result<()> {
    if !admission.is_of("", "pods") {
        return Ok(());
    }
    let Some(class) = class_of(pod, admission)? else { return Ok(()) };
    if let Some(overhead) = at(&class, &["overhead", "podFixed"]) {
        let given = at(pod, &["spec", "overhead"]);
        if given
            .is_some_and(|given| given != overhead && given.as_object().is_some_and(|map| !map.is_empty()))
        {
            return Err(admission.refuse(pod, DIFFERS));
        }
        set(sub(pod, "spec"), "overhead", overhead.clone());
    }
    let Some(scheduling) = get(&class, "scheduling") else { return Ok(()) };
    for (key, value) in entries(scheduling, "nodeSelector") {
        let selector = sub(sub(pod, "spec"), "nodeSelector");
        if let Some(given) = get(selector, key).filter(|given| *given != value) {
            let (given, value) = (given.as_str().unwrap_or(""), value.as_str().unwrap_or(""));
            let why = format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {given}"
            );
            return Err(admission.refuse(pod, &why));
        }
        fill(selector, key, value.clone());
    }
    let all = list(&pod["spec"], "tolerations").iter().chain(list(scheduling, "tolerations"));
    let merged = merge(&all.cloned().collect::<Vec<_>>());
    if !merged.is_empty() {
        set(sub(pod, "spec"), "tolerations", merged);
    }
    Ok(())
}

const DIFFERS: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

/// What a pod costs is what its class says.
pub(super) fn validate(pod: &Value, admission: &mut Admission<'_>) -> Result<()> {
    if !admission.is_of("", "pods") {
        return Ok(());
    }
    let class = class_of(pod, admission)?;
    let defined = class.as_ref().and_then(|class| at(class, &["overhead", "podFixed"]));
    match (at(pod, &["spec", "overhead"]), defined) {
        (Some(_), None) => {
            let why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
            Err(admission.refuse(pod, why))
        }
        (given, Some(defined)) if given != Some(defined) => Err(admission.refuse(pod, DIFFERS)),
        _ => Ok(()),
    }
}

fn class_of(pod: &Value, admission: &Admission<'_>) -> Result<Option<Value>> {
    let Some(name) = at(pod, &["spec", "runtimeClassName"]).and_then(Value::as_str) else { return Ok(None) };
    if let Some(class) = admission.context.world.get("node.k8s.io", "RuntimeClass", "", name) {
        return Ok(Some(class));
    }
    // The plugin asks for it as any client does, and is told that nothing can be asked for by such a name.
    let faults = names::path_segment(name);
    if name.is_empty() || !faults.is_empty() {
        let why = match name {
            "" => "resource name may not be empty".to_owned(),
            _ => format!("invalid resource name {name:?}: [{}]", faults.join(" ")),
        };
        return Err(Status::new(500, "", why));
    }
    Err(admission.refuse(pod, &format!("pod rejected: RuntimeClass {name:?} not found")))
}

/// Leaves out tolerations that another one includes.
fn merge(all: &[Value]) -> Vec<Value> {
    let mut merged: Vec<Value> = Vec::new();
    for (index, one) in all.iter().enumerate() {
        let is_told = merged.iter().any(|other| includes(other, one));
        if !is_told && !all[index + 1..].iter().any(|other| other != one && includes(other, one)) {
            merged.push(one.clone());
        }
    }
    merged
}

/// Whether whatever is tolerated by `one` is tolerated by `other`.
fn includes(other: &Value, one: &Value) -> bool {
    if other == one {
        return true;
    }
    let is_general = text(other, "key").is_empty() && text(other, "operator") == "Exists";
    let keys = text(other, "key") == text(one, "key") || is_general;
    let effects = matches!(text(other, "effect"), "") || text(other, "effect") == text(one, "effect");
    let lasts = match int(other, "tolerationSeconds").filter(|_| text(other, "effect") == "NoExecute") {
        Some(seconds) => int(one, "tolerationSeconds").is_some_and(|own| own <= seconds),
        None => true,
    };
    let values = match text(other, "operator") {
        "" | "Equal" => text(one, "operator") == "Equal" && text(one, "value") == text(other, "value"),
        operator => operator == "Exists",
    };
    keys && effects && lasts && values
}
