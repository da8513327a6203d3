//! A B+tree whose clone is one reference count, and which is written in place where nobody shares it.
//!
//! Nodes are as wide as [`WIDTH`]. A write copies the nodes on its path only where a clone still holds them, so a
//! tree that nobody has snapshotted is as cheap to write as an ordinary one, and a snapshot costs the writer one
//! copied path per leaf that it touches afterwards. Inner nodes count what is below them: a rank is a descent.

use std::borrow::Borrow;
use std::ops::Bound;
use std::sync::Arc;

use super::row::{Entry, Row};

/// The most entries that a node holds.
const WIDTH: usize = 64;
/// A node narrower than this is joined with its neighbour, if both together are not wider than [`JOINED`].
const NARROW: usize = WIDTH / 4;
/// How wide a joined node may be: room is left, so that the next insert does not split it again.
const JOINED: usize = WIDTH / 4 * 3;

/// What a tree holds: something that carries its own key.
pub trait Item: Entry {
    /// A key that inner nodes can keep without keeping the item alive.
    type Fence: Borrow<Self::Key> + Clone;
    /// The item's key, to keep.
    fn fence(&self) -> Self::Fence;
}

/// An ordered set of items; see the module.
pub struct Tree<T: Item> {
    root: Arc<Node<T>>,
    len: usize,
}

enum Node<T: Item> {
    Leaf(Row<T>),
    Inner(Row<Child<T>>),
}

struct Child<T: Item> {
    /// No key in `node` is below it, but in a node's first child. Fences do not fall from child to child.
    fence: T::Fence,
    /// How many items are below.
    len: usize,
    node: Arc<Node<T>>,
}

impl<T: Item> Entry for Child<T> {
    type Key = T::Key;
    fn key(&self) -> &T::Key {
        self.fence.borrow()
    }
}

impl<T: Item> Clone for Tree<T> {
    fn clone(&self) -> Self {
        Tree { root: self.root.clone(), len: self.len }
    }
}

impl<T: Item> Default for Tree<T> {
    fn default() -> Self {
        Tree { root: Arc::new(Node::Leaf(Row::new(Vec::new()))), len: 0 }
    }
}

impl<T: Item> Clone for Node<T> {
    fn clone(&self) -> Self {
        match self {
            Node::Leaf(row) => Node::Leaf(row.clone()),
            Node::Inner(row) => Node::Inner(row.clone()),
        }
    }
}

impl<T: Item> Clone for Child<T> {
    fn clone(&self) -> Self {
        Child { fence: self.fence.clone(), len: self.len, node: self.node.clone() }
    }
}

impl<T: Item> Tree<T> {
    /// How many items there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The item of this key.
    pub fn get(&self, key: &T::Key) -> Option<&T> {
        let mut node = &*self.root;
        loop {
            match node {
                Node::Leaf(row) => return row.search(key).ok().map(|at| &row.entries()[at]),
                Node::Inner(row) => node = &row.entries()[route(row, key)].node,
            }
        }
    }

    /// The item of the lowest key.
    pub fn first(&self) -> Option<&T> {
        let mut node = &*self.root;
        loop {
            match node {
                Node::Leaf(row) => return row.entries().first(),
                Node::Inner(row) => node = &row.entries().first()?.node,
            }
        }
    }

    /// Puts an item in its place; the one that was there comes back.
    pub fn insert(&mut self, item: T) -> Option<T> {
        let (old, split) = insert(Arc::make_mut(&mut self.root), item);
        self.len += usize::from(old.is_none());
        if let Some(right) = split {
            let left =
                Child { fence: right.fence.clone(), len: self.len - right.len, node: self.root.clone() };
            self.root = Arc::new(Node::Inner(Row::new(vec![left, right])));
        }
        old
    }

    /// Takes the item of this key out.
    pub fn remove(&mut self, key: &T::Key) -> Option<T> {
        // Looking first keeps a miss from copying a shared path.
        self.get(key)?;
        let item = remove(Arc::make_mut(&mut self.root), key);
        self.len -= 1;
        loop {
            match &*self.root {
                Node::Inner(row) if row.entries().is_empty() => *self = Tree::default(),
                Node::Inner(row) if row.entries().len() == 1 => self.root = row.entries()[0].node.clone(),
                _ => return Some(item),
            }
        }
    }

    /// How many items lie before this start.
    pub fn rank(&self, start: Bound<&T::Key>) -> usize {
        let mut before = 0;
        let mut node = &*self.root;
        loop {
            match node {
                Node::Leaf(row) => return before + outside(row, start),
                Node::Inner(row) => {
                    let at = outside(row, start).max(1) - 1;
                    before += row.entries()[..at].iter().map(|child| child.len).sum::<usize>();
                    node = &row.entries()[at].node;
                }
            }
        }
    }

    /// The items from `start` on, as long as they are before `end`; `end` is told as the start of what follows.
    pub fn range(&self, start: Bound<&T::Key>, end: Option<Bound<&T::Key>>) -> Range<'_, T> {
        let upto = end.map_or(self.len, |end| self.rank(end));
        let remaining = upto.saturating_sub(self.rank(start));
        let mut stack = Vec::new();
        let mut node = &*self.root;
        loop {
            match node {
                Node::Leaf(row) => {
                    return Range { stack, leaf: row.entries()[outside(row, start)..].iter(), remaining };
                }
                Node::Inner(row) => {
                    let at = outside(row, start).max(1) - 1;
                    stack.push(row.entries()[at + 1..].iter());
                    node = &row.entries()[at].node;
                }
            }
        }
    }

    /// All items in order.
    pub fn iter(&self) -> Range<'_, T> {
        self.range(Bound::Unbounded, None)
    }
}

/// Items in order; made by [`Tree::range`].
pub struct Range<'a, T: Item> {
    stack: Vec<std::slice::Iter<'a, Child<T>>>,
    leaf: std::slice::Iter<'a, T>,
    remaining: usize,
}

impl<'a, T: Item> Iterator for Range<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        self.remaining = self.remaining.checked_sub(1)?;
        loop {
            if let Some(item) = self.leaf.next() {
                return Some(item);
            }
            match self.stack.last_mut()?.next() {
                None => drop(self.stack.pop()),
                Some(child) => match &*child.node {
                    Node::Leaf(row) => self.leaf = row.entries().iter(),
                    Node::Inner(row) => self.stack.push(row.entries().iter()),
                },
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.remaining, Some(self.remaining))
    }
}

impl<T: Item> ExactSizeIterator for Range<'_, T> {}

/// How many keys of a row lie before a start.
fn outside<E: Entry>(row: &Row<E>, start: Bound<&E::Key>) -> usize {
    match start {
        Bound::Unbounded => 0,
        Bound::Included(key) => row.below(key, false),
        Bound::Excluded(key) => row.below(key, true),
    }
}

/// Which child a key belongs to: the last whose fence is not above it, or the first.
fn route<T: Item>(row: &Row<Child<T>>, key: &T::Key) -> usize {
    row.below(key, true).max(1) - 1
}

/// Where a node that became too wide is cut. One that grew at its end is cut at its end: keys that only rise (an
/// event log, generated names) then leave full nodes behind them.
fn cut(len: usize, grew_at: usize) -> usize {
    if grew_at + 1 == len { len - 1 } else { len / 2 }
}

fn insert<T: Item>(node: &mut Node<T>, item: T) -> (Option<T>, Option<Child<T>>) {
    match node {
        Node::Leaf(row) => match row.search(item.key()) {
            Ok(at) => (Some(std::mem::replace(row.entry_mut(at), item)), None),
            Err(at) => {
                row.insert(at, item);
                let len = row.entries().len();
                if len <= WIDTH {
                    return (None, None);
                }
                let right = row.split_off(cut(len, at));
                let (fence, len) = (right.entries()[0].fence(), right.entries().len());
                (None, Some(Child { fence, len, node: Arc::new(Node::Leaf(right)) }))
            }
        },
        Node::Inner(row) => {
            let at = route(row, item.key());
            let child = row.entry_mut(at);
            let (old, split) = insert(Arc::make_mut(&mut child.node), item);
            child.len += usize::from(old.is_none());
            let Some(right) = split else { return (old, None) };
            child.len -= right.len;
            if at == 0 && right.fence.borrow() < child.fence.borrow() {
                // The first child takes keys below its fence; the row has to stay sorted all the same.
                let first = row.remove(0);
                row.insert(0, Child { fence: right.fence.clone(), ..first });
            }
            row.insert(at + 1, right);
            let len = row.entries().len();
            if len <= WIDTH {
                return (old, None);
            }
            let right = row.split_off(cut(len, at + 1));
            let (fence, len) =
                (right.entries()[0].fence.clone(), right.entries().iter().map(|child| child.len).sum());
            (old, Some(Child { fence, len, node: Arc::new(Node::Inner(right)) }))
        }
    }
}

/// Takes out an item that is known to be there.
fn remove<T: Item>(node: &mut Node<T>, key: &T::Key) -> T {
    match node {
        Node::Leaf(row) => {
            let at = row.search(key).expect("the tree was asked for the key before");
            row.remove(at)
        }
        Node::Inner(row) => {
            let at = route(row, key);
            let child = row.entry_mut(at);
            let item = remove(Arc::make_mut(&mut child.node), key);
            child.len -= 1;
            if child.len == 0 {
                row.remove(at);
            } else if child.node.width() < NARROW {
                join(row, at);
            }
            item
        }
    }
}

/// Joins a narrow child with a neighbour, if there is one that is not too wide.
fn join<T: Item>(row: &mut Row<Child<T>>, narrow: usize) {
    let children = row.entries();
    let fits = |left: usize| {
        left + 1 < children.len() && children[left].node.width() + children[left + 1].node.width() <= JOINED
    };
    let left = if fits(narrow) {
        narrow
    } else if narrow > 0 && fits(narrow - 1) {
        narrow - 1
    } else {
        return;
    };
    let right = row.remove(left + 1);
    let child = row.entry_mut(left);
    child.len += right.len;
    match (Arc::make_mut(&mut child.node), Arc::unwrap_or_clone(right.node)) {
        (Node::Leaf(items), Node::Leaf(more)) => items.extend(more.into_entries()),
        (Node::Inner(below), Node::Inner(more)) => {
            let mut more = more.into_entries();
            // Of a first child only the parent knew the true fence.
            more[0].fence = right.fence;
            below.extend(more);
        }
        _ => unreachable!("all leaves are equally deep"),
    }
}

impl<T: Item> Node<T> {
    fn width(&self) -> usize {
        match self {
            Node::Leaf(row) => row.entries().len(),
            Node::Inner(row) => row.entries().len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    impl Entry for Arc<str> {
        type Key = str;
        fn key(&self) -> &str {
            self
        }
    }

    impl Item for Arc<str> {
        type Fence = Arc<str>;
        fn fence(&self) -> Arc<str> {
            self.clone()
        }
    }

    /// Keys with much in common, of several lengths, some the beginning of others.
    fn key(number: u32) -> Arc<str> {
        let namespace = ["a", "a-b", "a0", "longer-namespace"][number as usize % 4];
        let name = ["web-6d4cf56db6-", "x", "", "web-"][number as usize / 4 % 4];
        format!("{namespace}/{name}{:0width$}", number / 16, width = number as usize % 3 * 2).into()
    }

    /// Checks what the tree promises of its own shape, and returns the depth.
    fn check(node: &Node<Arc<str>>, low: Option<&str>, high: Option<&str>) -> usize {
        assert!(node.width() <= WIDTH);
        match node {
            Node::Leaf(row) => {
                assert!(row.entries().iter().all(|item| low.is_none_or(|low| *low <= **item)));
                assert!(row.entries().iter().all(|item| high.is_none_or(|high| **item < *high)));
                0
            }
            Node::Inner(row) => {
                let children = row.entries();
                assert!(children.is_sorted_by_key(|child| &child.fence));
                let mut depths = BTreeSet::new();
                for (at, child) in children.iter().enumerate() {
                    let low = if at == 0 { low } else { Some(&*child.fence) };
                    let high = children.get(at + 1).map(|next| &*next.fence).or(high);
                    depths.insert(check(&child.node, low, high));
                    assert_eq!(child.len, Tree { root: child.node.clone(), len: child.len }.iter().count());
                }
                assert_eq!(depths.len(), 1);
                depths.first().expect("an inner node has children") + 1
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn behaves_as_a_set_and_clones_stay(
            steps in prop::collection::vec((0u32..3000, 0u8..8), 1..6000),
            order in 0..3,
            keep in 0usize..6000,
        ) {
            let (mut tree, mut model) = (Tree::default(), BTreeSet::new());
            let mut kept = None;
            for (at, (number, what)) in steps.iter().enumerate() {
                let key = match order {
                    0 if *what < 4 => key(at as u32),
                    1 if *what < 4 => key(6000 - at as u32),
                    _ => key(*number),
                };
                // Half of the time more goes in, then more goes out, so that joins are reached.
                let insert = if at < steps.len() / 2 { *what < 6 } else { *what < 2 };
                if insert {
                    prop_assert_eq!(tree.insert(key.clone()).is_none(), model.insert(key));
                } else {
                    prop_assert_eq!(tree.remove(&key).is_some(), model.remove(&key));
                }
                if at == keep {
                    kept = Some((tree.clone(), model.clone()));
                }
            }
            for (tree, model) in kept.into_iter().chain([(tree, model)]) {
                check(&tree.root, None, None);
                prop_assert_eq!(tree.len(), model.len());
                prop_assert_eq!(tree.first(), model.first());
                prop_assert!(tree.iter().eq(model.iter()));
                let others = ["", "a", "a/", "a-", "b", "a/web-6d4cf56db6-", "longer-namespace/x1", "z"];
                let asked = (0..3000).step_by(37).map(key).chain(others.map(Arc::from));
                for (key, end) in asked.zip((0..3000).rev().step_by(31).map(key)) {
                    prop_assert_eq!(tree.get(&key), model.get(&key));
                    let below = model.range::<str, _>((Bound::Unbounded, Bound::Excluded(&*key))).count();
                    prop_assert_eq!(tree.rank(Bound::Included(&key)), below);
                    let upto = model.range::<str, _>((Bound::Unbounded, Bound::Included(&*key))).count();
                    prop_assert_eq!(tree.rank(Bound::Excluded(&key)), upto);
                    let range = tree.range(Bound::Excluded(&key), Some(Bound::Included(&end)));
                    prop_assert!(range.eq(model.iter().filter(|item| **item > key && **item < end)));
                }
            }
        }
    }

    #[test]
    fn rising_keys_fill_their_nodes() {
        let mut tree = Tree::default();
        for number in 0..6400 {
            tree.insert(Arc::<str>::from(format!("{number:05}")));
        }
        let Node::Inner(row) = &*tree.root else { panic!("6400 items need an inner node") };
        let leaves = row.entries().iter().map(|child| match &*child.node {
            Node::Leaf(_) => 1,
            Node::Inner(below) => below.entries().len(),
        });
        assert_eq!(leaves.sum::<usize>(), 6400 / WIDTH);
    }
}
