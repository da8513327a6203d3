//! Where in an object something is, as text for people.

use std::fmt::Write;

use serde_json::{Map, Value};

/// A field of an object: `.name`, or `["name.with/dots"]`.
pub(super) fn push_field(path: &mut String, name: &str) {
    if name.is_empty() || name.contains(|c: char| !(c.is_ascii_alphanumeric() || "_-$".contains(c))) {
        push_value(path, &Value::from(name));
        return;
    }
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

/// An item of a list, by its key fields: `[name=app]`.
pub(super) fn push_keys(path: &mut String, keys: &Map<String, Value>) {
    for (at, (name, value)) in keys.iter().enumerate() {
        let before = if at == 0 { '[' } else { ',' };
        let written = match value {
            Value::String(text) => write!(path, "{before}{name}={text}"),
            other => write!(path, "{before}{name}={other}"),
        };
        written.expect("a string takes all text");
    }
    path.push_str(if keys.is_empty() { "[]" } else { "]" });
}

/// An item of a list, by its value: `["a"]`.
pub(super) fn push_value(path: &mut String, value: &Value) {
    write!(path, "[{value}]").expect("a string takes all text");
}

/// Whether a field says which object it is, which is nobody's to own.
pub(super) fn is_identity(path: &str, name: &str) -> bool {
    match path {
        "" => matches!(name, "apiVersion" | "kind"),
        "metadata" => matches!(
            name,
            "name"
                | "namespace"
                | "uid"
                | "resourceVersion"
                | "generation"
                | "creationTimestamp"
                | "managedFields"
                | "selfLink"
        ),
        _ => false,
    }
}

/// Whether this is a map that everybody writes into, of which an empty one says nothing.
pub(super) fn is_shared_map(path: &str) -> bool {
    let (parent, name) = path.rsplit_once('.').unwrap_or_default();
    matches!(name, "labels" | "annotations") && (parent == "metadata" || parent.ends_with(".metadata"))
}
