//! Lists that the server merges: by key fields, or as sets of values.

use serde_json::{Map, Value};

use super::fields::Keyed;
use super::{Change, Walk, equal, path};

impl Walk {
    /// A list whose items are told apart by key fields.
    pub(super) fn keyed_list(&mut self, desired: &[Value], live: Option<&Value>, entries: Vec<Keyed<'_>>) {
        let live = live.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let matched = match_items(desired, &entries);
        let mut order = Vec::new();
        for (item, entry) in desired.iter().zip(&matched) {
            let Some(entry) = entry.map(|at| &entries[at]) else {
                let names = entries.first().into_iter().flat_map(|entry| entry.keys.keys());
                let keys = names.filter_map(|name| Some((name.clone(), item.get(name)?.clone()))).collect();
                self.within(|path| path::push_keys(path, &keys), |walk| walk.note_set(item, None));
                continue;
            };
            let at = live.iter().position(|other| has_keys(other, &entry.keys));
            order.extend(at);
            let other = at.map(|at| &live[at]);
            self.within(
                |path| path::push_keys(path, &entry.keys),
                |walk| walk.value(item, other, Some(entry.node)),
            );
        }
        for (at, entry) in entries.iter().enumerate() {
            if !matched.contains(&Some(at)) {
                self.within(|path| path::push_keys(path, &entry.keys), |walk| walk.note(Change::Leave));
            }
        }
        self.check_order(&order);
    }

    /// A list in which each value is once.
    pub(super) fn set_list(&mut self, desired: &[Value], live: Option<&Value>, entries: &[Value]) {
        let live = live.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let holds = |list: &[Value], value: &Value| list.iter().any(|other| equal(other, value));
        let mut order = Vec::new();
        for item in desired {
            let at = live.iter().position(|other| equal(other, item));
            order.extend(at);
            let change = match (at, holds(entries, item)) {
                (Some(_), true) => continue,
                (Some(_), false) => Change::Own,
                (None, _) => Change::Set { from: None, to: item.clone() },
            };
            self.within(|path| path::push_value(path, item), |walk| walk.note(change));
        }
        for entry in entries.iter().filter(|entry| !holds(desired, entry)) {
            self.within(|path| path::push_value(path, entry), |walk| walk.note(Change::Leave));
        }
        self.check_order(&order);
    }

    /// An apply gives the items that it names the order in which it names them; others may stand between them.
    fn check_order(&mut self, live_positions: &[usize]) {
        if !live_positions.is_sorted() {
            self.note(Change::Reorder);
        }
    }
}

/// For each desired item, which entry of the set is its own. The server knows defaults for key fields, which we do not:
/// an item that leaves one out belongs to the one entry that no other item claims and that agrees on the rest.
fn match_items(desired: &[Value], entries: &[Keyed<'_>]) -> Vec<Option<usize>> {
    let is_full = |item: &Value| {
        entries.first().is_some_and(|entry| entry.keys.keys().all(|name| has_field(item, name)))
    };
    let mut claimed = vec![false; entries.len()];
    let mut matched = vec![None; desired.len()];
    for full in [true, false] {
        for (item, slot) in desired.iter().zip(&mut matched).filter(|(item, _)| is_full(item) == full) {
            let fits = |at: &usize| !claimed[*at] && agrees(item, &entries[*at].keys);
            let mut candidates = (0..entries.len()).filter(fits);
            let first = candidates.next();
            if candidates.next().is_none() {
                *slot = first;
            }
            if let Some(at) = *slot {
                claimed[at] = true;
            }
        }
    }
    matched
}

fn has_field(item: &Value, name: &str) -> bool {
    item.get(name).is_some_and(|value| !value.is_null())
}

/// Whether an item has these key fields.
fn has_keys(item: &Value, keys: &Map<String, Value>) -> bool {
    keys.iter().all(|(name, key)| item.get(name).is_some_and(|value| equal(value, key)))
}

/// Whether an item has none of these key fields with another value.
fn agrees(item: &Value, keys: &Map<String, Value>) -> bool {
    keys.iter().all(|(name, key)| !has_field(item, name) || equal(&item[name], key))
}
