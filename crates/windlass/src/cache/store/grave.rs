//! Objects that are gone for good.

use std::collections::{BTreeMap, VecDeque};

use windlass_core::ObjectKey;

/// How many deletions are remembered by which an answer of ours may be late. Between an event and the answer to the
/// request that made it lie milliseconds, in which few objects go.
const TOLD_MAX: usize = 1024;

/// Objects that are gone for good: those that we deleted and whose event is still to come, and those whose event came
/// and whose answer may be still to come.
#[derive(Debug, Default)]
pub(super) struct Graves {
    open: BTreeMap<ObjectKey, Vec<Grave>>,
    told: VecDeque<(String, u64)>,
}

#[derive(Debug)]
struct Grave {
    uid: String,
    /// The last version that was known; 0 if none was.
    version: u64,
    /// How many lists had begun by then.
    lists: u64,
}

impl Graves {
    /// We deleted it. Events that bring it back, or one of that name from before it, are older than that.
    pub(super) fn open(&mut self, key: &ObjectKey, uid: &str, version: u64, lists: u64) {
        let grave = Grave { uid: uid.to_owned(), version, lists };
        self.open.entry(key.clone()).or_default().push(grave);
    }

    /// Whether this version of an object is known to be of the past.
    pub(super) fn hold(&self, key: &ObjectKey, uid: Option<&str>, version: u64) -> bool {
        let graves = self.open.get(key).into_iter().flatten();
        graves.into_iter().any(|grave| grave.version >= version || Some(&*grave.uid) == uid)
    }

    /// The event of its deletion came; whether we knew.
    pub(super) fn close(&mut self, key: &ObjectKey, uid: Option<&str>) -> bool {
        let Some(graves) = self.open.get_mut(key) else { return false };
        let before = graves.len();
        graves.retain(|grave| Some(&*grave.uid) != uid);
        let knew = graves.len() < before;
        if graves.is_empty() {
            self.open.remove(key);
        }
        knew
    }

    /// The event of its deletion came, and subscribers were told.
    pub(super) fn told(&mut self, uid: &str, version: u64) {
        if self.told.len() == TOLD_MAX {
            self.told.pop_front();
        }
        self.told.push_back((uid.to_owned(), version));
    }

    /// The version of a deletion that subscribers were told of.
    pub(super) fn take_told(&mut self, uid: &str) -> Option<u64> {
        let at = self.told.iter().rposition(|(told, _)| told == uid)?;
        self.told.remove(at).map(|(_, version)| version)
    }

    /// The list of this number is complete. It knows of what went before it began, so no event will bring that back.
    pub(super) fn passed(&mut self, which: impl Fn(&ObjectKey) -> bool, list: u64) {
        self.open.retain(|key, graves| {
            graves.retain(|grave| !which(key) || grave.lists >= list);
            !graves.is_empty()
        });
    }

    /// Other streams begin to count their lists.
    pub(super) fn restart(&mut self) {
        self.open.values_mut().flatten().for_each(|grave| grave.lists = 0);
    }

    pub(super) fn retain(&mut self, which: impl Fn(&ObjectKey) -> bool) {
        self.open.retain(|key, _| which(key));
    }
}
