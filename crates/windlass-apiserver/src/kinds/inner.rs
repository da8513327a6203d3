//! Values as the real server prints them in refusals: its inner types, by their Go names and in full.
//!
//! `table/inner.jsonl` has the fields of each, beside the JSON names of what is served.

use std::collections::HashMap;
use std::sync::OnceLock;

use serde_json::{Map, Value, json};

use super::tree::get;
use crate::schema::{self, Type, TypeId};

/// One field: its Go name, the JSON name of what is served, and what stands for it when it is not there.
struct Field {
    go: String,
    json: String,
    zero: Zero,
}

enum Zero {
    /// The fields of the served value stand here, as they are served.
    Inline,
    /// A structure with all its fields, or what Go prints for nothing.
    Value(Value),
}

fn table() -> &'static HashMap<TypeId, Vec<Field>> {
    static TABLE: OnceLock<HashMap<TypeId, Vec<Field>>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let lines = include_str!("../../table/inner.jsonl").lines();
        lines.filter_map(|line| row(&serde_json::from_str(line).expect("a line of our table"))).collect()
    })
}

fn row(row: &Value) -> Option<(TypeId, Vec<Field>)> {
    let text = |value: &Value, index: usize| value[index].as_str().unwrap_or_default().to_owned();
    let field = |field: &Value| {
        let zero = text(field, 2);
        let zero = match zero.as_str() {
            "inline" => Zero::Inline,
            zero => Zero::Value(serde_json::from_str(zero).expect("a value of our table")),
        };
        Field { go: text(field, 0), json: text(field, 1), zero }
    };
    let fields = row["f"].as_array()?.iter().map(field).collect();
    Some((schema::builtin().id(row["name"].as_str()?)?, fields))
}

/// A structure of this OpenAPI name as it is printed.
pub(crate) fn shown(type_name: &str, value: &Value) -> Value {
    match schema::builtin().id(type_name) {
        Some(id) if !value.is_null() => structure(id, value),
        _ => value.clone(),
    }
}

/// A list of such structures; nothing is `null`.
pub(crate) fn shown_list(type_name: &str, value: Option<&Value>) -> Value {
    match value {
        Some(Value::Array(items)) => items.iter().map(|item| shown(type_name, item)).collect(),
        _ => Value::Null,
    }
}

fn structure(id: TypeId, value: &Value) -> Value {
    let Some(fields) = table().get(&id) else { return value.clone() };
    let types = schema::builtin().get(id);
    let moved = moved(&types.name, value);
    let value = moved.as_ref().unwrap_or(value);
    let mut out = Map::new();
    for field in fields {
        let zero = match &field.zero {
            Zero::Inline => {
                out.extend(get(value, &field.json).and_then(Value::as_object).cloned().unwrap_or_default());
                continue;
            }
            Zero::Value(zero) => zero,
        };
        let ty = types.field(&field.json).map(|field| &field.ty);
        let printed = match (get(value, &field.json), ty) {
            (Some(value), Some(ty)) => of_type(ty, value),
            (Some(value), None) => value.clone(),
            (None, Some(Type::Struct(id))) if zero.is_object() => structure(*id, zero),
            (None, _) => zero.clone(),
        };
        out.insert(field.go.clone(), printed);
    }
    Value::Object(out)
}

fn of_type(ty: &Type, value: &Value) -> Value {
    match (ty, value) {
        (Type::Struct(id), value) => structure(*id, value),
        (Type::List(ty), Value::Array(items)) => items.iter().map(|item| of_type(ty, item)).collect(),
        (Type::Map(ty), Value::Object(map)) => {
            // Go sorts the keys of a map.
            let mut keys = map.keys().collect::<Vec<_>>();
            keys.sort();
            Value::Object(keys.into_iter().map(|key| (key.clone(), of_type(ty, &map[key]))).collect())
        }
        (Type::SchemaOrBool, Value::Bool(allows)) => json!({"Allows": allows, "Schema": null}),
        (Type::SchemaOrBool, schema) => json!({"Allows": true, "Schema": shown(SCHEMA, schema)}),
        (Type::SchemaOrArray, Value::Array(schemas)) => {
            let schemas = schemas.iter().map(|schema| shown(SCHEMA, schema)).collect::<Vec<_>>();
            json!({"Schema": null, "JSONSchemas": schemas})
        }
        (Type::SchemaOrArray, schema) => json!({"Schema": shown(SCHEMA, schema), "JSONSchemas": null}),
        _ => value.clone(),
    }
}

const SCHEMA: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

/// Inside, what a pod shares with its host is part of its security context.
fn moved(type_name: &str, value: &Value) -> Option<Value> {
    if type_name != "io.k8s.api.core.v1.PodSpec" {
        return None;
    }
    let mut spec = value.clone();
    for field in ["hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers"] {
        if let Some(shared) = get(value, field).cloned() {
            super::tree::set(super::tree::sub(&mut spec, "securityContext"), field, shared);
        }
    }
    Some(spec)
}
