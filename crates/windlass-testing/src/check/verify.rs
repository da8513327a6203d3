//! One watch against the truth.

use std::collections::BTreeMap;

use serde_json::Value;

use super::truth::{Expected, Truth, key};
use super::{Event, EventKind, Property, Stream, Violation};

/// The promises that a watch has broken. `selects` says which objects its client asked for.
///
/// A watch that ended early is right as far as it goes. Where the start is only known to lie between two revisions, a
/// watch is right if one of them explains it; otherwise the one that explains it best is reported.
pub fn verify(stream: &Stream, truth: &Truth, selects: &dyn Fn(&Value) -> bool) -> Vec<Violation> {
    let (earliest, latest) = stream.start;
    let commits = truth.commits.iter().map(|commit| commit.revision);
    let starts = commits.filter(|revision| (earliest + 1..=latest).contains(revision));
    let mut best: Option<Vec<Violation>> = None;
    for start in std::iter::once(earliest).chain(starts) {
        let violations = Reader::new(stream, start, truth, selects).read();
        if violations.is_empty() {
            return violations;
        }
        if best.as_ref().is_none_or(|best| violations.len() < best.len()) {
            best = Some(violations);
        }
    }
    best.unwrap_or_default()
}

/// Reads a stream that started at a revision.
struct Reader<'a> {
    stream: &'a Stream,
    truth: &'a Truth,
    start: u64,
    /// What has to come first and has not come yet.
    initial: BTreeMap<String, Value>,
    expected: Vec<Expected>,
    /// How many of the expected were sent or missed.
    cursor: usize,
    /// The revisions that came, with the key of their object.
    seen: BTreeMap<u64, String>,
    last: u64,
    bookmark: u64,
    violations: Vec<Violation>,
}

impl<'a> Reader<'a> {
    fn new(stream: &'a Stream, start: u64, truth: &'a Truth, selects: &dyn Fn(&Value) -> bool) -> Reader<'a> {
        let initial = if stream.initial { truth.state_at(start, selects) } else { BTreeMap::new() };
        let expected = truth.events_after(start, selects);
        let (seen, violations) = (BTreeMap::new(), Vec::new());
        Reader {
            stream,
            truth,
            start,
            initial,
            expected,
            cursor: 0,
            seen,
            last: start,
            bookmark: 0,
            violations,
        }
    }

    fn read(mut self) -> Vec<Violation> {
        let mut in_state = self.stream.initial;
        for (index, event) in self.stream.events.iter().enumerate() {
            match event.kind {
                // Whatever it says, what came before it counts as it is.
                EventKind::Error => break,
                EventKind::Added if in_state && event.revision <= self.start => {
                    self.state_event(index, event);
                    continue;
                }
                _ => {}
            }
            if std::mem::take(&mut in_state) {
                for (key, _) in std::mem::take(&mut self.initial) {
                    let detail = format!("{key} is in the state at {} and was not sent", self.start);
                    self.broken(Property::Reliable, index, detail);
                }
            }
            match event.kind {
                EventKind::Bookmark => self.bookmark_event(index, event),
                _ => self.change_event(index, event),
            }
        }
        self.violations
    }

    fn state_event(&mut self, index: usize, event: &Event) {
        let key = key(&event.object);
        match self.initial.remove(&key) {
            Some(object) if same(&object, &event.object) => {}
            Some(_) => self.broken(Property::Faithful, index, format!("{key} was not so at {}", self.start)),
            None => match self.truth.state_at(self.start, &|_| true).contains_key(&key) {
                true if self.stream.events[..index].iter().any(|e| super::truth::key(&e.object) == key) => {
                    self.broken(Property::Unique, index, format!("{key} came twice"));
                }
                true => self.broken(Property::Filter, index, format!("{key} was not asked for")),
                false => {
                    self.broken(Property::Faithful, index, format!("there was no {key} at {}", self.start))
                }
            },
        }
    }

    fn bookmark_event(&mut self, index: usize, event: &Event) {
        let revision = event.revision;
        if revision < self.last.max(self.bookmark) {
            let detail = format!("a bookmark at {revision} after {}", self.last.max(self.bookmark));
            self.broken(Property::Bookmarkable, index, detail);
        }
        while let Some(missed) =
            self.expected.get(self.cursor).filter(|expected| expected.revision <= revision)
        {
            let detail =
                format!("a bookmark at {revision}, and the event of {} was not sent", missed.revision);
            self.cursor += 1;
            self.broken(Property::Bookmarkable, index, detail);
        }
        self.bookmark = self.bookmark.max(revision);
    }

    fn change_event(&mut self, index: usize, event: &Event) {
        let (revision, key) = (event.revision, key(&event.object));
        if revision <= self.start {
            let detail = format!("an event of {revision} in a watch from {}", self.start);
            return self.broken(Property::Resumable, index, detail);
        }
        if let Some(earlier) = self.seen.insert(revision, key.clone()) {
            let property = if earlier == key { Property::Unique } else { Property::Atomic };
            return self.broken(property, index, format!("two events of {revision}: {earlier} and {key}"));
        }
        if revision <= self.bookmark {
            let detail = format!("an event of {revision} after a bookmark at {}", self.bookmark);
            return self.broken(Property::Bookmarkable, index, detail);
        }
        if revision < self.last {
            return self.broken(
                Property::Ordered,
                index,
                format!("an event of {revision} after one of {}", self.last),
            );
        }
        self.last = revision;
        let Some(at) = self.expected.iter().position(|expected| expected.revision == revision) else {
            let committed = self.truth.commits.iter().any(|commit| commit.revision == revision);
            let (property, detail) = match committed {
                true => (Property::Filter, format!("{key} at {revision} was not asked for")),
                false => (Property::Faithful, format!("nothing was committed at {revision}")),
            };
            return self.broken(property, index, detail);
        };
        if at > self.cursor {
            let property = if self.cursor == 0 { Property::Resumable } else { Property::Reliable };
            let missed = self.expected[self.cursor].revision;
            self.broken(
                property,
                index,
                format!("the event of {missed} was not sent before that of {revision}"),
            );
        }
        self.cursor = at + 1;
        let expected = &self.expected[at];
        if event.kind != expected.kind {
            let detail = format!("{key} at {revision} is {:?} and came as {:?}", expected.kind, event.kind);
            let create = [event.kind, expected.kind].contains(&EventKind::Added);
            self.broken(if create { Property::IsCreate } else { Property::Faithful }, index, detail);
        } else if !same(&expected.object, &event.object) {
            let deleted = event.kind == EventKind::Deleted;
            let property = if deleted { Property::PreviousValue } else { Property::Faithful };
            self.broken(property, index, format!("{key} at {revision} is another object"));
        }
    }

    fn broken(&mut self, property: Property, index: usize, detail: String) {
        let place = format!("event {} of {}", index + 1, self.stream.request);
        self.violations.push(Violation { property, place, detail });
    }
}

/// Whether an object is what was committed, in whatever version and shape the client asked for.
fn same(committed: &Value, served: &Value) -> bool {
    if served["kind"] == "PartialObjectMetadata" {
        return committed["metadata"] == served["metadata"];
    }
    let plain = |object: &Value| {
        let mut object = object.clone();
        if let Some(map) = object.as_object_mut() {
            map.shift_remove("apiVersion");
        }
        object
    };
    plain(committed) == plain(served)
}
