//! Conversions: `int`, `string`, `timestamp` and their like, as cel-go converts.

use windlass_core::duration;

use super::value::{Fault, Result, Val};
use super::{address, library};
use crate::crd::text;

/// A value as `string` makes it one.
pub(super) fn text_of<'a>(value: &Val<'a>) -> Result<Val<'a>> {
    convert("string", std::slice::from_ref(value)).unwrap_or(Err(Fault::NoOverload))
}

/// What no number of 64 bits with a sign reaches.
const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "ranges are checked before"
)]
pub(super) fn convert<'a>(name: &str, args: &[Val<'a>]) -> Option<Result<Val<'a>>> {
    let range = || match name {
        "uint" => Fault::other("unsigned integer overflow"),
        _ => Fault::other("integer overflow"),
    };
    let parse = |ty: &str| Fault::other(format!("type conversion error from 'string' to '{ty}'"));
    let [arg] = args else { return None };
    Some(match (name, arg) {
        ("dyn", _) => Ok(arg.clone()),
        ("type", _) => Ok(Val::Type(arg.type_name())),
        ("size", _) => arg.size().map(|size| Val::Int(i64::try_from(size).unwrap_or(i64::MAX))),
        ("int", Val::Int(_)) | ("uint", Val::UInt(_)) | ("double", Val::Double(_)) => Ok(arg.clone()),
        ("string", Val::Text(_)) | ("bytes", Val::Bytes(_)) | ("bool", Val::Bool(_)) => Ok(arg.clone()),
        ("int", Val::UInt(value)) => i64::try_from(*value).map(Val::Int).map_err(|_| range()),
        ("int", Val::Double(value)) if value.abs() < TWO_TO_63 => Ok(Val::Int(*value as i64)),
        ("uint", Val::Double(value)) if (0.0..2.0 * TWO_TO_63).contains(value) => {
            Ok(Val::UInt(*value as u64))
        }
        ("int" | "uint", Val::Double(_)) => Err(range()),
        ("int", Val::Foreign(cel::Value::Duration(duration))) => {
            duration.num_nanoseconds().map(Val::Int).ok_or_else(range)
        }
        ("int", Val::Foreign(cel::Value::Timestamp(time))) => Ok(Val::Int(time.timestamp())),
        ("int", Val::Text(text)) => text.parse().map(Val::Int).map_err(|_| parse("int")),
        ("uint", Val::Int(value)) => u64::try_from(*value).map(Val::UInt).map_err(|_| range()),
        ("uint", Val::Text(text)) if text.starts_with('+') => Err(parse("uint")),
        ("uint", Val::Text(text)) => text.parse().map(Val::UInt).map_err(|_| parse("uint")),
        ("double", Val::Int(value)) => Ok(Val::Double(*value as f64)),
        ("double", Val::UInt(value)) => Ok(Val::Double(*value as f64)),
        ("double", Val::Text(text)) => match text.parse::<f64>() {
            // Go does not take what is too large for infinite, nor a sign before what is no number.
            Ok(value) if value.is_infinite() && text.contains(|c: char| c.is_ascii_digit()) => {
                Err(parse("double"))
            }
            Ok(value) if value.is_nan() && text.len() > 3 => Err(parse("double")),
            Ok(value) => Ok(Val::Double(value)),
            Err(_) => Err(parse("double")),
        },
        ("bool", Val::Text(text)) => match &**text {
            "true" | "TRUE" | "True" | "t" | "T" | "1" => Ok(Val::Bool(true)),
            "false" | "FALSE" | "False" | "f" | "F" | "0" => Ok(Val::Bool(false)),
            _ => Err(parse("bool")),
        },
        ("string", Val::Int(value)) => Ok(Val::text(value.to_string())),
        ("string", Val::UInt(value)) => Ok(Val::text(value.to_string())),
        ("string", Val::Bool(value)) => Ok(Val::text(value.to_string())),
        ("string", Val::Double(value)) => Ok(Val::text(text::float(*value))),
        ("string", Val::Bytes(bytes)) => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Val::text(text)),
            Err(_) => Err(Fault::other("invalid UTF-8 in bytes, cannot convert to string")),
        },
        ("string", Val::Foreign(cel::Value::Duration(duration))) => {
            // In two parts, as Go has it, or it would be rounded otherwise.
            let nanos = duration.num_nanoseconds().unwrap_or_default();
            let seconds = (nanos / 1_000_000_000) as f64 + (nanos % 1_000_000_000) as f64 / 1e9;
            Ok(Val::text(format!("{seconds}s")))
        }
        ("string", Val::Foreign(cel::Value::Timestamp(time))) => {
            // The library would write the offset in figures where there is none.
            let nanos =
                i128::from(time.timestamp()) * 1_000_000_000 + i128::from(time.timestamp_subsec_nanos());
            let offset = jiff::tz::Offset::from_seconds(time.offset().local_minus_utc());
            match (jiff::Timestamp::from_nanosecond(nanos), offset) {
                (Ok(time), Ok(offset)) if offset != jiff::tz::Offset::UTC => {
                    Ok(Val::text(time.display_with_offset(offset).to_string()))
                }
                (Ok(time), _) => Ok(Val::text(time.to_string())),
                (Err(_), _) => Err(range()),
            }
        }
        ("timestamp", Val::Text(text)) => {
            library::timestamp(text).map_err(|_| parse("google.protobuf.Timestamp"))
        }
        ("timestamp", Val::Int(seconds)) => match jiff::Timestamp::from_second(*seconds) {
            Ok(time) if library::TIMES.contains(seconds) => library::timestamp(&time.to_string()),
            _ => Err(Fault::other("timestamp overflow")),
        },
        ("duration", Val::Int(_)) => {
            Err(Fault::other("type conversion error from 'int' to 'google.protobuf.Duration'"))
        }
        ("duration", Val::Text(text)) => match duration::parse(text) {
            Ok(nanos) => library::duration(nanos),
            Err(_) => Err(parse("google.protobuf.Duration")),
        },
        ("bytes", Val::Text(text)) => Ok(Val::Bytes(text.as_bytes().into())),
        ("timestamp", Val::Foreign(cel::Value::Timestamp(_)))
        | ("duration", Val::Foreign(cel::Value::Duration(_))) => Ok(arg.clone()),
        // Addresses and networks have a text, too.
        ("string", Val::Foreign(_)) if arg.type_name().starts_with("net.") => return None,
        ("int" | "uint" | "double" | "bool" | "bytes" | "string" | "timestamp" | "duration", _) => {
            Err(Fault::NoOverload)
        }
        ("isQuantity", Val::Text(text)) if text.trim() != &**text => Ok(Val::Bool(false)),
        ("quantity", Val::Text(text)) => quantity(text),
        (_, Val::Text(text)) => return address::by_text(name, text),
        _ => return None,
    })
}

/// A quantity. The library counts in 128 bits and does not look whether they suffice, so what is finer than a billionth
/// is rounded first, as upstream does, and what has more than 28 digits before the point is refused.
fn quantity<'a>(text: &str) -> Result<Val<'a>> {
    const DIGITS_MAX: usize = 28;
    let Ok(canonical) = crate::codec::scalar::quantity::canonical(text) else {
        return Err(Fault::other(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ));
    };
    let whole = canonical.trim_start_matches('-');
    let digits = whole.bytes().take_while(u8::is_ascii_digit).count();
    let suffix = whole.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let zeros = match suffix.strip_prefix(['e', 'E']).map(str::parse::<usize>) {
        Some(Ok(exponent)) => exponent,
        _ => suffix
            .replace('K', "k")
            .chars()
            .next()
            .and_then(|unit| "kMGTPE".find(unit))
            .map_or(0, |n| 3 * n + 3),
    };
    if digits.saturating_add(zeros) > DIGITS_MAX {
        return Err(Fault::other("quantity is out of range"));
    }
    library::call(None, "quantity", None, &[Val::text(canonical)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_numbers_of_nanoseconds_and_times_of_seconds() {
        let int = |value: Val<'static>| convert("int", &[value]).unwrap().unwrap();
        assert!(matches!(int(library::duration(250_000_000).unwrap()), Val::Int(250_000_000)));
        assert!(matches!(int(library::timestamp("1970-01-01T00:16:40Z").unwrap()), Val::Int(1000)));
    }

    /// The library would overflow, which is a panic or, worse, a wrong answer.
    #[test]
    fn quantities_that_the_library_cannot_count_are_refused() {
        for text in ["1e1000", "1e30", "-99999999999999999999E"] {
            assert!(quantity(text).is_err(), "{text}");
        }
        let all = ["1e18", "16Ei", "1", "0.0000000000000000001", "-5m", "1Ki", "999999999999999999E"];
        let sum = |a: &str, b: &str| {
            let (a, b) = (quantity(a).unwrap(), quantity(b).unwrap());
            ["add", "sub", "compareTo", "isGreaterThan", "isLessThan"]
                .into_iter()
                .all(|name| library::call(None, name, Some(&a), std::slice::from_ref(&b)).is_ok())
        };
        for a in &all[..6] {
            for b in &all[..6] {
                assert!(sum(a, b), "{a} {b}");
            }
        }
        assert!(quantity(all[6]).is_err());
        assert!(quantity("x").is_err());
    }
}
