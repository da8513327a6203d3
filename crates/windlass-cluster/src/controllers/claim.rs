//! Which objects belong to a parent: its children that still match, and the orphans that it adopts.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector as Wanted, OwnerReference};
use serde_json::json;
use windlass::Object;
use windlass_core::select::LabelSelector;
use windlass_core::{ObjectKey, owner};

use crate::engine::{Turn, View};

/// The objects of a kind that belong to `parent`, as the API has them now.
///
/// Orphans that match are adopted, children that no longer match are released; neither happens while the parent is being
/// deleted, and neither to an object that is. Who is adopted counts at once: where that fails, so does the turn.
pub(crate) fn claim<P: Object, K: Object>(
    turn: &mut Turn,
    view: &View<'_>,
    parent: &P,
    selector: &LabelSelector,
    may_adopt: impl Fn(&K) -> bool,
) -> Vec<Arc<K>> {
    let uid = parent.meta().uid.as_deref().unwrap_or_default();
    let ending = parent.meta().deletion_timestamp.is_some();
    let nothing = BTreeMap::new();
    let matches = |child: &K| selector.matches(child.meta().labels.as_ref().unwrap_or(&nothing));
    let mut claimed = Vec::new();
    for child in view.children::<K>(uid) {
        if matches(&child) {
            claimed.push(child);
        } else if !ending && child.meta().deletion_timestamp.is_none() {
            release(turn, &*child, uid);
        }
    }
    if !ending {
        let orphans = view.orphans::<K>(parent.meta().namespace.as_deref().unwrap_or_default());
        for orphan in orphans {
            if matches(&orphan) && orphan.meta().deletion_timestamp.is_none() && may_adopt(&orphan) {
                adopt(turn, parent, &*orphan);
                claimed.push(orphan);
            }
        }
    }
    claimed
}

fn adopt<P: Object, K: Object>(turn: &mut Turn, parent: &P, orphan: &K) {
    let Some(reference) = owner::reference_to(parent) else { return };
    let mut owners = owners(orphan);
    owners.push(reference);
    own(turn, orphan, &owners);
}

fn release<K: Object>(turn: &mut Turn, child: &K, uid: &str) {
    let mut owners = owners(child);
    owners.retain(|owner| owner.uid != uid);
    own(turn, child, &owners);
}

fn owners<K: Object>(object: &K) -> Vec<OwnerReference> {
    object.meta().owner_references.clone().unwrap_or_default()
}

/// Lists are replaced whole by a merge patch: it is only right for the version that was looked at.
fn own<K: Object>(turn: &mut Turn, object: &K, owners: &[OwnerReference]) {
    let meta = object.meta();
    let patch = json!({"metadata": {
        "uid": meta.uid,
        "resourceVersion": meta.resource_version,
        "ownerReferences": owners,
    }});
    turn.patch::<K>(&ObjectKey::of(meta), patch);
}

/// A selector of the API. One that does not parse selects nothing: validation has let no such one in.
pub(crate) fn selector(wanted: &Wanted) -> LabelSelector {
    let tree = serde_json::to_value(wanted).ok();
    LabelSelector::from_object(tree.as_ref()).unwrap_or_else(|_| LabelSelector::nothing())
}
