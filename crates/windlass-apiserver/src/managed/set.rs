//! Sets of fields.

use super::element::PathElement;

/// A set of fields of an object, as a tree of path elements.
///
/// A path may be a member whether or not its parents and children are: owning `.metadata.labels` does not mean
/// owning `.metadata.labels.app`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set {
    /// Sorted by element, each element once; a node that is no member has children.
    nodes: Vec<Node>,
}

/// A path element in a [`Set`], and what is below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub element: PathElement,
    pub member: bool,
    pub children: Set,
}

impl Node {
    /// A member without children.
    pub fn leaf(element: PathElement) -> Node {
        Node { element, member: true, children: Set::default() }
    }

    fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }
}

impl Set {
    /// The set of these paths of field names.
    pub fn from_paths<'a>(paths: impl IntoIterator<Item = &'a [&'a str]>) -> Set {
        let mut set = Set::default();
        for path in paths {
            set.insert(path.iter().map(|&name| PathElement::Field(name.to_owned())));
        }
        set
    }

    /// A set of nodes in any order; nodes of the same element become one.
    pub(super) fn from_nodes(mut nodes: Vec<Node>) -> Set {
        nodes.retain(|node| !node.is_empty());
        if !nodes.is_sorted_by(|a, b| a.element < b.element) {
            nodes.sort_by(|a, b| a.element.cmp(&b.element));
            let mut merged: Vec<Node> = Vec::with_capacity(nodes.len());
            for node in nodes {
                match merged.last_mut() {
                    Some(last) if last.element == node.element => {
                        last.member |= node.member;
                        last.children = std::mem::take(&mut last.children).union(node.children);
                    }
                    _ => merged.push(node),
                }
            }
            nodes = merged;
        }
        Set { nodes }
    }

    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub(super) fn into_nodes(self) -> Vec<Node> {
        self.nodes
    }

    pub(super) fn get(&self, element: &PathElement) -> Option<&Node> {
        let position = self.nodes.binary_search_by(|node| node.element.cmp(element)).ok()?;
        Some(&self.nodes[position])
    }

    /// Makes a path a member. The empty path, the object itself, is never one.
    pub fn insert(&mut self, path: impl IntoIterator<Item = PathElement>) {
        let mut path = path.into_iter().peekable();
        let mut set = self;
        while let Some(element) = path.next() {
            let position = match set.nodes.binary_search_by(|node| node.element.cmp(&element)) {
                Ok(position) => position,
                Err(position) => {
                    let node = Node { element, member: false, children: Set::default() };
                    set.nodes.insert(position, node);
                    position
                }
            };
            let node = &mut set.nodes[position];
            node.member |= path.peek().is_none();
            set = &mut node.children;
        }
    }

    /// Whether the path is a member.
    pub fn contains(&self, path: &[PathElement]) -> bool {
        let mut set = self;
        for (i, element) in path.iter().enumerate() {
            match set.get(element) {
                Some(node) if i + 1 == path.len() => return node.member,
                Some(node) => set = &node.children,
                None => return false,
            }
        }
        false
    }

    /// Whether nothing is a member.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Whether every member of `self` is one of `other`.
    pub fn is_subset(&self, other: &Set) -> bool {
        self.nodes.len() <= other.nodes.len()
            && self.nodes.iter().all(|node| {
                other.get(&node.element).is_some_and(|theirs| {
                    (theirs.member || !node.member) && node.children.is_subset(&theirs.children)
                })
            })
    }

    /// The members of either.
    pub fn union(mut self, other: Set) -> Set {
        if self.nodes.is_empty() {
            return other;
        }
        if other.nodes.is_empty() {
            return self;
        }
        let mut out = Vec::with_capacity(self.nodes.len().max(other.nodes.len()));
        let mut ours = std::mem::take(&mut self.nodes).into_iter().peekable();
        for mut node in other.nodes {
            while let Some(smaller) = ours.next_if(|ours| ours.element < node.element) {
                out.push(smaller);
            }
            if let Some(equal) = ours.next_if(|ours| ours.element == node.element) {
                node.member |= equal.member;
                node.children = equal.children.union(node.children);
            }
            out.push(node);
        }
        out.extend(ours);
        Set { nodes: out }
    }

    /// The members of any of the sets. Pairs are joined, so that many small sets do not cost their number squared.
    pub fn union_all(mut sets: Vec<Set>) -> Set {
        while sets.len() > 1 {
            let mut pairs = sets.into_iter();
            let mut joined = Vec::with_capacity(pairs.len().div_ceil(2));
            while let Some(first) = pairs.next() {
                joined.push(first.union(pairs.next().unwrap_or_default()));
            }
            sets = joined;
        }
        sets.pop().unwrap_or_default()
    }

    /// The members of both.
    pub fn intersection(self, other: &Set) -> Set {
        self.zip(other, |node, theirs| match theirs {
            Some(theirs) => {
                node.member &= theirs.member;
                node.children = std::mem::take(&mut node.children).intersection(&theirs.children);
            }
            None => {
                node.member = false;
                node.children = Set::default();
            }
        })
    }

    /// The members of `self` that are none of `other`.
    pub fn difference(self, other: &Set) -> Set {
        self.zip(other, |node, theirs| {
            if let Some(theirs) = theirs {
                node.member &= !theirs.member;
                node.children = std::mem::take(&mut node.children).difference(&theirs.children);
            }
        })
    }

    /// The members of `self` that are none of `other` and below none of them.
    pub fn recursive_difference(self, other: &Set) -> Set {
        self.zip(other, |node, theirs| match theirs {
            Some(theirs) if theirs.member => {
                node.member = false;
                node.children = Set::default();
            }
            Some(theirs) => {
                node.children = std::mem::take(&mut node.children).recursive_difference(&theirs.children);
            }
            None => {}
        })
    }

    /// Every member's path, as kube-apiserver walks them: those of a level before those below it.
    pub fn paths(&self) -> Vec<Vec<PathElement>> {
        let mut out = Vec::new();
        self.collect(&mut Vec::new(), &mut out);
        out
    }

    fn collect(&self, prefix: &mut Vec<PathElement>, out: &mut Vec<Vec<PathElement>>) {
        for node in self.nodes.iter().filter(|node| node.member) {
            let mut path = prefix.clone();
            path.push(node.element.clone());
            out.push(path);
        }
        for node in self.nodes.iter().filter(|node| !node.children.is_empty()) {
            prefix.push(node.element.clone());
            node.children.collect(prefix, out);
            prefix.pop();
        }
    }

    /// Changes each node by what `other` has at the same place, and drops those that became empty.
    fn zip(mut self, other: &Set, mut change: impl FnMut(&mut Node, Option<&Node>)) -> Set {
        // Many small sets may meet a large one: then it is searched, not walked.
        if self.nodes.len() < other.nodes.len() / 8 {
            self.nodes.retain_mut(|node| {
                change(node, other.get(&node.element));
                !node.is_empty()
            });
            return self;
        }
        let mut theirs = other.nodes.iter().peekable();
        self.nodes.retain_mut(|node| {
            while theirs.next_if(|theirs| theirs.element < node.element).is_some() {}
            change(node, theirs.next_if(|theirs| theirs.element == node.element));
            !node.is_empty()
        });
        self
    }
}
