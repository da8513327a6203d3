//! `format`: texts with clauses that values are put into, in the shapes of cel-go, and what a clause does not take. The
//! types of the values may be known only now.

use super::convert;
use super::literals::clause;
use super::value::{Fault, Result, Val};
use crate::go::quote;

/// How many digits stand behind the point, if nothing says so.
const DIGITS: usize = 6;

/// How many may: Go's package counts them in a byte.
const DIGITS_MAX: usize = 255;

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
        let digits = digits.map_or(Some(DIGITS), |digits| digits.parse().ok());
        let Some(digits) = digits.filter(|digits| *digits <= DIGITS_MAX) else {
            return Err(Fault::other("precision is too large"));
        };
        rest = after;
        takes(letter, arg)?;
        out += &written(letter, digits, arg)?;
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
        ('f', Val::Double(value)) => fixed(*value, digits),
        // The precision is not looked at.
        ('e', Val::Double(value)) => powers(*value),
        ('f' | 'e', Val::Text(text)) => {
            let value = match &**text {
                "Infinity" => f64::INFINITY,
                "-Infinity" => f64::NEG_INFINITY,
                _ => f64::NAN,
            };
            return written(clause, digits, &Val::Double(value));
        }
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
fn fixed(number: f64, digits: usize) -> String {
    if !number.is_finite() {
        return endless(number).to_owned();
    }
    let (sign, number) = (if number < 0.0 { "-" } else { "" }, format!("{:.digits$}", number.abs()));
    let (whole, rest) = number.split_at(number.find('.').unwrap_or(number.len()));
    let mut out = sign.to_owned();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + rest
}

/// A number with a power of ten of at least two digits.
fn powers(number: f64) -> String {
    const RAISED: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let sign = if number < 0.0 { "-" } else { "" };
    let text = format!("{:.DIGITS$e}", number.abs());
    let Some((mantissa, exponent)) = text.split_once('e').filter(|_| number.is_finite()) else {
        return format!("{:>DIGITS$}", endless(number));
    };
    let (below, digits) = exponent.strip_prefix('-').map_or(("", exponent), |digits| ("⁻", digits));
    let digits = format!("{digits:0>2}");
    let raised: String = digits.bytes().map(|digit| RAISED[usize::from(digit - b'0')]).collect();
    format!("{sign}{mantissa}×10{below}{raised}")
}

/// What has no digits.
fn endless(number: f64) -> &'static str {
    match number {
        f64::INFINITY => "∞",
        f64::NEG_INFINITY => "-∞",
        _ => "NaN",
    }
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
        _ => match convert::text_of(arg) {
            Ok(Val::Text(text)) => Ok(text.to_string()),
            Err(Fault::Other(why)) => {
                let why = format!("could not convert argument {} to string", quote(&why));
                Err(Fault::other(format!("error during formatting: {why}")))
            }
            Err(fault) => Err(fault),
            Ok(_) => Err(Fault::NoOverload),
        },
    }
}

/// A value as it stands in a list or a map.
fn quoted(value: &Val<'_>) -> Result<String> {
    let text = match value {
        Val::Double(value) if value.is_finite() => fixed(*value, DIGITS),
        value => plain(value)?,
    };
    Ok(match (value, value.type_name()) {
        (Val::Text(_), _) => quote(&text),
        (Val::Double(value), _) if !value.is_finite() => quote(&text),
        (Val::Bytes(_), _) => format!("b{}", quote(&text)),
        (_, "google.protobuf.Duration") => format!("duration({})", quote(&text)),
        (_, "google.protobuf.Timestamp") => format!("timestamp({})", quote(&text)),
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
            Val::Optional(_)
            | Val::Url(_)
            | Val::Format(_)
            | Val::Made(_)
            | Val::Check(_)
            | Val::Foreign(_)
            | Val::Sum(_),
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

    /// They cost nothing and each is a byte, so there must be an end to them; figures beside a clause are just text.
    #[test]
    fn digits_are_bounded_but_not_those_of_the_text() {
        let of = |text: &str| format(text, &[Val::Double(1.5)]);
        assert_eq!(of("%.255f").unwrap().len(), 257);
        assert_eq!(of("%.256f"), Err(Fault::other("precision is too large")));
        assert_eq!(of("%.99999999f"), Err(Fault::other("precision is too large")));
        assert_eq!(of("3.14159 %.1f").unwrap(), "3.14159 1.5");
    }

    /// As cel-go 0.26.0 writes them with golang.org/x/text 0.39.0, which are those of kube-apiserver 1.36.4.
    #[test]
    fn numbers_are_written_as_by_cel_go() {
        let of = |text: &str, arg: Val<'_>| format(text, &[arg]).unwrap();
        let numbers = [
            ("%f", f64::INFINITY, "∞"),
            ("%f", f64::NEG_INFINITY, "-∞"),
            ("%f", f64::NAN, "NaN"),
            ("%e", f64::INFINITY, "     ∞"),
            ("%e", f64::NEG_INFINITY, "    -∞"),
            ("%e", f64::NAN, "   NaN"),
            ("%s", f64::INFINITY, "+Inf"),
            ("%.0f", 2.5, "2"),
            ("%.0f", 0.5, "0"),
            ("%f", -0.0, "0.000000"),
            ("%e", -0.0, "0.000000×10⁰⁰"),
            ("%s", -0.0, "-0"),
            ("%f", -1e-9, "-0.000000"),
            ("%f", -1234.5, "-1,234.500000"),
            ("%e", -1234.5, "-1.234500×10⁰³"),
            ("%.3f", 1e22, "10,000,000,000,000,000,000,000.000"),
            ("%f", 123_456.789_012_3, "123,456.789012"),
            ("%.20f", 0.1, "0.10000000000000000555"),
            ("%e", 1e-300, "1.000000×10⁻³⁰⁰"),
            ("%.2e", 1234.5, "1.234500×10⁰³"),
        ];
        for (text, number, written) in numbers {
            assert_eq!(of(text, Val::Double(number)), written, "{text} {number}");
        }
        let texts = [
            ("%f", "NaN", "NaN"),
            ("%f", "Infinity", "∞"),
            ("%f", "-Infinity", "-∞"),
            ("%e", "-Infinity", "    -∞"),
            ("%x", "é", "c3a9"),
        ];
        for (text, arg, written) in texts {
            assert_eq!(of(text, Val::text(arg)), written, "{text} {arg}");
        }
        let list = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1.5].map(Val::Double);
        assert_eq!(of("%s", Val::list(list.to_vec())), r#"["+Inf", "-Inf", "NaN", 1.500000]"#);
        let list = ["\n", "é", "\u{1}", "\"", "\u{200b}"].map(Val::text);
        assert_eq!(of("%s", Val::list(list.to_vec())), r#"["\n", "é", "\x01", "\"", "\u200b"]"#);
        let fault = format("%s", &[Val::Bytes([0xff].as_slice().into())]);
        let why =
            r#"could not convert argument "invalid UTF-8 in bytes, cannot convert to string" to string"#;
        assert_eq!(fault, Err(Fault::other(format!("error during formatting: {why}"))));
    }
}
