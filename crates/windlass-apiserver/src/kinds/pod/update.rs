//! What may change in a pod once it exists.

use serde_json::{Value, json};

use super::{affinity, annotations, containers, resize, validate};
use crate::field::{Errors, Path};
use crate::kinds::check::{in_range, required};
use crate::kinds::tree::{each, entries, get, int, list, remove, restore, same, set, sub, text};
use crate::kinds::{Context, diff, equal, inner};
use crate::schema;

const ALLOWED: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
    `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
    tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Leaves of a write to a subresource only what it is about.
pub(crate) fn prepare(new: &mut Value, old: &Value, context: &Context<'_>) {
    match context.subresource {
        "ephemeralcontainers" => {
            let added = new["spec"].get("ephemeralContainers").cloned();
            keep_metadata(new, old);
            restore(new, old, "spec");
            match added {
                Some(containers) => set(sub(new, "spec"), "ephemeralContainers", containers),
                None => {
                    remove(sub(new, "spec"), "ephemeralContainers");
                }
            }
        }
        "resize" => {
            let sized = new["spec"].clone();
            let same_names = |field: &str| {
                let names = |spec: &Value| {
                    list(spec, field).iter().map(|c| text(c, "name").to_owned()).collect::<Vec<_>>()
                };
                names(&sized) == names(&old["spec"])
            };
            if !same_names("containers") || !same_names("initContainers") {
                return;
            }
            keep_metadata(new, old);
            restore(new, old, "spec");
            restore(sub(new, "spec"), &sized, "resources");
            for field in ["containers", "initContainers"] {
                let mut wanted = list(&sized, field).iter();
                each(sub(new, "spec"), field, |container| {
                    let wanted = wanted.next().unwrap_or(&Value::Null);
                    restore(container, wanted, "resources");
                    restore(container, wanted, "resizePolicy");
                });
            }
        }
        _ => {}
    }
}

/// Of the metadata, a subresource writes nothing but who owns what.
fn keep_metadata(new: &mut Value, old: &Value) {
    for field in ["labels", "annotations", "finalizers", "ownerReferences"] {
        restore(sub(new, "metadata"), &old["metadata"], field);
    }
}

/// Checks an update of a pod, or of one of its subresources.
pub(crate) fn validate(new: &Value, old: &Value, context: &Context<'_>, errors: &mut Errors) {
    validate::pod_spec_of(new, context, errors);
    match context.subresource {
        "ephemeralcontainers" => only_added_ephemeral(new, old, errors),
        "resize" => resize::validate(new, old, errors),
        _ => pod(new, old, errors),
    }
}

fn pod(new: &Value, old: &Value, errors: &mut Errors) {
    annotations::kept(new, old, errors);
    let (new, old, path) = (&new["spec"], &old["spec"], Path::Root.child("spec"));
    for field in ["containers", "initContainers"] {
        if list(new, field).len() != list(old, field).len() {
            errors.forbidden(&path.child(field), "pod updates may not add or remove containers");
            return;
        }
        // The check of the spec has found this once already, and the real server tells it twice.
        for (index, container) in list(new, field).iter().enumerate() {
            let containers = path.child(field);
            required(container, "image", "", &containers.index(index), errors);
            containers::trimmed_image(container, &containers.index(index), errors);
        }
    }
    if !deadline(new, old, &path, errors) {
        return;
    }
    only_added_tolerations(new, old, &path, errors);
    only_removed_gates(new, old, &path, errors);
    if !same_spec(new, old) {
        rest(new, old, &path, errors);
    }
}

fn only_added_ephemeral(new: &Value, old: &Value, errors: &mut Errors) {
    let path = Path::Root.child("spec");
    let path = path.child("ephemeralContainers");
    for before in list(&old["spec"], "ephemeralContainers") {
        let name = text(before, "name");
        let after =
            list(&new["spec"], "ephemeralContainers").iter().find(|after| text(after, "name") == name);
        let word = match after {
            None => "removed",
            Some(after) if !same(Some(before), Some(after)) => "changed",
            Some(_) => continue,
        };
        errors.forbidden(&path, &format!("existing ephemeral containers {name:?} may not be {word}\n"));
    }
}

/// A deadline can be set or come nearer.
fn deadline(new: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) -> bool {
    let at = path.child("activeDeadlineSeconds");
    match (int(new, "activeDeadlineSeconds"), int(old, "activeDeadlineSeconds")) {
        (Some(seconds), _) if !(0..=i64::from(i32::MAX)).contains(&seconds) => {
            in_range(seconds, 0, i64::from(i32::MAX), &at, errors);
            return false;
        }
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
        remove(&mut copy, "tolerationSeconds");
        copy
    };
    let kept = list(new, "tolerations").iter().map(but_seconds).collect::<Vec<_>>();
    if list(old, "tolerations").iter().any(|before| !kept.contains(&but_seconds(before))) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        errors.forbidden(&path.child("tolerations"), detail);
        return;
    }
    // The check of the spec has found this once already, and the real server tells it twice.
    affinity::tolerations(new, path, errors);
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
        gated_affinity(&mut munged, new, old, path, errors);
    }
    if !same_spec(&munged, old) {
        let shown = |spec: &Value| inner::shown(SPEC, spec);
        let changes = diff::unified(&shown(old), &shown(&munged));
        errors.forbidden(path, &format!("{ALLOWED}\n{changes}"));
    }
}

const SPEC: &str = "io.k8s.api.core.v1.PodSpec";

/// Whether two specs are the same to Go: a pointer to nothing is something.
pub(super) fn same_spec(new: &Value, old: &Value) -> bool {
    let types = schema::builtin();
    equal::equal_at(types, types.id(SPEC).expect("pods have specs"), "", new, old)
}

/// The node affinity of a pod that waits may become stricter.
fn gated_affinity(munged: &mut Value, new: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    let of = |spec: &Value| spec.pointer("/affinity/nodeAffinity").filter(|found| !found.is_null()).cloned();
    let (after, before) = (of(new), of(old));
    if same(after.as_ref(), before.as_ref()) {
        return;
    }
    let terms = |affinity: &Option<Value>| {
        let affinity = affinity.as_ref().unwrap_or(&Value::Null);
        list(&affinity[REQUIRED], "nodeSelectorTerms").to_vec()
    };
    let (new_terms, old_terms) = (terms(&after), terms(&before));
    let at = path.child("affinity");
    let at = at.child("nodeAffinity");
    let at = at.child(REQUIRED);
    let at = at.child("nodeSelectorTerms");
    const TERM: &str = "io.k8s.api.core.v1.NodeSelectorTerm";
    if !old_terms.is_empty() && old_terms.len() != new_terms.len() {
        let shown = match new_terms.is_empty() {
            true => Value::Null,
            false => inner::shown_list(TERM, Some(&Value::Array(new_terms))),
        };
        errors.invalid(&at, &shown, "no additions/deletions to non-empty NodeSelectorTerms list are allowed");
    } else {
        for (index, (after, before)) in new_terms.iter().zip(&old_terms).enumerate() {
            if !only_adds(after, before) {
                let detail = "only additions are allowed (no mutations or deletions)";
                errors.invalid(&at.index(index), &inner::shown(TERM, after), detail);
            }
        }
    }
    match (get(munged, "affinity").is_some(), before) {
        (false, None) => {}
        (false, Some(before)) => set(munged, "affinity", json!({"nodeAffinity": before})),
        (true, before) => {
            let others = ["podAffinity", "podAntiAffinity"];
            let alone = others.iter().all(|field| get(&munged["affinity"], field).is_none());
            if alone && get(old, "affinity").is_none() {
                remove(munged, "affinity");
            } else if let Some(before) = before {
                set(sub(munged, "affinity"), "nodeAffinity", before);
            } else {
                remove(sub(munged, "affinity"), "nodeAffinity");
            }
        }
    }
}

fn only_adds(new: &Value, old: &Value) -> bool {
    let fields = ["matchExpressions", "matchFields"];
    if fields.iter().all(|field| list(old, field).is_empty()) {
        return fields.iter().all(|field| list(new, field).is_empty());
    }
    fields.iter().all(|field| list(new, field).starts_with(list(old, field)))
}
