//! What a YAML scalar means, by the rules of go-yaml 2, which are mostly those of YAML 1.1.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Number, Value};

use super::{ParseError, error};
use crate::codec::canonical;

/// A scalar with its type.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    /// A whole number beyond `i64`.
    Uint(u64),
    Float(f64),
    Text(String),
}

impl Scalar {
    /// The value after the detour through JSON that Go takes: whole floats come back as integers.
    pub fn value(self) -> Result<Value, ParseError> {
        Ok(match self {
            Scalar::Null => Value::Null,
            Scalar::Bool(value) => Value::Bool(value),
            Scalar::Int(value) => Value::Number(value.into()),
            Scalar::Uint(value) => Value::Number(Number::from_f64(value as f64).expect("finite")),
            Scalar::Float(value) => canonical::float(value).map(Value::Number).ok_or_else(|| {
                let name = if value.is_nan() {
                    "NaN"
                } else if value > 0.0 {
                    "+Inf"
                } else {
                    "-Inf"
                };
                ParseError::NotJson(format!("json: unsupported value: {name}"))
            })?,
            Scalar::Text(text) => Value::String(text),
        })
    }

    /// The scalar as a key: its JSON text, and how Go prints it in messages.
    pub fn key(self) -> Result<(String, String), ParseError> {
        let same = |text: String| (text.clone(), text);
        Ok(match self {
            Scalar::Text(text) => {
                let go = format!("{text:?}");
                (text, go)
            }
            Scalar::Int(value) => same(value.to_string()),
            Scalar::Bool(value) => same(value.to_string()),
            Scalar::Float(value) => same(short_float(value)),
            Scalar::Null => return Err(ParseError::NotJson("unsupported map key of type: <nil>".to_owned())),
            Scalar::Uint(value) => {
                return Err(ParseError::NotJson(format!(
                    "unsupported map key of type: uint64, key: {value:#x}"
                )));
            }
        })
    }
}

/// Decides what a scalar is. `tag` is the full tag, if one was written.
pub(super) fn resolve(text: &str, plain: bool, tag: Option<&str>) -> Result<Scalar, ParseError> {
    let short = match tag {
        None if plain => return Ok(implicit(text)),
        None => return Ok(Scalar::Text(text.to_owned())),
        Some(tag) => tag.strip_prefix("tag:yaml.org,2002:").or_else(|| tag.strip_prefix("!!")),
    };
    let scalar = implicit(text);
    let fits = match (short, &scalar) {
        (Some("bool"), Scalar::Bool(_))
        | (Some("int"), Scalar::Int(_) | Scalar::Uint(_))
        | (Some("float"), Scalar::Float(_))
        | (Some("null"), Scalar::Null) => true,
        (Some("float"), Scalar::Int(value)) => return Ok(Scalar::Float(*value as f64)),
        (Some("binary"), _) => {
            let bytes = STANDARD
                .decode(text.replace(['\r', '\n', ' '], ""))
                .map_err(|_| error("!!binary value contains invalid base64 data"))?;
            return Ok(Scalar::Text(String::from_utf8_lossy(&bytes).into_owned()));
        }
        (Some("bool" | "int" | "float" | "null"), _) => false,
        // Strings, timestamps (which stay texts) and tags of nobody's.
        _ => return Ok(Scalar::Text(text.to_owned())),
    };
    if fits {
        return Ok(scalar);
    }
    let found = match scalar {
        Scalar::Null => "null",
        Scalar::Bool(_) => "bool",
        Scalar::Int(_) | Scalar::Uint(_) => "int",
        Scalar::Float(_) => "float",
        Scalar::Text(_) => "str",
    };
    Err(error(&format!("cannot decode !!{found} `{text}` as a !!{}", short.unwrap_or_default())))
}

/// Whether a plain scalar without a tag is a text.
pub(super) fn is_text(text: &str) -> bool {
    matches!(implicit(text), Scalar::Text(_))
}

/// A plain scalar without a tag.
fn implicit(text: &str) -> Scalar {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Scalar::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Scalar::Bool(true);
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Scalar::Bool(false);
        }
        ".nan" | ".NaN" | ".NAN" => return Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Scalar::Float(f64::NEG_INFINITY),
        _ => {}
    }
    let number = match text.as_bytes()[0] {
        b'.' => float(text),
        b'+' | b'-' | b'0'..=b'9' => {
            let digits = text.replace('_', "");
            integer(&digits).or_else(|| float(&digits))
        }
        _ => None,
    };
    number.unwrap_or_else(|| Scalar::Text(text.to_owned()))
}

/// Go's integer literals: `0x`, `0o`, `0b`, and a bare leading zero for octal.
fn integer(text: &str) -> Option<Scalar> {
    let negative = text.starts_with('-');
    let signed = text.starts_with(['-', '+']);
    let digits = if signed { &text[1..] } else { text };
    let lower = digits.get(..2).unwrap_or_default().to_ascii_lowercase();
    let (base, digits) = match lower.as_str() {
        "0x" => (16, &digits[2..]),
        "0o" => (8, &digits[2..]),
        "0b" => (2, &digits[2..]),
        _ if digits.len() > 1 && digits.starts_with('0') => (8, &digits[1..]),
        _ => (10, digits),
    };
    // Rust would take a second sign.
    if !digits.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return None;
    }
    let magnitude = i128::from_str_radix(digits, base).ok()?;
    let value = if negative { -magnitude } else { magnitude };
    match (i64::try_from(value), u64::try_from(value)) {
        (Ok(value), _) => Some(Scalar::Int(value)),
        (_, Ok(value)) if !signed => Some(Scalar::Uint(value)),
        _ => None,
    }
}

/// A decimal float; what overflows stays a text.
fn float(text: &str) -> Option<Scalar> {
    let shape = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'));
    let value: f64 = if shape { text.parse().ok()? } else { return None };
    value.is_finite().then_some(Scalar::Float(value))
}

/// The shortest text that gives the same `f32`, as Go's `%g`: how go-yaml writes keys.
fn short_float(value: f64) -> String {
    let value = value as f32;
    if value.is_nan() {
        return ".nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", exponent.abs())
        }
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars() {
        let text = |s: &str| Scalar::Text(s.to_owned());
        for (input, want) in [
            ("yes", Scalar::Bool(true)),
            ("Off", Scalar::Bool(false)),
            ("yEs", text("yEs")),
            ("", Scalar::Null),
            ("0777", Scalar::Int(511)),
            ("0o17", Scalar::Int(15)),
            ("08", Scalar::Float(8.0)),
            ("0x1F", Scalar::Int(31)),
            ("-0b11", Scalar::Int(-3)),
            ("1_000", Scalar::Int(1000)),
            ("18446744073709551615", Scalar::Uint(u64::MAX)),
            ("1e3", Scalar::Float(1000.0)),
            (".5", Scalar::Float(0.5)),
            ("1.2.3", text("1.2.3")),
            ("2026-11-15", text("2026-11-15")),
            ("10.0.0.1", text("10.0.0.1")),
            ("1e999", text("1e999")),
            ("--1", text("--1")),
            ("-", text("-")),
            ("12:30", text("12:30")),
            ("0x", text("0x")),
        ] {
            assert_eq!(implicit(input), want, "{input}");
        }
    }

    #[test]
    fn tags() {
        let tag = |name: &str| format!("tag:yaml.org,2002:{name}");
        let read = |text: &str, name: &str| resolve(text, true, Some(&tag(name)));
        assert_eq!(read("1", "str").unwrap(), Scalar::Text("1".into()));
        assert_eq!(read("1", "float").unwrap(), Scalar::Float(1.0));
        assert_eq!(read("aGk=", "binary").unwrap(), Scalar::Text("hi".into()));
        assert_eq!(read("x", "int").unwrap_err().to_string(), "yaml: cannot decode !!str `x` as a !!int");
        assert_eq!(resolve("1", true, Some("!custom")).unwrap(), Scalar::Text("1".into()));
        assert_eq!(resolve("1", false, None).unwrap(), Scalar::Text("1".into()));
    }
}
