//! All objects of a kind at one revision.

use std::ops::Bound;
use std::sync::Arc;

use super::object::Object;
use super::tree::{self, Tree};

/// All objects of a kind at one revision. It is a value: it costs a reference count, and no later write changes
/// it.
#[derive(Clone)]
pub struct Snapshot {
    pub(super) revision: u64,
    pub(super) objects: Tree<Arc<Object>>,
}

/// Objects in the order of their keys; made by [`Snapshot::range`].
pub type Range<'a> = tree::Range<'a, Arc<Object>>;

impl Snapshot {
    /// The revision.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// How many objects there are in all namespaces.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The object of a [key](Object::key).
    pub fn get(&self, key: &str) -> Option<&Arc<Object>> {
        self.objects.get(key)
    }

    /// The objects in the order of their keys: of one namespace or of all, from the start or after a key. The
    /// iterator knows its length, so what remains after a page is `range(namespace, last).len()`.
    pub fn range(&self, namespace: Option<&str>, after: Option<&str>) -> Range<'_> {
        let after = after.map_or(Bound::Unbounded, Bound::Excluded);
        let Some(namespace) = namespace else { return self.objects.range(after, None) };
        // `0` is the character after `/`, so these two enclose the keys that start with `namespace/`.
        let (first, end) = (format!("{namespace}/"), format!("{namespace}0"));
        let start = match after {
            Bound::Excluded(key) if key > first.as_str() => after,
            _ => Bound::Included(first.as_str()),
        };
        self.objects.range(start, Some(Bound::Included(&end)))
    }
}
