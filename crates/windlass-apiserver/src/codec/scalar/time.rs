//! Times: RFC 3339 with any offset in, UTC out, with seconds (`Time`) or microseconds (`MicroTime`).

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::Offset;
use windlass_core::duration::quote;

/// A text that is not a time, with Go's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

/// How much of a second is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// `2006-01-02T15:04:05Z`; a fraction is read and forgotten.
    Seconds,
    /// `2006-01-02T15:04:05.000000Z`; all six digits must be there.
    Micros,
}

impl Precision {
    fn layout(self) -> &'static str {
        match self {
            Precision::Seconds => "2006-01-02T15:04:05Z07:00",
            Precision::Micros => "2006-01-02T15:04:05.000000Z07:00",
        }
    }
}

/// Go's zero time, the first second of year 1, which is written as `null`.
pub const ZERO_SECONDS: i64 = -62_135_596_800;

/// Reads a time and writes its canonical text; `None` for the zero time.
pub fn canonical(text: &str, precision: Precision) -> Result<Option<String>, Error> {
    let (seconds, nanos) = read(text, precision)?;
    if (seconds, nanos) == (ZERO_SECONDS, 0) {
        return Ok(None);
    }
    // Close to the year 10000 a time is beyond what a timestamp holds, and may be of that year in UTC. The calendar
    // repeats itself.
    let (within, cycles) = match Timestamp::from_second(seconds) {
        Ok(_) => (seconds, 0),
        Err(_) => (seconds - CYCLE_SECONDS, 1),
    };
    let time = Timestamp::new(within, nanos).map_err(|_| out_of_range(text, "year"))?;
    Ok(Some(format_in(time, precision, cycles * CYCLE_YEARS)))
}

/// How long the calendar takes to repeat itself.
const CYCLE_YEARS: i32 = 400;
const CYCLE_SECONDS: i64 = 146_097 * 86_400;

/// Writes a time.
pub fn format(time: Timestamp, precision: Precision) -> String {
    format_in(time, precision, 0)
}

/// Writes the time so many years later.
fn format_in(time: Timestamp, precision: Precision, years: i32) -> String {
    let date = Offset::UTC.to_datetime(time);
    let year = i32::from(date.year()) + years;
    let text = format!(
        "{}{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
        if year < 0 { "-" } else { "" },
        year.abs(),
        date.month(),
        date.day(),
        date.hour(),
        date.minute(),
        date.second()
    );
    match precision {
        Precision::Seconds => text + "Z",
        Precision::Micros => format!("{text}.{:06}Z", date.subsec_nanosecond() / 1_000),
    }
}

/// Reads a time.
pub fn parse(text: &str, precision: Precision) -> Result<Timestamp, Error> {
    let (seconds, nanos) = read(text, precision)?;
    Timestamp::new(seconds, nanos).map_err(|_| out_of_range(text, "year"))
}

/// Reads a time: seconds since 1970, and nanoseconds after them.
pub fn read(text: &str, precision: Precision) -> Result<(i64, i32), Error> {
    let mut reader = Reader { text, rest: text, layout: precision.layout() };
    let year = reader.number("2006", 4, 4)?;
    reader.literal('-')?;
    let month = reader.number("01", 2, 2)?;
    reader.range("month", month, 1..=12)?;
    reader.literal('-')?;
    let day = reader.number("02", 2, 2)?;
    reader.literal('T')?;
    let hour = reader.number("15", 1, 2)?;
    reader.range("hour", hour, 0..=23)?;
    reader.literal(':')?;
    let minute = reader.number("04", 2, 2)?;
    reader.range("minute", minute, 0..=59)?;
    reader.literal(':')?;
    let second = reader.number("05", 2, 2)?;
    reader.range("second", second, 0..=59)?;
    let nanos = reader.fraction(precision)?;
    let offset = reader.offset()?;
    if !reader.rest.is_empty() {
        return Err(Error(format!("parsing time {}: extra text: {}", quote(text), quote(reader.rest))));
    }
    let date = Date::new(year as i16, month as i8, day as i8).map_err(|_| out_of_range(text, "day"))?;
    let time = date.at(hour as i8, minute as i8, second as i8, 0);
    Ok((time.duration_since(EPOCH).as_secs() - i64::from(offset), nanos))
}

const EPOCH: DateTime = jiff::civil::date(1970, 1, 1).at(0, 0, 0, 0);

fn out_of_range(text: &str, what: &str) -> Error {
    Error(format!("parsing time {}: {what} out of range", quote(text)))
}

/// Reads piece by piece, so that the message can name the piece that failed.
struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
    layout: &'static str,
}

impl<'a> Reader<'a> {
    fn fail(&self, value: &str, element: &str) -> Error {
        Error(format!(
            "parsing time {:?} as {:?}: cannot parse {value:?} as {element:?}",
            self.text, self.layout
        ))
    }

    fn range(&self, what: &str, value: i32, range: std::ops::RangeInclusive<i32>) -> Result<(), Error> {
        if range.contains(&value) {
            return Ok(());
        }
        Err(out_of_range(self.text, what))
    }

    fn number(&mut self, element: &str, min: usize, max: usize) -> Result<i32, Error> {
        let count = self.rest.bytes().take(max).take_while(u8::is_ascii_digit).count();
        if count < min {
            return Err(self.fail(self.rest, element));
        }
        let (digits, rest) = self.rest.split_at(count);
        self.rest = rest;
        digits.parse().map_err(|_| self.fail(digits, element))
    }

    fn literal(&mut self, wanted: char) -> Result<(), Error> {
        self.rest =
            self.rest.strip_prefix(wanted).ok_or_else(|| self.fail(self.rest, &wanted.to_string()))?;
        Ok(())
    }

    /// The digits after the seconds, as nanoseconds.
    fn fraction(&mut self, precision: Precision) -> Result<i32, Error> {
        let digits = match self.rest.strip_prefix(['.', ',']) {
            Some(rest) => rest.bytes().take_while(u8::is_ascii_digit).count(),
            None => 0,
        };
        let digits = match precision {
            Precision::Seconds => digits,
            Precision::Micros if digits >= 6 => 6,
            Precision::Micros => return Err(self.fail(self.rest, ".000000")),
        };
        if digits == 0 {
            return Ok(0);
        }
        let (fraction, rest) = self.rest[1..].split_at(digits);
        self.rest = rest;
        let nanos = format!("{:0<9.9}", fraction);
        nanos.parse().map_err(|_| self.fail(fraction, "05"))
    }

    /// Seconds east of UTC.
    fn offset(&mut self) -> Result<i32, Error> {
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(0);
        }
        let start = self.rest;
        let bytes = start.as_bytes();
        let well_formed = bytes.len() >= 6
            && matches!(bytes[0], b'+' | b'-')
            && bytes[3] == b':'
            && [1, 2, 4, 5].iter().all(|&i| bytes[i].is_ascii_digit());
        if !well_formed {
            return Err(self.fail(start, "Z07:00"));
        }
        self.rest = &start[6..];
        let two = |i: usize| i32::from(bytes[i] - b'0') * 10 + i32::from(bytes[i + 1] - b'0');
        let (hours, minutes) = (two(1), two(4));
        self.range("time zone offset hour", hours, 0..=24)?;
        self.range("time zone offset minute", minutes, 0..=59)?;
        let seconds = hours * 3600 + minutes * 60;
        Ok(if bytes[0] == b'-' { -seconds } else { seconds })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seconds(text: &str) -> Result<Option<String>, String> {
        canonical(text, Precision::Seconds).map_err(|e| e.to_string())
    }

    #[test]
    fn times_become_utc() {
        let some = |text: &str| Ok(Some(text.to_owned()));
        assert_eq!(seconds("2026-11-15T11:29:21Z"), some("2026-11-15T11:29:21Z"));
        assert_eq!(seconds("2026-11-15T11:29:21.987+02:30"), some("2026-11-15T08:59:21Z"));
        assert_eq!(seconds("0001-01-01T00:00:00Z"), Ok(None));
        assert_eq!(seconds("0001-01-01T00:00:00+01:00"), some("0000-12-31T23:00:00Z"));
        assert_eq!(seconds("0000-01-01T00:00:00+01:00"), some("-0001-12-31T23:00:00Z"));
        assert_eq!(seconds("9999-12-31T23:59:59Z"), some("9999-12-31T23:59:59Z"));
        assert_eq!(seconds("9999-12-31T23:59:59-23:59"), some("10000-01-01T23:58:59Z"));
        let micros = |text| canonical(text, Precision::Micros).unwrap().unwrap();
        assert_eq!(micros("2026-11-15T23:29:21.000123-01:00"), "2026-11-16T00:29:21.000123Z");
    }

    #[test]
    fn messages_are_those_of_go() {
        for (text, want) in [
            ("x", r#"parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006""#),
            ("2026-13-01T00:00:00Z", r#"parsing time "2026-13-01T00:00:00Z": month out of range"#),
            ("2026-02-30T00:00:00Z", r#"parsing time "2026-02-30T00:00:00Z": day out of range"#),
            (
                "2026-02-03",
                r#"parsing time "2026-02-03" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T""#,
            ),
        ] {
            assert_eq!(seconds(text), Err(want.to_owned()));
        }
        let short = canonical("2026-11-15T11:29:21Z", Precision::Micros).unwrap_err();
        assert!(short.to_string().ends_with(r#"cannot parse "Z" as ".000000""#), "{short}");
    }

    proptest! {
        #[test]
        fn round_trip(second in ZERO_SECONDS + 1..253_402_207_200_i64, micro in 0..1_000_000_i32) {
            let time = Timestamp::new(second, micro * 1000).unwrap();
            prop_assert_eq!(parse(&format(time, Precision::Micros), Precision::Micros).unwrap(), time);
        }

        #[test]
        fn any_text_is_refused_or_read(text in "\\PC{0,30}") {
            let _ = parse(&text, Precision::Seconds);
        }
    }
}
