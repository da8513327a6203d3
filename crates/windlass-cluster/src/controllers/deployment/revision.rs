//! The ReplicaSet of the Deployment's template: which revision it is, and how it comes to be.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, ReplicaSetSpec};
use kube::api::ObjectMeta;
use windlass::events::Event;
use windlass_core::{ObjectKey, owner};

use super::sets::{HASH, Sets, annotation, is_same, name, template};
use super::{Step, conditions, limits};
use crate::controllers::hash;

/// Which rollout of its Deployment a set is; on a Deployment, the latest one.
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
/// Which rollouts a set was before.
const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// How many pods the Deployment wanted when the set was last resized: if it wants another number, it was resized.
pub(super) const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
/// How many pods the Deployment allowed then, with its surge.
pub(super) const MAX: &str = "deployment.kubernetes.io/max-replicas";
/// The revision that an old client wants back.
pub(super) const ROLLBACK: &str = "deprecated.deployment.rollback.to";
/// How long the list of former revisions may be, in characters.
const HISTORY_MAX: usize = 2000;

/// Annotations that are about one object, and are not copied to another.
pub(super) fn is_own(key: &str) -> bool {
    let applied = "kubectl.kubernetes.io/last-applied-configuration";
    [applied, REVISION, REVISION_HISTORY, DESIRED, MAX, ROLLBACK].contains(&key)
}

/// The revision of a set; `None` where that is no number.
pub(super) fn of(set: &ReplicaSet) -> Option<i64> {
    match annotation(set, REVISION) {
        "" => Some(0),
        text => text.parse().ok(),
    }
}

impl Step<'_> {
    /// Keeps the new set's annotations up to date, and the Deployment's revision. Whether nothing was to do for the set.
    pub(super) fn follow(&mut self, new: &ReplicaSet, sets: &Sets) -> bool {
        let noted = noted(&self.deployment, new, next(sets));
        let annotations = noted.unwrap_or_else(|| new.metadata.annotations.clone().unwrap_or_default());
        let min_ready = min_ready(&self.deployment);
        let has = new.spec.as_ref().and_then(|spec| spec.min_ready_seconds).unwrap_or_default();
        if Some(&annotations) != new.metadata.annotations.as_ref() || has != min_ready.unwrap_or_default() {
            let mut set = new.clone();
            set.metadata.annotations = Some(annotations);
            set.spec.get_or_insert_default().min_ready_seconds = min_ready;
            self.turn.replace(&set);
            return false;
        }
        self.note_revision(annotation(new, REVISION));
        let nothing_said = conditions::get(self.status(), "Progressing").is_none();
        if nothing_said && limits::deadline(&self.deployment).is_some() {
            let message = format!("Found new replica set {:?}", name(new));
            let said = ("Progressing", "True", "FoundNewReplicaSet", message.as_str());
            let condition = conditions::new(said, self.now);
            conditions::set(self.status(), condition);
        }
        true
    }

    /// Creates the set of the Deployment's template. Under another name, if that of the template is taken.
    pub(super) fn create(&mut self, sets: &Sets) {
        let Some(set) = self.new_set(sets) else { return };
        let key = ObjectKey::of(&set.metadata);
        if let Some(other) = self.view.get::<ReplicaSet>(&key) {
            let uid = self.before.metadata.uid.as_deref().unwrap_or_default();
            let ours = owner::is_controlled_by(&other.metadata, uid);
            if !ours || !is_same(template(&other), template(&set)) {
                let status = self.status();
                status.collision_count = Some(status.collision_count.unwrap_or_default() + 1);
                self.write();
            }
            return;
        }
        let size = super::sets::size(&set);
        if size > 0 {
            let note = format!("Scaled up replica set {} from 0 to {size}", name(&set));
            let event = Event::normal("ScalingReplicaSet", "ScaleUp", note);
            self.turn.create_and_tell(&set, &*self.before, event);
        } else {
            self.turn.create(&set);
        }
        self.note_revision(annotation(&set, REVISION));
        if limits::deadline(&self.deployment).is_some() {
            let message = format!("Created new replica set {:?}", name(&set));
            let said = ("Progressing", "True", "NewReplicaSetCreated", message.as_str());
            let condition = conditions::new(said, self.now);
            conditions::set(self.status(), condition);
        }
        self.write();
    }

    fn note_revision(&mut self, revision: &str) {
        let annotations = self.deployment.metadata.annotations.get_or_insert_default();
        annotations.insert(REVISION.to_owned(), revision.to_owned());
    }

    fn new_set(&self, sets: &Sets) -> Option<ReplicaSet> {
        let spec = self.deployment.spec.as_ref()?;
        let collisions = self.deployment.status.as_ref().and_then(|status| status.collision_count);
        let hash = hash::name_of(&spec.template, collisions);
        let mut template = spec.template.clone();
        let labels = template.metadata.get_or_insert_default().labels.get_or_insert_default();
        labels.insert(HASH.to_owned(), hash.clone());
        let labels = labels.clone();
        let mut selector = spec.selector.clone();
        selector.match_labels.get_or_insert_default().insert(HASH.to_owned(), hash.clone());
        let parent = self.deployment.metadata.name.as_deref()?;
        let mut set = ReplicaSet {
            metadata: ObjectMeta {
                name: Some(named(parent, &hash)),
                namespace: self.deployment.metadata.namespace.clone(),
                owner_references: owner::reference_to(&self.deployment).map(|owner| vec![owner]),
                labels: Some(labels),
                ..ObjectMeta::default()
            },
            spec: Some(ReplicaSetSpec {
                replicas: Some(self.new_size(0, sets.size())),
                min_ready_seconds: min_ready(&self.deployment),
                selector,
                template: Some(template),
            }),
            status: None,
        };
        let mut annotations = noted(&self.deployment, &set, next(sets))?;
        annotations.extend(replica_notes(&self.deployment));
        set.metadata.annotations = Some(annotations);
        Some(set)
    }
}

fn min_ready(deployment: &Deployment) -> Option<i32> {
    deployment.spec.as_ref().and_then(|spec| spec.min_ready_seconds)
}

/// A set is named for its parent and its template. The parent's part is cut where both would be too long.
fn named(parent: &str, hash: &str) -> String {
    const NAME_MAX: usize = 253;
    let room = NAME_MAX - 1 - hash.len();
    format!("{}-{hash}", &parent[..parent.len().min(room)])
}

/// The revision of the new set: one more than those of all others.
fn next(sets: &Sets) -> i64 {
    sets.old.iter().filter_map(|set| of(set)).max().unwrap_or_default().max(0) + 1
}

/// What a set says of the size of its Deployment.
pub(super) fn replica_notes(deployment: &Deployment) -> [(String, String); 2] {
    let replicas = limits::replicas(deployment);
    let max = replicas + limits::surge(deployment);
    [(DESIRED.to_owned(), replicas.to_string()), (MAX.to_owned(), max.to_string())]
}

/// The annotations that the new set should have: those of its Deployment, and its revision. One that comes back after a
/// rollback remembers which revisions it was. `None` where somebody made its revision something else than a number.
fn noted(deployment: &Deployment, set: &ReplicaSet, revision: i64) -> Option<BTreeMap<String, String>> {
    let mut annotations = set.metadata.annotations.clone().unwrap_or_default();
    let copied = deployment.metadata.annotations.iter().flatten().filter(|(key, _)| !is_own(key));
    annotations.extend(copied.map(|(key, value)| (key.clone(), value.clone())));
    let before = annotations.get(REVISION).cloned();
    let number: i64 = match before.as_deref() {
        None | Some("") => 0,
        Some(text) => text.parse().ok()?,
    };
    if number >= revision {
        return Some(annotations);
    }
    annotations.insert(REVISION.to_owned(), revision.to_string());
    if let Some(before) = before {
        let history = annotations.get(REVISION_HISTORY).cloned().unwrap_or_default();
        if let Some(history) = remembered(&history, &before) {
            annotations.insert(REVISION_HISTORY.to_owned(), history);
        }
    }
    Some(annotations)
}

/// A list with one more revision; the oldest ones are forgotten to make room.
fn remembered(history: &str, revision: &str) -> Option<String> {
    let mut all: Vec<&str> = history.split(',').filter(|one| !one.is_empty()).collect();
    all.push(revision);
    while all.join(",").len() > HISTORY_MAX && !all.is_empty() {
        all.remove(0);
    }
    Some(all.join(",")).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(annotations: &[(&str, &str)]) -> ReplicaSet {
        serde_json::from_value(
            json!({"metadata": {"annotations": BTreeMap::from_iter(annotations.iter().copied())}}),
        )
        .unwrap()
    }

    #[test]
    fn a_set_that_comes_back_remembers_what_it_was() {
        let deployment: Deployment =
            serde_json::from_value(json!({"metadata": {"annotations": {"why": "undo", REVISION: "9"}}}))
                .unwrap();
        let back = noted(&deployment, &set(&[(REVISION, "1")]), 3).unwrap();
        assert_eq!((back[REVISION].as_str(), back[REVISION_HISTORY].as_str()), ("3", "1"));
        assert_eq!(back["why"], "undo");
        let again = noted(&deployment, &set(&[(REVISION, "3"), (REVISION_HISTORY, "1")]), 5).unwrap();
        assert_eq!(again[REVISION_HISTORY], "1,3");
        let same = noted(&deployment, &set(&[(REVISION, "5"), (REVISION_HISTORY, "1,3")]), 5).unwrap();
        assert_eq!((same[REVISION].as_str(), same[REVISION_HISTORY].as_str()), ("5", "1,3"));
    }

    #[test]
    fn the_list_of_revisions_has_an_end() {
        let long = (1000..2000).map(|one| one.to_string()).collect::<Vec<_>>().join(",");
        let cut = remembered(&long[..1999], "7").unwrap();
        assert!(cut.len() <= HISTORY_MAX && cut.ends_with(",7"), "{cut}");
    }

    #[test]
    fn names_have_an_end() {
        assert_eq!(named("web", "abc"), "web-abc");
        assert_eq!(named(&"a".repeat(253), "abc").len(), 253);
    }
}
