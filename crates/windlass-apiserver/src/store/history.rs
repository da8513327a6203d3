//! What happened to a kind: its events in order, and the way back to its earlier states.

use std::ops::Bound;
use std::sync::Arc;

use thiserror::Error;

use super::object::Object;
use super::row::Entry;
use super::snapshot::Snapshot;
use super::tree::{Item, Tree};

/// What a commit did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// It made the object.
    Added,
    /// It replaced the object.
    Modified,
    /// It removed the object.
    Deleted,
}

/// One commit, as watchers see it.
#[derive(Clone, Debug)]
pub struct Event {
    /// The revision of the commit.
    pub revision: u64,
    /// What it did.
    pub kind: EventType,
    /// The new state; of a deletion the last state, which is served [under the deletion's
    /// revision](Event::served).
    pub object: Arc<Object>,
    /// The state before, if there was one.
    pub previous: Option<Arc<Object>>,
}

impl Event {
    /// The object as the event carries it: a deletion shows the last state with the deletion's revision.
    pub fn served(&self) -> Arc<Object> {
        match self.kind {
            EventType::Deleted => Arc::new(self.object.with_revision(self.revision)),
            EventType::Added | EventType::Modified => self.object.clone(),
        }
    }

    /// About what forgetting the event frees: the state that only history still holds.
    fn weight(&self) -> usize {
        const OBJECT: usize = 300;
        self.previous.as_ref().map_or(0, |previous| OBJECT + previous.body().len())
    }
}

impl Entry for Event {
    type Key = u64;
    fn key(&self) -> &u64 {
        &self.revision
    }
}

impl Item for Event {
    type Fence = u64;
    fn fence(&self) -> u64 {
        self.revision
    }
}

/// How much of its past each kind remembers. What goes first is forgotten first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most events.
    pub events: usize,
    /// The most bytes of states that only history still holds.
    pub bytes: usize,
}

impl Default for Limits {
    /// 50,000 events (10,000 is what a busy kind sees in the five minutes that etcd is kept for under
    /// kube-apiserver), 32 MiB.
    fn default() -> Limits {
        Limits { events: 50_000, bytes: 32 << 20 }
    }
}

/// Why a revision cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unreadable {
    /// It is forgotten: `410 Gone`.
    #[error("the oldest revision still known is {oldest}")]
    Compacted {
        /// The oldest revision that can be read, and watched from.
        oldest: u64,
    },
    /// It has not happened yet.
    #[error("the store is at revision {current}")]
    Future {
        /// The newest revision.
        current: u64,
    },
}

/// One kind: what there is now, and what led to it.
#[derive(Clone, Default)]
pub(super) struct History {
    pub objects: Tree<Arc<Object>>,
    events: Tree<Event>,
    weight: usize,
    /// The revision of the last event that was forgotten.
    forgotten: u64,
}

impl History {
    /// The oldest revision that can be read.
    pub fn oldest(&self) -> u64 {
        self.forgotten
    }

    /// Remembers an event, and forgets what is over the limits. True if it forgot something.
    pub fn push(&mut self, event: Event, limits: Limits) -> bool {
        self.weight += event.weight();
        self.events.insert(event);
        let before = self.forgotten;
        while self.events.len() > limits.events || self.weight > limits.bytes {
            self.forget_first();
        }
        self.forgotten != before
    }

    /// True if there are events at or before a revision.
    pub fn reaches(&self, revision: u64) -> bool {
        self.events.first().is_some_and(|first| first.revision <= revision)
    }

    /// Forgets the events at and before a revision.
    pub fn compact(&mut self, revision: u64) {
        while self.reaches(revision) {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        if let Some(revision) = self.events.first().map(|first| first.revision) {
            let event = self.events.remove(&revision).expect("the first event is there");
            self.weight -= event.weight();
            self.forgotten = revision;
        }
    }

    /// The events after one revision and up to another, in order.
    pub fn events(&self, after: u64, upto: u64) -> Events<'_> {
        Events(Some(self.events.range(Bound::Excluded(&after), Some(Bound::Excluded(&upto)))))
    }

    /// The state at an earlier revision, found by undoing what came after it; the time it takes is that of the
    /// events undone.
    pub fn undo(&self, mut from: Snapshot, to: u64) -> Snapshot {
        let events = self.events(to, from.revision).collect::<Vec<_>>();
        for event in events.into_iter().rev() {
            match &event.previous {
                Some(previous) => from.objects.insert(previous.clone()),
                None => from.objects.remove(event.object.key()),
            };
        }
        from.revision = to;
        from
    }
}

/// Events in order; made by [`Store::events`](super::Store::events).
pub struct Events<'a>(Option<super::tree::Range<'a, Event>>);

impl Events<'_> {
    /// No events: of a kind that nothing was ever written of.
    pub(super) fn none() -> Self {
        Events(None)
    }
}

impl<'a> Iterator for Events<'a> {
    type Item = &'a Event;

    fn next(&mut self) -> Option<&'a Event> {
        self.0.as_mut()?.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.as_ref().map_or((0, Some(0)), Iterator::size_hint)
    }
}

impl ExactSizeIterator for Events<'_> {}
