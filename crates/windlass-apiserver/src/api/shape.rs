//! The shapes in which objects are answered: as they are, as metadata, as rows of a Table.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::conversion;
use super::negotiate::Shape;
use super::object::{load, serves_stored};
use super::registry::{Flavor, Resource};
use super::server::Call;
use crate::print;
use crate::status::{Result, Status};
use crate::store::Object;

/// What a row of a Table carries of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Include {
    None,
    Metadata,
    Object,
}

impl Include {
    pub fn parse(call: &Call<'_>) -> Result<Include> {
        if !matches!(call.output.shape, Shape::Table(_)) {
            return Ok(Include::Metadata);
        }
        match call.query.text("includeObject") {
            "" | "Metadata" => Ok(Include::Metadata),
            "None" => Ok(Include::None),
            "Object" => Ok(Include::Object),
            other => Err(Status::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: must be 'Metadata', 'Object', 'None', or empty"
            ))),
        }
    }
}

/// Appends an object in its own shape, with `kind` and `apiVersion`.
pub(super) fn write_object(out: &mut Vec<u8>, resource: &Resource, object: &Object) {
    if serves_stored(resource, object) {
        out.extend_from_slice(object.body());
    } else {
        let tree = load(resource, object);
        crate::codec::write_value(out, &sorted_if_custom(resource, tree));
    }
}

/// Appends an object as an item of its list: built-in items go without `kind` and `apiVersion`.
pub(super) fn write_item(out: &mut Vec<u8>, resource: &Resource, object: &Object) {
    if resource.is_custom() {
        return write_object(out, resource, object);
    }
    if serves_stored(resource, object) {
        out.push(b'{');
        out.extend_from_slice(object.item());
        return;
    }
    let mut tree = load(resource, object);
    if let Some(map) = tree.as_object_mut() {
        map.shift_remove("kind");
        map.shift_remove("apiVersion");
    }
    crate::codec::write_value(out, &tree);
}

/// Appends the metadata of an object.
pub(super) fn write_partial(out: &mut Vec<u8>, resource: &Resource, version: &str, object: &Object) {
    if !inner_annotations(resource).is_empty() || conversion::by_webhook(resource) {
        return crate::codec::write_value(out, &partial_tree(resource, version, object));
    }
    out.extend_from_slice(b"{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/");
    out.extend_from_slice(version.as_bytes());
    out.extend_from_slice(b"\",\"metadata\":");
    out.extend_from_slice(object.metadata());
    out.push(b'}');
}

/// The tree of an object in its own shape.
pub(super) fn object_tree(resource: &Resource, object: &Object) -> Value {
    sorted_if_custom(resource, load(resource, object))
}

fn sorted_if_custom(resource: &Resource, mut tree: Value) -> Value {
    if resource.is_custom() {
        tree.sort_all_objects();
    }
    tree
}

/// The metadata of an object as a tree.
pub(super) fn partial_tree(resource: &Resource, version: &str, object: &Object) -> Value {
    let metadata = match conversion::by_webhook(resource) {
        // Labels and annotations may be others in another version.
        true => load(resource, object)["metadata"].take(),
        false => serde_json::from_slice(object.metadata()).expect("stored bodies are JSON"),
    };
    partial_of(resource, version, metadata)
}

/// These metadata by themselves.
pub(super) fn partial_of(resource: &Resource, version: &str, mut metadata: Value) -> Value {
    for annotation in inner_annotations(resource) {
        let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) else { break };
        annotations.shift_remove(*annotation);
        if annotations.is_empty() {
            metadata.as_object_mut().expect("metadata is an object").shift_remove("annotations");
        }
    }
    json!({"kind": "PartialObjectMetadata", "apiVersion": format!("meta.k8s.io/{version}"), "metadata": metadata})
}

fn inner_annotations(resource: &Resource) -> &'static [&'static str] {
    match &resource.flavor {
        Flavor::Builtin { hooks, .. } => hooks.inner_annotations,
        Flavor::Custom { .. } => &[],
    }
}

/// How a Table is made of objects of a resource.
#[derive(Clone, Debug)]
pub(super) struct Tabulator {
    pub resource: Arc<Resource>,
    pub version: &'static str,
    pub include: Include,
}

impl Tabulator {
    /// A Table of one object.
    pub fn table(&self, metadata: Map<String, Value>, tree: &Value, columns: bool, now: Timestamp) -> Value {
        self.frame(metadata, vec![self.row_of(tree, now)], columns)
    }

    /// A Table of these rows.
    pub fn frame(&self, metadata: Map<String, Value>, rows: Vec<Value>, columns: bool) -> Value {
        let definitions = match columns {
            true => Value::Array(self.resource.columns()),
            false => Value::Null,
        };
        // Kinds without a printer have no rows at all where others have none.
        let is_plain =
            !self.resource.is_custom() && !print::has_printer(&self.resource.group, &self.resource.kind);
        let rows = if rows.is_empty() && is_plain { Value::Null } else { Value::Array(rows) };
        json!({
            "kind": "Table",
            "apiVersion": format!("meta.k8s.io/{}", self.version),
            "metadata": metadata,
            "columnDefinitions": definitions,
            "rows": rows,
        })
    }

    /// The row of a tree.
    pub fn row_of(&self, tree: &Value, now: Timestamp) -> Value {
        let cells = match &self.resource.flavor {
            Flavor::Builtin { .. } => print::cells(&self.resource.group, &self.resource.kind, tree, now),
            Flavor::Custom { printer, .. } => print::custom_cells(printer, tree, now),
        };
        let mut row = Map::new();
        row.insert("cells".into(), Value::Array(cells));
        if let Some(conditions) = print::row_conditions(&self.resource.group, &self.resource.kind, tree) {
            row.insert("conditions".into(), conditions);
        }
        let object = match self.include {
            Include::None => Value::Null,
            Include::Metadata => partial_of(&self.resource, self.version, tree["metadata"].clone()),
            Include::Object => sorted_if_custom(&self.resource, tree.clone()),
        };
        row.insert("object".into(), object);
        Value::Object(row)
    }
}
