//! Annotations of a pod that once were its fields.

use serde_json::{Value, json};

use super::{each_container, security};
use crate::field::{Errors, Path};
use crate::kinds::paths;
use crate::kinds::tree::{each, entries, get, set, sub, text};

const MIRROR: &str = "kubernetes.io/config.mirror";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
pub(super) const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const LOCALHOST: &str = "localhost/";

/// What is said of an annotation for AppArmor.
pub(super) const APP_ARMOR_OLD: &str = "deprecated since v1.30; use the \"appArmorProfile\" field instead";

/// Whether a pod mirrors one that a node runs by itself.
pub(super) fn is_mirror(metadata: &Value) -> bool {
    metadata.get("annotations").is_some_and(|all| all.get(MIRROR).is_some())
}

/// Checks the annotations of a pod or of a template of pods; `path` is theirs.
pub(super) fn validate(metadata: &Value, spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    for (key, value) in entries(metadata, "annotations") {
        let profile = value.as_str().unwrap_or("");
        if key == MIRROR && text(spec, "nodeName").is_empty() {
            let detail = "must set spec.nodeName if mirror pod annotation is set";
            errors.invalid(&path.key(key), value, detail);
        }
        if key == DELETION_COST && !is_deletion_cost(profile) {
            errors.invalid(&path.key(key), value, "must be a 32bit integer");
        }
        if key == SECCOMP_POD || key.starts_with(SECCOMP_CONTAINER) {
            match profile.strip_prefix(LOCALHOST) {
                _ if ["runtime/default", "docker/default", "unconfined"].contains(&profile) => {}
                Some(file) => paths::descending(file, &path.child(key), errors),
                None => errors.invalid(&path.child(key), value, "must be a valid seccomp profile"),
            }
        }
        if let Some(name) = key.strip_prefix(APP_ARMOR) {
            let mut found = false;
            each_container(spec, &Path::Root, |container, _| found |= text(container, "name") == name);
            if !found {
                errors.invalid(&path.key(key), &json!(name), "container not found");
            }
            let known = ["", "runtime/default", "unconfined"].contains(&profile);
            if !known && !profile.starts_with(LOCALHOST) {
                let detail = format!("invalid AppArmor profile name: {profile:?}");
                errors.invalid(&path.key(key), value, &detail);
            }
        }
    }
}

/// A cost is a number without needless signs and zeros.
fn is_deletion_cost(text: &str) -> bool {
    let plain = text == "0" || !text.trim_start_matches('-').starts_with('0') && !text.starts_with('+');
    plain && text.parse::<i32>().is_ok()
}

/// Where an annotation and a field say the same, they must agree; `path` is that of the spec.
pub(super) fn agree(metadata: &Value, spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let annotation = |key: &str| metadata.get("annotations")?.get(key)?.as_str();
    let of = |holder: &'_ Value, field: &str| get(&holder["securityContext"], field).cloned();
    if let (Some(profile), Some(said)) = (of(spec, "seccompProfile"), annotation(SECCOMP_POD)) {
        let at = path.child("securityContext");
        same(&profile, said, "seccomp", &at.child("seccompProfile"), errors);
    }
    each_container(spec, path, |container, at| {
        let key = format!("{SECCOMP_CONTAINER}{}", text(container, "name"));
        if let (Some(profile), Some(said)) = (of(container, "seccompProfile"), annotation(&key)) {
            let at = at.child("securityContext");
            same(&profile, said, "seccomp", &at.child("seccompProfile"), errors);
        }
    });
    if text(&spec["os"], "name") == "windows" {
        return;
    }
    each_container(spec, path, |container, at| {
        let key = format!("{APP_ARMOR}{}", text(container, "name"));
        let profile = of(container, "appArmorProfile").or_else(|| of(spec, "appArmorProfile"));
        if let (Some(profile), Some(said)) = (profile, annotation(&key)) {
            let at = at.child("securityContext");
            same(&profile, said, "apparmor", &at.child("appArmorProfile"), errors);
        }
    });
}

fn same(profile: &Value, said: &str, what: &str, path: &Path<'_>, errors: &mut Errors) {
    let agrees = match text(profile, "type") {
        "Unconfined" => said == "unconfined",
        "RuntimeDefault" => said == "runtime/default" || (what == "seccomp" && said == "docker/default"),
        "Localhost" => match said.strip_prefix(LOCALHOST) {
            Some(file) if get(profile, "localhostProfile").and_then(Value::as_str) != Some(file) => {
                let detail = format!("{what} profile in annotation and field must match");
                errors.forbidden(&path.child("localhostProfile"), &detail);
                true
            }
            found => found.is_some(),
        },
        _ => true,
    };
    if !agrees {
        errors.forbidden(&path.child("type"), &format!("{what} type in annotation and field must match"));
    }
}

/// The field that an annotation for AppArmor stands for.
pub(super) fn app_armor_field(annotation: &str) -> Option<Value> {
    match annotation {
        "unconfined" => Some(json!({"type": "Unconfined"})),
        "runtime/default" => Some(json!({"type": "RuntimeDefault"})),
        text => {
            let profile = text.strip_prefix(LOCALHOST).filter(|profile| !profile.is_empty())?;
            Some(json!({"type": "Localhost", "localhostProfile": profile}))
        }
    }
}

/// The annotation for AppArmor of a container that has no such field, and the field if it is a valid one; nothing
/// where the field of the pod says the same.
fn app_armor_alone(pod: &Value, container: &Value) -> Option<(String, Option<Value>)> {
    let of = |holder: &Value| get(&holder["securityContext"], "appArmorProfile").cloned();
    let key = format!("{APP_ARMOR}{}", text(container, "name"));
    let said = pod["metadata"]["annotations"].get(&key)?.as_str()?;
    if text(&pod["spec"]["os"], "name") == "windows" || of(container).is_some() {
        return None;
    }
    let field = app_armor_field(said).filter(|field| {
        let mut errors = Errors::default();
        security::app_armor(field, &Path::Root, &mut errors);
        errors.is_empty()
    });
    (field.is_none() || field != of(&pod["spec"])).then_some((key, field))
}

/// Copies annotations for AppArmor to the fields that took their place.
pub(crate) fn copy_app_armor(pod: &mut Value) {
    if !entries(&pod["metadata"], "annotations").any(|(key, _)| key.starts_with(APP_ARMOR)) {
        return;
    }
    let before = pod.clone();
    for kind in ["initContainers", "containers", "ephemeralContainers"] {
        each(sub(pod, "spec"), kind, |container| {
            if let Some((_, Some(field))) = app_armor_alone(&before, container) {
                set(sub(container, "securityContext"), "appArmorProfile", field);
            }
        });
    }
}

/// What is said of such annotations before they are copied.
pub(crate) fn app_armor_warnings(pod: &Value) -> Vec<String> {
    let metadata = Path::Root.child("metadata");
    let path = metadata.child("annotations");
    let mut out = Vec::new();
    each_container(&pod["spec"], &Path::Root, |container, _| {
        if let Some((key, _)) = app_armor_alone(pod, container) {
            out.push(format!("{}: {APP_ARMOR_OLD}", path.key(&key)));
        }
    });
    out
}

/// Some annotations of a pod stay as they are.
pub(super) fn kept(new: &Value, old: &Value, errors: &mut Errors) {
    let path = Path::Root.child("metadata");
    let path = path.child("annotations");
    let of = |pod: &Value, key: &str| pod.pointer("/metadata/annotations")?.get(key).cloned();
    for (key, value) in entries(&old["metadata"], "annotations") {
        if of(new, key).as_ref() == Some(value) {
            continue;
        }
        if key.starts_with(APP_ARMOR) {
            errors.forbidden(&path.key(key), "may not remove or update AppArmor annotations");
        }
        if key == MIRROR {
            errors.forbidden(&path.key(key), "may not remove or update mirror pod annotation");
        }
    }
    for (key, _) in entries(&new["metadata"], "annotations") {
        if of(old, key).is_some() {
            continue;
        }
        if key.starts_with(APP_ARMOR) {
            errors.forbidden(&path.key(key), "may not add AppArmor annotations");
        }
        if key == MIRROR {
            errors.forbidden(&path.key(key), "may not add mirror pod annotation");
        }
    }
    validate(&new["metadata"], &new["spec"], &path, errors);
}
