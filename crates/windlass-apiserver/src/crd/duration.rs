//! Durations in the wide notation that `format: duration` allows.

use windlass_core::duration;

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
    if let Ok(nanos) = duration::parse(text) {
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
        assert_eq!(parse_format("1h2m3.5s"), Some(3_723_500_000_000));
        assert_eq!(parse_format("2 weeks"), Some(1_209_600_000_000_000));
        assert_eq!(parse_format("1d"), Some(86_400_000_000_000));
        assert_eq!(parse_format("soon"), None);
    }
}
