//! What becomes of an object whose owners go or are gone.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::json;
use windlass::events::Event;
use windlass_core::{Kind, ObjectKey};

use super::Shared;
use super::graph::{FOREGROUND, Graph, Node, ORPHAN, has_finalizer};
use super::{Uid, key_of};
use crate::engine::{Delete, Kinds, LookUp, Looked, Propagation, Told, Turn, View, Write};

/// After how long an owner is looked up again that the server has and nobody told us of, or whose kind nobody knows.
const UNSEEN: Duration = Duration::from_secs(10);
/// After how long it is looked again for an owner while first lists are under way.
const BEGINNING: Duration = Duration::from_millis(50);
/// After how long it is looked again whether all kinds are followed.
const UNLISTED: Duration = Duration::from_secs(1);

/// Deletes an object if all its owners are gone; lets those go that are, where one stays.
pub(super) fn collect(uid: &str, node: &Node, shared: &Shared, view: &View<'_>, now: Timestamp) -> Turn {
    let mut turn = Turn::default();
    let unseen = {
        let graph = shared.graph();
        if node.owners.iter().all(|reference| graph.is_plain(reference, node)) {
            return turn;
        }
        report_strangers(&mut turn, uid, node, &graph);
        node.owners.iter().any(|reference| graph.get(&reference.uid).is_none())
    };
    if unseen && shared.begins() {
        turn.wake_at(now + BEGINNING);
        return turn;
    }
    let live = match view.looked(&node.kind, &node.key) {
        Looked::NotYet => return ask(&node.kind, &node.key),
        // Its event is on its way.
        Looked::Missing => return turn,
        Looked::There(meta) if meta.uid.as_deref() != Some(uid) => return turn,
        Looked::There(meta) => meta,
    };
    let owners = live.owner_references.as_deref().unwrap_or_default();
    if owners.is_empty() || live.deletion_timestamp.is_some() {
        return turn;
    }
    match classify(owners, &node.key, view, &shared.kinds()) {
        Ok(owners) => decide(&mut turn, uid, node, live, &owners, shared),
        Err(Unsure::Ask(look_ups)) => return Turn { look_ups, ..Turn::default() },
        // Its kind may be one that is about to be served.
        Err(Unsure::UnknownKind) => turn.wake_at(now + UNSEEN),
        Err(Unsure::Never) => {}
    }
    if unseen {
        // It may come and go before anybody tells of it.
        turn.wake_at(now + UNSEEN);
    }
    turn
}

/// The owners of an object, as the server has them.
#[derive(Debug, Default, PartialEq)]
struct Owners {
    /// They are there.
    solid: Vec<String>,
    /// They are gone, or another object has their name.
    dangling: Vec<String>,
    /// They are there until what depends on them is gone.
    waiting: Vec<String>,
}

/// Why it cannot be said what the owners of an object are.
enum Unsure {
    Ask(Vec<LookUp>),
    UnknownKind,
    /// The reference is one that cannot be resolved, today or tomorrow.
    Never,
}

fn classify(
    references: &[OwnerReference],
    of: &ObjectKey,
    view: &View<'_>,
    kinds: &Kinds,
) -> Result<Owners, Unsure> {
    let mut owners = Owners::default();
    let mut questions = Vec::new();
    for reference in references {
        let kind = kinds.find(&reference.api_version, &reference.kind).ok_or(Unsure::UnknownKind)?;
        let key = match (kind.namespaced, of.namespace()) {
            (false, _) => ObjectKey::cluster(&reference.name),
            (true, Some(namespace)) => ObjectKey::namespaced(namespace, &reference.name),
            (true, None) => return Err(Unsure::Never),
        };
        let uid = reference.uid.clone();
        match view.looked(kind, &key) {
            Looked::NotYet => questions.push(LookUp::Object { kind: kind.clone(), key }),
            Looked::Missing => owners.dangling.push(uid),
            Looked::There(meta) if meta.uid.as_deref() != Some(&*uid) => owners.dangling.push(uid),
            Looked::There(meta) if meta.deletion_timestamp.is_some() && has_finalizer(meta, FOREGROUND) => {
                owners.waiting.push(uid);
            }
            Looked::There(_) => owners.solid.push(uid),
        }
    }
    if questions.is_empty() { Ok(owners) } else { Err(Unsure::Ask(questions)) }
}

fn decide(turn: &mut Turn, uid: &str, node: &Node, live: &ObjectMeta, owners: &Owners, shared: &Shared) {
    if !owners.solid.is_empty() {
        // Those that wait would wait for ever for one that has another owner.
        let leaves = |uid: &String| owners.dangling.contains(uid) || owners.waiting.contains(uid);
        let all = live.owner_references.as_deref().unwrap_or_default();
        let stay: Vec<&OwnerReference> = all.iter().filter(|reference| !leaves(&reference.uid)).collect();
        if stay.len() < all.len() {
            patch(turn, node, live, json!({"ownerReferences": stay}));
        }
        return;
    }
    let graph = shared.graph();
    let mut dependents = graph.dependents(uid).map(|(_, dependent)| dependent).peekable();
    if !owners.waiting.is_empty() && dependents.peek().is_some() {
        let mut references = live.owner_references.clone().unwrap_or_default();
        let blocks = references.iter().any(|reference| reference.block_owner_deletion == Some(true));
        if blocks && dependents.any(|dependent| dependent.foreground) {
            // Its owners and what depends on it may wait for each other: it no longer makes its owners wait. That is
            // another version of it, which is looked at next.
            for reference in &mut references {
                reference.block_owner_deletion = Some(false);
            }
            patch(turn, node, live, json!({"ownerReferences": references}));
            turn.wake.push(ObjectKey::cluster(uid));
            return;
        }
        delete(turn, uid, node, live, Propagation::Foreground);
        return;
    }
    let propagation = if has_finalizer(live, ORPHAN) {
        Propagation::Orphan
    } else if has_finalizer(live, FOREGROUND) {
        Propagation::Foreground
    } else {
        Propagation::Background
    };
    delete(turn, uid, node, live, propagation);
}

/// An object that goes after its dependents: it may, once none is left that it has to wait for.
pub(super) fn await_dependents(
    uid: &str,
    node: &Node,
    shared: &Shared,
    view: &View<'_>,
    now: Timestamp,
) -> Turn {
    let mut turn = Turn::default();
    let blocking: Vec<(Uid, bool)> = {
        let graph = shared.graph();
        let blocking = graph.dependents(uid).filter(|(_, dependent)| dependent.blocks(uid));
        blocking.map(|(uid, dependent)| (uid.clone(), dependent.foreground)).collect()
    };
    if !blocking.is_empty() {
        turn.wake = blocking.iter().filter(|(_, waits)| !waits).map(|(uid, _)| key_of(uid)).collect();
        return turn;
    }
    if !shared.sees_all() {
        turn.wake_at(now + UNLISTED);
        return turn;
    }
    match view.looked(&node.kind, &node.key) {
        Looked::NotYet => return ask(&node.kind, &node.key),
        Looked::There(live) if live.uid.as_deref() == Some(uid) => {
            unfinalize(&mut turn, node, live, FOREGROUND)
        }
        Looked::Missing | Looked::There(_) => {}
    }
    turn
}

/// Takes a finalizer away.
pub(super) fn unfinalize(turn: &mut Turn, node: &Node, live: &ObjectMeta, finalizer: &str) {
    let all = live.finalizers.as_deref().unwrap_or_default();
    let others: Vec<&String> = all.iter().filter(|one| *one != finalizer).collect();
    if others.len() < all.len() {
        patch(turn, node, live, json!({"finalizers": others}));
    }
}

/// Lists are replaced whole by a merge patch: it is only right for the version that was looked at.
fn patch(turn: &mut Turn, node: &Node, live: &ObjectMeta, mut metadata: serde_json::Value) {
    metadata["uid"] = json!(live.uid);
    metadata["resourceVersion"] = json!(live.resource_version);
    turn.writes.push(Write::Patch {
        kind: Kind::clone(&node.kind),
        key: node.key.clone(),
        subresource: "",
        patch: json!({"metadata": metadata}),
    });
}

/// Deletes the very version whose owners were looked at.
fn delete(turn: &mut Turn, uid: &str, node: &Node, live: &ObjectMeta, propagation: Propagation) {
    turn.writes.push(Write::Delete(Delete {
        kind: Kind::clone(&node.kind),
        key: node.key.clone(),
        uid: Some(uid.to_owned()),
        version: live.resource_version.clone(),
        propagation: Some(propagation),
        grace: None,
    }));
}

fn ask(kind: &Kind, key: &ObjectKey) -> Turn {
    let mut turn = Turn::default();
    turn.look_up(LookUp::Object { kind: kind.clone(), key: key.clone() });
    turn
}

/// Tells of owners that are known to be in another namespace.
fn report_strangers(turn: &mut Turn, uid: &str, node: &Node, graph: &Graph) {
    let namespace = node.key.namespace();
    let is_stranger = |reference: &&OwnerReference| {
        graph.get(&reference.uid).is_some_and(|owner| !owner.is_in_reach_of(namespace))
    };
    let Some(reference) = node.owners.iter().find(is_stranger) else { return };
    let OwnerReference { api_version, kind, name, uid: owner, .. } = reference;
    let namespace = namespace.unwrap_or_default();
    let note = format!(
        "ownerRef [{api_version}/{kind}, namespace: {namespace}, name: {name}, uid: {owner}] does not exist in namespace \
         {namespace:?}"
    );
    let resource = &node.kind.resource;
    let regarding = ObjectReference {
        api_version: Some(resource.api_version.clone()),
        kind: Some(resource.kind.clone()),
        namespace: node.key.namespace().map(str::to_owned),
        name: Some(node.key.name().to_owned()),
        uid: Some(uid.to_owned()),
        ..ObjectReference::default()
    };
    let event = Event::warning("OwnerRefInvalidNamespace", "", note);
    turn.writes.push(Write::Event(Box::new(Told { regarding, event })));
}
