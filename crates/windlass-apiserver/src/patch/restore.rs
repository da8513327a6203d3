//! What a strategic patch made, put into the type. Upstream does it without a text in between, by a converter that has
//! words of its own for what does not fit.

use serde_json::Value;

use crate::schema::{Type, TypeId, Types};

/// Why the object is not one of type `id`, if it is not. Texts that stand for something (times, quantities, bytes) are
/// not looked at: their readers say what is wrong with them.
pub fn misfit(types: &Types, id: TypeId, object: &Value) -> Option<String> {
    value_misfit(types, &Type::Struct(id), object)
}

/// A message of Go's decoder as it is when it decodes a value alone: the field is not named.
pub fn without_field(message: &str) -> String {
    let named = message
        .split_once("Go struct field ")
        .and_then(|(before, rest)| rest.split_once(" of type ").map(|(_, ty)| (before, ty)));
    match named {
        Some((before, ty)) => format!("{before}Go value of type {ty}"),
        None if message.starts_with("illegal base64 data") => format!("error decoding from json: {message}"),
        None => message.to_owned(),
    }
}

fn value_misfit(types: &Types, ty: &Type, value: &Value) -> Option<String> {
    let from = go_kind(value);
    match (ty, value) {
        (_, Value::Null) => None,
        (Type::Struct(id), Value::Object(map)) => {
            let fields = types.get(*id).fields.iter();
            fields
                .filter_map(|field| Some((field, map.get(&*field.name)?)))
                .find_map(|(field, value)| value_misfit(types, &field.ty, value))
        }
        (Type::Struct(_), _) => Some(format!("cannot restore struct from: {from}")),
        (Type::Map(element), Value::Object(map)) => {
            map.values().find_map(|value| value_misfit(types, element, value))
        }
        (Type::Map(_), _) => Some(format!("cannot restore map from {from}")),
        (Type::List(element), Value::Array(list)) => {
            list.iter().find_map(|value| value_misfit(types, element, value))
        }
        (Type::Bytes, Value::String(_) | Value::Array(_)) => None,
        (Type::List(_) | Type::Bytes, _) => Some(format!("cannot restore slice from {from}")),
        (Type::String, Value::String(_)) | (Type::Bool, Value::Bool(_)) => None,
        (Type::Float64 | Type::Int32 | Type::Int64, Value::Number(number)) => {
            let whole = !number.is_f64() || number.as_f64().is_some_and(|n| n.fract() == 0.0);
            let fits = whole || *ty == Type::Float64;
            (!fits).then(|| format!("cannot convert float64 to {}", scalar_name(ty)))
        }
        // Go can turn an integer into a text of one character, which is not wanted here.
        (Type::String, Value::Number(number)) if !number.is_f64() => {
            Some("cannot convert int64 to string".to_owned())
        }
        (Type::String | Type::Bool | Type::Int32 | Type::Int64 | Type::Float64, _) => {
            Some(format!("unrecognized type: {}", scalar_name(ty)))
        }
        _ => None,
    }
}

fn scalar_name(ty: &Type) -> &'static str {
    match ty {
        Type::Bool => "bool",
        Type::Int32 => "int32",
        Type::Int64 => "int64",
        Type::Float64 => "float64",
        _ => "string",
    }
}

/// The kind of the Go value that holds the JSON.
fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Recorded from a real kube-apiserver 1.36.4.
    #[test]
    fn misfits_are_worded_as_the_converter_does() {
        let types = crate::schema::builtin();
        let id = types.id("io.k8s.api.core.v1.ConfigMap").unwrap();
        for (object, want) in [
            (json!({"data": "x"}), Some("cannot restore map from string")),
            (json!({"data": 5}), Some("cannot restore map from int64")),
            (json!({"data": {"a": 5}}), Some("cannot convert int64 to string")),
            (json!({"metadata": "x"}), Some("cannot restore struct from: string")),
            (json!({"immutable": "x"}), Some("unrecognized type: bool")),
            (json!({"metadata": {"generation": "x"}}), Some("unrecognized type: int64")),
            (json!({"metadata": {"finalizers": {"a": "x"}}}), Some("cannot restore slice from map")),
            (json!({"metadata": {"ownerReferences": [5]}}), Some("cannot restore struct from: int64")),
            (json!({"metadata": {"name": "a", "generation": 5}, "data": {"a": "b"}, "unknown": 5}), None),
            (json!({"metadata": null, "data": {"a": null}}), None),
        ] {
            assert_eq!(misfit(types, id, &object).as_deref(), want, "{object}");
        }
    }

    #[test]
    fn fields_are_not_named() {
        let named = "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.creationTimestamp of type string";
        assert_eq!(without_field(named), "json: cannot unmarshal number into Go value of type string");
        let bytes = "illegal base64 data at input byte 0";
        assert_eq!(without_field(bytes), format!("error decoding from json: {bytes}"));
    }
}
