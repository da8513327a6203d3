//! The object before it exists.

use serde_json::{Map, Value, json};

use super::shape::Schema;
use crate::schema::{Field, Omit, Type, TypeId, Types};

/// What a new object is compared with: for built-in kinds the fields that Go writes of an empty structure, so that
/// `spec: {}` is nobody's; for custom kinds nothing at all.
pub(super) fn object(schema: &Schema<'_>, api_version: &str, kind: &str) -> Value {
    let mut map = if schema.custom { Map::new() } else { structure(schema.types, schema.root) };
    map.insert("apiVersion".to_owned(), json!(api_version));
    map.insert("kind".to_owned(), json!(kind));
    Value::Object(map)
}

fn structure(types: &Types, id: TypeId) -> Map<String, Value> {
    let fields = types.get(id).fields.iter();
    fields.filter_map(|field| Some((field.name.to_string(), value(types, field)?))).collect()
}

/// The zero value of a field, if it is written.
fn value(types: &Types, field: &Field) -> Option<Value> {
    let written = match field.omit {
        Omit::Never => true,
        Omit::Empty => !field.ptr && is_structure(&field.ty),
        Omit::Zero => false,
    };
    if !written {
        return None;
    }
    if field.ptr {
        return Some(Value::Null);
    }
    Some(match &field.ty {
        Type::String => json!(""),
        Type::Bool => json!(false),
        Type::Int32 | Type::Int64 | Type::Float64 | Type::IntOrString => json!(0),
        Type::Duration => json!("0s"),
        Type::Quantity => json!("0"),
        Type::Struct(id) => Value::Object(structure(types, *id)),
        _ => Value::Null,
    })
}

/// Whether `omitempty` does nothing for the type, since it is a structure in Go.
fn is_structure(ty: &Type) -> bool {
    use Type::{Duration, IntOrString, MicroTime, Quantity, Raw, Struct, Time};
    matches!(ty, Struct(_) | Time | MicroTime | Duration | Quantity | IntOrString | Raw)
}
