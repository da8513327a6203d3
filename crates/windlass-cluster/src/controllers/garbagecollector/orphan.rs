//! An object that goes while its dependents stay.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::json;
use windlass_core::{Kind, ObjectKey};

use super::collect::unfinalize;
use super::graph::{Node, ORPHAN};
use crate::engine::{Kinds, Listed, LookUp, Looked, Turn, View, Write};

/// After how long it is tried again to see all dependents.
const UNSURE: Duration = Duration::from_secs(1);

/// Lets the dependents of an object go, and then the object.
///
/// A dependent that is overlooked here is deleted as soon as its owner is gone. So the server itself is asked for all
/// objects of all kinds that may depend on it, and where it cannot answer for one of them the object stays.
pub(super) fn orphan(uid: &str, node: &Node, view: &View<'_>, kinds: &Kinds, now: Timestamp) -> Turn {
    let mut turn = Turn::default();
    let later = |mut turn: Turn| {
        turn.wake_at(now + UNSURE);
        turn
    };
    if kinds.served.is_empty() || !kinds.failing.is_empty() {
        return later(turn);
    }
    let namespace = node.key.namespace();
    let mut writes = Vec::new();
    for served in kinds.served.iter().filter(|served| served.preferred && served.can(&["list", "patch"])) {
        // What has no namespace cannot have an owner that has one.
        if served.kind.resource.kind == "Event" || (namespace.is_some() && !served.kind.namespaced) {
            continue;
        }
        match view.listed(&served.kind, namespace) {
            None => {
                let namespace = namespace.map(str::to_owned);
                turn.look_up(LookUp::Objects { kind: served.kind.clone(), namespace });
            }
            Some(Listed::Objects(all)) => {
                writes.extend(all.iter().filter_map(|one| release(&served.kind, one, uid)));
            }
            Some(Listed::Unserved) => {}
            Some(Listed::Failed(error)) => {
                tracing::warn!(owner = %node.key, kind = %served.kind, error, "dependents cannot be listed");
                return later(Turn::default());
            }
        }
    }
    match view.looked(&node.kind, &node.key) {
        Looked::NotYet => {
            turn.look_up(LookUp::Object { kind: Kind::clone(&node.kind), key: node.key.clone() });
        }
        Looked::There(live) if live.uid.as_deref() == Some(uid) => {
            turn.writes = writes;
            // Writes are sent one after the other: this one only when all others were taken.
            unfinalize(&mut turn, node, live, ORPHAN);
        }
        Looked::Missing | Looked::There(_) => {}
    }
    turn
}

/// The patch after which an object has this owner no longer.
fn release(kind: &Kind, dependent: &ObjectMeta, owner: &str) -> Option<Write> {
    let owners = dependent.owner_references.as_deref()?;
    let others: Vec<&OwnerReference> = owners.iter().filter(|reference| reference.uid != owner).collect();
    if others.len() == owners.len() {
        return None;
    }
    Some(Write::Patch {
        kind: kind.clone(),
        key: ObjectKey::of(dependent),
        subresource: "",
        patch: json!({"metadata": {
            "uid": dependent.uid,
            "resourceVersion": dependent.resource_version,
            "ownerReferences": others,
        }}),
    })
}
