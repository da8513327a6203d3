//! Which differences an apply does not end.

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
pub(super) struct Memory(Mutex<BTreeMap<String, BTreeMap<Slot, Fingerprint>>>);

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
        self.lock(|of| of.get(parent).and_then(|slots| slots.get(slot)) == Some(&now))
    }

    /// An apply of this changed nothing.
    pub fn settle(&self, parent: &str, slot: Slot, now: Fingerprint) {
        self.lock(|of| {
            of.entry(parent.to_owned()).or_default().insert(slot, now);
        });
    }

    pub fn forget(&self, parent: &str) {
        self.lock(|of| {
            of.remove(parent);
        });
    }

    fn lock<T>(&self, use_it: impl FnOnce(&mut BTreeMap<String, BTreeMap<Slot, Fingerprint>>) -> T) -> T {
        use_it(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
