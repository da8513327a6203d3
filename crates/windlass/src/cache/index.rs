//! Objects by something other than their key.

use std::collections::BTreeSet;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use kube::Resource;
use windlass_core::{ObjectKey, owner};

use crate::env::panic_message;

/// A named index: under which values an object is found.
pub struct Index<K> {
    name: Arc<str>,
    values: Values<K>,
}

type Values<K> = Arc<dyn Fn(&K) -> Vec<String> + Send + Sync>;

impl<K> Index<K> {
    /// An index by the values that a function gives. The same object has to give the same values each time.
    pub fn new(name: &str, values: impl Fn(&K) -> Vec<String> + Send + Sync + 'static) -> Index<K> {
        Index { name: name.into(), values: Arc::new(values) }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A function that panics finds nothing: the object is in the cache, and not in this index.
    fn values(&self, object: &K) -> Vec<String> {
        catch_unwind(AssertUnwindSafe(|| (self.values)(object))).unwrap_or_else(|panic| {
            tracing::error!(index = &*self.name, panic = panic_message(&*panic), "index panicked");
            Vec::new()
        })
    }
}

impl<K> Clone for Index<K> {
    fn clone(&self) -> Index<K> {
        Index { name: self.name.clone(), values: self.values.clone() }
    }
}

impl<K> fmt::Debug for Index<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The name of the index by the UID of the controller that owns an object.
const CONTROLLER: &str = "windlass.dev/controller";

/// All indexes of one store. They have no lock of their own, so that they are never ahead of the objects or behind.
pub(super) struct Indexes<K>(Vec<Table<K>>);

struct Table<K> {
    index: Index<K>,
    /// One flat set: most values have one object, and a set of their own would cost more than they do.
    keys: BTreeSet<(Arc<str>, ObjectKey)>,
}

impl<K: Resource> Indexes<K> {
    pub(super) fn new() -> Indexes<K> {
        Indexes(Vec::new())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|table| &*table.index.name == name)
    }

    /// Adds an index, and finds these objects by it. The first of a name stays.
    pub(super) fn add<'a>(
        &mut self,
        index: Index<K>,
        objects: impl Iterator<Item = (&'a ObjectKey, &'a Arc<K>)>,
    ) where
        K: 'a,
    {
        if self.has(&index.name) {
            return;
        }
        let mut table = Table { index, keys: BTreeSet::new() };
        for (key, object) in objects {
            table.insert(key, object);
        }
        self.0.push(table);
    }

    /// Adds the index that [`Indexes::children`] reads.
    pub(super) fn add_controllers<'a>(&mut self, objects: impl Iterator<Item = (&'a ObjectKey, &'a Arc<K>)>)
    where
        K: 'a,
    {
        let controller = |object: &K| {
            owner::controller_of(object.meta()).map(|owner| owner.uid.clone()).into_iter().collect()
        };
        self.add(Index::new(CONTROLLER, controller), objects);
    }

    pub(super) fn update(&mut self, key: &ObjectKey, old: Option<&K>, new: Option<&K>) {
        for table in &mut self.0 {
            if let Some(old) = old {
                for value in table.index.values(old) {
                    table.keys.remove(&(value.into(), key.clone()));
                }
            }
            if let Some(new) = new {
                table.insert(key, new);
            }
        }
    }

    /// The keys under a value, in order; `None` if there is no index of that name.
    pub(super) fn find(&self, name: &str, value: &str) -> Option<impl Iterator<Item = &ObjectKey>> {
        let table = self.0.iter().find(|table| &*table.index.name == name)?;
        let value: Arc<str> = value.into();
        let from = (value.clone(), ObjectKey::cluster(""));
        Some(table.keys.range(from..).take_while(move |(at, _)| *at == value).map(|(_, key)| key))
    }

    /// The keys of the objects that a controller owns; `None` where that is not kept.
    pub(super) fn children(&self, uid: &str) -> Option<impl Iterator<Item = &ObjectKey>> {
        self.find(CONTROLLER, uid)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.iter().map(|table| table.keys.len()).sum()
    }
}

impl<K> Table<K> {
    fn insert(&mut self, key: &ObjectKey, object: &K) {
        for value in self.index.values(object) {
            self.keys.insert((value.into(), key.clone()));
        }
    }
}
