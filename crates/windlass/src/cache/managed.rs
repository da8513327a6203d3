//! What our own field manager applied, kept beside the objects.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Weak};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;

/// What an object's `managedFields` say of one manager.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ours {
    /// The set of fields that it applied, as JSON.
    pub(super) applied: Option<String>,
    pub(super) mark: Mark,
    /// Whether nobody else ever wrote to the object.
    pub(super) alone: bool,
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

/// Reads the entries of one manager.
pub(super) fn ours(entries: &[ManagedFieldsEntry], manager: &str) -> Ours {
    let mut ours = Ours { alone: !entries.is_empty(), ..Ours::default() };
    for entry in entries {
        if entry.manager.as_deref() != Some(manager) {
            ours.alone = false;
            continue;
        }
        ours.mark.entries = ours.mark.entries.saturating_add(1);
        let seconds = entry.time.as_ref().map_or(0, |time| time.0.as_second());
        let seconds = u32::try_from(seconds).unwrap_or_default();
        ours.mark.seconds = ours.mark.seconds.max(seconds);
        let whole = entry.subresource.as_deref().unwrap_or_default().is_empty();
        if whole && entry.operation.as_deref() == Some("Apply") {
            ours.applied = entry.fields_v1.as_ref().map(|fields| fields.0.to_string());
        }
    }
    ours
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
    use super::*;
    use serde_json::json;

    fn entries(value: serde_json::Value) -> Vec<ManagedFieldsEntry> {
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
        let ours = ours(&entries, "us");
        assert_eq!(ours.applied.as_deref(), Some(r#"{"f:data":{}}"#));
        assert!(!ours.alone);
        assert_eq!(ours.mark, Mark { seconds: 1_767_225_605, entries: 2 });
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
