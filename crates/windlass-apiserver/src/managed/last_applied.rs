//! The annotation that client-side `kubectl apply` leaves, and the way from it to server-side apply.

use serde_json::Value;

use super::compare::Comparison;
use super::element::go_json;
use super::set::Set;
use super::shape::Schema;
use super::{fieldset, validate};
use crate::json::{object_entry, read, str_at};

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The manager whose applies take the annotation over and keep it up to date.
pub(super) const MANAGER: &str = "kubectl";

/// All annotations of an object together may not be longer than this.
const ANNOTATIONS_MAX: usize = 256 * 1024;

/// The fields that the client-side configuration set and that are still as it set them: nobody who owns them by an
/// update stands in the way of an apply.
pub(super) fn allowed(schema: &Schema<'_>, live: &Value, api_version: &str) -> Option<Set> {
    let text = str_at(live, &["metadata", "annotations", ANNOTATION]);
    let last = read(text.as_bytes()).ok()?.value;
    if !last.is_object() || str_at(&last, &["apiVersion"]) != api_version {
        return None;
    }
    validate::object(schema, live, false).ok()?;
    validate::object(schema, &last, false).ok()?;
    let Comparison { removed, modified, added } = Comparison::of(schema, &last, live);
    Some(fieldset::of(schema, &last).difference(&modified).difference(&added).difference(&removed))
}

/// Writes the configuration into the annotation, if the object has it and it fits.
pub(super) fn refresh(object: &mut Value, config: &Value) {
    if str_at(object, &["metadata", "annotations", ANNOTATION]).is_empty() {
        return;
    }
    let mut config = config.clone();
    if let Some(metadata) = config.get_mut("metadata").and_then(Value::as_object_mut)
        && let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut)
    {
        annotations.shift_remove(ANNOTATION);
        if annotations.is_empty() {
            metadata.shift_remove("annotations");
        }
    }
    let mut text = String::new();
    go_json(&config, &mut text);
    text.push('\n');
    let Some(object) = object.as_object_mut() else { return };
    let annotations = object_entry(object_entry(object, "metadata"), "annotations");
    annotations.insert(ANNOTATION.to_owned(), Value::String(text));
    let size: usize = annotations.iter().map(|(k, v)| k.len() + v.as_str().map_or(0, str::len)).sum();
    if size > ANNOTATIONS_MAX {
        annotations.shift_remove(ANNOTATION);
    }
}
