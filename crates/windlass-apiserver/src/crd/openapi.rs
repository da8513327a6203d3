//! The schema of a custom kind as OpenAPI v3 publishes it.

use serde_json::{Map, Value, json};

use super::Version;
use super::props::Props;
use crate::json::object_entry;

const CONVENTIONS: &str =
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";

/// The name of a schema: the group turned around, the version, the kind.
pub(super) fn name(group: &str, version: &str, kind: &str) -> String {
    let mut parts: Vec<&str> = group.split('.').rev().collect();
    parts.extend([version, kind]);
    parts.join(".")
}

/// The schema of an object.
pub(super) fn object(version: &Version) -> Value {
    let mut schema = version.source.clone();
    if !schema.is_object() {
        schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    }
    embed(&version.props, &mut schema);
    let root = schema.as_object_mut().expect("made an object above");
    let properties = object_entry(root, "properties");
    for (key, meta) in type_meta() {
        properties.insert(key.into(), meta);
    }
    properties.insert("metadata".into(), metadata("Standard object's metadata.", "metadata", "ObjectMeta"));
    properties.sort_keys();
    extend(root, version, &version.names.kind);
    schema
}

/// The schema of a list.
pub(super) fn list(version: &Version) -> Value {
    let names = &version.names;
    let item = format!("#/components/schemas/{}", name(&version.group, &version.name, &names.kind));
    let mut properties = Map::new();
    let [api_version, kind] = type_meta();
    properties.insert("apiVersion".into(), api_version.1);
    let description = format!("List of {}. More info: {CONVENTIONS}", names.plural);
    let items = json!({"description": description, "type": "array", "items": {"$ref": item}});
    properties.insert("items".into(), items);
    properties.insert("kind".into(), kind.1);
    properties.insert("metadata".into(), metadata("Standard list metadata.", "types-kinds", "ListMeta"));
    let mut out = Map::new();
    out.insert("description".into(), format!("{} is a list of {}", names.list_kind, names.kind).into());
    out.insert("type".into(), "object".into());
    out.insert("required".into(), json!(["items"]));
    out.insert("properties".into(), Value::Object(properties));
    extend(&mut out, version, &names.list_kind);
    Value::Object(out)
}

fn type_meta() -> [(&'static str, Value); 2] {
    let version = format!(
        "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized \
         schemas to the latest internal value, and may reject unrecognized values. More info: {CONVENTIONS}#resources"
    );
    let kind = format!(
        "Kind is a string value representing the REST resource this object represents. Servers may infer this from the \
         endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: \
         {CONVENTIONS}#types-kinds"
    );
    [
        ("apiVersion", json!({"description": version, "type": "string"})),
        ("kind", json!({"description": kind, "type": "string"})),
    ]
}

fn metadata(what: &str, anchor: &str, ty: &str) -> Value {
    let reference = format!("#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.{ty}");
    let description = format!("{what} More info: {CONVENTIONS}#{anchor}");
    json!({"description": description, "allOf": [{"$ref": reference}]})
}

fn extend(schema: &mut Map<String, Value>, version: &Version, kind: &str) {
    let gvk = json!([{"group": version.group, "kind": kind, "version": version.name}]);
    schema.insert("x-kubernetes-group-version-kind".into(), gvk);
    if !version.selectable_fields.is_empty() {
        let fields =
            version.selectable_fields.iter().map(|path| json!({"fieldPath": path.trim_start_matches('.')}));
        schema.insert("x-kubernetes-selectable-fields".into(), fields.collect());
    }
}

/// Says of embedded resources that they have a kind and metadata.
fn embed(props: &Props, schema: &mut Value) {
    let Some(map) = schema.as_object_mut() else { return };
    if let Some(properties) = map.get_mut("properties").and_then(Value::as_object_mut) {
        for (key, value) in properties.iter_mut() {
            if let Some(props) = props.properties.get(key) {
                embed(props, value);
            }
        }
    }
    if let (Some(props), Some(value)) = (props.additional_schema(), map.get_mut("additionalProperties")) {
        embed(props, value);
    }
    if let (Some(props), Some(value)) = (&props.items, map.get_mut("items")) {
        embed(props, value);
    }
    if !props.embedded {
        return;
    }
    let required = map.entry("required").or_insert_with(|| json!([]));
    if let Some(list) = required.as_array_mut() {
        for key in ["kind", "apiVersion"] {
            if !list.iter().any(|name| name == key) {
                list.push(key.into());
            }
        }
    }
    let version = format!(
        "apiVersion defines the versioned schema of this representation of an object. More info: \
         {CONVENTIONS}#resources"
    );
    let kind = format!(
        "kind is a string value representing the type of this object. In CamelCase. More info: \
         {CONVENTIONS}#types-kinds"
    );
    let properties = object_entry(map, "properties");
    properties.insert("apiVersion".into(), json!({"description": version, "type": "string"}));
    properties.insert("kind".into(), json!({"description": kind, "type": "string"}));
    properties.insert("metadata".into(), metadata("Standard object's metadata.", "metadata", "ObjectMeta"));
    properties.sort_keys();
}
