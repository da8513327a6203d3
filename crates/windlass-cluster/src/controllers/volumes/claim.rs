//! What becomes of a claim.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    ObjectReference, PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimStatus, Pod,
};
use k8s_openapi::api::storage::v1::StorageClass;
use windlass::events::Event;
use windlass_core::ObjectKey;

use super::find::Found;
use super::provision::{self, SELECTED_NODE};
use super::{
    BIND_COMPLETED, BOUND_BY_CONTROLLER, BY_CLAIM, annotate, class, class_of, enter, find, is_for, note,
    noted, spec_of, units, volume_name,
};
use crate::controllers::pods;
use crate::engine::{Turn, View};

pub(super) fn step(turn: &mut Turn, view: &View<'_>, claim: &PersistentVolumeClaim) {
    match (noted(claim, BIND_COMPLETED), volume_name(claim)) {
        (false, None) => look_for_any(turn, view, claim),
        (false, Some(name)) => look_for(turn, view, claim, name),
        (true, name) => check_bound(turn, view, claim, name),
    }
}

/// A claim that will have any volume.
fn look_for_any(turn: &mut Turn, view: &View<'_>, claim: &PersistentVolumeClaim) {
    let waits = class(view, claim)
        .is_some_and(|class| class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer"));
    match find::volume(view, claim, waits) {
        Found::Volume(volume) => return bind(turn, &volume, claim),
        Found::Soon => return,
        Found::Nothing => {}
    }
    if class_of(claim).is_none()
        && let Some(name) = default_class(view)
    {
        let mut classed = claim.clone();
        classed.spec.get_or_insert_default().storage_class_name = Some(name);
        turn.replace(&classed);
        return;
    }
    if waits && note(claim, SELECTED_NODE).is_none() {
        turn.event(claim, waiting(view, claim));
    } else if class_of(claim).is_some_and(|name| !name.is_empty()) {
        provision::volume(turn, view, claim);
        return;
    } else {
        let note = "no persistent volumes available for this claim and no storage class is set";
        turn.event(claim, Event::normal("FailedBinding", "Bind", note));
    }
    enter_unbound(turn, claim, "Pending");
}

/// The newest of the default classes; of those of one age, the first by name.
fn default_class(view: &View<'_>) -> Option<String> {
    let marks =
        ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
    let is_default =
        |class: &Arc<StorageClass>| marks.iter().any(|mark| note(&**class, mark) == Some("true"));
    let mut classes = view.list::<StorageClass>(None);
    classes.retain(is_default);
    let age = |class: &Arc<StorageClass>| class.metadata.creation_timestamp.as_ref().map(|time| time.0);
    classes.sort_by(|a, b| age(b).cmp(&age(a)).then_with(|| a.metadata.name.cmp(&b.metadata.name)));
    classes.first().and_then(|class| class.metadata.name.clone())
}

/// What a claim waits for that is bound where its pod goes.
fn waiting(view: &View<'_>, claim: &PersistentVolumeClaim) -> Event {
    let users = view.by_index::<Pod>(BY_CLAIM, &ObjectKey::of(&claim.metadata).to_string());
    let waiting = users
        .iter()
        .filter(|pod| !matches!(pods::phase(pod), "Failed" | "Succeeded") && pods::node(pod).is_empty());
    let names: Vec<&str> = waiting.filter_map(|pod| pod.metadata.name.as_deref()).collect();
    let scheduled = |note: String| Event::normal("WaitForPodScheduled", "Bind", note);
    match names.as_slice() {
        [] => {
            let note = "waiting for first consumer to be created before binding";
            Event::normal("WaitForFirstConsumer", "Bind", note)
        }
        [one] => scheduled(format!("waiting for pod {one} to be scheduled")),
        many => scheduled(format!("waiting for pods {} to be scheduled", many.join(","))),
    }
}

/// A claim that wants one volume and no other.
fn look_for(turn: &mut Turn, view: &View<'_>, claim: &PersistentVolumeClaim, name: &str) {
    let Some(volume) = view.get::<PersistentVolume>(&ObjectKey::cluster(name)) else {
        enter_unbound(turn, claim, "Pending");
        return;
    };
    let claimed = volume.spec.as_ref().is_some_and(|spec| spec.claim_ref.is_some());
    if is_for(&volume, claim) {
        bind(turn, &volume, claim);
        return;
    }
    let warning = match find::mismatch(&volume, claim) {
        _ if claimed => {
            let note = format!("volume {name:?} already bound to a different claim.");
            Event::warning("FailedBinding", "Bind", note)
        }
        Some(why) => {
            let note = format!("Cannot bind to requested volume {name:?}: {why}");
            Event::warning("VolumeMismatch", "Bind", note)
        }
        None => {
            bind(turn, &volume, claim);
            return;
        }
    };
    turn.event(claim, warning);
    enter_unbound(turn, claim, "Pending");
}

/// A claim that was bound before.
fn check_bound(turn: &mut Turn, view: &View<'_>, claim: &PersistentVolumeClaim, name: Option<&str>) {
    let Some(name) = name else {
        lose(
            turn,
            claim,
            "ClaimLost",
            "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!",
        );
        return;
    };
    let Some(volume) = view.get::<PersistentVolume>(&ObjectKey::cluster(name)) else {
        lose(
            turn,
            claim,
            "ClaimLost",
            "Bound claim has lost its PersistentVolume. Data on the volume is lost!",
        );
        return;
    };
    let reference = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
    match reference {
        Some(reference) if reference.uid != claim.metadata.uid => {
            let note = "Two claims are bound to the same volume, this one is bound incorrectly";
            lose(turn, claim, "ClaimMisbound", note);
        }
        _ => {
            bind(turn, &volume, claim);
            if turn.is_empty() {
                provision::grow(turn, view, &volume, claim);
            }
        }
    }
}

fn lose(turn: &mut Turn, claim: &PersistentVolumeClaim, reason: &str, note: &str) {
    if claim.status.as_ref().and_then(|status| status.phase.as_deref()) != Some("Lost") {
        enter_unbound(turn, claim, "Lost");
        turn.event(claim, Event::warning(reason, "Bind", note));
    }
}

/// The status of a claim that has no volume.
fn enter_unbound(turn: &mut Turn, claim: &PersistentVolumeClaim, phase: &str) {
    let before = claim.status.clone().unwrap_or_default();
    let status = PersistentVolumeClaimStatus {
        phase: Some(phase.to_owned()),
        access_modes: None,
        capacity: None,
        current_volume_attributes_class_name: None,
        ..before.clone()
    };
    if status != before {
        turn.status(&PersistentVolumeClaim { status: Some(status), ..claim.clone() });
    }
}

/// Does the next write that is missing for the two to be bound to each other.
fn bind(turn: &mut Turn, volume: &PersistentVolume, claim: &PersistentVolumeClaim) {
    let mut reserved = volume.clone();
    reserve(&mut reserved, claim);
    if reserved != *volume {
        turn.replace(&reserved);
        return;
    }
    if enter(turn, volume, "Bound", None) {
        return;
    }
    let mut named = claim.clone();
    let name = volume.metadata.name.as_deref().unwrap_or_default();
    if volume_name(claim) != Some(name) {
        named.spec.get_or_insert_default().volume_name = Some(name.to_owned());
        annotate(&mut named, BOUND_BY_CONTROLLER, "yes");
    }
    if !noted(claim, BIND_COMPLETED) {
        annotate(&mut named, BIND_COMPLETED, "yes");
    }
    if named != *claim {
        turn.replace(&named);
        return;
    }
    enter_bound(turn, volume, claim);
}

/// Makes a volume say for whom it is.
fn reserve(volume: &mut PersistentVolume, claim: &PersistentVolumeClaim) {
    let was_for = is_for(volume, claim);
    let reference = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
    if !was_for || reference.is_some_and(|reference| reference.uid != claim.metadata.uid) {
        volume.spec.get_or_insert_default().claim_ref = Some(reference_to(claim));
    }
    if !was_for {
        annotate(volume, BOUND_BY_CONTROLLER, "yes");
    }
}

/// A claim as volumes name it.
pub(super) fn reference_to(claim: &PersistentVolumeClaim) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".into()),
        kind: Some("PersistentVolumeClaim".into()),
        namespace: claim.metadata.namespace.clone(),
        name: claim.metadata.name.clone(),
        uid: claim.metadata.uid.clone(),
        resource_version: claim.metadata.resource_version.clone(),
        field_path: None,
    }
}

fn enter_bound(turn: &mut Turn, volume: &PersistentVolume, claim: &PersistentVolumeClaim) {
    let before = claim.status.clone().unwrap_or_default();
    let spec = spec_of(volume);
    let mut status = before.clone();
    status.access_modes = spec.access_modes;
    if before.phase.as_deref() != Some("Bound") {
        // A later difference may be meant: the file system may be smaller than the device.
        let storage = |of: Option<&BTreeMap<String, _>>| of.and_then(|of| of.get("storage")).map(units);
        if storage(before.capacity.as_ref()) != storage(spec.capacity.as_ref()) {
            status.capacity = spec.capacity;
        }
        status.current_volume_attributes_class_name = spec.volume_attributes_class_name;
        status.phase = Some("Bound".into());
    }
    if status != before {
        turn.status(&PersistentVolumeClaim { status: Some(status), ..claim.clone() });
    }
}
