//! What becomes of a volume.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use windlass::events::Event;
use windlass_core::{Kind, ObjectKey};

use super::{
    BOUND_BY_CONTROLLER, PROVISIONED_BY, enter, modes_differ, note, noted, phase, provision, spec_of,
    volume_name,
};
use crate::engine::{LookUp, Looked, Turn, View};

pub(super) fn step(turn: &mut Turn, view: &View<'_>, volume: &PersistentVolume) {
    let spec = spec_of(volume);
    let uid = spec.claim_ref.as_ref().and_then(|claim| claim.uid.clone()).filter(|uid| !uid.is_empty());
    let (Some(key), Some(uid)) = (super::claimed(volume), uid) else {
        enter(turn, volume, "Available", None);
        return;
    };
    let claim = view.get::<PersistentVolumeClaim>(&key);
    let claim = claim.filter(|claim| claim.metadata.uid.as_ref() == Some(&uid));
    let Some(claim) = claim else {
        if is_gone(turn, view, &key, &uid) {
            release(turn, volume);
        }
        return;
    };
    let name = volume.metadata.name.as_deref().unwrap_or_default();
    match volume_name(&claim) {
        None if modes_differ(&claim, volume) => tell_modes(turn, volume, &claim, name),
        // The claim's own turn goes on.
        None => {}
        Some(own) if own == name => {
            enter(turn, volume, "Bound", None);
        }
        Some(_) if noted(volume, PROVISIONED_BY) && reclaims(volume) == "Delete" => release(turn, volume),
        Some(_) => unbind(turn, volume),
    }
}

/// Whether the claim of a volume is gone for good. What was watched may be behind, and a volume is not given up by mistake:
/// the server is asked.
fn is_gone(turn: &mut Turn, view: &View<'_>, key: &ObjectKey, uid: &str) -> bool {
    let kind = Kind::of::<PersistentVolumeClaim>();
    match view.looked(&kind, key) {
        Looked::NotYet => {
            turn.look_up(LookUp::Object { kind, key: key.clone() });
            false
        }
        Looked::Missing => true,
        Looked::There(meta) => meta.uid.as_deref() != Some(uid),
    }
}

fn reclaims(volume: &PersistentVolume) -> &str {
    let policy = volume.spec.as_ref().and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
    policy.unwrap_or("Retain")
}

fn tell_modes(turn: &mut Turn, volume: &PersistentVolume, claim: &Arc<PersistentVolumeClaim>, name: &str) {
    let asked = claim.metadata.name.as_deref().unwrap_or_default();
    let note = format!(
        "Cannot bind PersistentVolume to requested PersistentVolumeClaim {asked:?} due to incompatible volumeMode."
    );
    turn.event(volume, Event::warning("VolumeMismatch", "Bind", note));
    let note = format!(
        "Cannot bind PersistentVolume {name:?} to requested PersistentVolumeClaim due to incompatible volumeMode."
    );
    turn.event(&**claim, Event::warning("VolumeMismatch", "Bind", note));
}

/// The claim is gone: what becomes of the volume is the reclaim policy's choice.
fn release(turn: &mut Turn, volume: &PersistentVolume) {
    if !matches!(phase(volume), "Released" | "Failed") {
        enter(turn, volume, "Released", None);
        return;
    }
    let name = volume.metadata.name.as_deref().unwrap_or_default();
    let is_folder = note(volume, PROVISIONED_BY) == Some(provision::PROVISIONER);
    match reclaims(volume) {
        // Its folder goes before it does: the node holds it by a finalizer.
        "Delete" if is_folder && volume.metadata.deletion_timestamp.is_none() => turn.delete(volume),
        "Delete" if is_others(volume) => {}
        "Delete" => {
            let why = format!(
                "error getting deleter volume plugin for volume {name:?}: no deletable volume plugin matched"
            );
            fail(turn, volume, "VolumeFailedDelete", why);
        }
        "Recycle" => {
            fail(turn, volume, "VolumeFailedRecycle", "no recyclable volume plugin matched".to_owned())
        }
        _ => {}
    }
}

/// Whether somebody else deletes the volume.
fn is_others(volume: &PersistentVolume) -> bool {
    let by = note(volume, PROVISIONED_BY).unwrap_or_default();
    let csi = volume.spec.as_ref().is_some_and(|spec| spec.csi.is_some());
    csi || !by.is_empty() && !by.starts_with("kubernetes.io/")
}

fn fail(turn: &mut Turn, volume: &PersistentVolume, reason: &str, why: String) {
    if enter(turn, volume, "Failed", Some(why.clone())) {
        turn.event(volume, Event::warning(reason, "Delete", why));
    }
}

/// The claim has another volume: this one is free again, or waits for the claim that its user named.
fn unbind(turn: &mut Turn, volume: &PersistentVolume) {
    let mut free = volume.clone();
    let spec = free.spec.get_or_insert_default();
    if noted(volume, BOUND_BY_CONTROLLER) {
        spec.claim_ref = None;
        let annotations = free.metadata.annotations.get_or_insert_default();
        annotations.remove(BOUND_BY_CONTROLLER);
    } else if let Some(claim) = &mut spec.claim_ref {
        claim.uid = None;
    }
    turn.replace(&free);
}
