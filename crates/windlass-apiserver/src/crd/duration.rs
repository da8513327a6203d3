//! Durations: Go's notation, and the wider one that `format: duration` allows.

/// Nanoseconds of a Go duration such as `1h2m3.5s`; `None` if it is none, or out of range.
pub(crate) fn parse(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(number_end);
        let unit_end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        total = total.checked_add(scaled(number, unit_nanos(unit)?)?)?;
        rest = tail;
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

/// A decimal number times a unit, cut to whole nanoseconds.
fn scaled(number: &str, unit: i128) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut nanos = whole.checked_mul(unit)?;
    let mut scale = unit;
    for digit in fraction.bytes() {
        scale /= 10;
        nanos += i128::from(digit - b'0') * scale;
    }
    Some(nanos)
}

fn unit_nanos(unit: &str) -> Option<i128> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// Names of units beyond Go's, each with its nanoseconds; the last name of a row also stands as a prefix.
const WIDE_UNITS: [(&[&str], i64); 8] = [
    (&["ns", "nano"], 1),
    (&["us", "µs", "micro"], 1_000),
    (&["ms", "milli"], 1_000_000),
    (&["s", "sec"], 1_000_000_000),
    (&["m", "min"], 60_000_000_000),
    (&["h", "hr", "hour"], 3_600_000_000_000),
    (&["d", "day"], 86_400_000_000_000),
    (&["w", "wk", "week"], 604_800_000_000_000),
];

/// Nanoseconds of what `format: duration` allows: Go's notation, or words such as `2 weeks` anywhere in the text.
pub(crate) fn parse_format(text: &str) -> Option<i64> {
    if let Some(nanos) = parse(text) {
        return Some(nanos);
    }
    let mut total: Option<i64> = None;
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        rest = &rest[start..];
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, tail) = rest.split_at(end);
        let tail = tail.trim_start();
        let end = tail.find(|c: char| !c.is_ascii_alphabetic() && c != 'µ').unwrap_or(tail.len());
        let unit = tail[..end].to_lowercase();
        rest = &tail[end..];
        if unit.is_empty() {
            continue;
        }
        let number: i64 = number.parse().ok()?;
        for (names, nanos) in WIDE_UNITS {
            let last = names.last().expect("each row has names");
            let hits =
                names.iter().filter(|name| **name == unit || (*name == last && unit.starts_with(*name)));
            for _ in hits {
                let part = number.wrapping_mul(nanos);
                total = Some(total.unwrap_or_default().wrapping_add(part));
            }
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(parse("1h2m3.5s"), Some(3_723_500_000_000));
        assert_eq!(parse("-1.5ms"), Some(-1_500_000));
        assert_eq!(parse("0"), Some(0));
        for bad in ["", "1", "1d", "s", "1..5s", "999999999h"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
        assert_eq!(parse_format("2 weeks"), Some(1_209_600_000_000_000));
        assert_eq!(parse_format("1d"), Some(86_400_000_000_000));
        assert_eq!(parse_format("soon"), None);
    }
}
