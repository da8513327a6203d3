//! Who owns whom, by uid.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use windlass_core::{Kind, ObjectKey};

/// The finalizer of an object that waits until its dependents are gone.
pub(super) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of an object whose dependents are to stay.
pub(super) const ORPHAN: &str = "orphan";

/// A uid.
pub(super) type Uid = Arc<str>;

/// All objects that are watched, and which of them depend on which. What is not in it may be there all the same: only the
/// server can say that it is not.
#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: BTreeMap<Uid, Node>,
    /// The owner and the dependent, whether or not the owner is known.
    edges: BTreeSet<(Uid, Uid)>,
}

/// One object.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub kind: Arc<Kind>,
    pub key: ObjectKey,
    pub owners: Vec<OwnerReference>,
    /// It is being deleted.
    pub ends: bool,
    /// It is being deleted, after its dependents.
    pub foreground: bool,
    /// It is being deleted, and its dependents are to stay.
    pub orphan: bool,
}

impl Node {
    fn new(kind: &Arc<Kind>, meta: &ObjectMeta) -> Node {
        let ends = meta.deletion_timestamp.is_some();
        Node {
            kind: kind.clone(),
            key: ObjectKey::of(meta),
            owners: meta.owner_references.clone().unwrap_or_default(),
            ends,
            foreground: ends && has_finalizer(meta, FOREGROUND),
            orphan: ends && has_finalizer(meta, ORPHAN),
        }
    }

    /// Whether a reference of an object in this namespace can mean this object: by its names, and where it is.
    pub fn is_meant_by(&self, reference: &OwnerReference, namespace: Option<&str>) -> bool {
        let resource = &self.kind.resource;
        reference.name == self.key.name()
            && reference.kind == resource.kind
            && reference.api_version == resource.api_version
            && self.is_in_reach_of(namespace)
    }

    /// Whether it may own something in this namespace.
    pub fn is_in_reach_of(&self, namespace: Option<&str>) -> bool {
        self.key.namespace().is_none_or(|own| namespace == Some(own))
    }

    /// Whether it keeps this owner from being gone before it.
    pub fn blocks(&self, owner: &str) -> bool {
        self.owners.iter().any(|reference| &*reference.uid == owner && blocks(reference))
    }
}

impl Graph {
    pub fn get(&self, uid: &str) -> Option<&Node> {
        self.nodes.get(uid)
    }

    /// The objects that have an owner of this uid.
    pub fn dependents<'a>(&'a self, owner: &'a str) -> impl Iterator<Item = (&'a Uid, &'a Node)> {
        let from: (Uid, Uid) = (owner.into(), "".into());
        let edges = self.edges.range(from..).take_while(move |(of, _)| &**of == owner);
        edges.filter_map(|(_, uid)| Some((uid, self.nodes.get(uid)?)))
    }

    /// An object is there, as it is now. The answer is who has to be looked at because of that.
    pub fn put(&mut self, kind: &Arc<Kind>, meta: &ObjectMeta) -> BTreeSet<Uid> {
        let mut look = BTreeSet::new();
        let Some(uid) = meta.uid.as_deref().map(Uid::from) else { return look };
        let new = Node::new(kind, meta);
        let old = self.nodes.remove(&uid);
        let before = old.as_ref().map(|old| old.owners.as_slice()).unwrap_or_default();
        for gone in before.iter().filter(|reference| !new.owners.contains(reference)) {
            self.edges.remove(&(gone.uid.as_str().into(), uid.clone()));
            // It may have been the last that its owner waits for.
            if self.nodes.get(gone.uid.as_str()).is_some_and(|owner| owner.foreground) {
                look.insert(gone.uid.as_str().into());
            }
        }
        for reference in &new.owners {
            self.edges.insert((reference.uid.as_str().into(), uid.clone()));
            let is_new = !before.contains(reference);
            if is_new && !self.is_plain(reference, &new) {
                look.insert(uid.clone());
            }
        }
        let started = |is: bool, was: Option<bool>| is && was != Some(true);
        let waits = started(new.foreground, old.as_ref().map(|old| old.foreground));
        if waits || started(new.orphan, old.as_ref().map(|old| old.orphan)) {
            look.insert(uid.clone());
        }
        let first = old.is_none();
        let dependents = self.dependents(&uid).filter(|(_, dependent)| {
            let is_meant = |reference: &OwnerReference| {
                *reference.uid != *uid || new.is_meant_by(reference, dependent.key.namespace())
            };
            waits || (first && !dependents_mean(dependent, is_meant))
        });
        look.extend(dependents.map(|(uid, _)| uid.clone()));
        self.nodes.insert(uid, new);
        look
    }

    /// An object is gone from what is watched of a kind.
    pub fn remove(&mut self, kind: &Kind, meta: &ObjectMeta) -> BTreeSet<Uid> {
        let mut look = BTreeSet::new();
        let Some(uid) = meta.uid.as_deref() else { return look };
        // A resource that is watched in another version by now is not gone because the old version is.
        if self.nodes.get(uid).is_none_or(|node| *node.kind != *kind) {
            return look;
        }
        let Some((uid, node)) = self.nodes.remove_entry(uid) else { return look };
        for reference in &node.owners {
            self.edges.remove(&(reference.uid.as_str().into(), uid.clone()));
            if self.nodes.get(reference.uid.as_str()).is_some_and(|owner| owner.foreground) {
                look.insert(reference.uid.as_str().into());
            }
        }
        look.extend(self.dependents(&uid).map(|(uid, _)| uid.clone()));
        look
    }

    /// Whether a reference of an object is to one that is there and stays.
    pub fn is_plain(&self, reference: &OwnerReference, of: &Node) -> bool {
        let owner = self.nodes.get(reference.uid.as_str());
        owner.is_some_and(|owner| !owner.foreground && owner.is_meant_by(reference, of.key.namespace()))
    }
}

fn dependents_mean(dependent: &Node, is_meant: impl Fn(&OwnerReference) -> bool) -> bool {
    dependent.owners.iter().all(is_meant)
}

/// Whether an object has this finalizer.
pub(super) fn has_finalizer(meta: &ObjectMeta, finalizer: &str) -> bool {
    meta.finalizers.as_deref().unwrap_or_default().iter().any(|one| one == finalizer)
}

/// Whether a dependent keeps its owner from being gone before it.
fn blocks(reference: &OwnerReference) -> bool {
    reference.block_owner_deletion == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    fn kind() -> Arc<Kind> {
        Arc::new(Kind::of::<ConfigMap>())
    }

    fn object(uid: &str, owners: &[&str]) -> ObjectMeta {
        let reference = |owner: &&str| OwnerReference {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            name: format!("name-{owner}"),
            uid: (*owner).to_owned(),
            block_owner_deletion: Some(true),
            controller: None,
        };
        ObjectMeta {
            name: Some(format!("name-{uid}")),
            namespace: Some("default".into()),
            uid: Some(uid.to_owned()),
            owner_references: Some(owners.iter().map(reference).collect()),
            ..ObjectMeta::default()
        }
    }

    fn names(look: BTreeSet<Uid>) -> Vec<String> {
        look.iter().map(|uid| (**uid).to_owned()).collect()
    }

    #[test]
    fn an_owner_that_goes_is_a_look_at_what_depends_on_it() {
        let mut graph = Graph::default();
        assert_eq!(names(graph.put(&kind(), &object("a", &[]))), [""; 0]);
        assert_eq!(names(graph.put(&kind(), &object("b", &["a"]))), [""; 0], "its owner is there");
        assert_eq!(names(graph.put(&kind(), &object("c", &["x"]))), ["c"], "nobody knows of its owner");
        assert_eq!(names(graph.remove(&kind(), &object("a", &[]))), ["b"]);
        assert_eq!(names(graph.remove(&kind(), &object("b", &["a"]))), [""; 0]);
        assert!(graph.dependents("a").next().is_none());
        assert_eq!(graph.edges.len(), 1);
    }

    #[test]
    fn who_waits_for_dependents_is_looked_at_when_one_goes_or_leaves() {
        let mut graph = Graph::default();
        let mut owner = object("a", &[]);
        graph.put(&kind(), &owner);
        graph.put(&kind(), &object("b", &["a"]));
        graph.put(&kind(), &object("c", &["a"]));
        owner.deletion_timestamp = Some(Time(jiff::Timestamp::UNIX_EPOCH));
        owner.finalizers = Some(vec![FOREGROUND.into()]);
        assert_eq!(names(graph.put(&kind(), &owner)), ["a", "b", "c"]);
        assert_eq!(names(graph.put(&kind(), &owner)), [""; 0], "that is known");
        assert_eq!(names(graph.put(&kind(), &object("b", &[]))), ["a"]);
        assert_eq!(names(graph.remove(&kind(), &object("c", &["a"]))), ["a"]);
        assert_eq!(names(graph.put(&kind(), &object("d", &["a"]))), ["d"], "its owner will not stay");
    }

    #[test]
    fn a_name_that_does_not_fit_is_looked_at() {
        let mut graph = Graph::default();
        let mut elsewhere = object("b", &["a"]);
        elsewhere.namespace = Some("other".into());
        graph.put(&kind(), &elsewhere);
        graph.put(&kind(), &object("c", &["a"]));
        assert_eq!(names(graph.put(&kind(), &object("a", &[]))), ["b"]);
        let other_version = {
            let mut kind = Kind::of::<ConfigMap>();
            kind.resource.version = "v2".into();
            kind
        };
        assert_eq!(names(graph.remove(&other_version, &object("a", &[]))), [""; 0]);
        assert!(graph.get("a").is_some());
    }
}
