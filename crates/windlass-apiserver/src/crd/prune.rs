//! Dropping what the schema does not know.

use serde_json::Value;

use super::embedded::META_FIELDS;
use super::props::{Additional, Props};
use crate::field::Path;

/// Fields of every object that are handled by the server itself.
pub(super) const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Drops unknown fields and reports their paths, sorted. `is_resource` says that the value is an object with
/// `metadata` of its own, which stays; that of embedded resources loses what no `ObjectMeta` has.
pub(super) fn prune(props: &Props, value: &mut Value, is_resource: bool, unknown: &mut Vec<String>) {
    let start = unknown.len();
    let mut walk = Walk { unknown, of_metadata: Vec::new() };
    walk.node(Some(props), value, is_resource || props.embedded, false, &Path::Root);
    let mut of_metadata = walk.of_metadata;
    unknown[start..].sort();
    of_metadata.sort();
    unknown.append(&mut of_metadata);
}

struct Walk<'a> {
    unknown: &'a mut Vec<String>,
    /// Of the metadata of embedded objects, which kube-apiserver looks at afterwards.
    of_metadata: Vec<String>,
}

impl Walk<'_> {
    /// `inherited` says that unknown fields stay although this schema does not say so.
    fn node(
        &mut self,
        props: Option<&Props>,
        value: &mut Value,
        is_resource: bool,
        inherited: bool,
        path: &Path<'_>,
    ) {
        let preserves = inherited || props.is_some_and(Props::preserves);
        if preserves && props.is_none() {
            return;
        }
        match value {
            Value::Object(map) => {
                let keep = |key: &str| {
                    (is_resource && META.contains(&key))
                        || preserves
                        || props.is_some_and(|p| p.properties.contains_key(key) || p.additional.is_some())
                };
                let dropped: Vec<String> = map.keys().filter(|key| !keep(key)).cloned().collect();
                for key in dropped {
                    map.shift_remove(&key);
                    if !(META.contains(&key.as_str()) && matches!(path, Path::Root)) {
                        self.unknown.push(path.child(&key).to_string());
                    }
                }
                for (key, value) in map.iter_mut() {
                    match is_resource && META.contains(&key.as_str()) {
                        true if key == "metadata" => self.metadata(value, path),
                        true => {}
                        false => self.field(props, key, value, path),
                    }
                }
            }
            Value::Array(list) => {
                let items = props.and_then(|props| props.items.as_deref());
                let embedded = items.is_some_and(|items| items.embedded);
                for (i, value) in list.iter_mut().enumerate() {
                    self.node(items, value, embedded, preserves, &path.index(i));
                }
            }
            _ => {}
        }
    }

    fn field(&mut self, props: Option<&Props>, key: &str, value: &mut Value, path: &Path<'_>) {
        let Some(props) = props else { return };
        let schema = match (props.properties.get(key), &props.additional) {
            (Some(schema), _) => Some(schema),
            (None, Some(Additional::Schema(schema))) => Some(&**schema),
            // Anything may stand there, but nothing is known of what is in it.
            (None, Some(Additional::Bool(_))) => None,
            (None, None) => return,
        };
        let embedded = schema.is_some_and(|schema| schema.embedded);
        self.node(schema, value, embedded, false, &path.child(key));
    }

    /// The root's own metadata is read by the codec; that of an embedded resource keeps the fields of `ObjectMeta`.
    fn metadata(&mut self, value: &mut Value, path: &Path<'_>) {
        let Some(map) = value.as_object_mut().filter(|_| !matches!(path, Path::Root)) else { return };
        let dropped: Vec<String> =
            map.keys().filter(|key| !META_FIELDS.contains(&key.as_str())).cloned().collect();
        for key in dropped {
            map.shift_remove(&key);
            self.of_metadata.push(path.child("metadata").child(&key).to_string());
        }
    }
}
