//! Who owns what after an ordinary write.

use std::sync::OnceLock;

use jiff::Timestamp;
use serde_json::Value;

use super::compare::Comparison;
use super::entries::{self, Entry, Id, Managers, Operation};
use super::error::Conflict;
use super::set::{Node, Set};
use super::shape::Schema;
use super::{reconcile, validate, zero};
use crate::json::str_at;

/// Who writes, and how.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// The name of the field manager.
    pub manager: &'a str,
    /// The version of the kind that the request names, such as `apps/v1`.
    pub api_version: &'a str,
    /// The kind.
    pub kind: &'a str,
    /// The subresource, empty for the object itself.
    pub subresource: &'a str,
    /// The time of the request.
    pub now: Timestamp,
    /// What can be owned through this endpoint.
    pub reset: Reset<'a>,
}

/// What can be owned through an endpoint.
#[derive(Clone, Copy, Debug)]
pub enum Reset<'a> {
    /// Everything but these fields and what is below them; they are reset before the object is stored.
    Exclude(&'a [&'a [&'a str]]),
    /// Only these fields and what is below them; `*` stands for any step.
    Only(&'a [&'a [&'a str]]),
}

impl Reset<'_> {
    pub(super) fn filter(self, set: Set) -> Set {
        match self {
            Reset::Exclude([]) => set,
            _ if set.is_empty() => set,
            Reset::Exclude(paths) => set.recursive_difference(&Set::from_paths(paths.iter().copied())),
            Reset::Only(paths) => only(set, paths),
        }
    }
}

fn only(set: Set, paths: &[&[&str]]) -> Set {
    let nodes = set.into_nodes().into_iter().filter_map(|node| {
        let text = node.element.to_text();
        let name = text.strip_prefix("f:").unwrap_or(&text);
        let matching = paths.iter().filter_map(|path| path.split_first());
        let below: Vec<&[&str]> =
            matching.filter(|(step, _)| **step == "*" || **step == name).map(|(_, below)| below).collect();
        if below.is_empty() {
            return None;
        }
        let everything = below.iter().any(|path| path.is_empty());
        Some(if everything { node } else { Node { children: only(node.children, &below), ..node } })
    });
    Set::from_nodes(nodes.collect())
}

/// What no manager ever owns.
const STRIPPED: &[&[&str]] = &[
    &["apiVersion"],
    &["kind"],
    &["metadata"],
    &["metadata", "name"],
    &["metadata", "namespace"],
    &["metadata", "creationTimestamp"],
    &["metadata", "selfLink"],
    &["metadata", "uid"],
    &["metadata", "clusterName"],
    &["metadata", "generation"],
    &["metadata", "managedFields"],
    &["metadata", "resourceVersion"],
];

/// Gives `new`, which a create, an update or a patch made of `live`, its `managedFields`.
///
/// The entries come from `new` if the client sent some that can be read, and else from `live`; an empty list or a
/// list of one empty entry means that ownership is to be forgotten, so that an empty list must not get lost in
/// decoding. Through a subresource they always come from `live`. Fields that changed become the writer's. `live` is
/// `None` for a create.
///
/// An object that is not of its type loses its `managedFields`, as it does in kube-apiserver.
pub fn update(schema: &Schema<'_>, live: Option<&Value>, new: &mut Value, write: &Write<'_>) {
    let sent = entries::take(new);
    let managers = decode(live, sent.as_ref(), write);
    let exists = live.is_some_and(|live| !str_at(live, &["metadata", "uid"]).is_empty());
    if managers.0.is_empty() && exists {
        // Ownership is not tracked from the middle of an object's life, only from its first apply.
        return;
    }
    let empty;
    let live = match live {
        Some(live) => live,
        None => {
            empty = zero::object(schema, write.api_version, write.kind);
            &empty
        }
    };
    if let Ok(managers) = record(schema, live, new, managers, write, write.manager) {
        entries::put(new, managers.encode(schema.custom), schema.custom);
    }
}

/// The managers that a write starts from.
fn decode(live: Option<&Value>, sent: Option<&Value>, write: &Write<'_>) -> Managers {
    let from_live = || {
        let list = live.and_then(entries::of).map_or(&[][..], Vec::as_slice);
        Managers::decode(list).unwrap_or_default()
    };
    let sent = match sent {
        Some(Value::Array(list)) if write.subresource.is_empty() => list,
        _ => return from_live(),
    };
    let is_reset = match sent.as_slice() {
        [] => true,
        [entry] => entry.as_object().is_some_and(|entry| entry.is_empty()),
        _ => false,
    };
    if is_reset {
        return Managers::default();
    }
    Managers::decode(sent).ok().filter(|managers| !managers.0.is_empty()).unwrap_or_else(from_live)
}

/// What kube-apiserver calls an update of the managers: fields that changed move to the writer.
pub(super) fn record(
    schema: &Schema<'_>,
    live: &Value,
    new: &Value,
    managers: Managers,
    write: &Write<'_>,
    manager: &str,
) -> Result<Managers, validate::Faults> {
    validate::object(schema, new, true)?;
    validate::object(schema, live, true)?;
    let mut managers = reconciled(schema, managers);
    let comparison = compare(schema, live, new, write);
    yield_fields(&mut managers, &comparison, None);
    let taken = stripped(comparison.modified.union(comparison.added));
    if !taken.is_empty() {
        let id = Id::new(manager, Operation::Update, write.api_version, write.subresource);
        let set = match managers.0.remove(&id) {
            Some(previous) => previous.set.union(taken),
            None => taken,
        };
        let entry = Entry { version: write.api_version.to_owned(), set, time: Some(write.now) };
        managers.0.insert(id, entry);
    }
    managers.cap();
    Ok(managers)
}

/// The managers with their sets fitted to the schema, without those of versions that are no more.
pub(super) fn reconciled(schema: &Schema<'_>, mut managers: Managers) -> Managers {
    if !schema.versions.is_empty() {
        managers.0.retain(|_, entry| schema.versions.contains(&entry.version.as_str()));
    }
    for entry in managers.0.values_mut() {
        entry.set = reconcile::set(schema, std::mem::take(&mut entry.set));
    }
    managers
}

/// The changes that this endpoint can make.
pub(super) fn compare(schema: &Schema<'_>, live: &Value, new: &Value, write: &Write<'_>) -> Comparison {
    Comparison::of(schema, live, new).map(|set| write.reset.filter(set))
}

/// The set without what no manager ever owns.
pub(super) fn stripped(set: Set) -> Set {
    static SET: OnceLock<Set> = OnceLock::new();
    set.difference(SET.get_or_init(|| Set::from_paths(STRIPPED.iter().copied())))
}

/// Takes changed and removed fields from everybody but `writer`, and forgets who is left with nothing.
pub(super) fn yield_fields(managers: &mut Managers, comparison: &Comparison, writer: Option<&Id>) {
    for (id, entry) in &mut managers.0 {
        if Some(id) != writer {
            let set = std::mem::take(&mut entry.set);
            entry.set = set
                .difference(&comparison.modified)
                .difference(&comparison.added)
                .difference(&comparison.removed);
        }
    }
    managers.0.retain(|_, entry| !entry.set.is_empty());
}

/// The fields of other managers that a change would take.
pub(super) fn conflicts(managers: &Managers, comparison: &Comparison, writer: &Id) -> Vec<Conflict> {
    let changed = comparison.modified.clone().union(comparison.added.clone());
    let others = managers.0.iter().filter(|(id, _)| *id != writer);
    others
        .flat_map(|(id, entry)| {
            let taken = entry.set.clone().intersection(&changed).paths();
            taken.into_iter().map(|path| Conflict::new(id, path.iter().map(ToString::to_string).collect()))
        })
        .collect()
}
