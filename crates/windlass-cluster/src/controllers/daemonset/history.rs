//! The revisions of a DaemonSet's template.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::api::ObjectMeta;
use serde_json::{Value, json};
use windlass_core::{ObjectKey, owner};

use crate::controllers::{hash, history};
use crate::engine::{Turn, View};

/// The label of a revision, and of the pods that have its template.
pub(super) const HASH: &str = "controller-revision-hash";

/// What is known of a DaemonSet's template.
pub(super) struct History {
    /// The hash of what it is now.
    pub hash: String,
    /// What it was, the oldest first.
    old: Vec<Arc<ControllerRevision>>,
}

/// The history of a DaemonSet, if its latest revision is there and unique; otherwise the turn makes it so.
pub(super) fn construct(
    turn: &mut Turn,
    view: &View<'_>,
    set: &DaemonSet,
    mut revisions: Vec<Arc<ControllerRevision>>,
    pods: &[Arc<Pod>],
) -> Option<History> {
    for revision in revisions.iter().filter(|revision| label(revision).is_none()) {
        let name = revision.metadata.name.as_deref();
        let patch = json!({"metadata": {"labels": {HASH: name}}});
        turn.patch::<ControllerRevision>(&ObjectKey::of(&revision.metadata), patch);
    }
    if !turn.is_empty() {
        return None;
    }
    history::sort(&mut revisions);
    let now = data(set);
    let (mut current, old): (Vec<_>, Vec<_>) =
        revisions.into_iter().partition(|revision| *history::data(revision) == now);
    let next = history::next(&old);
    let Some(latest) = current.pop() else {
        snapshot(turn, view, set, now, next);
        return None;
    };
    let hash = label(&latest).unwrap_or_default().to_owned();
    if !current.is_empty() {
        deduplicate(turn, &hash, &current, pods);
        return None;
    }
    if latest.revision < next {
        let patch = json!({"revision": next});
        turn.patch::<ControllerRevision>(&ObjectKey::of(&latest.metadata), patch);
        return None;
    }
    Some(History { hash, old })
}

impl History {
    /// Deletes the oldest revisions that no pod has, beyond what is to be kept.
    pub fn clean_up(&self, turn: &mut Turn, set: &DaemonSet, pods: &[Arc<Pod>]) {
        let keep = set.spec.as_ref().and_then(|spec| spec.revision_history_limit).unwrap_or(10);
        let too_many = self.old.len().saturating_sub(keep.try_into().unwrap_or_default());
        let live: BTreeSet<&str> = pods.iter().filter_map(|pod| hash_of(pod)).collect();
        let dead = self.old.iter().filter(|old| !label(old).is_some_and(|hash| live.contains(hash)));
        for revision in dead.take(too_many) {
            turn.delete(&**revision);
        }
    }
}

/// The revision of a pod's template.
pub(super) fn hash_of(pod: &Pod) -> Option<&str> {
    pod.metadata.labels.as_ref()?.get(HASH).map(String::as_str)
}

fn label(revision: &ControllerRevision) -> Option<&str> {
    revision.metadata.labels.as_ref()?.get(HASH).map(String::as_str)
}

/// A patch that brings the template back: what `kubectl rollout undo` sends.
fn data(set: &DaemonSet) -> Value {
    let template = set.spec.as_ref().map(|spec| &spec.template);
    let mut template = serde_json::to_value(template).unwrap_or_default();
    template["$patch"] = "replace".into();
    json!({"spec": {"template": template}})
}

fn snapshot(turn: &mut Turn, view: &View<'_>, set: &DaemonSet, data: Value, number: i64) {
    let Some(spec) = &set.spec else { return };
    let collisions = set.status.as_ref().and_then(|status| status.collision_count);
    let hash = hash::name_of(&spec.template, collisions);
    let name = format!("{}-{hash}", set.metadata.name.as_deref().unwrap_or_default());
    let key = ObjectKey::new(set.metadata.namespace.as_deref(), &name);
    if let Some(other) = view.get::<ControllerRevision>(&key) {
        if *history::data(&other) != data {
            let mut set = set.clone();
            let status = set.status.get_or_insert_default();
            status.collision_count = Some(status.collision_count.unwrap_or_default() + 1);
            turn.status(&set);
        }
        return;
    }
    let mut labels = spec.template.metadata.clone().unwrap_or_default().labels.unwrap_or_default();
    labels.insert(HASH.to_owned(), hash);
    turn.create(&ControllerRevision {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: set.metadata.namespace.clone(),
            labels: Some(labels),
            annotations: set.metadata.annotations.clone(),
            owner_references: owner::reference_to(set).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        data: Some(RawExtension(data)),
        revision: number,
    });
}

/// Of revisions that hold the same, one stays, and the pods of the others are its pods.
fn deduplicate(turn: &mut Turn, hash: &str, others: &[Arc<ControllerRevision>], pods: &[Arc<Pod>]) {
    for pod in pods.iter().filter(|pod| hash_of(pod) != Some(hash)) {
        let same = others.iter().any(|other| label(other) == hash_of(pod));
        if same {
            let patch = json!({"metadata": {"labels": {HASH: hash}}});
            turn.patch::<Pod>(&ObjectKey::of(&pod.metadata), patch);
        }
    }
    for other in others {
        turn.delete(&**other);
    }
}
