//! What subscribers are told.

use std::sync::Arc;

use windlass_core::{ObjectKey, Origin};

/// What happened to one object. `old` and `new` are never both `None`.
#[derive(Debug)]
pub struct Delta<K> {
    /// Which one.
    pub key: ObjectKey,
    /// The object as it was last told; `None` if it is new.
    pub old: Option<Arc<K>>,
    /// The object as it is now; `None` if it is gone, or is no longer among those that are watched.
    pub new: Option<Arc<K>>,
    /// Whether it was there before anybody looked: part of the first list, or told to a subscriber who came late.
    pub initial: bool,
    /// The resourceVersion of the change. That of `new` may be greater, where a write of our own has overtaken it.
    pub version: u64,
    /// Who made the change, where it was a write of our own that the cache has from the server's answer.
    pub origin: Option<Origin>,
}

/// Both share the same objects, whatever the type of these.
impl<K> Clone for Delta<K> {
    fn clone(&self) -> Delta<K> {
        Delta {
            key: self.key.clone(),
            old: self.old.clone(),
            new: self.new.clone(),
            initial: self.initial,
            version: self.version,
            origin: self.origin.clone(),
        }
    }
}

/// Someone who is told of every change, in the order in which the cache made them.
///
/// # Guarantees
/// One call at a time, never while the cache is locked: a subscriber may read it. A subscriber that panics is told of
/// the next change as if nothing had happened, and the others are told of this one.
///
/// # Assumptions
/// It returns soon, and does not write to the same informer ([`absorb`](super::Cache::absorb),
/// [`removed`](super::Cache::removed), [`subscribe`](super::Informer::subscribe)): these wait until it has returned.
pub trait Subscriber<K>: Send + Sync {
    /// An object was created, changed or deleted.
    fn changed(&self, delta: &Delta<K>);

    /// The change of this version, told before without an origin, was a write of our own: its answer came after its
    /// event.
    fn own(&self, key: &ObjectKey, version: u64, origin: &Origin) {
        let _ = (key, version, origin);
    }
}

/// What the store wants told.
#[derive(Debug)]
pub(super) enum Signal<K> {
    Changed(Delta<K>),
    Own { key: ObjectKey, version: u64, origin: Origin },
}
