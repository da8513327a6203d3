//! Pods that get another size while they are there.

use serde_json::Value;
use windlass_core::qos;

use super::update::same_spec;
use crate::field::{Errors, Path};
use crate::kinds::tree::{at, each, entries, existing, get, list, remove, restore, same, sub, text, text_at};

const MIRROR: &str = "kubernetes.io/config.mirror";

/// CPU and memory may change, within the class of quality.
pub(super) fn validate(new: &Value, old: &Value, errors: &mut Errors) {
    let is_mirror = at(old, &["metadata", "annotations", MIRROR]).is_some();
    let is_windows = text_at(old, &["spec", "os", "name"]) == "windows";
    if is_mirror || is_windows {
        // Nothing else is told then.
        errors.0.clear();
        let what = if is_mirror { "static" } else { "windows" };
        errors.forbidden(&Path::Root.key(""), &format!("{what} pods cannot be resized"));
        return;
    }
    let path = Path::Root.child("spec");
    let class = &old["status"]["qosClass"];
    if class.as_str() != Some(qos::class(new)) {
        errors.invalid(&path, class, "Pod QOS Class may not change as a result of resizing");
    }
    let mut statuses = list(&old["status"], "containerStatuses").iter();
    let running = statuses.find(|status| at(status, &["state", "running"]).is_some());
    if running.is_some_and(|status| get(status, "resources").is_none()) {
        errors.forbidden(&path, "Pod running on node without support for resize");
    }
    let (new, old) = (&new["spec"], &old["spec"]);
    let mut munged = new.clone();
    whole(&mut munged, new, old, &path, errors);
    if !ordered(new, old, &path, errors) {
        return;
    }
    for field in ["initContainers", "containers"] {
        for (index, (after, before)) in list(new, field).iter().zip(list(old, field)).enumerate() {
            let path = path.child(field);
            let at = path.index(index);
            nothing_removed(after, before, "", &at, errors);
        }
    }
    let mut before = list(old, "containers").iter();
    each(&mut munged, "containers", |container| {
        let before = before.next().unwrap_or(&Value::Null);
        but_size(container, before);
        without_claims(container);
        if !same(Some(container), Some(before)) {
            errors.forbidden(&path, "only cpu and memory resources are mutable");
        }
    });
    first(&mut munged, old, &path, errors);
    if errors.is_empty() && !same_spec(&munged, old) {
        errors.forbidden(&path, "only cpu and memory resources are mutable");
    }
}

/// What the pod says as a whole.
fn whole(munged: &mut Value, new: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    let says = |spec: &Value| {
        let all = get(spec, "resources");
        all.is_some_and(|all| entries(all, "requests").chain(entries(all, "limits")).next().is_some())
    };
    if !says(new) && !says(old) {
        return;
    }
    if get(old, "resources").is_some() && get(new, "resources").is_none() {
        return errors.forbidden(&path.child("resources"), "pod-level resources cannot be removed");
    }
    nothing_removed(new, old, "pod-level ", path, errors);
    but_size(munged, old);
    let is_empty = |all: &Value| {
        ["requests", "limits"].iter().all(|kind| entries(all, kind).next().is_none())
            && list(all, "claims").is_empty()
    };
    if get(old, "resources").is_none() && get(munged, "resources").is_some_and(is_empty) {
        remove(munged, "resources");
    }
    if !same(munged.get("resources"), old.get("resources")) {
        errors.forbidden(path, "only cpu and memory resources are mutable at pod-level");
    }
}

/// Containers stay where they are.
fn ordered(new: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) -> bool {
    let found = errors.0.len();
    for field in ["containers", "initContainers"] {
        let path = path.child(field);
        if list(new, field).len() != list(old, field).len() {
            errors.forbidden(&path, &format!("{field} may not be added or removed on resize"));
            continue;
        }
        for (index, (after, before)) in list(new, field).iter().zip(list(old, field)).enumerate() {
            if text(after, "name") != text(before, "name") {
                let detail = format!("{field} may not be renamed or reordered on resize");
                errors.forbidden(&path.index(index).child("name"), &detail);
            }
        }
    }
    errors.0.len() == found
}

/// Containers that are there before the others.
fn first(munged: &mut Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("initContainers");
    let mut all = list(old, "initContainers").iter().enumerate();
    each(munged, "initContainers", |container| {
        let Some((index, before)) = all.next() else { return };
        let changed = !same(Some(container), Some(before));
        but_size(container, before);
        without_claims(container);
        if !same(Some(container), Some(before)) {
            let detail = "only cpu and memory resources for init or sidecar containers are mutable";
            errors.forbidden(&path.index(index), detail);
        }
        let stays = text(container, "restartPolicy") == "Always";
        for policy in list(container, "resizePolicy").iter().filter(|_| changed && !stays) {
            if text(policy, "restartPolicy") == "RestartContainer" {
                let detail =
                    "non-sidecar init containers with a resize policy of RestartContainer cannot be resized";
                errors.forbidden(&path.index(index), detail);
            }
        }
    });
}

/// The same with the size that it had.
fn but_size(holder: &mut Value, before: &Value) {
    for kind in ["requests", "limits"] {
        let has = |holder: &Value| at(holder, &["resources", kind]).is_some();
        if has(holder) || has(before) {
            let amounts = sub(sub(holder, "resources"), kind);
            for name in ["cpu", "memory"] {
                restore(amounts, &before["resources"][kind], name);
            }
        }
    }
}

/// kube-apiserver leaves out the claims of the new container only, so one that has any is never given another size.
fn without_claims(container: &mut Value) {
    if let Some(resources) = existing(container, "resources") {
        remove(resources, "claims");
    }
}

fn nothing_removed(new: &Value, old: &Value, of: &str, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("resources");
    for kind in ["requests", "limits"] {
        let has = |name: &str| at(new, &["resources", kind]).is_some_and(|all| get(all, name).is_some());
        let Some(before) = get(old, "resources") else { continue };
        if entries(before, kind).any(|(name, _)| !has(name)) {
            errors.forbidden(&path.child(kind), &format!("{of}resource {kind} cannot be removed"));
        }
    }
}
