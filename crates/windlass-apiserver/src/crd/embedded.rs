//! Objects within objects (`x-kubernetes-embedded-resource`): they have a kind, and metadata that makes sense.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

use super::props::Props;
use super::text;
use crate::field::{Errors, Path, Reason};

/// The fields of `ObjectMeta`.
pub(super) const META_FIELDS: [&str; 15] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

/// Checks all embedded resources below a value; `is_resource` says that the value is one itself.
pub(super) fn check(props: &Props, value: &Value, is_resource: bool, path: &Path<'_>, errors: &mut Errors) {
    match value {
        Value::Object(map) => {
            if is_resource || props.embedded {
                check_resource(map, path, errors);
            }
            for (key, value) in map {
                if let Some(schema) = props.properties.get(key) {
                    check(schema, value, false, &path.child(key), errors);
                } else if let Some(schema) = props.additional_schema() {
                    check(schema, value, false, &path.key(key), errors);
                }
            }
        }
        Value::Array(list) => {
            if let Some(items) = &props.items {
                for (i, value) in list.iter().enumerate() {
                    check(items, value, false, &path.index(i), errors);
                }
            }
        }
        _ => {}
    }
}

fn check_resource(map: &Map<String, Value>, path: &Path<'_>, errors: &mut Errors) {
    let at = path.child("apiVersion");
    match map.get("apiVersion") {
        None => errors.required(&at, ""),
        Some(Value::String(version)) if version.is_empty() => {
            errors.invalid(&at, &"".into(), "must not be empty");
        }
        Some(Value::String(version)) => {
            if version.matches('/').count() > 1 {
                let detail = format!("unexpected GroupVersion string: {version}");
                errors.invalid(&at, &Value::from(version.as_str()), &detail);
            }
        }
        Some(other) => errors.invalid(&at, other, "must be a string"),
    }
    let at = path.child("kind");
    match map.get("kind") {
        None => errors.required(&at, ""),
        Some(Value::String(kind)) if kind.is_empty() => errors.invalid(&at, &"".into(), "must not be empty"),
        Some(Value::String(kind)) => {
            let fault = text::label_1035(&kind.to_lowercase());
            if !fault.is_empty() {
                let detail = format!("may have mixed case, but should otherwise match: {fault}");
                errors.invalid(&at, &Value::from(kind.as_str()), &detail);
            }
        }
        Some(other) => errors.invalid(&at, other, "must be a string"),
    }
    if let Some(metadata) = map.get("metadata") {
        check_metadata(metadata, &path.child("metadata"), errors);
    }
}

fn check_metadata(metadata: &Value, path: &Path<'_>, errors: &mut Errors) {
    if let Some(fault) = unreadable(metadata) {
        errors.invalid(path, metadata, &fault);
        return;
    }
    let Some(map) = metadata.as_object() else { return };
    let text = |key: &str| map.get(key).and_then(Value::as_str).unwrap_or_default();
    for key in ["name", "generateName"] {
        let name = text(key);
        if let Some(fault) = segment_fault(name, key == "generateName") {
            errors.invalid(&path.child(key), &Value::from(name), &fault);
        }
    }
    let namespace = text("namespace");
    if !namespace.is_empty() && !LABEL.is_match(namespace) {
        let detail = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
                      start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for \
                      validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
        errors.invalid(&path.child("namespace"), &Value::from(namespace), detail);
    }
    for (key, value) in map.get("labels").and_then(Value::as_object).into_iter().flatten() {
        let at = path.child("labels");
        check_qualified(key, &at, errors);
        let value = value.as_str().unwrap_or_default();
        if value.len() > 63 || !(value.is_empty() || WORD.is_match(value)) {
            let detail = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
                          '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  \
                          or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
            errors.invalid(&at, &Value::from(value), detail);
        }
    }
    for key in map.get("annotations").and_then(Value::as_object).into_iter().flatten().map(|(key, _)| key) {
        check_qualified(key, &path.child("annotations"), errors);
    }
}

/// Why metadata cannot be read as `ObjectMeta`, in the words of Go's decoder.
fn unreadable(metadata: &Value) -> Option<String> {
    let Some(map) = metadata.as_object() else {
        let found = if metadata.is_string() { "string" } else { "value" };
        return Some(format!("json: cannot unmarshal {found} into Go value of type v1.ObjectMeta"));
    };
    map.iter().find_map(|(key, value)| {
        let found = misplaced(key, value)?;
        let wanted = match key.as_str() {
            "labels" | "annotations" => "map[string]string",
            "generation" | "deletionGracePeriodSeconds" => "int64",
            "ownerReferences" => "[]v1.OwnerReference",
            "managedFields" => "[]v1.ManagedFieldsEntry",
            "finalizers" => "[]string",
            _ => "string",
        };
        Some(format!("json: cannot unmarshal {found} into Go struct field ObjectMeta.{key} of type {wanted}"))
    })
}

/// The first embedded resource below a value that cannot be read at all, and why.
pub(super) fn malformed(props: &Props, value: &Value, path: &Path<'_>) -> Option<String> {
    match value {
        Value::Object(map) => map.iter().find_map(|(key, value)| {
            let at = path.child(key);
            if props.embedded && matches!(key.as_str(), "apiVersion" | "kind") && !value.is_string() {
                return Some(format!("{at}: Invalid value: {}: must be a string", text::value(value)));
            }
            if let Some(fault) = unreadable(value).filter(|_| props.embedded && key == "metadata") {
                return Some(format!("{at}: Invalid value: {}: {fault}", text::value(value)));
            }
            match (props.properties.get(key), props.additional_schema()) {
                (Some(schema), _) => malformed(schema, value, &at),
                (None, Some(schema)) => malformed(schema, value, &path.key(key)),
                (None, None) => None,
            }
        }),
        Value::Array(list) => {
            let items = props.items.as_deref()?;
            list.iter().enumerate().find_map(|(i, value)| malformed(items, value, &path.index(i)))
        }
        _ => None,
    }
}

/// For a field of `ObjectMeta` that holds the wrong kind of JSON: what it holds.
fn misplaced(key: &str, value: &Value) -> Option<&'static str> {
    let strings = |value: &Value| {
        value.as_object().is_some_and(|map| map.values().all(|value| value.is_string() || value.is_null()))
    };
    let fits = match key {
        "labels" | "annotations" => strings(value),
        "generation" | "deletionGracePeriodSeconds" => value.is_i64(),
        "ownerReferences" | "finalizers" | "managedFields" => value.is_array(),
        key if META_FIELDS.contains(&key) => value.is_string(),
        _ => true,
    };
    let found = match value {
        Value::Null => return None,
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    (!fits).then_some(found)
}

/// What is wrong with a name as a segment of a URL path.
fn segment_fault(name: &str, prefix: bool) -> Option<String> {
    if !prefix && matches!(name, "." | "..") {
        return Some(format!("may not be '{name}'"));
    }
    let found: Vec<String> =
        ["/", "%"].iter().filter(|c| name.contains(**c)).map(|c| format!("may not contain '{c}'")).collect();
    (!found.is_empty()).then(|| found.join(", "))
}

static LABEL: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$").expect("a fixed pattern"));
static WORD: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$").expect("a fixed pattern"));

fn check_qualified(key: &str, path: &Path<'_>, errors: &mut Errors) {
    // Annotations may be written in capitals throughout; labels only after the prefix.
    let lower = key.to_lowercase();
    let is_annotation = matches!(path, Path::Child(_, "annotations"));
    let (prefix, name) = match if is_annotation { lower.as_str() } else { key }.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let prefix_ok = prefix.is_none_or(|prefix| !prefix.is_empty() && text::subdomain(prefix).is_empty());
    if !prefix_ok || name.len() > 63 || !WORD.is_match(name) {
        let detail = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
                      an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
                      validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
        let message = format!("Invalid value: {key:?}: {detail}");
        errors.push(Reason::Invalid, path, message);
    }
}
