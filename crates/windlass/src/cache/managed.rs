//! What our own field manager applied, kept beside the objects.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Weak};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use serde_json::{Map, Value};

/// What an object's `managedFields` say of one manager.
#[derive(Debug, Default)]
pub(super) struct Ours {
    entries: Vec<ManagedFieldsEntry>,
    pub(super) mark: Mark,
    /// Whether nobody else ever wrote to the object.
    pub(super) alone: bool,
    /// Whether nobody else wrote to it later, by the second.
    pub(super) latest: bool,
}

impl Ours {
    /// Reads the entries of one manager.
    pub(super) fn of(entries: Vec<ManagedFieldsEntry>, manager: &str) -> Ours {
        let is_ours = |entry: &ManagedFieldsEntry| entry.manager.as_deref() == Some(manager);
        let (entries, others): (Vec<_>, Vec<_>) = entries.into_iter().partition(is_ours);
        let mark = Mark {
            seconds: entries.iter().map(seconds).max().unwrap_or_default(),
            entries: u8::try_from(entries.len()).unwrap_or(u8::MAX),
        };
        let latest = others.iter().map(seconds).all(|other| other <= mark.seconds);
        Ours { latest: latest && !entries.is_empty(), alone: others.is_empty(), entries, mark }
    }

    /// The set of fields that it applied to the whole object, as JSON.
    pub(super) fn applied(&self) -> Option<String> {
        let is_apply = |entry: &&ManagedFieldsEntry| {
            entry.operation.as_deref() == Some("Apply")
                && entry.subresource.as_deref().unwrap_or_default().is_empty()
        };
        let set = self.entries.iter().find(is_apply)?.fields_v1.as_ref()?;
        Some(set.0.to_string())
    }

    /// Whether a field that is the manager's has another value in `new` than in `old`, the version before it. Then this
    /// manager wrote `new`: whoever else changes a field takes it away from its managers.
    pub(super) fn changed(&self, old: &Value, new: &Value) -> bool {
        let sets = self.entries.iter().filter_map(|entry| entry.fields_v1.as_ref());
        sets.into_iter().any(|set| differs(&set.0, Some(old), Some(new)))
    }
}

fn seconds(entry: &ManagedFieldsEntry) -> u32 {
    entry.time.as_ref().and_then(|time| u32::try_from(time.0.as_second()).ok()).unwrap_or_default()
}

/// Whether anything that a set of fields names is different.
fn differs(set: &Value, old: Option<&Value>, new: Option<&Value>) -> bool {
    let Some(members) = set.as_object().filter(|members| !members.is_empty()) else { return old != new };
    members.iter().any(|(name, set)| {
        let (old, new) = (part(name, old), part(name, new));
        match name.as_str() {
            // The thing itself: what is in it may be others'.
            "." => old.is_some() != new.is_some(),
            _ => differs(set, old, new),
        }
    })
}

/// The part of a value that a name of a set stands for: `f:` a field, `k:` an item by its keys, `v:` an item that is this
/// value, `.` all of it.
fn part<'a>(name: &str, value: Option<&'a Value>) -> Option<&'a Value> {
    let items = || value?.as_array().map(|items| items.iter());
    match name.split_once(':') {
        Some(("f", field)) => value?.get(field),
        Some(("k", keys)) => {
            let keys: Map<String, Value> = serde_json::from_str(keys).ok()?;
            items()?.find(|item| keys.iter().all(|(key, value)| item.get(key) == Some(value)))
        }
        Some(("v", text)) => {
            let wanted: Value = serde_json::from_str(text).ok()?;
            items()?.find(|item| **item == wanted)
        }
        _ => value,
    }
}

/// The traces of a manager's writes on an object: how many entries it has, and the time of the latest.
///
/// The server adds an entry or sets its time when that manager changes something, and another's write can only take
/// entries away. So where a mark [went up](Mark::is_after) from one version to the next, that manager wrote the version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    seconds: u32,
    entries: u8,
}

impl Mark {
    #[cfg(test)]
    pub(super) fn at(seconds: u32) -> Mark {
        Mark { seconds, entries: 1 }
    }

    pub(super) fn is_after(self, other: Mark) -> bool {
        self.seconds > other.seconds || self.entries > other.entries
    }

    pub(super) fn is_none(self) -> bool {
        self == Mark::default()
    }
}

/// Gives equal texts one place in memory, for as long as somebody holds it.
#[derive(Debug, Default)]
pub(super) struct Interner {
    by_hash: BTreeMap<u64, Vec<Weak<str>>>,
    /// Tidy up when there are this many.
    tidy_at: usize,
}

impl Interner {
    pub(super) fn intern(&mut self, text: &str) -> Arc<str> {
        if self.by_hash.len() >= self.tidy_at {
            self.tidy();
        }
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let same_hash = self.by_hash.entry(hasher.finish()).or_default();
        if let Some(known) = same_hash.iter().filter_map(Weak::upgrade).find(|known| **known == *text) {
            return known;
        }
        let new: Arc<str> = text.into();
        same_hash.push(Arc::downgrade(&new));
        new
    }

    /// Forgets what nobody holds. Done when the number has doubled, it costs next to nothing for each.
    fn tidy(&mut self) {
        self.by_hash.retain(|_, texts| {
            texts.retain(|text| text.strong_count() > 0);
            !texts.is_empty()
        });
        self.tidy_at = (self.by_hash.len() * 2).max(64);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entries(value: Value) -> Vec<ManagedFieldsEntry> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn the_set_is_that_of_our_apply_to_the_whole_object() {
        let entries = entries(json!([
            {"manager": "other", "operation": "Apply", "time": "2026-01-01T00:00:09Z", "fieldsV1": {"f:x": {}}},
            {"manager": "us", "operation": "Apply", "time": "2026-01-01T00:00:01Z", "fieldsV1": {"f:data": {}}},
            {"manager": "us", "operation": "Update", "subresource": "status", "time": "2026-01-01T00:00:05Z",
             "fieldsV1": {"f:status": {}}},
        ]));
        let ours = Ours::of(entries, "us");
        assert_eq!(ours.applied().as_deref(), Some(r#"{"f:data":{}}"#));
        assert_eq!((ours.alone, ours.latest), (false, false));
        assert_eq!(ours.mark, Mark { seconds: 1_767_225_605, entries: 2 });
    }

    #[test]
    fn a_field_of_ours_with_another_value_is_our_doing() {
        let set = json!({
            "f:metadata": {"f:labels": {"f:app": {}}, "f:finalizers": {".": {}, "v:\"ours\"": {}}},
            "f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:name": {}, "f:image": {}}}},
        });
        let entries = entries(json!([{"manager": "us", "operation": "Apply", "fieldsV1": set}]));
        let ours = Ours::of(entries, "us");
        let old = json!({
            "metadata": {"labels": {"app": "a", "other": "x"}, "finalizers": ["ours"]},
            "spec": {"containers": [{"name": "side", "image": "1"}, {"name": "web", "image": "1", "tty": true}]},
            "status": {"ready": 1},
        });
        let check = |pointer: &str, value: Value| {
            let mut new = old.clone();
            *new.pointer_mut(pointer).unwrap() = value;
            ours.changed(&old, &new)
        };
        assert!(!ours.changed(&old, &old));
        assert!(check("/metadata/labels/app", json!("b")));
        assert!(check("/spec/containers/1/image", json!("2")));
        assert!(check("/metadata/finalizers", json!([])));
        // None of these is ours.
        assert!(!check("/metadata/labels/other", json!("y")));
        assert!(!check("/metadata/finalizers", json!(["theirs", "ours"])));
        assert!(!check("/spec/containers/0/image", json!("2")));
        assert!(!check("/spec/containers/1/tty", json!(false)));
        assert!(!check("/status", json!({})));
    }

    #[test]
    fn a_mark_goes_up_only_by_a_write_of_ours() {
        let before = Mark { seconds: 10, entries: 2 };
        assert!(Mark { seconds: 11, entries: 2 }.is_after(before));
        assert!(Mark { seconds: 10, entries: 3 }.is_after(before));
        assert!(!before.is_after(before));
        assert!(!Mark { seconds: 10, entries: 1 }.is_after(before), "another manager took our fields");
    }

    #[test]
    fn equal_texts_share_memory_until_nobody_holds_them() {
        let mut interner = Interner::default();
        let one = interner.intern("a");
        assert!(Arc::ptr_eq(&one, &interner.intern("a")));
        assert!(!Arc::ptr_eq(&one, &interner.intern("b")));
        for n in 0..1000 {
            interner.intern(&n.to_string());
        }
        assert!(interner.by_hash.len() <= 128, "{} are remembered, one is held", interner.by_hash.len());
        assert!(Arc::ptr_eq(&one, &interner.intern("a")));
    }
}
