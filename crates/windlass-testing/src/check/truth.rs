//! What was committed, and what a right watch makes of it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::EventKind;

/// What happened to one kind since a revision.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Truth {
    /// The objects at that revision, by `namespace/name`.
    pub state: BTreeMap<String, Value>,
    /// The commits after it, in order.
    pub commits: Vec<Commit>,
}

/// One commit.
#[derive(Clone, Debug, PartialEq)]
pub struct Commit {
    /// Its revision.
    pub revision: u64,
    /// The object before; `None` where there was none.
    pub previous: Option<Value>,
    /// The object after; `None` where it was deleted.
    pub object: Option<Value>,
}

/// An event that a right watch sends.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Expected {
    pub kind: EventKind,
    pub revision: u64,
    pub object: Value,
}

impl Truth {
    /// The objects at a revision that `selects` chooses, by key.
    pub(super) fn state_at(
        &self,
        revision: u64,
        selects: &dyn Fn(&Value) -> bool,
    ) -> BTreeMap<String, Value> {
        let mut state = self.state.clone();
        for commit in self.commits.iter().take_while(|commit| commit.revision <= revision) {
            match (&commit.object, &commit.previous) {
                (Some(object), _) => drop(state.insert(key(object), object.clone())),
                (None, Some(previous)) => drop(state.remove(&key(previous))),
                (None, None) => {}
            }
        }
        state.retain(|_, object| selects(object));
        state
    }

    /// The events after a revision, for a client whose selectors are `selects`.
    pub(super) fn events_after(&self, revision: u64, selects: &dyn Fn(&Value) -> bool) -> Vec<Expected> {
        let after = self.commits.iter().filter(|commit| commit.revision > revision);
        after.filter_map(|commit| commit.seen_through(selects)).collect()
    }
}

impl Commit {
    fn seen_through(&self, selects: &dyn Fn(&Value) -> bool) -> Option<Expected> {
        let before = self.previous.as_ref().filter(|object| selects(object));
        let after = self.object.as_ref().filter(|object| selects(object));
        let (kind, object) = match (before, after) {
            (None, None) => return None,
            (None, Some(after)) => (EventKind::Added, after.clone()),
            (Some(_), Some(after)) => (EventKind::Modified, after.clone()),
            (Some(before), None) => {
                let mut last = before.clone();
                last["metadata"]["resourceVersion"] = self.revision.to_string().into();
                (EventKind::Deleted, last)
            }
        };
        Some(Expected { kind, revision: self.revision, object })
    }
}

/// `namespace/name`, or `name`.
pub(super) fn key(object: &Value) -> String {
    let metadata = &object["metadata"];
    let name = metadata["name"].as_str().unwrap_or_default();
    match metadata["namespace"].as_str() {
        Some(namespace) if !namespace.is_empty() => format!("{namespace}/{name}"),
        _ => name.to_owned(),
    }
}
