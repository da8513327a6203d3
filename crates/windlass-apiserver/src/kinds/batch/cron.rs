//! Schedules of cron jobs, and their time zones.

use jiff::tz::TimeZone;
use windlass_core::cron::Schedule;

/// What is wrong with a schedule, in the words of the parser that the real server uses.
pub(super) fn fault(schedule: &str) -> Option<String> {
    let zone = |name: Option<&str>| name.map_or(Ok(()), load).map(|()| TimeZone::UTC);
    Schedule::parse(schedule, zone).err().map(|error| error.to_string())
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
    match load(zone) {
        _ if !spelt => faults.push(unknown(zone)),
        loaded => faults.extend(loaded.err()),
    }
    faults
}

/// Go's `time.LoadLocation`.
fn load(zone: &str) -> Result<(), String> {
    if zone.contains("..") || zone.starts_with(['/', '\\']) {
        return Err("time: invalid location name".to_owned());
    }
    let known = matches!(zone, "" | "UTC" | "Local") || ZONES.lines().any(|known| known == zone);
    known.then_some(()).ok_or_else(|| unknown(zone))
}

fn unknown(zone: &str) -> String {
    format!("unknown time zone {zone}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules() {
        assert_eq!(fault("*/5 1-3 1,15 jan-mar MON"), None);
        assert_eq!(fault("TZ=Europe/Berlin @hourly"), None);
        let mars = "provided bad location Mars: unknown time zone Mars";
        assert_eq!(fault("TZ=Mars @hourly").as_deref(), Some(mars));
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
