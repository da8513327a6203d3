//! The store: one revision counter, copy-on-write trees per kind, an event log with cursors.
//!
//! ```text
//! Store ─┬─ revision
//!        ├─ Kind → History ─┬─ objects   tree by namespace/name of Arc<Object>   (a Snapshot is a clone of it)
//!        │                  └─ events    tree by revision of {object, previous}  (a cursor is a revision)
//!        └─ pairs           labels and selectable fields, each kept once
//! ```
//!
//! A store is a value. Its clone costs a few reference counts and is independent: what is written to one is not
//! seen by the other. It knows nothing of JSON but where in a body certain texts are.
//!
//! # Guarantees
//! - Every commit has a revision of its own, one above the last, whatever its kind.
//! - [`Store::at`] gives the state of any revision that is not forgotten; [`Store::events`] after a revision, put
//!   on top of the state at it, gives the present state.
//! - The same calls give the same results: nothing here reads a clock or depends on addresses.

mod history;
mod kind;
pub mod log;
mod object;
mod pairs;
mod row;
mod snapshot;
#[cfg(test)]
pub(crate) mod tests;
mod tree;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use thiserror::Error;

use history::History;
use log::Record;
use pairs::Interner;

pub use history::{Event, EventType, Events, Limits, Unreadable};
pub use kind::Kind;
pub(crate) use object::BETWEEN;
pub use object::{Malformed, Object, Offsets, Parts};
pub use pairs::Pair;
pub use snapshot::{Range, Snapshot};

/// All objects of all kinds, and their recent past.
#[derive(Clone)]
pub struct Store {
    revision: u64,
    kinds: Arc<BTreeMap<Kind, Arc<History>>>,
    pairs: Interner,
    /// What [`Store::compact`] was told last.
    compacted: u64,
    limits: Limits,
    /// Old snapshots that were asked for lately, the latest last.
    recent: Arc<VecDeque<(Kind, Snapshot)>>,
    /// When which revision was the newest, in order.
    marks: Arc<VecDeque<(Timestamp, u64)>>,
    journal: Journal,
}

/// The commits that are still to be kept somewhere, if someone does that. A clone of a store is another store:
/// nobody keeps its commits.
#[derive(Default)]
struct Journal(Option<Vec<Record>>);

impl Clone for Journal {
    fn clone(&self) -> Journal {
        Journal(None)
    }
}

/// A write.
#[derive(Clone, Debug)]
pub enum Change {
    /// Makes an object; nothing may be in its place.
    Create(Object),
    /// Replaces an object.
    Update {
        /// The new state.
        object: Object,
        /// The revision of the version that it replaces.
        expected: u64,
    },
    /// Removes an object.
    Delete {
        /// The [key](Object::key) of the object.
        key: String,
        /// The revision of the version that is removed.
        expected: u64,
    },
}

/// Why a write did not happen: the object is not as it was expected.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Conflict {
    /// There is one already.
    #[error("{} exists at revision {}", .0.key(), .0.revision())]
    Exists(Arc<Object>),
    /// There is another version than the expected one.
    #[error("{} has changed and is at revision {}", .0.key(), .0.revision())]
    Changed(Arc<Object>),
    /// There is none.
    #[error("{0} does not exist")]
    Missing(String),
}

/// How many old snapshots are kept ready for the next page of a list.
const RECENT: usize = 16;
/// How many marks are kept; at one every ten seconds these are more than two hours.
const MARKS: usize = 1024;

impl Default for Store {
    fn default() -> Store {
        Store::new(Limits::default())
    }
}

impl Store {
    /// An empty store. Its first revision is 1, since clients read 0 as "any".
    pub fn new(limits: Limits) -> Store {
        Store {
            revision: 1,
            kinds: Arc::default(),
            pairs: Interner::default(),
            compacted: 0,
            limits,
            recent: Arc::default(),
            marks: Arc::default(),
            journal: Journal::default(),
        }
    }

    /// The revision of the last commit.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The revision that the next commit will have.
    pub fn next_revision(&self) -> u64 {
        self.revision + 1
    }

    /// The key of an object: `namespace/name`, or `name` where there is no namespace.
    pub fn key(namespace: &str, name: &str) -> String {
        match namespace {
            "" => name.to_owned(),
            _ => [namespace, "/", name].concat(),
        }
    }

    /// An object as it is now.
    pub fn get(&self, kind: &Kind, namespace: &str, name: &str) -> Option<&Arc<Object>> {
        self.find(kind, &Store::key(namespace, name))
    }

    /// An object as it is now, by its [key](Object::key).
    pub fn find(&self, kind: &Kind, key: &str) -> Option<&Arc<Object>> {
        self.kinds.get(kind)?.objects.get(key)
    }

    /// All objects of a kind as they are now.
    pub fn list(&self, kind: &Kind) -> Snapshot {
        let objects = self.kinds.get(kind).map(|history| history.objects.clone()).unwrap_or_default();
        Snapshot { revision: self.revision, objects }
    }

    /// The kinds that have objects, or a past.
    pub fn kinds(&self) -> impl Iterator<Item = &Kind> {
        self.kinds.keys()
    }

    /// Does a write, or nothing if the object is not as it was expected. An object that was made for another
    /// revision than the one it gets is stamped anew.
    pub fn commit(&mut self, kind: &Kind, change: Change) -> Result<Event, Conflict> {
        let revision = self.next_revision();
        let objects = self.kinds.get(kind).map(|history| &history.objects);
        let current = |key: &str| objects.and_then(|objects| objects.get(key)).cloned();
        let expect = |key: &str, expected| match current(key) {
            Some(object) if object.revision() == expected => Ok(object),
            Some(object) => Err(Conflict::Changed(object)),
            None => Err(Conflict::Missing(key.to_owned())),
        };
        let event = match change {
            Change::Create(object) => match current(object.key()) {
                Some(object) => return Err(Conflict::Exists(object)),
                None => {
                    let object = self.admit(object, revision);
                    Event { revision, kind: EventType::Added, object, previous: None }
                }
            },
            Change::Update { object, expected } => {
                let previous = Some(expect(object.key(), expected)?);
                let object = self.admit(object, revision);
                Event { revision, kind: EventType::Modified, object, previous }
            }
            Change::Delete { key, expected } => {
                let object = expect(&key, expected)?;
                Event { revision, kind: EventType::Deleted, previous: Some(object.clone()), object }
            }
        };
        self.apply(kind, event.clone());
        Ok(event)
    }

    /// Gives a new object its revision and shares its pairs.
    fn admit(&mut self, object: Object, revision: u64) -> Arc<Object> {
        let mut object = if object.revision() == revision { object } else { object.with_revision(revision) };
        object.intern(&mut self.pairs);
        Arc::new(object)
    }

    fn apply(&mut self, kind: &Kind, event: Event) {
        self.revision = event.revision;
        let history = Arc::make_mut(Arc::make_mut(&mut self.kinds).entry(kind.clone()).or_default());
        match event.kind {
            EventType::Added | EventType::Modified => history.objects.insert(event.object.clone()),
            EventType::Deleted => history.objects.remove(event.object.key()),
        };
        if let Some(journal) = &mut self.journal.0 {
            journal.push(Record { kind: kind.clone(), event: event.clone() });
        }
        if history.push(event, self.limits) {
            self.drop_recent();
        }
    }

    /// From now on every commit is noted for [`Store::take_records`].
    pub fn keep_journal(&mut self) {
        self.journal.0.get_or_insert_default();
    }

    /// The commits since the last call, in order; none unless [`Store::keep_journal`] was called.
    pub fn take_records(&mut self) -> Vec<Record> {
        self.journal.0.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Puts an object of a snapshot into its place, as something that was always there. False if the place is
    /// taken.
    fn load(&mut self, kind: &Kind, mut object: Object) -> bool {
        object.intern(&mut self.pairs);
        let history = Arc::make_mut(Arc::make_mut(&mut self.kinds).entry(kind.clone()).or_default());
        history.objects.insert(Arc::new(object)).is_none()
    }

    /// A snapshot is loaded completely: it was taken at this revision, and what was before is not known.
    fn loaded(&mut self, revision: u64) {
        self.revision = revision;
        self.compacted = revision;
    }

    /// The oldest revision of a kind that can be read and watched from.
    pub fn oldest(&self, kind: &Kind) -> u64 {
        self.oldest_of(self.kinds.get(kind))
    }

    fn oldest_of(&self, history: Option<&Arc<History>>) -> u64 {
        history.map_or(0, |history| history.oldest()).max(self.compacted)
    }

    fn readable(&self, history: Option<&Arc<History>>, revision: u64) -> Result<(), Unreadable> {
        let oldest = self.oldest_of(history);
        if revision < oldest {
            Err(Unreadable::Compacted { oldest })
        } else if revision > self.revision {
            Err(Unreadable::Future { current: self.revision })
        } else {
            Ok(())
        }
    }

    /// All objects of a kind as they were at a revision.
    ///
    /// It takes the time of the events since then; snapshots that were asked for lately are kept, so that the
    /// pages of a list after the second cost nothing more.
    pub fn at(&mut self, kind: &Kind, revision: u64) -> Result<Snapshot, Unreadable> {
        self.readable(self.kinds.get(kind), revision)?;
        let kept = self.recent.iter().filter(|(of, snapshot)| of == kind && snapshot.revision >= revision);
        let nearest = kept.map(|(_, snapshot)| snapshot).min_by_key(|snapshot| snapshot.revision).cloned();
        let nearest = nearest.unwrap_or_else(|| self.list(kind));
        if nearest.revision == revision {
            return Ok(nearest);
        }
        let Some(history) = self.kinds.get(kind) else { return Ok(Snapshot { revision, ..nearest }) };
        let snapshot = history.undo(nearest, revision);
        let recent = Arc::make_mut(&mut self.recent);
        recent.push_back((kind.clone(), snapshot.clone()));
        if recent.len() > RECENT {
            recent.pop_front();
        }
        Ok(snapshot)
    }

    /// What happened to a kind after a revision, in order. A watcher keeps the revision up to which it has seen
    /// everything (the store's, when it has read all) and asks again; reading costs what is returned.
    pub fn events(&self, kind: &Kind, after: u64) -> Result<Events<'_>, Unreadable> {
        let history = self.kinds.get(kind);
        self.readable(history, after)?;
        Ok(history.map_or_else(Events::none, |history| history.events(after, self.revision)))
    }

    /// Forgets the past before a revision: it is the oldest that can still be read and watched from.
    pub fn compact(&mut self, revision: u64) {
        let revision = revision.min(self.revision);
        if revision <= self.compacted {
            return;
        }
        self.compacted = revision;
        if self.kinds.values().any(|history| history.reaches(revision)) {
            for history in Arc::make_mut(&mut self.kinds).values_mut() {
                if history.reaches(revision) {
                    Arc::make_mut(history).compact(revision);
                }
            }
        }
        self.drop_recent();
    }

    /// Notes that it is `now`, for [`Store::compact_before`]. Times must not fall; one that does is not noted.
    pub fn mark(&mut self, now: Timestamp) {
        if self.marks.back().is_some_and(|(last, _)| now <= *last) {
            return;
        }
        let marks = Arc::make_mut(&mut self.marks);
        marks.push_back((now, self.revision));
        if marks.len() > MARKS {
            marks.pop_front();
        }
    }

    /// The newest revision that is known to have been there at a time.
    pub fn revision_at(&self, time: Timestamp) -> Option<u64> {
        let after = self.marks.partition_point(|(at, _)| *at <= time);
        Some(self.marks.get(after.checked_sub(1)?)?.1)
    }

    /// Forgets what was past at a time, as far as marks tell.
    pub fn compact_before(&mut self, time: Timestamp) {
        if let Some(revision) = self.revision_at(time) {
            self.compact(revision);
        }
    }

    /// Lets go of the kept snapshots that may not be read any more.
    fn drop_recent(&mut self) {
        if self.recent.iter().any(|(kind, snapshot)| snapshot.revision < self.oldest(kind)) {
            let mut recent = std::mem::take(Arc::make_mut(&mut self.recent));
            recent.retain(|(kind, snapshot)| snapshot.revision >= self.oldest(kind));
            self.recent = Arc::new(recent);
        }
    }
}
