//! Were the watches served right? The watch properties of etcd's robustness suite, checked against what was committed.
//!
//! ```text
//! Recorder ── every watch a client opened ──▶ Stream ─┐
//!                                                     ├─ verify ──▶ Violation …
//! store's history ── what was committed ──▶ Truth ────┘
//! ```
//!
//! [`verify`] is a pure function of one stream and the truth about its kind, so that it can be tested with streams that
//! no server of ours would send.

mod record;
#[cfg(test)]
mod tests;
mod truth;
mod verify;

use std::fmt;

use serde_json::Value;

pub use record::Recorder;
pub use truth::{Commit, Truth};
pub use verify::verify;

/// What a watch promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Property {
    /// Events come in the order of their revisions.
    Ordered,
    /// No event comes twice.
    Unique,
    /// A commit is one event: never a part of one, and never two under one revision.
    Atomic,
    /// Up to the last event nothing is left out.
    Reliable,
    /// A watch from a revision starts with the first event after it.
    Resumable,
    /// After a bookmark nothing comes that the bookmark said was sent, and before it everything did.
    Bookmarkable,
    /// Only what the selectors choose comes; what leaves their choice is deleted, what enters it added.
    Filter,
    /// A deletion shows the last state, under the revision of the deletion.
    PreviousValue,
    /// `ADDED` is what was not there before, `MODIFIED` what was.
    IsCreate,
    /// What comes is what was committed.
    Faithful,
}

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The promise.
    pub property: Property,
    /// The watch, and which event of it shows it.
    pub place: String,
    /// What is wrong.
    pub detail: String,
}

/// A watch as its client saw it.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    /// Path and query, for messages.
    pub request: String,
    /// The revisions between which its start must lie; equal where the client named it.
    pub start: (u64, u64),
    /// Whether it starts with the state at its start.
    pub initial: bool,
    /// What came, in order.
    pub events: Vec<Event>,
}

/// One event of a watch.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its type.
    pub kind: EventKind,
    /// The `resourceVersion` of its object.
    pub revision: u64,
    /// Its object.
    pub object: Value,
}

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// `ADDED`.
    Added,
    /// `MODIFIED`.
    Modified,
    /// `DELETED`.
    Deleted,
    /// `BOOKMARK`.
    Bookmark,
    /// `ERROR`: the last one.
    Error,
}

/// What became of the check of many watches.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How many watches were checked.
    pub checked: usize,
    /// How many events they had.
    pub events: usize,
    /// How many could not be checked, because the history they need is forgotten.
    pub unchecked: usize,
    /// What is wrong.
    pub violations: Vec<Violation>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not {:?}: {}: {}", self.property, self.place, self.detail)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} watches with {} events checked, {} not", self.checked, self.events, self.unchecked)?;
        self.violations.iter().try_for_each(|violation| write!(f, "\n{violation}"))
    }
}
