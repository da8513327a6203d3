//! The text that Prometheus reads.

use std::collections::{BTreeMap, BTreeSet};

/// Labels and their values.
pub type Labels = BTreeMap<String, String>;
/// Families of values, by name.
pub type Families = BTreeMap<String, Family>;

/// All values of one name.
#[derive(Clone, Debug, Default)]
pub struct Family {
    /// What is said of it.
    pub help: String,
    /// `counter`, `gauge` or `histogram`.
    pub kind: String,
    /// By the name of the line, which for a histogram is one of three.
    samples: BTreeMap<(String, Labels), f64>,
}

/// Reads it. Lines that are none are left out.
pub fn read(text: &str) -> Families {
    let mut out = Families::new();
    for line in text.lines() {
        if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            out.entry(name.to_owned()).or_default().help = help.to_owned();
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
        {
            out.entry(name.to_owned()).or_default().kind = kind.to_owned();
        } else if let Some((name, labels, value)) = sample(line) {
            let base = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix));
            let is_histogram = |base: &&str| out.get(*base).is_some_and(|family| family.kind == "histogram");
            let family = base.filter(is_histogram).unwrap_or(name).to_owned();
            out.entry(family).or_default().samples.insert((name.to_owned(), labels), value);
        }
    }
    out
}

fn sample(line: &str) -> Option<(&str, Labels, f64)> {
    let (head, value) = line.rsplit_once(' ')?;
    let value = value.parse().ok()?;
    let Some((name, rest)) = head.split_once('{') else { return Some((head, Labels::new(), value)) };
    let mut labels = Labels::new();
    let mut rest = rest.strip_suffix('}')?;
    while let Some((key, quoted)) = rest.split_once("=\"") {
        let end = quoted.match_indices('"').map(|(at, _)| at).find(|at| !quoted[..*at].ends_with('\\'))?;
        labels.insert(key.to_owned(), quoted[..end].to_owned());
        rest = quoted[end + 1..].trim_start_matches(',');
    }
    Some((name, labels, value))
}

/// Labels as they are written.
pub fn joined(labels: &Labels) -> String {
    labels.iter().map(|(key, value)| format!("{key}={value:?}")).collect::<Vec<_>>().join(",")
}

impl Family {
    /// The values; of a histogram, how often it was told one.
    pub fn values(&self) -> BTreeMap<Labels, f64> {
        let counts = |name: &str| self.kind != "histogram" || name.ends_with("_count");
        let samples = self.samples.iter().filter(|((name, _), _)| counts(name));
        samples.map(|((_, labels), value)| (labels.clone(), *value)).collect()
    }

    /// By how much each has grown, or shrunk, if it has.
    pub fn grown(&self, before: Option<&Family>) -> BTreeMap<Labels, f64> {
        let before = before.map(Family::values).unwrap_or_default();
        let grown = |(labels, value): (Labels, f64)| {
            let by = value - before.get(&labels).unwrap_or(&0.0);
            (by != 0.0).then_some((labels, by))
        };
        self.values().into_iter().filter_map(grown).collect()
    }

    /// The names of its labels.
    pub fn label_names(&self) -> String {
        let names: BTreeSet<&str> =
            self.samples.keys().flat_map(|(_, labels)| labels.keys().map(String::as_str)).collect();
        names.into_iter().collect::<Vec<_>>().join(",")
    }

    /// The bounds of a histogram, as they are written.
    pub fn bounds(&self) -> String {
        let bounds = self.samples.keys().filter_map(|(_, labels)| labels.get("le"));
        let mut bounds: Vec<&str> = bounds.map(String::as_str).collect::<BTreeSet<_>>().into_iter().collect();
        bounds.sort_by(|a, b| a.parse().unwrap_or(f64::MAX).total_cmp(&b.parse().unwrap_or(f64::MAX)));
        bounds.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_with_their_labels() {
        let text = "# HELP h a b\n# TYPE h histogram\nh_bucket{a=\"x,y\\\"z\",le=\"1e+06\"} 1\nh_bucket{a=\"x,y\\\"z\",le=\"+Inf\"} 2\nh_sum{a=\"x,y\\\"z\"} 3.5\nh_count{a=\"x,y\\\"z\"} 2\ng 1e+06\n";
        let families = read(text);
        let family = &families["h"];
        assert_eq!((family.help.as_str(), family.kind.as_str()), ("a b", "histogram"));
        assert_eq!((family.label_names().as_str(), family.bounds().as_str()), ("a,le", "1e+06 +Inf"));
        assert_eq!(
            family.values().into_iter().map(|(l, v)| (joined(&l), v)).collect::<Vec<_>>(),
            [(r#"a="x,y\\\"z""#.to_owned(), 2.0)]
        );
        assert_eq!(families["g"].values()[&Labels::new()], 1e6);
    }
}
