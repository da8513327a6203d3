//! A sorted row of entries that is searched without following a pointer for each comparison.
//!
//! The keys of a row have most of their beginning in common (`ns-1/web-6d4cf56db6-…`). The row keeps that prefix
//! once, and of each key the eight bytes after it as a number. A search is then over numbers that lie side by side,
//! and looks at a key itself only where the numbers are equal. In a large tree each of those looks would be a cache
//! miss or two, and they are what a search costs.

use std::cmp::Ordering;

/// What rows are ordered by.
pub trait Key: Ord {
    /// How many bytes at the beginning two keys have in common; less than that is allowed too.
    fn common(&self, other: &Self) -> usize;
    /// The first bytes.
    fn prefix(&self, len: usize) -> Box<[u8]>;
    /// How the first bytes compare with a prefix.
    fn against(&self, prefix: &[u8]) -> Ordering;
    /// A number of what follows the first bytes: among keys that share those, a lower key has no higher number.
    fn tag(&self, skip: usize) -> u64;
}

impl Key for str {
    fn common(&self, other: &str) -> usize {
        self.bytes().zip(other.bytes()).take_while(|(left, right)| left == right).count()
    }

    fn prefix(&self, len: usize) -> Box<[u8]> {
        self.as_bytes()[..len].into()
    }

    fn against(&self, prefix: &[u8]) -> Ordering {
        let bytes = self.as_bytes();
        bytes[..bytes.len().min(prefix.len())].cmp(prefix)
    }

    fn tag(&self, skip: usize) -> u64 {
        let mut tag = [0; 8];
        let rest = &self.as_bytes()[skip..];
        let len = rest.len().min(tag.len());
        tag[..len].copy_from_slice(&rest[..len]);
        u64::from_be_bytes(tag)
    }
}

/// A number is its own tag, and has no prefix.
impl Key for u64 {
    fn common(&self, _: &u64) -> usize {
        0
    }

    fn prefix(&self, _: usize) -> Box<[u8]> {
        Box::default()
    }

    fn against(&self, _: &[u8]) -> Ordering {
        Ordering::Equal
    }

    fn tag(&self, _: usize) -> u64 {
        *self
    }
}

/// What is in a row: something that has a key.
pub trait Entry: Clone {
    /// What the row is ordered by.
    type Key: Key + ?Sized;
    /// The entry's key.
    fn key(&self) -> &Self::Key;
}

/// A sorted row; see the module. Keys do not fall from one entry to the next.
#[derive(Clone)]
pub struct Row<E> {
    entries: Vec<E>,
    /// What all keys begin with.
    prefix: Box<[u8]>,
    /// Of each key the number of what follows the prefix.
    tags: Vec<u64>,
}

impl<E: Entry> Row<E> {
    /// A row of sorted entries.
    pub fn new(entries: Vec<E>) -> Row<E> {
        let prefix = match (entries.first(), entries.last()) {
            (Some(first), Some(last)) => first.key().prefix(first.key().common(last.key())),
            _ => Box::default(),
        };
        let tags = entries.iter().map(|entry| entry.key().tag(prefix.len())).collect();
        Row { entries, prefix, tags }
    }

    /// The entries.
    pub fn entries(&self) -> &[E] {
        &self.entries
    }

    /// An entry, whose key must stay what it is.
    pub fn entry_mut(&mut self, at: usize) -> &mut E {
        &mut self.entries[at]
    }

    /// How many keys are below a key, or also equal to it.
    pub fn below(&self, key: &E::Key, or_equal: bool) -> usize {
        match key.against(&self.prefix) {
            Ordering::Less => return 0,
            Ordering::Greater => return self.entries.len(),
            Ordering::Equal => {}
        }
        let tag = key.tag(self.prefix.len());
        let start = self.tags.partition_point(|other| *other < tag);
        let alike = self.tags[start..].partition_point(|other| *other == tag);
        start
            + self.entries[start..start + alike].partition_point(|entry| match entry.key().cmp(key) {
                Ordering::Less => true,
                Ordering::Equal => or_equal,
                Ordering::Greater => false,
            })
    }

    /// Where the entry of a key is, or where it would be.
    pub fn search(&self, key: &E::Key) -> Result<usize, usize> {
        let at = self.below(key, false);
        match self.entries.get(at) {
            Some(entry) if entry.key() == key => Ok(at),
            _ => Err(at),
        }
    }

    /// Puts an entry where it belongs.
    pub fn insert(&mut self, at: usize, entry: E) {
        if self.entries.is_empty() || entry.key().against(&self.prefix).is_ne() {
            // The keys have less in common than they had. It can only become less, so this is rare.
            self.entries.insert(at, entry);
            *self = Row::new(std::mem::take(&mut self.entries));
        } else {
            self.tags.insert(at, entry.key().tag(self.prefix.len()));
            self.entries.insert(at, entry);
        }
    }

    /// Takes an entry out.
    pub fn remove(&mut self, at: usize) -> E {
        self.tags.remove(at);
        self.entries.remove(at)
    }

    /// Cuts the row in two; the end comes back.
    pub fn split_off(&mut self, at: usize) -> Row<E> {
        let right = Row::new(self.entries.split_off(at));
        *self = Row::new(std::mem::take(&mut self.entries));
        right
    }

    /// Puts sorted entries at the end.
    pub fn extend(&mut self, more: impl IntoIterator<Item = E>) {
        self.entries.extend(more);
        *self = Row::new(std::mem::take(&mut self.entries));
    }

    /// The entries, to keep.
    pub fn into_entries(self) -> Vec<E> {
        self.entries
    }
}
