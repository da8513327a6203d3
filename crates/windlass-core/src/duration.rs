//! Durations in Go's syntax: `1h30m` in, `1h30m0s` out.

use std::fmt::Write;

/// A text that is not a duration, with Go's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Quotes a text as Go's time package does: bytes beyond ASCII one by one.
pub fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b' '..=0x7f => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
    }
    out + "\""
}

/// Reads a duration as nanoseconds.
pub fn parse(text: &str) -> Result<i64, Error> {
    let invalid = || Error(format!("time: invalid duration {}", quote(text)));
    let negative = text.starts_with('-');
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let whole = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (integer, after) = rest.split_at(whole);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => {
                after.split_at(after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len())
            }
            None => ("", after),
        };
        if integer.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let unit_len = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_len);
        if unit.is_empty() {
            return Err(Error(format!("time: missing unit in duration {}", quote(text))));
        }
        let Some((_, nanos)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(Error(format!("time: unknown unit {} in duration {}", quote(unit), quote(text))));
        };
        let integer: u64 = if integer.is_empty() { 0 } else { integer.parse().map_err(|_| invalid())? };
        let part = integer.checked_mul(*nanos).and_then(|n| n.checked_add(part_of(fraction, *nanos)));
        total = part.and_then(|n| total.checked_add(n)).filter(|n| *n <= 1 << 63).ok_or_else(invalid)?;
        rest = after;
    }
    if negative { Ok((total as i64).wrapping_neg()) } else { i64::try_from(total).map_err(|_| invalid()) }
}

/// `0.<fraction>` of a unit, truncated to nanoseconds.
fn part_of(fraction: &str, unit: u64) -> u64 {
    let (mut value, mut scale) = (0_u128, 1_u128);
    for digit in fraction.bytes().take(20) {
        value = value * 10 + u128::from(digit - b'0');
        scale *= 10;
    }
    u64::try_from(value * u128::from(unit) / scale).unwrap_or_default()
}

/// Writes a duration as Go does: the largest unit that gives a whole part, zeros between but not before.
pub fn format(nanos: i64) -> String {
    let mut out = String::new();
    if nanos < 0 {
        out.push('-');
    }
    let total = nanos.unsigned_abs();
    let (unit, name) = match total {
        0 => return "0s".to_owned(),
        1..1_000 => (1, "ns"),
        1_000..1_000_000 => (1_000, "µs"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    };
    let mut whole = total / unit;
    let fraction = total % unit;
    if unit == 1_000_000_000 && whole >= 60 {
        if whole >= 3600 {
            let _ = write!(out, "{}h", whole / 3600);
        }
        let _ = write!(out, "{}m", whole / 60 % 60);
        whole %= 60;
    }
    let _ = write!(out, "{whole}");
    if fraction > 0 {
        let digits = format!("{:0width$}", fraction, width = unit.ilog10() as usize);
        let _ = write!(out, ".{}", digits.trim_end_matches('0'));
    }
    out.push_str(name);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn canonical_forms() {
        for (text, want) in [
            ("1h30m", "1h30m0s"),
            ("90s", "1m30s"),
            ("0", "0s"),
            ("-1.5h", "-1h30m0s"),
            ("1.5s", "1.5s"),
            (".5ms", "500µs"),
            ("1us", "1µs"),
            ("3600s", "1h0m0s"),
            ("-9223372036854775808ns", "-2562047h47m16.854775808s"),
        ] {
            assert_eq!(format(parse(text).unwrap()), want, "{text}");
        }
    }

    #[test]
    fn refusals() {
        for (text, want) in [
            ("", r#"time: invalid duration """#),
            ("x", r#"time: invalid duration "x""#),
            ("1", r#"time: missing unit in duration "1""#),
            ("1d", r#"time: unknown unit "d" in duration "1d""#),
            ("9223372036854775808ns", r#"time: invalid duration "9223372036854775808ns""#),
            ("99999999999h", r#"time: invalid duration "99999999999h""#),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), want, "{text}");
        }
    }

    proptest! {
        #[test]
        fn round_trip(nanos: i64) {
            prop_assert_eq!(parse(&format(nanos)).unwrap(), nanos);
        }

        #[test]
        fn any_text_is_refused_or_read(text in "\\PC{0,30}") {
            let _ = parse(&text);
        }
    }
}
