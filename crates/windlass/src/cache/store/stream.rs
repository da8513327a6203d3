//! How far one list and watch has come.

use std::collections::BTreeSet;
use std::fmt;
use std::mem;
use std::sync::Arc;

use windlass_core::{Moment, ObjectKey};

use crate::cache::State;

/// What one list and watch covers: one namespace, or everything.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span(Option<Arc<str>>);

impl Span {
    pub(crate) const ALL: Span = Span(None);

    pub(crate) fn of(namespace: Option<&str>) -> Span {
        Span(namespace.map(Arc::from))
    }

    pub(crate) fn namespace(&self) -> Option<&str> {
        self.0.as_deref()
    }

    pub(crate) fn covers(&self, key: &ObjectKey) -> bool {
        self.0.is_none() || self.namespace() == key.namespace()
    }

    /// Whether there may be objects that both cover.
    pub(crate) fn meets(&self, other: &Span) -> bool {
        self.0.is_none() || other.0.is_none() || self == other
    }

    /// Where the keys that it covers begin.
    pub(super) fn first(&self) -> ObjectKey {
        ObjectKey::new(self.namespace(), "")
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.namespace().unwrap_or("all namespaces"))
    }
}

/// How far one list and watch has come.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    state: State,
    heard: Moment,
    /// Everything up to this version has been told.
    seen: u64,
    was_listed: bool,
    /// How many lists have begun.
    lists: u64,
    /// What a list that is under way has named.
    listing: Option<BTreeSet<ObjectKey>>,
}

impl Stream {
    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    /// Whether that is another state.
    pub(super) fn set_state(&mut self, state: State) -> bool {
        let other = self.state != state;
        self.state = state;
        other
    }

    /// When it was heard of last.
    pub(crate) fn heard(&self) -> Moment {
        self.heard
    }

    pub(super) fn hear(&mut self, now: Moment) {
        self.heard = now;
    }

    pub(super) fn seen(&self) -> u64 {
        self.seen
    }

    /// Whether a list was ever complete.
    pub(crate) fn was_listed(&self) -> bool {
        self.was_listed
    }

    pub(super) fn lists(&self) -> u64 {
        self.lists
    }

    pub(super) fn begin(&mut self) {
        self.lists += 1;
        self.listing = Some(BTreeSet::new());
    }

    /// What the list named.
    pub(super) fn end(&mut self, version: u64) -> BTreeSet<ObjectKey> {
        self.seen = version;
        self.was_listed = true;
        mem::take(&mut self.listing).unwrap_or_default()
    }

    /// Nothing is known of the versions any more.
    pub(super) fn restart(&mut self) {
        self.seen = 0;
        self.listing = None;
    }

    pub(super) fn reach(&mut self, version: u64) {
        if self.listing.is_none() {
            self.seen = self.seen.max(version);
        }
    }

    /// An object was named; whether that is part of a list.
    pub(super) fn names(&mut self, key: &ObjectKey, version: u64) -> bool {
        match &mut self.listing {
            Some(listed) => {
                listed.insert(key.clone());
                true
            }
            None => {
                self.reach(version);
                false
            }
        }
    }

    pub(super) fn no_longer_names(&mut self, key: &ObjectKey, version: u64) {
        match &mut self.listing {
            Some(listed) => {
                listed.remove(key);
            }
            None => self.reach(version),
        }
    }
}
