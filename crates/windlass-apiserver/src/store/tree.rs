//! A B+tree whose clone is one reference count, and which is written in place where nobody shares it.
//!
//! Nodes are as wide as [`WIDTH`]. A write copies the nodes on its path only where a clone still holds them, so a
//! tree that nobody has snapshotted is as cheap to write as an ordinary one, and a snapshot costs the writer one
//! copied path per leaf that it touches afterwards. Inner nodes count what is below them: a rank is a descent.

use std::borrow::Borrow;
use std::ops::Bound;
use std::sync::Arc;

/// The most entries that a node holds.
const WIDTH: usize = 64;
/// A node narrower than this is joined with its neighbour, if both together are not wider than [`JOINED`].
const NARROW: usize = WIDTH / 4;
/// How wide a joined node may be: room is left, so that the next insert does not split it again.
const JOINED: usize = WIDTH / 4 * 3;

/// What a tree holds: something that carries its own key.
pub trait Item: Clone {
    /// What the tree is ordered by.
    type Key: Ord + ?Sized;
    /// A key that inner nodes can keep without keeping the item alive.
    type Fence: Borrow<Self::Key> + Clone;
    /// The item's key.
    fn key(&self) -> &Self::Key;
    /// The item's key, to keep.
    fn fence(&self) -> Self::Fence;
}

/// An ordered set of items; see the module.
pub struct Tree<T: Item> {
    root: Arc<Node<T>>,
    len: usize,
}

enum Node<T: Item> {
    Leaf(Vec<T>),
    Inner(Vec<Child<T>>),
}

struct Child<T: Item> {
    /// No key in `node` is below it; of a node's first child it is not looked at.
    fence: T::Fence,
    /// How many items are below.
    len: usize,
    node: Arc<Node<T>>,
}

impl<T: Item> Clone for Tree<T> {
    fn clone(&self) -> Self {
        Tree { root: self.root.clone(), len: self.len }
    }
}

impl<T: Item> Default for Tree<T> {
    fn default() -> Self {
        Tree { root: Arc::new(Node::Leaf(Vec::new())), len: 0 }
    }
}

impl<T: Item> Clone for Node<T> {
    fn clone(&self) -> Self {
        match self {
            Node::Leaf(items) => Node::Leaf(items.clone()),
            Node::Inner(children) => Node::Inner(children.clone()),
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
                Node::Leaf(items) => return search(items, key).ok().map(|at| &items[at]),
                Node::Inner(children) => node = &children[route(children, key)].node,
            }
        }
    }

    /// The item of the lowest key.
    pub fn first(&self) -> Option<&T> {
        let mut node = &*self.root;
        loop {
            match node {
                Node::Leaf(items) => return items.first(),
                Node::Inner(children) => node = &children.first()?.node,
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
            self.root = Arc::new(Node::Inner(vec![left, right]));
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
                Node::Inner(children) if children.is_empty() => *self = Tree::default(),
                Node::Inner(children) if children.len() == 1 => self.root = children[0].node.clone(),
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
                Node::Leaf(items) => {
                    return before + items.partition_point(|item| !starts(start, item.key()));
                }
                Node::Inner(children) => {
                    let at = children[1..].partition_point(|child| !starts(start, child.fence.borrow()));
                    before += children[..at].iter().map(|child| child.len).sum::<usize>();
                    node = &children[at].node;
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
                Node::Leaf(items) => {
                    let at = items.partition_point(|item| !starts(start, item.key()));
                    return Range { stack, leaf: items[at..].iter(), remaining };
                }
                Node::Inner(children) => {
                    let at = children[1..].partition_point(|child| !starts(start, child.fence.borrow()));
                    stack.push(children[at + 1..].iter());
                    node = &children[at].node;
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
                    Node::Leaf(items) => self.leaf = items.iter(),
                    Node::Inner(children) => self.stack.push(children.iter()),
                },
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.remaining, Some(self.remaining))
    }
}

impl<T: Item> ExactSizeIterator for Range<'_, T> {}

fn starts<K: Ord + ?Sized>(start: Bound<&K>, key: &K) -> bool {
    match start {
        Bound::Unbounded => true,
        Bound::Included(start) => key >= start,
        Bound::Excluded(start) => key > start,
    }
}

fn search<T: Item>(items: &[T], key: &T::Key) -> Result<usize, usize> {
    items.binary_search_by(|item| item.key().cmp(key))
}

/// Which child a key belongs to.
fn route<T: Item>(children: &[Child<T>], key: &T::Key) -> usize {
    children[1..].partition_point(|child| child.fence.borrow() <= key)
}

/// Where a node that became too wide is cut. One that grew at its end is cut at its end: keys that only rise (an
/// event log, generated names) then leave full nodes behind them.
fn cut(len: usize, grew_at: usize) -> usize {
    if grew_at + 1 == len { len - 1 } else { len / 2 }
}

fn insert<T: Item>(node: &mut Node<T>, item: T) -> (Option<T>, Option<Child<T>>) {
    match node {
        Node::Leaf(items) => match search(items, item.key()) {
            Ok(at) => (Some(std::mem::replace(&mut items[at], item)), None),
            Err(at) => {
                items.insert(at, item);
                if items.len() <= WIDTH {
                    return (None, None);
                }
                let right = items.split_off(cut(items.len(), at));
                let (fence, len) = (right[0].fence(), right.len());
                (None, Some(Child { fence, len, node: Arc::new(Node::Leaf(right)) }))
            }
        },
        Node::Inner(children) => {
            let at = route(children, item.key());
            let child = &mut children[at];
            let (old, split) = insert(Arc::make_mut(&mut child.node), item);
            child.len += usize::from(old.is_none());
            let Some(right) = split else { return (old, None) };
            child.len -= right.len;
            children.insert(at + 1, right);
            if children.len() <= WIDTH {
                return (old, None);
            }
            let right = children.split_off(cut(children.len(), at + 1));
            let (fence, len) = (right[0].fence.clone(), right.iter().map(|child| child.len).sum());
            (old, Some(Child { fence, len, node: Arc::new(Node::Inner(right)) }))
        }
    }
}

/// Takes out an item that is known to be there.
fn remove<T: Item>(node: &mut Node<T>, key: &T::Key) -> T {
    match node {
        Node::Leaf(items) => {
            let at = search(items, key).expect("the tree was asked for the key before");
            items.remove(at)
        }
        Node::Inner(children) => {
            let at = route(children, key);
            let child = &mut children[at];
            let item = remove(Arc::make_mut(&mut child.node), key);
            child.len -= 1;
            if child.len == 0 {
                children.remove(at);
            } else if child.node.width() < NARROW {
                join(children, at);
            }
            item
        }
    }
}

/// Joins a narrow child with a neighbour, if there is one that is not too wide.
fn join<T: Item>(children: &mut Vec<Child<T>>, narrow: usize) {
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
    let right = children.remove(left + 1);
    let child = &mut children[left];
    child.len += right.len;
    match (Arc::make_mut(&mut child.node), Arc::unwrap_or_clone(right.node)) {
        (Node::Leaf(items), Node::Leaf(more)) => items.extend(more),
        (Node::Inner(below), Node::Inner(mut more)) => {
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
            Node::Leaf(items) => items.len(),
            Node::Inner(children) => children.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    impl Item for u32 {
        type Key = u32;
        type Fence = u32;
        fn key(&self) -> &u32 {
            self
        }
        fn fence(&self) -> u32 {
            *self
        }
    }

    /// Checks what the tree promises of its own shape, and returns the depth.
    fn check(node: &Node<u32>, low: Option<u32>, high: Option<u32>) -> usize {
        assert!(node.width() <= WIDTH);
        match node {
            Node::Leaf(items) => {
                assert!(items.iter().all(|item| low.is_none_or(|low| low <= *item)));
                assert!(items.iter().all(|item| high.is_none_or(|high| *item < high)));
                0
            }
            Node::Inner(children) => {
                let mut depths = BTreeSet::new();
                for (at, child) in children.iter().enumerate() {
                    let low = if at == 0 { low } else { Some(child.fence) };
                    let high = children.get(at + 1).map(|next| next.fence).or(high);
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
            rising in any::<bool>(),
            keep in 0usize..6000,
        ) {
            let (mut tree, mut model) = (Tree::default(), BTreeSet::new());
            let mut kept = None;
            for (at, (key, what)) in steps.iter().enumerate() {
                let key = if rising && *what < 4 { at as u32 } else { *key };
                // Half of the time more goes in, then more goes out, so that joins are reached.
                let insert = if at < steps.len() / 2 { *what < 6 } else { *what < 2 };
                if insert {
                    prop_assert_eq!(tree.insert(key).is_none(), model.insert(key));
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
                for key in (0..3000).step_by(37) {
                    prop_assert_eq!(tree.get(&key), model.get(&key));
                    prop_assert_eq!(tree.rank(Bound::Included(&key)), model.range(..key).count());
                    prop_assert_eq!(tree.rank(Bound::Excluded(&key)), model.range(..=key).count());
                    let range = tree.range(Bound::Excluded(&key), Some(Bound::Included(&(key + 500))));
                    prop_assert!(range.eq(model.range((Bound::Excluded(key), Bound::Excluded(key + 500)))));
                }
            }
        }
    }

    #[test]
    fn rising_keys_fill_their_nodes() {
        let mut tree = Tree::default();
        for key in 0..6400u32 {
            tree.insert(key);
        }
        let Node::Inner(children) = &*tree.root else { panic!("6400 items need an inner node") };
        let leaves = children.iter().map(|child| match &*child.node {
            Node::Leaf(_) => 1,
            Node::Inner(below) => below.len(),
        });
        assert_eq!(leaves.sum::<usize>(), 6400 / WIDTH);
    }
}
