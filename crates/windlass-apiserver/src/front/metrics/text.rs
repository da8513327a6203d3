//! The text that Prometheus reads.

use std::fmt::{Display, Write as _};

/// How often something was at most so much.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    bounds: &'static [f64],
    counts: Vec<u64>,
    pub count: u64,
    sum: f64,
}

impl Histogram {
    pub fn new(bounds: &'static [f64]) -> Histogram {
        Histogram { bounds, counts: vec![0; bounds.len()], count: 0, sum: 0.0 }
    }

    pub fn observe(&mut self, value: f64) {
        if let Some(at) = self.bounds.iter().position(|bound| value <= *bound) {
            self.counts[at] += 1;
        }
        self.count += 1;
        self.sum += value;
    }

    pub fn write(&self, out: &mut String, name: &str, labels: &str) {
        let mut below = 0;
        for (bound, count) in self.bounds.iter().zip(&self.counts) {
            below += count;
            let _ = writeln!(out, "{name}_bucket{{{labels},le=\"{}\"}} {below}", bound_text(*bound));
        }
        let _ = writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {}", self.count);
        let _ = writeln!(out, "{name}_sum{{{labels}}} {}", self.sum);
        let _ = writeln!(out, "{name}_count{{{labels}}} {}", self.count);
    }
}

/// Large bounds are written as Go writes them.
fn bound_text(bound: f64) -> String {
    match bound >= 1e6 {
        true => format!("1e+{:02}", bound.log10().round()),
        false => bound.to_string(),
    }
}

/// The value of a label.
pub(super) fn quoted(value: &str) -> String {
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

/// The text so far, and the name that it is about now.
pub(super) struct Text {
    pub out: String,
    name: &'static str,
    head: Option<(&'static str, &'static str)>,
}

impl Text {
    pub fn new() -> Text {
        Text { out: String::new(), name: "", head: None }
    }

    /// Begins with a name. It is written with its first value: without any, there is nothing to be said of it.
    pub fn begin(&mut self, name: &'static str, kind: &'static str, help: &'static str) {
        self.name = name;
        self.head = Some((kind, help));
    }

    /// A value of the name that was begun last.
    pub fn value(&mut self, labels: &str, value: impl Display) {
        self.write_head();
        let _ = match labels {
            "" => writeln!(self.out, "{} {value}", self.name),
            labels => writeln!(self.out, "{}{{{labels}}} {value}", self.name),
        };
    }

    /// The same with a distribution.
    pub fn histogram(&mut self, labels: &str, histogram: &Histogram) {
        if histogram.count > 0 {
            self.write_head();
            histogram.write(&mut self.out, self.name, labels);
        }
    }

    fn write_head(&mut self) {
        if let Some((kind, help)) = self.head.take() {
            let _ = writeln!(self.out, "# HELP {0} {help}\n# TYPE {0} {kind}", self.name);
        }
    }
}
