//! Messages that are not structures in JSON: times, quantities, raw JSON, schemas-or-something.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::Value;

use super::wire::Reader;
use super::{DecodeError, Decoder};
use crate::codec::canonical::{Go, SCHEMA, zero};
use crate::codec::scalar::{duration, quantity, time};
use crate::json;
use crate::schema::Type;

impl Decoder<'_> {
    /// The value of a message, or of bytes, that JSON writes in a form of its own.
    pub(super) fn special(&self, ty: &Type, bytes: &[u8], depth: usize) -> Result<Go, DecodeError> {
        match ty {
            Type::Bytes => {
                Ok(Go { json: Value::String(STANDARD.encode(bytes)), zero: false, empty: bytes.is_empty() })
            }
            Type::Time => stamp(bytes, time::Precision::Seconds),
            Type::MicroTime => stamp(bytes, time::Precision::Micros),
            Type::Duration => {
                let nanos = last(bytes, 1)?.unwrap_or(0) as i64;
                Ok(Go::structure(Value::String(duration::format(nanos)), nanos == 0))
            }
            Type::Quantity => {
                let mut go = zero(self.types, ty);
                let mut reader = Reader::new(bytes);
                while let Some((number, item)) = reader.next()? {
                    if number == 1 {
                        let text = quantity::canonical(&item.text("String_")?).map_err(DecodeError::new)?;
                        let is_zero = text == "0";
                        go = Go::structure(Value::String(text), is_zero);
                    }
                }
                Ok(go)
            }
            Type::IntOrString => int_or_string(bytes),
            Type::Raw | Type::FieldsV1 | Type::Any => raw(bytes),
            Type::SchemaOrBool | Type::SchemaOrArray | Type::SchemaOrStrings => {
                self.schema_or(ty, bytes, depth)
            }
            _ => Err(DecodeError::new("proto: a scalar is not a message")),
        }
    }

    fn schema_or(&self, ty: &Type, bytes: &[u8], depth: usize) -> Result<Go, DecodeError> {
        let id = self.types.id(SCHEMA).expect("the table has JSONSchemaProps");
        let (mut schema, mut allows, mut list) = (None, false, Vec::new());
        let mut reader = Reader::new(bytes);
        while let Some((number, item)) = reader.next()? {
            match (ty, number) {
                (Type::SchemaOrBool, 1) => allows = item.varint("Allows")? != 0,
                (Type::SchemaOrBool, 2) | (_, 1) => {
                    schema = Some(self.structure(id, item.bytes("Schema")?, depth)?.json);
                }
                (Type::SchemaOrArray, 2) => {
                    list.push(self.structure(id, item.bytes("JSONSchemas")?, depth)?.json)
                }
                (Type::SchemaOrStrings, 2) => list.push(Value::String(item.text("Property")?)),
                _ => {}
            }
        }
        let json = match (ty, schema) {
            (Type::SchemaOrBool, schema) => schema.unwrap_or(Value::Bool(allows)),
            _ if !list.is_empty() => Value::Array(list),
            (_, schema) => schema.unwrap_or(Value::Null),
        };
        Ok(Go::structure(json, false))
    }
}

/// The last occurrence of a number in a message of numbers.
fn last(bytes: &[u8], wanted: u32) -> Result<Option<u64>, DecodeError> {
    let mut found = None;
    let mut reader = Reader::new(bytes);
    while let Some((number, item)) = reader.next()? {
        if number == wanted {
            found = Some(item.varint("number")?);
        }
    }
    Ok(found)
}

/// Seconds and nanoseconds since 1970; no bytes at all are the zero time.
fn stamp(bytes: &[u8], precision: time::Precision) -> Result<Go, DecodeError> {
    if bytes.is_empty() {
        return Ok(Go::structure(Value::Null, true));
    }
    let seconds = last(bytes, 1)?.unwrap_or(0) as i64;
    let nanos = match precision {
        time::Precision::Seconds => 0,
        time::Precision::Micros => last(bytes, 2)?.unwrap_or(0) as i32 / 1_000 * 1_000,
    };
    if (seconds, nanos) == (time::ZERO_SECONDS, 0) {
        return Ok(Go::structure(Value::Null, true));
    }
    let stamp = Timestamp::new(seconds, nanos)
        .map_err(|_| DecodeError::new("time: year outside of range [0,9999]"))?;
    Ok(Go::structure(Value::String(time::format(stamp, precision)), false))
}

fn int_or_string(bytes: &[u8]) -> Result<Go, DecodeError> {
    let (mut kind, mut int, mut text) = (0, 0, String::new());
    let mut reader = Reader::new(bytes);
    while let Some((number, item)) = reader.next()? {
        match number {
            1 => kind = item.varint("Type")?,
            2 => int = item.varint("IntVal")? as i32,
            3 => text = item.text("StrVal")?,
            _ => {}
        }
    }
    match kind {
        0 => Ok(Go::structure(Value::Number(int.into()), int == 0 && text.is_empty())),
        1 => Ok(Go::structure(Value::String(text), false)),
        _ => Err(DecodeError::new("impossible IntOrString.Type")),
    }
}

/// JSON inside protobuf. The other thing that a raw extension could hold is protobuf again, which kube-apiserver
/// cannot turn into JSON either.
fn raw(bytes: &[u8]) -> Result<Go, DecodeError> {
    let mut found: &[u8] = &[];
    let mut reader = Reader::new(bytes);
    while let Some((number, item)) = reader.next()? {
        if number == 1 {
            found = item.bytes("Raw")?;
        }
    }
    if found.is_empty() {
        return Ok(Go::structure(Value::Null, true));
    }
    if found.starts_with(super::MAGIC) {
        let message = "cannot convert RawExtension with unrecognized content type to unstructured";
        return Err(DecodeError::new(message));
    }
    let read = json::read(found).map_err(DecodeError::new)?;
    Ok(Go::structure(read.value, false))
}
