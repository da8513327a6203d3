//! The volume claims of a StatefulSet's pods: made before the pod, kept or let go as the retention policy says.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use std::sync::Arc;
use windlass::Object;
use windlass::events::Event;
use windlass_core::{ObjectKey, owner};

use super::identity::{self, claim_name, ordinal, templates};
use crate::engine::{Turn, View};

/// The claims of a pod that are there.
fn existing(view: &View<'_>, set: &StatefulSet, pod: &Pod) -> Vec<Arc<PersistentVolumeClaim>> {
    let Some(ordinal) = ordinal(pod) else { return Vec::new() };
    let namespace = set.metadata.namespace.as_deref();
    let find = |template| view.get(&ObjectKey::new(namespace, &claim_name(set, template, ordinal)));
    templates(set).iter().filter_map(find).collect()
}

/// Creates the claims of a pod that are missing; or says which one is on its way out, and in the way.
pub(super) fn create(turn: &mut Turn, view: &View<'_>, set: &StatefulSet, pod: &Pod) -> Result<(), String> {
    let Some(ordinal) = ordinal(pod) else { return Ok(()) };
    let mut leaving = Vec::new();
    for template in templates(set) {
        let name = claim_name(set, template, ordinal);
        let key = ObjectKey::new(set.metadata.namespace.as_deref(), &name);
        match view.get::<PersistentVolumeClaim>(&key) {
            Some(claim) if claim.metadata.deletion_timestamp.is_some() => {
                leaving.push(format!("pvc {name} is being deleted"));
            }
            Some(_) => {}
            None => {
                let note = format!(
                    "Create Claim {name} Pod {} in StatefulSet {} success",
                    identity::name(pod),
                    identity::set_name(set)
                );
                let event = Event::normal("SuccessfulCreate", "Create", note);
                turn.create_and_tell(&from_template(set, template, name), set, event);
            }
        }
    }
    match leaving.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        many => Err(format!("[{}]", many.join(", "))),
    }
}

fn from_template(set: &StatefulSet, template: &PersistentVolumeClaim, name: String) -> PersistentVolumeClaim {
    let mut claim = template.clone();
    claim.metadata.name = Some(name);
    claim.metadata.namespace = set.metadata.namespace.clone();
    let selected = set.spec.as_ref().and_then(|spec| spec.selector.match_labels.clone());
    if let Some(selected) = selected {
        claim.metadata.labels.get_or_insert_default().extend(selected);
    }
    claim
}

/// What becomes of claims.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Policy {
    deleted: bool,
    scaled: bool,
}

fn policy(set: &StatefulSet) -> Policy {
    let policy = set.spec.as_ref().and_then(|spec| spec.persistent_volume_claim_retention_policy.as_ref());
    let deletes = |choice: Option<&String>| choice.is_some_and(|choice| choice == "Delete");
    Policy {
        deleted: deletes(policy.and_then(|policy| policy.when_deleted.as_ref())),
        scaled: deletes(policy.and_then(|policy| policy.when_scaled.as_ref())),
    }
}

/// Whether a claim still belongs to an earlier pod of the name, and goes with it: the new pod has to wait.
pub(super) fn is_stale(view: &View<'_>, set: &StatefulSet, pod: &Pod) -> bool {
    policy(set).scaled && existing(view, set, pod).iter().any(|claim| is_of_another(claim, pod))
}

/// Whether the claims of a pod have the owners that the policy wants.
pub(super) fn are_owned(view: &View<'_>, set: &StatefulSet, pod: &Pod) -> bool {
    existing(view, set, pod).iter().all(|claim| is_owned(claim, set, pod))
}

/// Gives the claims of a pod the owners that the policy wants: what they go with.
pub(super) fn own(turn: &mut Turn, view: &View<'_>, set: &StatefulSet, pod: &Pod) {
    for claim in existing(view, set, pod) {
        if has_other_controller(&claim, set, pod) {
            let name = claim.metadata.name.as_deref().unwrap_or_default();
            let note = format!(
                "PersistentVolumeClaim {name} has a conflicting OwnerReference that acts as a manging controller, the retention policy is ignored for this claim"
            );
            turn.event(set, Event::warning("ConflictingController", "Update", note));
        }
        if !is_owned(&claim, set, pod) {
            let mut claim = PersistentVolumeClaim::clone(&claim);
            let owners = owners(&claim, set, pod);
            claim.metadata.owner_references = Some(owners).filter(|owners| !owners.is_empty());
            turn.replace(&claim);
        }
    }
}

fn references(claim: &PersistentVolumeClaim) -> &[OwnerReference] {
    claim.metadata.owner_references.as_deref().unwrap_or_default()
}

/// Whether a reference means an object of this kind and name, whichever it was.
fn means<K: Object>(reference: &OwnerReference, object: &K) -> bool {
    let kind = windlass_core::Kind::of::<K>();
    reference.kind == kind.resource.kind
        && reference.api_version == kind.resource.api_version
        && Some(&reference.name) == object.meta().name.as_ref()
}

fn uid<K: Object>(object: &K) -> &str {
    object.meta().uid.as_deref().unwrap_or_default()
}

fn is_of_another<K: Object>(claim: &PersistentVolumeClaim, object: &K) -> bool {
    let first = references(claim).iter().find(|reference| means(reference, object));
    first.is_some_and(|reference| reference.uid != uid(object))
}

fn has_owner<K: Object>(claim: &PersistentVolumeClaim, object: &K) -> bool {
    references(claim).iter().any(|reference| reference.uid == uid(object))
}

/// Whether something else manages the claim; where claims are kept in any case, it may.
fn has_other_controller(claim: &PersistentVolumeClaim, set: &StatefulSet, pod: &Pod) -> bool {
    let Policy { deleted, scaled } = policy(set);
    (deleted || scaled)
        && references(claim).iter().any(|reference| {
            if means(reference, set) {
                reference.uid != uid(set)
            } else if means(reference, pod) {
                reference.uid != uid(pod)
            } else {
                reference.controller == Some(true)
            }
        })
}

fn is_owned(claim: &PersistentVolumeClaim, set: &StatefulSet, pod: &Pod) -> bool {
    let by_set = has_owner(claim, set);
    let by_pod = has_owner(claim, pod);
    if is_of_another(claim, set) || is_of_another(claim, pod) {
        // It is in the hands of an earlier set or pod: it is not touched.
        return true;
    }
    if has_other_controller(claim, set, pod) {
        return !by_set && !by_pod;
    }
    let ours = |reference: &&OwnerReference| reference.uid == uid(set) || reference.uid == uid(pod);
    if references(claim).iter().filter(ours).any(|reference| reference.controller != Some(true)) {
        return false;
    }
    (by_set, by_pod) == wanted(set, pod)
}

/// Whether a claim should go with the set, and whether with the pod.
fn wanted(set: &StatefulSet, pod: &Pod) -> (bool, bool) {
    let in_range = set.spec.as_ref().zip(ordinal(pod));
    let leaves = !in_range.is_some_and(|(spec, ordinal)| identity::range(spec).contains(&ordinal));
    match policy(set) {
        Policy { deleted: false, scaled: false } => (false, false),
        Policy { deleted: true, scaled: false } => (true, false),
        Policy { deleted: false, scaled: true } => (false, leaves),
        Policy { deleted: true, scaled: true } => (!leaves, leaves),
    }
}

fn owners(claim: &PersistentVolumeClaim, set: &StatefulSet, pod: &Pod) -> Vec<OwnerReference> {
    let others =
        references(claim).iter().filter(|reference| !means(reference, set) && !means(reference, pod));
    let mut owners: Vec<OwnerReference> = others.cloned().collect();
    if !has_other_controller(claim, set, pod) {
        let (by_set, by_pod) = wanted(set, pod);
        owners.extend(owner::reference_to(set).filter(|_| by_set));
        owners.extend(owner::reference_to(pod).filter(|_| by_pod));
    }
    owners
}
