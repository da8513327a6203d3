//! Where the keys' items lie.

use std::collections::HashMap;
use std::hash::Hash;
use std::ops::{Index, IndexMut};

use foldhash::fast::FixedState;

/// Items by key, each with a small number that stays its own while it is there. Numbers are given again, the last that
/// came free first.
#[derive(Clone, Debug)]
pub(super) struct Slots<K, T> {
    /// It is never iterated. Its seed is fixed: core draws no random number.
    numbers: HashMap<K, u32, FixedState>,
    items: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<K: Eq + Hash, T> Slots<K, T> {
    pub(super) fn new() -> Slots<K, T> {
        Slots { numbers: HashMap::default(), items: Vec::new(), free: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    pub(super) fn find(&self, key: &K) -> Option<u32> {
        self.numbers.get(key).copied()
    }

    /// Adds an item under a key that has none.
    pub(super) fn insert(&mut self, key: K, item: T) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.items.push(None);
            u32::try_from(self.items.len() - 1).expect("fewer keys than four thousand million")
        });
        self.items[slot as usize] = Some(item);
        self.numbers.insert(key, slot);
        slot
    }

    pub(super) fn remove(&mut self, key: &K) {
        if let Some(slot) = self.numbers.remove(key) {
            self.items[slot as usize] = None;
            self.free.push(slot);
        }
    }
}

impl<K, T> Index<u32> for Slots<K, T> {
    type Output = T;

    fn index(&self, slot: u32) -> &T {
        self.items[slot as usize].as_ref().expect("a slot that is in use")
    }
}

impl<K, T> IndexMut<u32> for Slots<K, T> {
    fn index_mut(&mut self, slot: u32) -> &mut T {
        self.items[slot as usize].as_mut().expect("a slot that is in use")
    }
}
