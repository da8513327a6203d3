//! What was asked of etcd, and what etcd has: the two sides of the check.

use std::collections::BTreeMap;

/// A key, by its number.
pub type Key = u32;

/// A write that was sent, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// Its number: the value that it writes. No other write has it.
    pub number: u64,
    /// The key.
    pub key: Key,
    /// When it was sent.
    pub sent: u64,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// etcd said that it is done.
    Acknowledged {
        /// The revision that etcd said it made.
        revision: i64,
        /// When the answer came.
        at: u64,
    },
    /// No answer, or none that says: it may have happened, and may still happen.
    Maybe,
    /// etcd said that it is not done.
    Refused,
}

/// All writes of a load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// By their numbers.
    pub writes: Vec<Write>,
}

impl Ledger {
    /// How many writes ended so.
    #[must_use]
    pub fn count(&self, is: impl Fn(&Outcome) -> bool) -> usize {
        self.writes.iter().filter(|write| is(&write.outcome)).count()
    }

    /// How many were acknowledged.
    #[must_use]
    pub fn acknowledged(&self) -> usize {
        self.count(|outcome| matches!(outcome, Outcome::Acknowledged { .. }))
    }
}

/// One change of a key, as etcd remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Which key; nothing for one that the load does not have.
    pub key: Option<Key>,
    /// The number that was written; nothing for a deletion and for a value that is no number.
    pub number: Option<u64>,
    /// The revision of the change.
    pub revision: i64,
    /// How often the key was written since it was created; of a deletion 0.
    pub version: i64,
}

/// What etcd has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// All changes, in the order in which etcd tells them.
    pub changes: Vec<Change>,
    /// The keys as they are: the number in each, and the revision that wrote it.
    pub state: BTreeMap<Key, (u64, i64)>,
    /// The hash of all keys, by the member that said it.
    pub hashes: BTreeMap<String, u32>,
}
