//! What must correspond rather than be equal: uids, versions, allocated values.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::Difference;

/// Values of the two sides that stood at the same places, over a whole sequence.
#[derive(Default)]
pub struct Links {
    /// Per sort of value: reference to ours and back.
    same: BTreeMap<&'static str, [BTreeMap<String, String>; 2]>,
    versions: Vec<Version>,
    differences: Vec<Difference>,
}

/// A resourceVersion that stood at a place.
struct Version {
    step: usize,
    place: String,
    a: u64,
    b: u64,
    /// Whether it is the version of an object, and not that of a list or a bookmark, which only must not be too
    /// old: writes of other sequences move it.
    exact: bool,
}

impl Links {
    /// `a` on the reference is `b` on ours, here and everywhere.
    pub fn same(&mut self, sort: &'static str, step: usize, place: &str, a: &str, b: &str) {
        let [there, back] = self.same.entry(sort).or_default();
        let known_b = there.entry(a.to_owned()).or_insert_with(|| b.to_owned()).clone();
        let known_a = back.entry(b.to_owned()).or_insert_with(|| a.to_owned()).clone();
        if known_b != b || known_a != a {
            self.differences.push(Difference {
                step,
                place: format!("{place} ({sort} that stood elsewhere)"),
                reference: format!("{a} (was {known_a})"),
                ours: format!("{b} (was {known_b})"),
            });
        }
    }

    /// A resourceVersion of an object (`exact`), or of a list or bookmark.
    pub fn version(&mut self, step: usize, place: &str, a: u64, b: u64, exact: bool) {
        self.versions.push(Version { step, place: place.to_owned(), a, b, exact });
    }

    /// What does not correspond.
    pub fn check(self, out: &mut Vec<Difference>) {
        out.extend(self.differences);
        for (index, later) in self.versions.iter().enumerate() {
            for earlier in &self.versions[..index] {
                let (a, b) = (relation(earlier, later, |v| v.a), relation(earlier, later, |v| v.b));
                if a != b {
                    out.push(Difference {
                        step: later.step,
                        place: format!(
                            "{} (its order with step {} {})",
                            later.place, earlier.step, earlier.place
                        ),
                        reference: format!("{} {} {}", later.a, a.unwrap_or("?"), earlier.a),
                        ours: format!("{} {} {}", later.b, b.unwrap_or("?"), earlier.b),
                    });
                    // One wrong version is wrong with many others.
                    break;
                }
            }
        }
    }
}

/// How the later of two versions stands to the earlier one, as far as both sides must agree on it.
fn relation(earlier: &Version, later: &Version, side: impl Fn(&Version) -> u64) -> Option<&'static str> {
    let (x, y) = (side(later), side(earlier));
    match (later.exact, earlier.exact) {
        (true, true) => Some(match x.cmp(&y) {
            Ordering::Less => "<",
            Ordering::Equal => "=",
            Ordering::Greater => ">",
        }),
        // A list is at least as new as an object, or older.
        (false, true) => Some(if x >= y { ">=" } else { "<" }),
        (true, false) => Some(if y >= x { "<=" } else { ">" }),
        (false, false) => None,
    }
}
