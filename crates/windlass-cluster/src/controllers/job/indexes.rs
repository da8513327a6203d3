//! Sets of indexes, written as `0,2-4,7`.

use std::collections::BTreeSet;
use std::fmt;

/// Some indexes of a job, as intervals in order that do not touch each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Indexes(Vec<(i32, i32)>);

impl Indexes {
    /// Reads what is below `completions`; what cannot be read is left out.
    pub fn parse(text: &str, completions: i32) -> Indexes {
        let interval = |part: &str| -> Option<(i32, i32)> {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (first.parse().ok()?, last.parse::<i32>().ok()?);
            (first < completions).then(|| (first, last.min(completions - 1)))
        };
        Indexes::default().with(text.split(',').filter_map(interval))
    }

    /// With more of them.
    pub fn and(&self, more: impl IntoIterator<Item = i32>) -> Indexes {
        self.with(more.into_iter().map(|index| (index, index)))
    }

    /// With all of another set.
    pub fn or(&self, other: &Indexes) -> Indexes {
        self.with(other.0.iter().copied())
    }

    fn with(&self, more: impl IntoIterator<Item = (i32, i32)>) -> Indexes {
        let mut all: Vec<(i32, i32)> = self.0.iter().copied().chain(more).collect();
        all.sort_unstable();
        let mut merged: Vec<(i32, i32)> = Vec::new();
        for (first, last) in all {
            match merged.last_mut() {
                Some((_, end)) if first <= end.saturating_add(1) => *end = (*end).max(last),
                _ => merged.push((first, last)),
            }
        }
        Indexes(merged)
    }

    pub fn has(&self, index: i32) -> bool {
        let at = self.0.partition_point(|(_, last)| *last < index);
        self.0.get(at).is_some_and(|(first, _)| *first <= index)
    }

    /// How many there are.
    pub fn total(&self) -> i32 {
        self.0.iter().map(|(first, last)| last - first + 1).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many of another set are in this one.
    pub fn overlap(&self, other: &Indexes) -> i32 {
        let pairs = self.0.iter().flat_map(|a| other.0.iter().map(move |b| (a, b)));
        pairs.map(|(a, b)| (a.1.min(b.1) - a.0.max(b.0) + 1).max(0)).sum()
    }

    /// The first so many that are not in it.
    pub fn missing(&self, count: usize, completions: i32) -> Vec<i32> {
        let mut missing = Vec::new();
        let mut next = 0;
        for (first, last) in self.0.iter().copied().chain([(completions, completions)]) {
            while next < first.min(completions) && missing.len() < count {
                missing.push(next);
                next += 1;
            }
            next = next.max(last + 1);
        }
        missing
    }
}

impl FromIterator<i32> for Indexes {
    fn from_iter<I: IntoIterator<Item = i32>>(indexes: I) -> Indexes {
        let ordered: BTreeSet<i32> = indexes.into_iter().collect();
        Indexes::default().and(ordered)
    }
}

impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (first, last)) in self.0.iter().enumerate() {
            let comma = if number > 0 { "," } else { "" };
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                1 => write!(f, "{comma}{first},{last}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn are_read_and_written_as_kubernetes_does() {
        let check = |text: &str, completions: i32| Indexes::parse(text, completions).to_string();
        assert_eq!(check("", 5), "");
        assert_eq!(check("0,2-4,7", 10), "0,2-4,7");
        assert_eq!(check("0,1", 10), "0,1");
        assert_eq!(check("0-1,2,x", 10), "0-2");
        assert_eq!(check("0,2-9", 4), "0,2,3");
        assert_eq!(Indexes::parse("1-3", 9).and([0, 5]).to_string(), "0-3,5");
    }

    #[test]
    fn know_what_is_in_them_and_what_is_not() {
        let some = Indexes::parse("1-3,6", 10);
        assert!(some.has(3) && !some.has(4) && !some.has(0) && !some.has(7));
        assert_eq!(some.total(), 4);
        assert_eq!(some.missing(3, 10), [0, 4, 5]);
        assert_eq!(some.missing(9, 7), [0, 4, 5]);
        assert_eq!(some.overlap(&Indexes::parse("2-8", 10)), 3);
    }
}
