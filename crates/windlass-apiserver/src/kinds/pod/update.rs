//! What may change in a pod once it exists.

use serde_json::{Value, json};

use super::validate;
use crate::field::{Errors, Path};
use crate::kinds::meta::immutable;
use crate::kinds::tree::{entries, get, int, list, restore, same, text};

const ALLOWED: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
    `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
    tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Checks an update of a pod.
pub(crate) fn validate(new: &Value, old: &Value, errors: &mut Errors) {
    validate::pod_spec_of(new, errors);
    let (new, old, path) = (&new["spec"], &old["spec"], Path::Root.child("spec"));
    for field in ["containers", "initContainers"] {
        if list(new, field).len() != list(old, field).len() {
            errors.forbidden(&path.child(field), "pod updates may not add or remove containers");
            return;
        }
    }
    if !deadline(new, old, &path, errors) {
        return;
    }
    only_added_tolerations(new, old, &path, errors);
    only_removed_gates(new, old, &path, errors);
    if !same(Some(new), Some(old)) {
        rest(new, old, &path, errors);
    }
}

/// Checks an update of a pod's status.
pub(crate) fn validate_status(new: &Value, old: &Value, errors: &mut Errors) {
    let path = Path::Root.child("status");
    immutable(&new["status"], &old["status"], &path, "qosClass", errors);
}

/// A deadline can be set or come nearer.
fn deadline(new: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) -> bool {
    let at = path.child("activeDeadlineSeconds");
    match (int(new, "activeDeadlineSeconds"), int(old, "activeDeadlineSeconds")) {
        (Some(seconds), Some(before)) if before < seconds => {
            errors.invalid(&at, &json!(seconds), "must be less than or equal to previous value");
            return false;
        }
        (None, Some(_)) => {
            errors.invalid(&at, &Value::Null, "must not update from a positive integer to nil value");
        }
        _ => {}
    }
    true
}

fn only_added_tolerations(new: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    let but_seconds = |toleration: &Value| {
        let mut copy = toleration.clone();
        crate::kinds::tree::remove(&mut copy, "tolerationSeconds");
        copy
    };
    let kept = list(new, "tolerations").iter().map(but_seconds).collect::<Vec<_>>();
    if list(old, "tolerations").iter().any(|before| !kept.contains(&but_seconds(before))) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        errors.forbidden(&path.child("tolerations"), detail);
    }
}

fn only_removed_gates(new: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("schedulingGates");
    for (index, gate) in list(new, "schedulingGates").iter().enumerate() {
        let name = text(gate, "name");
        if !list(old, "schedulingGates").iter().any(|before| text(before, "name") == name) {
            let detail = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            errors.forbidden(&path.index(index).child("name"), &detail);
        }
    }
}

/// All that is not named above must be as it was.
fn rest(new: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut munged = new.clone();
    for field in ["containers", "initContainers"] {
        let before = list(old, field);
        let images = before.iter().map(|container| container.get("image").cloned().unwrap_or_default());
        if let Some(containers) = munged.get_mut(field).and_then(Value::as_array_mut) {
            for (container, image) in containers.iter_mut().zip(images) {
                container["image"] = image;
            }
        }
    }
    for field in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        restore(&mut munged, old, field);
    }
    let grace = |spec: &Value| int(spec, "terminationGracePeriodSeconds").unwrap_or(0);
    if grace(old) < 0 && grace(new) == 1 {
        restore(&mut munged, old, "terminationGracePeriodSeconds");
    }
    if !list(old, "schedulingGates").is_empty() {
        if !same(new.get("nodeSelector"), old.get("nodeSelector")) {
            let kept = |(key, value): (&String, &Value)| {
                get(new, "nodeSelector").and_then(|selector| get(selector, key)) == Some(value)
            };
            if !entries(old, "nodeSelector").all(kept) {
                let detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
                errors.invalid(&path.child("nodeSelector"), &new["nodeSelector"], detail);
            }
            restore(&mut munged, old, "nodeSelector");
        }
        restore(&mut munged, old, "affinity");
    }
    if !same(Some(&munged), Some(old)) {
        errors.forbidden(path, ALLOWED);
    }
}
