//! Schedules of cron jobs.

/// The fields of a schedule: lowest and highest number, and the names that stand for numbers.
const FIELDS: [(u32, u32, &[&str]); 5] = [
    (0, 59, &[]),
    (0, 23, &[]),
    (1, 31, &[]),
    (1, 12, &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]),
    (0, 6, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
];

/// What is wrong with a schedule, in the words of the parser that the real server uses.
pub(super) fn fault(schedule: &str) -> Option<String> {
    let schedule = match schedule.strip_prefix("CRON_TZ=").or_else(|| schedule.strip_prefix("TZ=")) {
        Some(rest) => rest.split_once(' ').map_or("", |(_, rest)| rest).trim(),
        None => schedule,
    };
    if let Some(name) = schedule.strip_prefix('@') {
        let known = ["yearly", "annually", "monthly", "weekly", "daily", "midnight", "hourly"];
        if known.contains(&name) {
            return None;
        }
        return match name.strip_prefix("every ") {
            Some(duration) => crate::codec::scalar::duration::parse(duration)
                .err()
                .map(|error| format!("failed to parse duration {schedule}: {error}")),
            None => Some(format!("unrecognized descriptor: {schedule}")),
        };
    }
    let parts = schedule.split_whitespace().collect::<Vec<_>>();
    if parts.len() != FIELDS.len() {
        return Some(format!("expected exactly 5 fields, found {}: [{}]", parts.len(), parts.join(" ")));
    }
    parts
        .iter()
        .zip(FIELDS)
        .find_map(|(part, field)| part.split(',').find_map(|range| range_fault(range, field)))
}

fn range_fault(range: &str, (low, high, names): (u32, u32, &[&str])) -> Option<String> {
    let number = |text: &str| -> Result<u32, String> {
        if let Some(at) = names.iter().position(|name| name.eq_ignore_ascii_case(text)) {
            return Ok(low + u32::try_from(at).unwrap_or(0));
        }
        text.parse::<u32>().map_err(|_| {
            format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax")
        })
    };
    let parse = || -> Result<(), String> {
        let mut steps = range.split('/');
        let span = steps.next().unwrap_or("");
        let step = steps.next();
        if steps.next().is_some() {
            return Err(format!("too many slashes: {range}"));
        }
        let mut ends = span.split('-');
        let first = ends.next().unwrap_or("");
        let (start, end) = if first == "*" || first == "?" {
            (low, high)
        } else {
            let start = number(first)?;
            let end = ends.next().map_or(Ok(start), number)?;
            if ends.next().is_some() {
                return Err(format!("too many hyphens: {range}"));
            }
            (start, if step.is_some() && !span.contains('-') { high } else { end })
        };
        if let Some(step) = step
            && number(step)? == 0
        {
            return Err(format!("step of range should be a positive number: {range}"));
        }
        if start < low {
            return Err(format!("beginning of range ({start}) below minimum ({low}): {range}"));
        }
        if end > high {
            return Err(format!("end of range ({end}) above maximum ({high}): {range}"));
        }
        if start > end {
            return Err(format!("beginning of range ({start}) beyond end of range ({end}): {range}"));
        }
        Ok(())
    };
    parse().err()
}

/// The names of the time zone database, as they stand in the copy that comes with Go and that kube-apiserver carries.
const ZONES: &str = include_str!("zones.txt");

/// What is wrong with the name of a time zone.
pub(super) fn zone_faults(zone: &str) -> Vec<String> {
    let spelt = |part: &str| {
        let letters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+');
        (1..=14).contains(&part.len())
            && part.chars().all(letters)
            && !part.starts_with('-')
            && !matches!(part, "." | "..")
    };
    let mut faults = Vec::new();
    if zone.is_empty() {
        faults.push("timeZone must be nil or non-empty string".to_owned());
        return faults;
    }
    let spelt = zone.split('/').all(spelt);
    if spelt && zone.eq_ignore_ascii_case("local") {
        let detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        faults.push(detail.to_owned());
    }
    let known = matches!(zone, "UTC" | "Local") || ZONES.lines().any(|known| known == zone);
    if spelt && zone.contains("..") {
        faults.push("time: invalid location name".to_owned());
    } else if !spelt || !known {
        faults.push(format!("unknown time zone {zone}"));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules() {
        for good in
            ["* * * * *", "*/5 1-3 1,15 jan-mar MON", "@hourly", "@every 1h", "0 0 ? * 0", "1-10/2 * * * *"]
        {
            assert_eq!(fault(good), None, "{good}");
        }
        for (bad, words) in [
            ("x", "expected exactly 5 fields, found 1: [x]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("5-3 * * * *", "beginning of range (5) beyond end of range (3): 5-3"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("@never", "unrecognized descriptor: @never"),
        ] {
            assert_eq!(fault(bad).as_deref(), Some(words), "{bad}");
        }
    }

    #[test]
    fn zones() {
        for good in ["Etc/UTC", "UTC", "Europe/Berlin", "EST5EDT", "America/Argentina/Buenos_Aires"] {
            assert_eq!(zone_faults(good), Vec::<String>::new(), "{good}");
        }
        for bad in ["Nowhere", "Nowhere/Land", "Europe/Atlantis", "europe/berlin", "Local", "", "Europe/../x"]
        {
            assert_eq!(zone_faults(bad).len(), 1, "{bad}");
        }
    }
}
