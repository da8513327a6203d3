//! Schedules of cron jobs, read and followed as robfig/cron does, and refused in its words.

use std::time::Duration;

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

use crate::duration;

/// A schedule in a time zone.
///
/// ```
/// use jiff::tz::TimeZone;
/// use windlass_core::cron::Schedule;
///
/// let schedule = Schedule::parse("30 6 * * mon-fri", |_| Ok(TimeZone::UTC)).unwrap();
/// let next = schedule.next("2026-01-31T23:58:30Z".parse().unwrap());
/// assert_eq!(next, Some("2026-02-02T06:30:00Z".parse().unwrap()));
/// ```
#[derive(Clone, Debug)]
pub struct Schedule(Times);

#[derive(Clone, Debug)]
enum Times {
    /// At these minutes, hours and days.
    Fields(Box<Fields>),
    /// So often.
    Every(Duration),
}

/// The times at which something happens: one bit for each number.
#[derive(Clone, Debug)]
struct Fields {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    zone: TimeZone,
}

/// A text that is no schedule, with the parser's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

/// A field of a schedule: lowest and highest number, and the names that stand for numbers.
type Bounds = (u64, u64, &'static [&'static str]);

const MINUTES: Bounds = (0, 59, &[]);
const HOURS: Bounds = (0, 23, &[]);
const DAYS: Bounds = (1, 31, &[]);
const MONTHS: Bounds =
    (1, 12, &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]);
const WEEKDAYS: Bounds = (0, 6, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]);

/// The bit that says that a field names no number: where the day or the weekday does not, the other decides; where
/// both do, either is enough.
const ANY: u64 = 1 << 63;

/// How far ahead a time is looked for: the 30th of February never comes.
const YEARS: i16 = 5;

impl Schedule {
    /// Reads a schedule. `zone` finds the time zone that it names, or the one of a schedule that names none.
    pub fn parse(
        text: &str,
        zone: impl FnOnce(Option<&str>) -> Result<TimeZone, String>,
    ) -> Result<Schedule, Error> {
        if text.is_empty() {
            return Err(Error("empty spec string".to_owned()));
        }
        let (text, zone) = match text.strip_prefix("CRON_TZ=").or_else(|| text.strip_prefix("TZ=")) {
            Some(rest) => {
                // Go's parser runs beyond the end of the text here, and Kubernetes tells that.
                let cut = "invalid schedule format: runtime error: slice bounds out of range [:-1]";
                let (name, rest) = rest.split_once(' ').ok_or_else(|| Error(cut.to_owned()))?;
                let bad = |why| Error(format!("provided bad location {name}: {why}"));
                (rest.trim(), zone(Some(name)).map_err(bad)?)
            }
            None => (text, zone(None).map_err(Error)?),
        };
        let plain = match text {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            text => text,
        };
        if let Some(every) = plain.strip_prefix("@every ") {
            let wrong = |error| Error(format!("failed to parse duration {text}: {error}"));
            let seconds = duration::parse(every).map_err(wrong)? / 1_000_000_000;
            let seconds = u64::try_from(seconds).unwrap_or_default().max(1);
            return Ok(Schedule(Times::Every(Duration::from_secs(seconds))));
        }
        if plain.starts_with('@') {
            return Err(Error(format!("unrecognized descriptor: {text}")));
        }
        let parts: Vec<&str> = plain.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = parts[..] else {
            let found = format!("found {}: [{}]", parts.len(), parts.join(" "));
            return Err(Error(format!("expected exactly 5 fields, {found}")));
        };
        Ok(Schedule(Times::Fields(Box::new(Fields {
            minutes: field_bits(minutes, MINUTES)?,
            hours: field_bits(hours, HOURS)?,
            days: field_bits(days, DAYS)?,
            months: field_bits(months, MONTHS)?,
            weekdays: field_bits(weekdays, WEEKDAYS)?,
            zone,
        }))))
    }

    /// The first time after this one; `None` where it never comes.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        match &self.0 {
            Times::Every(wait) => {
                let whole = Timestamp::from_second(after.as_second()).ok()?;
                whole.checked_add(*wait).ok()
            }
            Times::Fields(fields) => fields.next(after),
        }
    }
}

impl Fields {
    fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let start = after.to_zoned(self.zone.clone()).datetime();
        let mut date = start.date();
        let last = date.checked_add(YEARS.years()).ok()?;
        while date <= last {
            if !has(self.months, date.month()) {
                date = date.first_of_month().checked_add(1.month()).ok()?;
                continue;
            }
            if self.is_day(date) {
                // Around a change of the clock a time may come twice, or not at all: all of the day are looked at.
                let times = self.times(date).filter_map(|time| self.instant(time));
                if let Some(time) = times.filter(|time| *time > after).min() {
                    return Some(time);
                }
            }
            date = date.tomorrow().ok()?;
        }
        None
    }

    fn is_day(&self, date: Date) -> bool {
        let day = has(self.days, date.day());
        let weekday = has(self.weekdays, date.weekday().to_sunday_zero_offset());
        if (self.days | self.weekdays) & ANY != 0 { day && weekday } else { day || weekday }
    }

    fn times(&self, date: Date) -> impl Iterator<Item = DateTime> {
        let (hours, minutes) = (self.hours, self.minutes);
        let hours = (0..24i8).filter(move |hour| has(hours, *hour));
        hours.flat_map(move |hour| {
            let minutes = (0..60i8).filter(move |minute| has(minutes, *minute));
            minutes.map(move |minute| date.at(hour, minute, 0, 0))
        })
    }

    /// A time that the clock skips does not happen.
    fn instant(&self, time: DateTime) -> Option<Timestamp> {
        let zoned = time.to_zoned(self.zone.clone()).ok()?;
        (zoned.datetime() == time).then(|| zoned.timestamp())
    }
}

fn has(bits: u64, number: i8) -> bool {
    bits >> number & 1 == 1
}

/// The numbers of a field: a list of ranges, of which empty ones say nothing.
fn field_bits(text: &str, bounds: Bounds) -> Result<u64, Error> {
    let ranges = text.split(',').filter(|range| !range.is_empty());
    ranges.map(|range| range_bits(range, bounds)).try_fold(0, |all, bits| Ok(all | bits?))
}

fn range_bits(range: &str, (low, high, names): Bounds) -> Result<u64, Error> {
    let named = |text: &str| match names.iter().position(|name| name.eq_ignore_ascii_case(text)) {
        Some(at) => Ok(low + at as u64),
        None => number(text),
    };
    let parts: Vec<&str> = range.split('/').collect();
    let ends: Vec<&str> = parts[0].split('-').collect();
    let (start, mut end, mut any) = match ends[..] {
        ["*" | "?", ..] => (low, high, ANY),
        [one] => {
            let one = named(one)?;
            (one, one, 0)
        }
        [start, end] => (named(start)?, named(end)?, 0),
        _ => {
            named(ends[0])?;
            return Err(Error(format!("too many hyphens: {range}")));
        }
    };
    let step = match parts[..] {
        [_] => 1,
        [_, step] => number(step)?,
        _ => return Err(Error(format!("too many slashes: {range}"))),
    };
    // `5/10` goes from 5 to the end.
    if parts.len() == 2 && ends.len() == 1 {
        end = high;
    }
    if step > 1 {
        any = 0;
    }
    if start < low {
        return Err(Error(format!("beginning of range ({start}) below minimum ({low}): {range}")));
    }
    if end > high {
        return Err(Error(format!("end of range ({end}) above maximum ({high}): {range}")));
    }
    if start > end {
        return Err(Error(format!("beginning of range ({start}) beyond end of range ({end}): {range}")));
    }
    if step == 0 {
        return Err(Error(format!("step of range should be a positive number: {range}")));
    }
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    Ok((start..=end).step_by(step).fold(any, |bits, number| bits | 1 << number))
}

/// A number as Go's `strconv.Atoi` reads it.
fn number(text: &str) -> Result<u64, Error> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let wrong =
        |why| Error(format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: {why}"));
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(wrong("invalid syntax"));
    }
    let number: i64 = text.parse().map_err(|_| wrong("value out of range"))?;
    let negative = |_| Error(format!("negative number ({number}) not allowed: {text}"));
    u64::try_from(number).map_err(negative)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Few rules of time zones, so that no database is needed.
    fn find(zone: &str) -> Result<TimeZone, String> {
        let rule = match zone {
            "UTC" => "UTC0",
            "Europe/Berlin" => "CET-1CEST,M3.5.0,M10.5.0/3",
            "Asia/Tokyo" => "JST-9",
            _ => return Err(format!("unknown time zone {zone}")),
        };
        TimeZone::posix(rule).map_err(|error| error.to_string())
    }

    fn check(schedule: &str, zone: &str, after: &str) -> String {
        let schedule = Schedule::parse(schedule, |name| find(name.unwrap_or(zone))).unwrap();
        schedule.next(after.parse().unwrap()).map_or("never".into(), |time| time.to_string())
    }

    #[test]
    fn comes_round_as_it_says() {
        let after = "2026-01-31T23:58:30Z";
        assert_eq!(check("* * * * *", "UTC", after), "2026-01-31T23:59:00Z");
        assert_eq!(check("*/5 * * * *", "UTC", after), "2026-02-01T00:00:00Z");
        assert_eq!(check("@hourly", "UTC", after), "2026-02-01T00:00:00Z");
        assert_eq!(check("@every 90s", "UTC", after), "2026-02-01T00:00:00Z");
        assert_eq!(check("0 0 29 2 *", "UTC", after), "2028-02-29T00:00:00Z");
        assert_eq!(check("0 0 30 2 *", "UTC", after), "never");
        assert_eq!(check("30 6-16/4 * * mon-fri", "UTC", after), "2026-02-02T06:30:00Z");
        assert_eq!(check("0 12 13 * fri", "UTC", after), "2026-02-06T12:00:00Z", "a Friday or a 13th");
        assert_eq!(check("0 12 */7 * fri", "UTC", after), "2026-02-01T12:00:00Z", "a Friday or each 7th day");
        assert_eq!(check("0 12 */1 * fri", "UTC", after), "2026-02-06T12:00:00Z", "a Friday");
        assert_eq!(check(", * * * *", "UTC", after), "never");
    }

    #[test]
    fn follows_the_clock_of_its_zone() {
        assert_eq!(check("0 9 * * *", "Europe/Berlin", "2026-01-15T00:00:00Z"), "2026-01-15T08:00:00Z");
        assert_eq!(check("0 9 * * *", "Europe/Berlin", "2026-07-15T00:00:00Z"), "2026-07-15T07:00:00Z");
        let summer = "2026-03-29T00:00:00Z";
        assert_eq!(
            check("30 2 * * *", "Europe/Berlin", summer),
            "2026-03-30T00:30:00Z",
            "there is no 2:30 that day"
        );
        assert_eq!(check("TZ=Asia/Tokyo 0 9 * * *", "UTC", "2026-01-15T00:00:00Z"), "2026-01-16T00:00:00Z");
    }
    #[test]
    fn what_is_none_is_refused_in_the_parsers_words() {
        let atoi = "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax";
        for (bad, words) in [
            ("", "empty spec string"),
            ("x", "expected exactly 5 fields, found 1: [x]"),
            ("x * * * *", atoi),
            ("x-1-2 * * * *", atoi),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("/*/5 * * * *", "failed to parse int from : strconv.Atoi: parsing \"\": invalid syntax"),
            ("*/*/5 * * * *", "too many slashes: */*/5"),
            ("*/-5 * * * *", "negative number (-5) not allowed: -5"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("5-3 * * * *", "beginning of range (5) beyond end of range (3): 5-3"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("* * * * */mon", "failed to parse int from mon: strconv.Atoi: parsing \"mon\": invalid syntax"),
            (
                "99999999999999999999 * * * *",
                "failed to parse int from 99999999999999999999: strconv.Atoi: parsing \"99999999999999999999\": \
                 value out of range",
            ),
            ("@never", "unrecognized descriptor: @never"),
            ("@every x", "failed to parse duration @every x: time: invalid duration \"x\""),
            ("TZ=0", "invalid schedule format: runtime error: slice bounds out of range [:-1]"),
            ("TZ=Mars 0 9 * * *", "provided bad location Mars: unknown time zone Mars"),
        ] {
            let refused = Schedule::parse(bad, |name| find(name.unwrap_or("UTC"))).unwrap_err();
            assert_eq!(refused.to_string(), words, "{bad}");
        }
    }
}
