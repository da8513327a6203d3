//! Key and value pairs that many objects share: labels, and the values of selectable fields.

use std::cmp::Ordering;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use super::row::Entry;
use super::tree::{Item, Tree};

/// A key with its value. Equal pairs of stored objects are one allocation.
#[derive(Clone, Debug)]
pub struct Pair(Arc<Text>);

/// Both texts in one, so that a pair is two allocations and not three.
#[derive(Debug, PartialEq, Eq)]
struct Text {
    /// Of the other two; pairs are looked for by it.
    hash: u64,
    key_len: u32,
    text: Box<str>,
}

impl Pair {
    /// A pair that is not shared yet.
    pub fn new(key: &str, value: &str) -> Pair {
        let key_len = u32::try_from(key.len()).expect("a key is far shorter than 4 GiB");
        // This hasher has no seed: the same pair has the same hash in every process.
        let mut hasher = DefaultHasher::new();
        (key, value).hash(&mut hasher);
        Pair(Arc::new(Text { hash: hasher.finish(), key_len, text: [key, value].concat().into() }))
    }

    /// The key.
    pub fn key(&self) -> &str {
        &self.0.text[..self.0.key_len as usize]
    }

    /// The value.
    pub fn value(&self) -> &str {
        &self.0.text[self.0.key_len as usize..]
    }
}

impl PartialEq for Pair {
    fn eq(&self, other: &Pair) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Eq for Pair {}

impl PartialOrd for Pair {
    fn partial_cmp(&self, other: &Pair) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Pair {
    fn cmp(&self, other: &Pair) -> Ordering {
        (self.key(), self.value()).cmp(&(other.key(), other.value()))
    }
}

impl Entry for Pair {
    type Key = u64;
    fn key(&self) -> &u64 {
        &self.0.hash
    }
}

impl Item for Pair {
    type Fence = u64;
    fn fence(&self) -> u64 {
        self.0.hash
    }
}

/// The pairs that are in use.
#[derive(Clone, Default)]
pub struct Interner {
    pairs: Tree<Pair>,
    /// How many pairs the last purge left.
    purged: usize,
}

/// Below this many pairs a purge is not worth its time.
const PURGE_MIN: usize = 1024;

impl Interner {
    /// Replaces a pair by the equal one that is in use already, if there is one.
    pub fn intern(&mut self, pair: &mut Pair) {
        match self.pairs.get(&pair.0.hash) {
            Some(shared) if shared == pair => *pair = shared.clone(),
            // Two pairs of one hash: the second is not shared.
            Some(_) => {}
            None => {
                self.pairs.insert(pair.clone());
                if self.pairs.len() > PURGE_MIN.max(self.purged * 2) {
                    self.purge();
                }
            }
        }
    }

    /// Forgets the pairs that no object uses any more. Each purge waits until the pairs have doubled since the
    /// last one, so an intern pays for it only a constant.
    fn purge(&mut self) {
        let pairs = self.pairs.iter().cloned().collect::<Vec<_>>();
        // Before anyone counts: the old tree holds each pair too.
        self.pairs = Tree::default();
        for pair in pairs {
            if Arc::strong_count(&pair.0) > 1 {
                self.pairs.insert(pair);
            }
        }
        self.purged = self.pairs.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_pairs_become_one_and_unused_ones_are_forgotten() {
        let mut interner = Interner::default();
        let mut first = Pair::new("app", "web");
        let mut second = Pair::new("app", "web");
        interner.intern(&mut first);
        interner.intern(&mut second);
        assert!(Arc::ptr_eq(&first.0, &second.0));
        for number in 0..10 * PURGE_MIN {
            interner.intern(&mut Pair::new("pod", &number.to_string()));
        }
        assert!(interner.pairs.len() <= PURGE_MIN + 1);
        let mut third = Pair::new("app", "web");
        interner.intern(&mut third);
        assert!(Arc::ptr_eq(&first.0, &third.0));
        assert_ne!(Pair::new("a", "bc"), Pair::new("ab", "c"));
    }
}
