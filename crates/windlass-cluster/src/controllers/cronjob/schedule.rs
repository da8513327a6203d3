//! When a schedule comes round, as robfig/cron has it.

use std::time::Duration;

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

/// A schedule in a time zone.
#[derive(Clone, Debug)]
pub(super) enum Schedule {
    /// At these minutes, hours and days.
    Fields(Box<Fields>),
    /// So often.
    Every(Duration),
}

/// The times at which something happens: one bit for each number.
#[derive(Clone, Debug)]
pub(super) struct Fields {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Where one of both says nothing, the other decides; where both say something, either is enough.
    any_day: bool,
    any_weekday: bool,
    zone: TimeZone,
}

/// The fields of a schedule: lowest and highest number, and the names that stand for numbers.
const FIELDS: [(u32, u32, &[&str]); 5] = [
    (0, 59, &[]),
    (0, 23, &[]),
    (1, 31, &[]),
    (1, 12, &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]),
    (0, 6, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
];

/// How far ahead a time is looked for: the 30th of February never comes.
const YEARS: i16 = 5;

impl Schedule {
    /// Reads a schedule; `None` where it is none. The server lets none such in.
    pub fn parse(text: &str, zone: &TimeZone) -> Option<Schedule> {
        let (text, zone) = match text.strip_prefix("CRON_TZ=").or_else(|| text.strip_prefix("TZ=")) {
            Some(rest) => {
                let (name, rest) = rest.split_once(' ')?;
                (rest.trim(), TimeZone::get(name).ok()?)
            }
            None => (text, zone.clone()),
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
            return every_so_often(every).map(Schedule::Every);
        }
        let parts: Vec<&str> = plain.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = parts.try_into().ok()?;
        let bits = |text: &str, field: usize| field_bits(text, FIELDS[field]);
        let any = |text: &str| text.split(',').any(|part| part.starts_with(['*', '?']));
        Some(Schedule::Fields(Box::new(Fields {
            minutes: bits(minutes, 0)?,
            hours: bits(hours, 1)?,
            days: bits(days, 2)?,
            months: bits(months, 3)?,
            weekdays: bits(weekdays, 4)?,
            any_day: any(days),
            any_weekday: any(weekdays),
            zone,
        })))
    }

    /// The first time after this one; `None` where it never comes.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        match self {
            Schedule::Every(wait) => {
                let whole = Timestamp::from_second(after.as_second()).ok()?;
                whole.checked_add(*wait).ok()
            }
            Schedule::Fields(fields) => fields.next(after),
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
        if self.any_day || self.any_weekday { day && weekday } else { day || weekday }
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

fn field_bits(text: &str, field: (u32, u32, &[&str])) -> Option<u64> {
    text.split(',').map(|part| range_bits(part, field)).try_fold(0, |all, bits| Some(all | bits?))
}

fn range_bits(range: &str, (low, high, names): (u32, u32, &[&str])) -> Option<u64> {
    let number = |text: &str| {
        let named = names.iter().position(|name| name.eq_ignore_ascii_case(text));
        named.map_or_else(|| text.parse().ok(), |at| Some(low + u32::try_from(at).ok()?))
    };
    let (span, step) = match range.split_once('/') {
        Some((span, step)) => (span, Some(number(step)?)),
        None => (range, None),
    };
    let (start, end) = match span.split_once('-') {
        _ if span == "*" || span == "?" => (low, high),
        Some((start, end)) => (number(start)?, number(end)?),
        None if step.is_some() => (number(span)?, high),
        None => (number(span)?, number(span)?),
    };
    let step = step.unwrap_or(1);
    let valid = step > 0 && start >= low && end <= high && start <= end;
    valid.then(|| (start..=end).step_by(step as usize).fold(0, |bits, number| bits | 1 << number))
}

/// Go's durations in whole seconds, at least one: `1h30m`.
fn every_so_often(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(digits);
        let unit = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit);
        let factor = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 0.001,
            _ => return None,
        };
        seconds += number.parse::<f64>().ok()? * factor;
        rest = after;
    }
    Duration::try_from_secs_f64(seconds.floor().max(1.0)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schedule: &str, zone: &str, after: &str) -> String {
        let zone = TimeZone::get(zone).unwrap();
        let schedule = Schedule::parse(schedule, &zone).unwrap();
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
}
