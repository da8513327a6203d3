//! What an executor remembers: which differences an apply does not end, and how often it came too late.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use windlass_core::diff::Difference;
use windlass_core::{Kind, ObjectKey};

/// The server does not keep every value as it was sent: a quantity `1000m` becomes `1`, and differs for ever. So when an
/// apply changed nothing, what differed is remembered, and the same differences need no second apply. This costs one apply
/// per process, and where the memory is lost, one more.
///
/// Only of an apply that changed nothing: one that changes something may leave it half done. A map of a custom resource
/// that is emptied is null at first, and empty after the second apply.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<BTreeMap<String, OfParent>>);

/// What is remembered of a parent.
#[derive(Debug, Default)]
struct OfParent {
    settled: BTreeMap<Slot, Fingerprint>,
    /// How many passes in a row found that something had changed.
    conflicts: u32,
}

/// A child, or the status where there is none.
pub(super) type Slot = Option<(String, ObjectKey)>;

/// Everything that could make a difference, as one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint(u64);

impl Fingerprint {
    /// Of an object by its UID: what it should be, what differs from that, and which fields are ours.
    pub fn of(uid: &str, desired: &Value, found: &[Difference], applied: Option<&Value>) -> Fingerprint {
        let mut hasher = DefaultHasher::new();
        uid.hash(&mut hasher);
        desired.to_string().hash(&mut hasher);
        for difference in found {
            format!("{difference:?}").hash(&mut hasher);
        }
        applied.map(Value::to_string).hash(&mut hasher);
        Fingerprint(hasher.finish())
    }
}

impl Memory {
    pub fn slot(kind: &Kind, key: &ObjectKey) -> Slot {
        Some((kind.to_string(), key.clone()))
    }

    /// Whether an apply of this changed nothing before.
    pub fn is_settled(&self, parent: &str, slot: &Slot, now: Fingerprint) -> bool {
        self.lock(|all| all.get(parent).and_then(|of| of.settled.get(slot)) == Some(&now))
    }

    /// An apply of this changed nothing.
    pub fn settle(&self, parent: &str, slot: Slot, now: Fingerprint) {
        self.lock(|all| all.entry(parent.to_owned()).or_default().settled.insert(slot, now));
    }

    /// A pass ended with a conflict or without. Says how many in a row did.
    pub fn conflicts(&self, parent: &str, conflicted: bool) -> u32 {
        self.lock(|all| match conflicted {
            true => {
                let of = all.entry(parent.to_owned()).or_default();
                of.conflicts = of.conflicts.saturating_add(1);
                of.conflicts
            }
            false => {
                if let Some(of) = all.get_mut(parent) {
                    of.conflicts = 0;
                }
                0
            }
        })
    }

    pub fn forget(&self, parent: &str) {
        self.lock(|all| all.remove(parent));
    }

    fn lock<T>(&self, use_it: impl FnOnce(&mut BTreeMap<String, OfParent>) -> T) -> T {
        use_it(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
