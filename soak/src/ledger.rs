//! What was asked for, and what was acknowledged.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};

/// An object as somebody saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The number that the write put into it.
    pub value: u64,
    /// Its `resourceVersion`.
    pub revision: u64,
}

/// The objects of the campaign, as somebody saw them at some revision.
pub type Objects = BTreeMap<String, Seen>;

/// A write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// Create or replace, with this number.
    Put(u64),
    /// Delete.
    Delete,
}

/// The writes of all writers. Each key has one writer, so at most one write of a key is under way.
#[derive(Debug, Default)]
pub struct Ledger {
    acknowledged: Objects,
    pending: BTreeMap<String, Write>,
    /// The newest revision that any answer named.
    revision: u64,
    /// How many writes were acknowledged.
    pub writes: u64,
    /// How many writes were found done although their answer did not come.
    pub unanswered: u64,
}

impl Ledger {
    /// Whether an object is there, as far as its writer knows.
    pub fn exists(&self, key: &str) -> bool {
        self.acknowledged.contains_key(key)
    }

    /// A write is about to be sent.
    pub fn intend(&mut self, key: &str, write: Write) {
        self.pending.insert(key.to_owned(), write);
    }

    /// A write was answered with success. The answer to a deletion names no revision.
    pub fn acknowledge(&mut self, key: &str, revision: Option<u64>) {
        match (self.pending.remove(key), revision) {
            (Some(Write::Put(value)), Some(revision)) => {
                self.acknowledged.insert(key.to_owned(), Seen { value, revision });
            }
            _ => drop(self.acknowledged.remove(key)),
        }
        self.revision = self.revision.max(revision.unwrap_or(0));
        self.writes += 1;
    }

    /// Compares with what a list showed after a start, and takes over what is found of writes without an answer.
    ///
    /// # Errors
    /// Something acknowledged is lost, or something is there that nobody wrote.
    pub fn verify(&mut self, found: &Objects, revision: u64) -> Result<()> {
        ensure!(revision >= self.revision, "at revision {revision}, and {} was answered", self.revision);
        self.revision = revision;
        for (key, write) in std::mem::take(&mut self.pending) {
            let (before, now) = (self.acknowledged.get(&key).copied(), found.get(&key).copied());
            if before == now {
                continue;
            }
            let done = match write {
                Write::Put(value) => now
                    .is_some_and(|now| now.value == value && now.revision > before.map_or(0, |b| b.revision)),
                Write::Delete => now.is_none(),
            };
            ensure!(done, "{key}: {write:?} was sent and not answered; before {before:?}, found {now:?}");
            self.unanswered += 1;
            match now {
                Some(now) => drop(self.acknowledged.insert(key, now)),
                None => drop(self.acknowledged.remove(&key)),
            }
        }
        for (key, want) in &self.acknowledged {
            let have = found.get(key);
            ensure!(have == Some(want), "{key}: {want:?} was acknowledged, found {have:?}");
        }
        for key in found.keys() {
            ensure!(self.acknowledged.contains_key(key), "{key}: was deleted, or never made, and is there");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written() -> Ledger {
        let mut ledger = Ledger::default();
        for (key, value, revision) in [("a", 1, 10), ("b", 2, 11)] {
            ledger.intend(key, Write::Put(value));
            ledger.acknowledge(key, Some(revision));
        }
        ledger
    }

    fn objects(list: &[(&str, u64, u64)]) -> Objects {
        list.iter()
            .map(|(key, value, revision)| ((*key).to_owned(), Seen { value: *value, revision: *revision }))
            .collect()
    }

    #[test]
    fn what_was_acknowledged_must_be_there() {
        assert!(written().verify(&objects(&[("a", 1, 10), ("b", 2, 11)]), 11).is_ok());
        assert!(written().verify(&objects(&[("a", 1, 10)]), 11).is_err());
        assert!(written().verify(&objects(&[("a", 1, 10), ("b", 1, 9)]), 11).is_err());
        assert!(written().verify(&objects(&[("a", 1, 10), ("b", 2, 12)]), 12).is_err());
    }

    #[test]
    fn revisions_do_not_go_back() {
        assert!(written().verify(&objects(&[("a", 1, 10), ("b", 2, 11)]), 10).is_err());
    }

    #[test]
    fn what_nobody_wrote_must_not_be_there() {
        assert!(written().verify(&objects(&[("a", 1, 10), ("b", 2, 11), ("c", 3, 12)]), 12).is_err());
        let mut ledger = written();
        ledger.intend("b", Write::Delete);
        ledger.acknowledge("b", None);
        assert!(ledger.verify(&objects(&[("a", 1, 10), ("b", 2, 11)]), 12).is_err());
    }

    #[test]
    fn a_write_without_an_answer_is_done_or_not() {
        let mut done = written();
        done.intend("a", Write::Put(7));
        assert!(done.verify(&objects(&[("a", 7, 12), ("b", 2, 11)]), 12).is_ok());
        assert_eq!(done.unanswered, 1);
        let mut not_done = written();
        not_done.intend("a", Write::Delete);
        assert!(not_done.verify(&objects(&[("a", 1, 10), ("b", 2, 11)]), 11).is_ok());
        let mut other = written();
        other.intend("a", Write::Put(7));
        assert!(other.verify(&objects(&[("a", 8, 12), ("b", 2, 11)]), 12).is_err());
    }
}
