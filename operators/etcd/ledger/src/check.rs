//! The ledger against the history: pure.

use std::collections::BTreeMap;
use std::fmt;

use crate::ledger::{Change, History, Key, Ledger, Outcome, Write};

/// Something that etcd must not do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// An acknowledged write is not in the history.
    Lost {
        /// The write.
        number: u64,
        /// Its key.
        key: Key,
        /// The revision of its acknowledgement.
        revision: i64,
    },
    /// An acknowledged write is at another revision than its acknowledgement said.
    Moved {
        /// The write.
        number: u64,
        /// The revision of its acknowledgement.
        acknowledged: i64,
        /// The revision in the history.
        found: i64,
    },
    /// A write was acknowledged before another was sent, and comes after it all the same.
    Reordered {
        /// The write that was acknowledged first, and its revision.
        first: (u64, i64),
        /// The write that was sent later, and its revision.
        second: (u64, i64),
    },
    /// A write that was sent once is there more often.
    Twice {
        /// The write.
        number: u64,
        /// The revision of the second time.
        revision: i64,
    },
    /// A write that etcd refused is there.
    RefusedAndDone {
        /// The write.
        number: u64,
        /// Its revision.
        revision: i64,
    },
    /// A change that nobody in the ledger made: a deletion, another key, another value.
    Foreign(Change),
    /// The history is not in the order of its revisions, or a key's is not whole.
    Broken {
        /// The change at which it is seen.
        change: Change,
        /// The version that the key must have there.
        expected: i64,
    },
    /// A key is not what its last change made of it.
    State {
        /// The key.
        key: Key,
        /// The last change of the history: number and revision.
        last: Option<(u64, i64)>,
        /// What the key is.
        found: Option<(u64, i64)>,
    },
    /// Members have different data.
    Diverged {
        /// The hash that each of them says.
        hashes: BTreeMap<String, u32>,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost { number, key, revision } => {
                write!(
                    f,
                    "lost: write {number} of key {key}, acknowledged at revision {revision}, is not there"
                )
            }
            Self::Moved { number, acknowledged, found } => {
                write!(f, "moved: write {number}, acknowledged at revision {acknowledged}, is at {found}")
            }
            Self::Reordered { first, second } => write!(
                f,
                "reordered: write {} (revision {}) was acknowledged before write {} (revision {}) was sent",
                first.0, first.1, second.0, second.1
            ),
            Self::Twice { number, revision } => {
                write!(f, "twice: write {number} was sent once and is there again at revision {revision}")
            }
            Self::RefusedAndDone { number, revision } => {
                write!(f, "refused and done: write {number} is at revision {revision}")
            }
            Self::Foreign(change) => write!(f, "foreign: nobody in the ledger made {change:?}"),
            Self::Broken { change, expected } => {
                write!(f, "broken: {change:?}, where its key must have version {expected}")
            }
            Self::State { key, last, found } => {
                write!(f, "state: key {key} was last changed to {last:?} and is {found:?}")
            }
            Self::Diverged { hashes } => write!(f, "diverged: the members have different data: {hashes:?}"),
        }
    }
}

/// What the check says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// How many writes were acknowledged.
    pub acknowledged: usize,
    /// How many were not answered, and are there.
    pub done_without_answer: usize,
    /// What etcd broke; nothing if all is well.
    pub violations: Vec<Violation>,
}

impl Verdict {
    /// Whether nothing is lost and nothing reordered.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.violations.is_empty()
    }
}

/// Checks what etcd has against what it acknowledged.
#[must_use]
pub fn check(ledger: &Ledger, history: &History) -> Verdict {
    let writes: BTreeMap<u64, &Write> = ledger.writes.iter().map(|write| (write.number, write)).collect();
    let mut violations = Vec::new();
    let found = found(&writes, history, &mut violations);
    for write in writes.values() {
        let found = found.get(&write.number).copied();
        match (write.outcome, found) {
            (Outcome::Acknowledged { revision, .. }, None) => {
                violations.push(Violation::Lost { number: write.number, key: write.key, revision });
            }
            (Outcome::Acknowledged { revision: acknowledged, .. }, Some(found)) if found != acknowledged => {
                violations.push(Violation::Moved { number: write.number, acknowledged, found });
            }
            (Outcome::Refused, Some(revision)) => {
                violations.push(Violation::RefusedAndDone { number: write.number, revision });
            }
            _ => {}
        }
    }
    order(ledger, &found, &mut violations);
    whole(history, &mut violations);
    let maybe = |number| writes.get(number).is_some_and(|write| write.outcome == Outcome::Maybe);
    Verdict {
        acknowledged: ledger.acknowledged(),
        done_without_answer: found.keys().filter(|number| maybe(number)).count(),
        violations,
    }
}

/// Where each write is in the history; what is no write of the ledger is a violation.
fn found(
    writes: &BTreeMap<u64, &Write>,
    history: &History,
    violations: &mut Vec<Violation>,
) -> BTreeMap<u64, i64> {
    let mut found = BTreeMap::new();
    for change in &history.changes {
        let write = change.number.and_then(|number| writes.get(&number));
        let Some(write) = write.filter(|write| Some(write.key) == change.key) else {
            violations.push(Violation::Foreign(*change));
            continue;
        };
        if found.insert(write.number, change.revision).is_some() {
            violations.push(Violation::Twice { number: write.number, revision: change.revision });
        }
    }
    found
}

/// What was acknowledged before another write was sent has the lower revision.
fn order(ledger: &Ledger, found: &BTreeMap<u64, i64>, violations: &mut Vec<Violation>) {
    let mut acknowledged: Vec<(u64, u64, i64)> = ledger
        .writes
        .iter()
        .filter_map(|write| match write.outcome {
            Outcome::Acknowledged { at, .. } => Some((at, write.number, *found.get(&write.number)?)),
            Outcome::Maybe | Outcome::Refused => None,
        })
        .collect();
    acknowledged.sort_unstable();
    let mut sent: Vec<_> = ledger.writes.iter().collect();
    sent.sort_unstable_by_key(|write| write.sent);
    let mut before = acknowledged.into_iter().peekable();
    // Of all that were acknowledged before the write at hand was sent, the one with the highest revision.
    let mut newest: Option<(u64, i64)> = None;
    for write in sent {
        while let Some((_, number, revision)) = before.next_if(|(at, ..)| *at < write.sent) {
            if newest.is_none_or(|(_, highest)| revision > highest) {
                newest = Some((number, revision));
            }
        }
        let Some(&revision) = found.get(&write.number) else { continue };
        if let Some(first) = newest.filter(|(_, highest)| *highest >= revision) {
            violations.push(Violation::Reordered { first, second: (write.number, revision) });
        }
    }
}

/// The history of every key is without a gap, ends with what the key is, and is the same for all members.
fn whole(history: &History, violations: &mut Vec<Violation>) {
    let mut last: BTreeMap<Key, (Option<u64>, i64, i64)> = BTreeMap::new();
    let mut revision = 0;
    for change in &history.changes {
        let Some(key) = change.key else { continue };
        let version = last.get(&key).map_or(0, |(_, _, version)| *version);
        let expected = if change.number.is_some() { version + 1 } else { 0 };
        if change.version != expected || change.revision < revision {
            violations.push(Violation::Broken { change: *change, expected });
        }
        revision = change.revision;
        last.insert(key, (change.number, change.revision, change.version));
    }
    let mut keys: Vec<_> = last.keys().chain(history.state.keys()).copied().collect();
    keys.sort_unstable();
    keys.dedup();
    for key in keys {
        let last = last.get(&key).and_then(|(number, revision, _)| Some(((*number)?, *revision)));
        let found = history.state.get(&key).copied();
        if last != found {
            violations.push(Violation::State { key, last, found });
        }
    }
    let mut hashes = history.hashes.values();
    let first = hashes.next();
    if hashes.any(|hash| Some(hash) != first) {
        violations.push(Violation::Diverged { hashes: history.hashes.clone() });
    }
}
