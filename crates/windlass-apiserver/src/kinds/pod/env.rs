//! The environment of a container, and references to facts of the pod.

use serde_json::{Value, json};

use crate::field::{Errors, Path};
use crate::kinds::check::{by_rule, quantity, required, required_by, text_by};
use crate::kinds::tree::{get, list, text};
use crate::kinds::{names, paths};

/// What a variable can be taken from.
const SOURCES: [&str; 5] = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];

/// Fields of the pod that a variable can show.
const FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// Checks the variables of a container.
pub(super) fn validate(container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let at = path.child("env");
    for (index, variable) in list(container, "env").iter().enumerate() {
        let path = at.index(index);
        required_by(variable, "name", names::env_name, &path, errors);
        if let Some(source) = get(variable, "valueFrom") {
            value_from(source, variable, &path.child("valueFrom"), errors);
        }
    }
    let at = path.child("envFrom");
    for (index, source) in list(container, "envFrom").iter().enumerate() {
        let path = at.index(index);
        text_by(source, "prefix", names::env_name, &path, errors);
        let kinds = ["configMapRef", "secretRef"];
        for kind in kinds {
            if let Some(reference) = get(source, kind) {
                required_by(reference, "name", names::dns_subdomain, &path.child(kind), errors);
            }
        }
        match kinds.iter().filter(|kind| get(source, kind).is_some()).count() {
            0 => errors.invalid(&at, &json!(""), "must specify one of: `configMapRef` or `secretRef`"),
            1 => {}
            _ => errors.invalid(&at, &json!(""), "may not have more than one field specified at a time"),
        }
    }
}

fn value_from(source: &Value, variable: &Value, path: &Path<'_>, errors: &mut Errors) {
    if let Some(field) = get(source, "fieldRef") {
        field_ref(field, &FIELDS, &path.child("fieldRef"), errors);
    }
    if let Some(field) = get(source, "resourceFieldRef") {
        resource_ref(field, false, &path.child("resourceFieldRef"), errors);
    }
    for reference in ["configMapKeyRef", "secretKeyRef"] {
        if let Some(key) = get(source, reference) {
            let at = path.child(reference);
            by_rule(text(key, "name"), names::dns_subdomain, &at.child("name"), errors);
            required_by(key, "key", names::config_key, &at, errors);
        }
    }
    if let Some(key) = get(source, "fileKeyRef") {
        let at = path.child("fileKeyRef");
        required_by(key, "key", names::env_name, &at, errors);
        required_by(key, "volumeName", names::dns_label, &at, errors);
        if required(key, "path", "", &at, errors) {
            paths::no_backsteps(text(key, "path"), &at.child("path"), errors);
        }
    }
    let detail = match SOURCES.iter().filter(|kind| get(source, kind).is_some()).count() {
        0 => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        }
        _ if !text(variable, "value").is_empty() => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    errors.invalid(path, &json!(""), detail);
}

/// Fields of the pod that can be named at all.
const KNOWN: [&str; 14] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// Checks a reference to a field of the pod itself; `shown` are those that can stand here.
pub(super) fn field_ref(field: &Value, shown: &[&str], path: &Path<'_>, errors: &mut Errors) {
    if !required(field, "apiVersion", "", path, errors) || !required(field, "fieldPath", "", path, errors) {
        return;
    }
    let (version, name) = (text(field, "apiVersion"), text(field, "fieldPath"));
    let at = path.child("fieldPath");
    let mut unknown = |why: String| {
        errors.invalid(&at, &json!(name), &format!("error converting fieldPath: {why}"));
    };
    if version != "v1" {
        unknown(format!("unsupported pod version: {version}"));
        return;
    }
    if let Some((head, key)) = subscript(name) {
        match head {
            "metadata.annotations" => by_rule(&key.to_lowercase(), names::label_key, path, errors),
            "metadata.labels" => by_rule(key, names::label_key, path, errors),
            _ => unknown(format!("field label does not support subscript: {name}")),
        }
        return;
    }
    let name = match name {
        "spec.host" => "spec.nodeName",
        name if KNOWN.contains(&name) => name,
        _ => return unknown(format!("field label not supported: {name}")),
    };
    if !shown.contains(&name) {
        errors.not_supported(&at, &json!(name), shown);
    }
}

/// `head['key']` in its parts.
fn subscript(name: &str) -> Option<(&str, &str)> {
    name.strip_suffix("']")?.split_once("['").filter(|(head, _)| !head.is_empty())
}

/// The resources of a container that it can read.
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// Checks a reference to a resource of a container; in a volume it must say of which one.
pub(super) fn resource_ref(field: &Value, volume: bool, path: &Path<'_>, errors: &mut Errors) {
    let name = text(field, "resource");
    let huge = ["limits.hugepages-", "requests.hugepages-"].iter().any(|head| name.starts_with(head));
    if volume && text(field, "containerName").is_empty() {
        errors.required(&path.child("containerName"), "");
    } else if required(field, "resource", "", path, errors) && !huge && !RESOURCES.contains(&name) {
        errors.not_supported(&path.child("resource"), &json!(name), &RESOURCES);
    }
    let Some(divisor) = get(field, "divisor").and_then(quantity).filter(|divisor| !divisor.is_zero()) else {
        return;
    };
    let (allowed, what): (&[&str], &str) = match name {
        "limits.cpu" | "requests.cpu" => (&["1m", "1"], "cpu"),
        "limits.memory" | "requests.memory" => (&UNITS, "memory"),
        "limits.ephemeral-storage" | "requests.ephemeral-storage" => (&UNITS, "local ephemeral storage"),
        _ if huge => (&UNITS, "hugepages"),
        _ => return,
    };
    if !allowed.contains(&divisor.to_string().as_str()) {
        let list = if what == "cpu" { "1m and 1".to_owned() } else { UNITS.join(", ") };
        let detail = format!("only divisor's values {list} are supported with the {what} resource");
        errors.invalid(&path.child("divisor"), &json!(name), &detail);
    }
}

const UNITS: [&str; 13] = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

/// Files that variables are taken from lie in an empty directory of the pod.
pub(super) fn file_volumes(container: &Value, volumes: &[Value], path: &Path<'_>, errors: &mut Errors) {
    for (index, variable) in list(container, "env").iter().enumerate() {
        let Some(key) = variable.pointer("/valueFrom/fileKeyRef").filter(|key| !key.is_null()) else {
            continue;
        };
        let at = path.child("env");
        let at = at.index(index);
        let at = at.child("valueFrom");
        let at = at.child("fileKeyRef");
        let (name, at) = (text(key, "volumeName"), at.child("volumeName"));
        match volumes.iter().rfind(|volume| text(volume, "name") == name) {
            None => crate::kinds::check::not_found(name, &at, errors),
            Some(volume) if get(volume, "emptyDir").is_none() => {
                errors.invalid(&at, &json!(name), "referenced volume must be of type emptyDir");
            }
            Some(_) => {}
        }
    }
}
