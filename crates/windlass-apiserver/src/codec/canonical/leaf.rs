//! Scalars, and types that are texts in JSON.

use base64::DecodeError as Base64Error;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::message::{Place, wrong};
use super::{Decoder, Go, float};
use crate::codec::DecodeError;
use crate::codec::scalar::{duration, quantity, time};
use crate::schema::Type;

impl Decoder<'_> {
    /// A value that is neither list, map nor structure.
    pub(super) fn scalar(&mut self, ty: &Type, value: Value, at: &Place<'_>) -> Result<Go, DecodeError> {
        match (ty, value) {
            (Type::String, Value::String(text)) => {
                let empty = text.is_empty();
                Ok(Go::scalar(Value::String(text), empty))
            }
            (Type::Bool, Value::Bool(value)) => Ok(Go::scalar(Value::Bool(value), !value)),
            (Type::Int32, Value::Number(number))
                if number.as_i64().is_some_and(|n| i32::try_from(n).is_ok()) =>
            {
                let zero = number.as_i64() == Some(0);
                Ok(Go::scalar(Value::Number(number), zero))
            }
            (Type::Int64, Value::Number(number)) if number.as_i64().is_some() => {
                let zero = number.as_i64() == Some(0);
                Ok(Go::scalar(Value::Number(number), zero))
            }
            (Type::Float64, Value::Number(number)) => {
                let value = number.as_f64().unwrap_or_default();
                Ok(Go::scalar(float(value).map_or(Value::Null, Value::Number), value == 0.0))
            }
            (Type::Bytes, Value::String(text)) => match decode_base64(&text) {
                Ok(bytes) => Ok(bytes_value(&bytes)),
                Err(error) => Ok(self.save(ty, error)),
            },
            // Go takes a list of small numbers, too.
            (Type::Bytes, Value::Array(list)) => {
                let mut bytes = Vec::with_capacity(list.len());
                for value in list {
                    match value.as_u64().and_then(|n| u8::try_from(n).ok()) {
                        Some(byte) => bytes.push(byte),
                        None if value.is_null() => bytes.push(0),
                        None => return Ok(self.save(ty, wrong("uint8", &value, value.is_number(), at))),
                    }
                }
                Ok(bytes_value(&bytes))
            }
            (Type::Time | Type::MicroTime, text @ Value::String(_)) if self.timed => {
                Ok(Go::structure(text, false))
            }
            (Type::Time, Value::String(text)) => stamp(&text, time::Precision::Seconds),
            (Type::MicroTime, Value::String(text)) => stamp(&text, time::Precision::Micros),
            (Type::Duration, Value::String(text)) => {
                let nanos = duration::parse(&text).map_err(DecodeError::new)?;
                Ok(Go::structure(Value::String(duration::format(nanos)), nanos == 0))
            }
            (Type::Quantity, value) => amount(&value),
            (Type::IntOrString, Value::String(text)) => Ok(Go::structure(Value::String(text), false)),
            (Type::IntOrString, Value::Number(number))
                if number.as_i64().is_some_and(|n| i32::try_from(n).is_ok()) =>
            {
                let zero = number.as_i64() == Some(0);
                Ok(Go::structure(Value::Number(number), zero))
            }
            // These have readers of their own, whose refusal ends it.
            (Type::Time | Type::MicroTime | Type::Duration | Type::IntOrString, other) => {
                Err(self.mismatch(ty, &other, at))
            }
            (_, other) => Ok(self.save(ty, self.mismatch(ty, &other, at))),
        }
    }
}

fn bytes_value(bytes: &[u8]) -> Go {
    Go { json: Value::String(STANDARD.encode(bytes)), zero: false, empty: bytes.is_empty() }
}

fn stamp(text: &str, precision: time::Precision) -> Result<Go, DecodeError> {
    Ok(match time::canonical(text, precision).map_err(DecodeError::new)? {
        Some(text) => Go::structure(Value::String(text), false),
        None => Go::structure(Value::Null, true),
    })
}

/// A quantity, which may be written as a number too.
fn amount(value: &Value) -> Result<Go, DecodeError> {
    let canonical = match value {
        Value::String(text) => quantity::canonical(text.trim()),
        Value::Number(number) => quantity::canonical(&number.to_string()),
        _ => Err(quantity::Error::Format),
    };
    let text = canonical.map_err(DecodeError::new)?;
    let zero = text == "0";
    Ok(Go::structure(Value::String(text), zero))
}

/// Standard base64 as Go reads it: line breaks are skipped, bits after the end are ignored.
fn decode_base64(text: &str) -> Result<Vec<u8>, DecodeError> {
    use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &base64::alphabet::STANDARD,
        GeneralPurposeConfig::new()
            .with_decode_padding_mode(DecodePaddingMode::RequireCanonical)
            .with_decode_allow_trailing_bits(true),
    );
    let stripped;
    let text = if text.contains(['\r', '\n']) {
        stripped = text.replace(['\r', '\n'], "");
        &stripped
    } else {
        text
    };
    LENIENT.decode(text).map_err(|error| {
        let offset = match error {
            Base64Error::InvalidByte(offset, _) | Base64Error::InvalidLastSymbol(offset, _) => offset,
            Base64Error::InvalidLength(_) | Base64Error::InvalidPadding => text.len() / 4 * 4,
        };
        DecodeError::new(format!("illegal base64 data at input byte {offset}"))
    })
}
