//! Our own writes whose events have not come yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_core::ObjectKey;

/// Our own writes whose events have not come yet, by object. They come within moments, so there are few at any time.
pub(super) struct Echoes<K>(BTreeMap<ObjectKey, Expected<K>>);

struct Expected<K> {
    /// The versions of our writes, in order.
    versions: Vec<u64>,
    /// The object as of the last event: what a change by somebody else, told late, is a change from.
    told: Option<Arc<K>>,
}

impl<K> Default for Echoes<K> {
    fn default() -> Echoes<K> {
        Echoes(BTreeMap::new())
    }
}

impl<K> Echoes<K> {
    /// The event of this version will be an echo. `told` is the object before our write.
    pub(super) fn expect(&mut self, key: &ObjectKey, version: u64, told: Option<Arc<K>>) {
        let expected = self.0.entry(key.clone()).or_insert_with(|| Expected { versions: Vec::new(), told });
        expected.versions.push(version);
    }

    /// Whether an event that a write of ours has overtaken is somebody else's change, or may be.
    pub(super) fn is_foreign(&mut self, key: &ObjectKey, version: u64, may_skip: bool) -> bool {
        let Some(expected) = self.0.get_mut(key) else { return false };
        if may_skip || expected.versions.binary_search(&version).is_err() {
            return true;
        }
        // Events come in order: whatever was expected before this one will not come any more.
        expected.versions.retain(|expected| *expected > version);
        if expected.versions.is_empty() {
            self.0.remove(key);
        }
        false
    }

    /// The events have come to this version, where the object was `then`: what it was before.
    pub(super) fn step(&mut self, key: &ObjectKey, version: u64, then: Option<Arc<K>>) -> Option<Arc<K>> {
        let expected = self.0.get_mut(key)?;
        expected.versions.retain(|expected| *expected > version);
        if expected.versions.is_empty() {
            return self.0.remove(key)?.told;
        }
        let told = expected.told.clone();
        if then.is_some() {
            expected.told = then;
        }
        told
    }

    pub(super) fn forget(&mut self, key: &ObjectKey) {
        self.0.remove(key);
    }

    /// Events up to this version will not come any more.
    pub(super) fn passed(&mut self, which: impl Fn(&ObjectKey) -> bool, version: u64) {
        self.0.retain(|key, expected| {
            if which(key) {
                expected.versions.retain(|expected| *expected > version);
            }
            !expected.versions.is_empty()
        });
    }

    pub(super) fn retain(&mut self, which: impl Fn(&ObjectKey) -> bool) {
        self.0.retain(|key, _| which(key));
    }
}
