//! `format`: texts with clauses that values are put into, in the shapes of cel-go, and what a clause does not take. The
//! types of the values may be known only now.

use super::convert;
use super::literals::clause;
use super::value::{Fault, Result, Val};

/// How many digits stand behind the point, if nothing says so.
const DIGITS: usize = 6;

/// The text of a format.
pub(super) fn format(format: &str, args: &[Val<'_>]) -> Result<String> {
    let mut out = String::new();
    let mut rest = format;
    let mut seen = 0;
    while let Some(start) = rest.find('%') {
        out.push_str(&rest[..start]);
        rest = &rest[start + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        if rest.is_empty() {
            return Err(Fault::other("unexpected end of string"));
        }
        let Some(arg) = args.get(seen) else {
            return Err(Fault::other(format!("index {seen} out of range")));
        };
        seen += 1;
        let (letter, after) =
            clause(rest).map_err(|why| Fault::other(format!("could not parse formatting clause: {why}")))?;
        let digits = rest.strip_suffix(after).and_then(|own| own.strip_suffix(letter)?.strip_prefix('.'));
        let digits = digits.and_then(|digits| digits.parse().ok());
        rest = after;
        takes(letter, arg)?;
        out += &written(letter, digits.unwrap_or(DIGITS), arg)?;
    }
    out.push_str(rest);
    match args.len() > seen {
        true => Err(Fault::other(format!(
            "too many arguments supplied to string.format (expected {seen}, got {})",
            args.len()
        ))),
        false => Ok(out),
    }
}

/// A value in the shape that a clause gives it, which takes it.
fn written(clause: char, digits: usize, arg: &Val<'_>) -> Result<String> {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let signed = |magnitude: String, value: i64| if value < 0 { format!("-{magnitude}") } else { magnitude };
    Ok(match (clause, arg) {
        ('f', Val::Double(value)) => grouped(&format!("{value:.digits$}")),
        // The precision is not looked at.
        ('e', Val::Double(value)) => powers(&format!("{value:.DIGITS$e}")),
        ('b', Val::Int(value)) => signed(format!("{:b}", value.unsigned_abs()), *value),
        ('b', Val::UInt(value)) => format!("{value:b}"),
        ('b', Val::Bool(value)) => u8::from(*value).to_string(),
        ('x', Val::Int(value)) => signed(format!("{:x}", value.unsigned_abs()), *value),
        ('x', Val::UInt(value)) => format!("{value:x}"),
        ('x', Val::Text(text)) => hex(text.as_bytes()),
        ('x', Val::Bytes(bytes)) => hex(bytes),
        ('X', _) => written('x', digits, arg)?.to_uppercase(),
        ('o', Val::Int(value)) => signed(format!("{:o}", value.unsigned_abs()), *value),
        ('o', Val::UInt(value)) => format!("{value:o}"),
        _ => plain(arg)?,
    })
}

/// A number with a comma after every three digits.
fn grouped(number: &str) -> String {
    let (sign, number) = number.strip_prefix('-').map_or(("", number), |number| ("-", number));
    let (whole, rest) = number.split_at(number.find('.').unwrap_or(number.len()));
    if !whole.bytes().all(|b| b.is_ascii_digit()) {
        return format!("{sign}{number}");
    }
    let mut out = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    format!("{sign}{out}{rest}")
}

/// A number with a power of ten of at least two digits.
fn powers(number: &str) -> String {
    const RAISED: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let Some((mantissa, exponent)) = number.split_once('e') else { return number.to_owned() };
    let (sign, digits) = exponent.strip_prefix('-').map_or(("", exponent), |digits| ("⁻", digits));
    let digits = format!("{digits:0>2}");
    let raised: String = digits.bytes().map(|digit| RAISED[usize::from(digit - b'0')]).collect();
    format!("{mantissa}×10{sign}{raised}")
}

/// A value as a text.
fn plain(arg: &Val<'_>) -> Result<String> {
    match (arg, arg.type_name()) {
        (Val::Null, _) => Ok("null".to_owned()),
        (Val::Type(name), _) => Ok((*name).to_owned()),
        (_, "list") => {
            let parts = arg.elements()?.iter().map(quoted).collect::<Result<Vec<_>>>()?;
            Ok(format!("[{}]", parts.join(", ")))
        }
        (_, "map") => {
            let mut parts = Vec::new();
            for key in arg.keys()? {
                let value = arg.index(&key)?.unwrap_or(Val::Null);
                parts.push((quoted(&key)?, quoted(&value)?));
            }
            parts.sort();
            let parts: Vec<String> = parts.iter().map(|(key, value)| format!("{key}:{value}")).collect();
            Ok(format!("{{{}}}", parts.join(", ")))
        }
        _ => match convert::text_of(arg)? {
            Val::Text(text) => Ok(text.to_string()),
            _ => Err(Fault::NoOverload),
        },
    }
}

/// A value as it stands in a list or a map.
fn quoted(value: &Val<'_>) -> Result<String> {
    let text = match value {
        Val::Double(value) => grouped(&format!("{value:.DIGITS$}")),
        value => plain(value)?,
    };
    Ok(match (value, value.type_name()) {
        (Val::Text(_), _) => format!("{text:?}"),
        (Val::Bytes(_), _) => format!("b{text:?}"),
        (_, "google.protobuf.Duration") => format!("duration({text:?})"),
        (_, "google.protobuf.Timestamp") => format!("timestamp({text:?})"),
        _ => text,
    })
}

fn takes(clause: char, arg: &Val<'_>) -> Result<()> {
    let name = arg.type_name();
    let special = matches!(arg, Val::Text(text) if matches!(&**text, "NaN" | "Infinity" | "-Infinity"));
    let (fits, wants) = match clause {
        's' => return is_text(arg),
        'd' => (matches!(name, "int" | "uint"), "decimal clause can only be used on integers"),
        'f' => (name == "double" || special, "fixed-point clause can only be used on doubles"),
        'e' => (name == "double" || special, "scientific clause can only be used on doubles"),
        'b' => {
            (matches!(name, "int" | "uint" | "bool"), "only integers and bools can be formatted as binary")
        }
        'x' | 'X' => (
            matches!(name, "int" | "uint" | "string" | "bytes"),
            "only integers, byte buffers, and strings can be formatted as hex",
        ),
        _ => (matches!(name, "int" | "uint"), "octal clause can only be used on integers"),
    };
    match fits {
        true => Ok(()),
        false => Err(Fault::other(format!("error during formatting: {wants}, was given {name}"))),
    }
}

fn is_text(arg: &Val<'_>) -> Result<()> {
    match (arg, arg.type_name()) {
        (_, "list") => arg.elements()?.iter().try_for_each(is_text),
        (_, "map") => arg.keys()?.iter().try_for_each(|key| match arg.index(key)? {
            Some(value) => is_text(&value),
            None => Ok(()),
        }),
        (_, "google.protobuf.Duration" | "google.protobuf.Timestamp") => Ok(()),
        (
            Val::Optional(_) | Val::Url(_) | Val::Format(_) | Val::Made(_) | Val::Check(_) | Val::Foreign(_),
            name,
        ) => {
            let wants = "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, \
                         durations, and timestamps";
            Err(Fault::other(format!("error during formatting: {wants}, was given {name}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What follows a clause may look like its end.
    #[test]
    fn digits_are_those_of_the_clause() {
        let of = |text: &str| format(text, &[Val::Double(1.5)]).unwrap();
        assert_eq!(of("%.2f2f"), "1.502f");
        assert_eq!(of("%.3ff"), "1.500f");
        assert_eq!(of("%.1f"), "1.5");
        assert_eq!(of("%f"), "1.500000");
    }
}
