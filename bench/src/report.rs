//! The table: figure, ours, reference, ratio, goal, met or not.

use std::fmt::Write as _;

/// What is asked of a figure.
#[derive(Clone, Copy, Debug)]
pub enum Goal {
    /// Ours is at most this.
    AtMost(f64),
    /// Ours is better than the reference by at least this factor.
    Times(f64),
    /// The cost at the larger size is at most this multiple of the cost at the smaller one.
    Flat(f64),
    /// Nothing, of a cost at two sizes.
    FlatUnjudged,
    /// Nothing: it is good to know.
    None,
}

/// How a figure's numbers read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds; less is better.
    Seconds,
    /// Bytes; less is better.
    Bytes,
    /// Per second; more is better.
    PerSecond,
    /// A number of things, of which there is no better or worse.
    Count,
}

/// One line of the table.
#[derive(Clone, Debug)]
pub struct Figure {
    /// What was measured.
    pub name: String,
    /// How it reads.
    pub unit: Unit,
    /// Our number.
    pub ours: Option<f64>,
    /// The reference's number, or our own at the smaller size for [`Goal::Flat`].
    pub reference: Option<f64>,
    /// What is asked.
    pub goal: Goal,
}

impl Figure {
    /// How many times better ours is; for [`Goal::Flat`], how many times as expensive.
    pub fn ratio(&self) -> Option<f64> {
        let (ours, reference) = (self.ours?, self.reference?);
        if self.unit == Unit::Count {
            return None;
        }
        let more = ours / reference;
        Some(match (self.goal, self.unit) {
            (Goal::Flat(_) | Goal::FlatUnjudged, _) | (_, Unit::PerSecond) => more,
            _ => 1.0 / more,
        })
    }

    /// Whether the goal is met; `None` where there is none, or a number is missing.
    pub fn met(&self) -> Option<bool> {
        match self.goal {
            Goal::AtMost(most) => Some(self.ours? <= most),
            Goal::Times(times) => Some(self.ratio()? >= times),
            Goal::Flat(most) => Some(self.ratio()? <= most),
            Goal::None | Goal::FlatUnjudged => None,
        }
    }

    fn row(&self) -> String {
        let show =
            |number: Option<f64>| number.map_or_else(|| "–".to_owned(), |number| self.unit.show(number));
        let ratio = self.ratio().map_or_else(|| "–".to_owned(), |ratio| format!("{} ×", significant(ratio)));
        let goal = match self.goal {
            Goal::AtMost(most) => format!("≤ {}", self.unit.show(most)),
            Goal::Times(times) => format!("≥ {times} ×"),
            Goal::Flat(most) => format!("≤ {most} ×"),
            Goal::None | Goal::FlatUnjudged => "–".to_owned(),
        };
        let met = match self.met() {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "–",
        };
        format!(
            "| {} | {} | {} | {ratio} | {goal} | {met} |",
            self.name,
            show(self.ours),
            show(self.reference)
        )
    }
}

impl Unit {
    fn show(self, number: f64) -> String {
        match self {
            Unit::Seconds if number >= 1.0 => format!("{} s", significant(number)),
            Unit::Seconds if number >= 1e-3 => format!("{} ms", significant(number * 1e3)),
            Unit::Seconds => format!("{} µs", significant(number * 1e6)),
            Unit::Bytes if number >= 1e6 => format!("{} MB", significant(number / 1e6)),
            Unit::Bytes => format!("{} kB", significant(number / 1e3)),
            Unit::PerSecond => format!("{} /s", significant(number)),
            Unit::Count if number.fract() == 0.0 => format!("{number:.0}"),
            Unit::Count => format!("{number:.2}"),
        }
    }
}

/// Three digits that count; more would be noise.
fn significant(number: f64) -> String {
    match number.abs() {
        n if n >= 100.0 => {
            let whole = format!("{number:.0}");
            let mut out = String::new();
            for (at, digit) in whole.chars().enumerate() {
                if at > 0 && (whole.len() - at).is_multiple_of(3) && digit.is_ascii_digit() {
                    out.push(',');
                }
                out.push(digit);
            }
            out
        }
        n if n >= 10.0 => format!("{number:.1}"),
        _ => format!("{number:.2}"),
    }
}

/// The whole report, as Markdown.
pub fn render(facts: &[(&'static str, String)], notes: &[String], figures: &[Figure]) -> String {
    let mut out = String::from("# Figures\n\n");
    for (name, fact) in facts {
        let _ = writeln!(out, "- {name}: {fact}");
    }
    for note in notes {
        let _ = writeln!(out, "- {note}");
    }
    out.push_str("\n| Figure | Windlass | Reference | Ratio | Goal | Met |\n|---|---|---|---|---|---|\n");
    for figure in figures {
        let _ = writeln!(out, "{}", figure.row());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(unit: Unit, ours: f64, reference: f64, goal: Goal) -> Figure {
        Figure { name: "f".into(), unit, ours: Some(ours), reference: Some(reference), goal }
    }

    #[test]
    fn better_is_less_time_and_a_higher_rate() {
        let time = figure(Unit::Seconds, 0.1, 4.0, Goal::Times(20.0));
        assert_eq!((time.ratio(), time.met()), (Some(40.0), Some(true)));
        let rate = figure(Unit::PerSecond, 9000.0, 1000.0, Goal::Times(10.0));
        assert_eq!((rate.ratio(), rate.met()), (Some(9.0), Some(false)));
        let flat = figure(Unit::Seconds, 3e-6, 2e-6, Goal::Flat(1.3));
        assert_eq!((flat.ratio(), flat.met()), (Some(1.5), Some(false)));
    }

    #[test]
    fn a_missing_number_meets_nothing() {
        let mut alone = figure(Unit::Seconds, 1.0, 1.0, Goal::Times(2.0));
        alone.reference = None;
        assert_eq!((alone.ratio(), alone.met()), (None, None));
        assert_eq!(alone.row(), "| f | 1.00 s | – | – | ≥ 2 × | – |");
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(Unit::Seconds.show(0.0042), "4.20 ms");
        assert_eq!(Unit::Bytes.show(2345.0), "2.35 kB");
        assert_eq!(Unit::PerSecond.show(1_234_567.0), "1,234,567 /s");
        assert_eq!((Unit::Count.show(3.0), Unit::Count.show(3.25)), ("3".to_owned(), "3.25".to_owned()));
    }
}
