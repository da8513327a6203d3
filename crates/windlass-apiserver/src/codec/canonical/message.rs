//! Messages about values of the wrong type, in the words of Go's decoder.

use serde_json::Value;

use super::Decoder;
use crate::codec::{DecodeError, path::Path};
use crate::schema::{Struct, Type};

/// Where a value stands: its path, and the structure that holds it, for messages.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub path: &'a Path<'a>,
    pub holder: Option<&'a str>,
}

impl Decoder<'_> {
    /// `value` stands where a `ty` should.
    pub(super) fn mismatch(&self, ty: &Type, value: &Value, at: &Place<'_>) -> DecodeError {
        let integer = matches!(ty, Type::Int32 | Type::Int64 | Type::IntOrString);
        wrong(&self.type_name(ty), value, integer, at)
    }

    fn type_name(&self, ty: &Type) -> String {
        match ty {
            Type::Bool => "bool".to_owned(),
            Type::Int32 | Type::IntOrString => "int32".to_owned(),
            Type::Int64 => "int64".to_owned(),
            Type::Float64 => "float64".to_owned(),
            Type::Bytes => "[]uint8".to_owned(),
            Type::List(element) => format!("[]{}", self.type_name(element)),
            // The only maps of quantities there are.
            Type::Map(element) if **element == Type::Quantity => "v1.ResourceList".to_owned(),
            Type::Map(element) => format!("map[string]{}", self.type_name(element)),
            Type::Struct(id) => {
                let structure = self.types.get(*id);
                let package = structure.name.rsplit('.').nth(1).unwrap_or_default();
                format!("{package}.{}", go_name(structure))
            }
            Type::Quantity => "resource.Quantity".to_owned(),
            Type::Any => "v1.JSON".to_owned(),
            Type::FieldsV1 => "v1.FieldsV1".to_owned(),
            Type::Raw => "runtime.RawExtension".to_owned(),
            Type::SchemaOrArray => "v1.JSONSchemaPropsOrArray".to_owned(),
            Type::SchemaOrBool => "v1.JSONSchemaPropsOrBool".to_owned(),
            Type::SchemaOrStrings => "v1.JSONSchemaPropsOrStringArray".to_owned(),
            // Times and durations are read through a string of their own.
            Type::String | Type::Time | Type::MicroTime | Type::Duration => "string".to_owned(),
        }
    }
}

/// Go's message for a value of the wrong type. The literal is named where a number was wanted, but not this one.
pub(super) fn wrong(wanted: &str, value: &Value, integer: bool, at: &Place<'_>) -> DecodeError {
    let found = match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::String(_) => "string".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
        Value::Number(number) if integer => format!("number {number}"),
        Value::Number(_) => "number".to_owned(),
    };
    DecodeError::new(match at.holder {
        Some(holder) => {
            let fields = at.path.fields();
            format!("json: cannot unmarshal {found} into Go struct field {holder}.{fields} of type {wanted}")
        }
        None => format!("json: cannot unmarshal {found} into Go value of type {wanted}"),
    })
}

/// The Go name of a structure: the last part of its OpenAPI name.
pub(super) fn go_name(structure: &Struct) -> &str {
    structure.name.rsplit('.').next().unwrap_or_default()
}
