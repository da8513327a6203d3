//! Claims and their volumes: found, made, kept for each other, and let go.
//!
//! A claim and a volume are bound in four writes: the volume says for whom it is, then that it is bound, the claim says
//! which one it has, then that it is bound. Each step does the next one that is missing, so that it does not matter where
//! the last one ended. Volumes of the class `standard` are folders: [`provision`] writes down which one, the node that
//! mounts it makes it, and removes it when the volume goes and its reclaim policy is `Delete`. Nothing here touches data.

mod claim;
mod find;
mod protect;
mod provision;
mod volume;

pub(super) use protect::{ClaimProtection, VolumeProtection};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Node, PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec, PersistentVolumeStatus, Pod,
};
use k8s_openapi::api::storage::v1::StorageClass;
use std::sync::Arc;
use windlass::Object;
use windlass::cache::Index;
use windlass_core::ObjectKey;

use super::quantity::units;
use crate::engine::{Controller, Turn, View, Wiring};

/// The claim knows its volume, and the volume the claim.
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// The binding is our doing, and not the user's.
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
/// Who made a volume.
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";

/// Volumes by the claim that they are for, and pods by the claims that they use: `namespace/name`.
const BY_CLAIM: &str = "claim";
/// Volumes that are for nobody, by their class.
const FREE: &str = "free";
/// Claims by the name of the volume that they have.
const BY_VOLUME: &str = "volume";
/// Claims that have none.
const UNBOUND: &str = "unbound";

/// Binds claims and volumes.
pub(super) struct Binder;

impl Controller for Binder {
    fn name(&self) -> &'static str {
        "persistentvolume-controller"
    }

    fn declare(&self, wiring: &mut Wiring) {
        wiring.keys::<PersistentVolumeClaim>();
        wiring.keys::<PersistentVolume>();
        wiring.reads::<Node>();
        index(wiring);
        wiring.maps::<PersistentVolumeClaim>(|claim, view| {
            let named = volume_name(claim).map(ObjectKey::cluster);
            let key = ObjectKey::of(&claim.metadata).to_string();
            let meant = view.by_index::<PersistentVolume>(BY_CLAIM, &key);
            named.into_iter().chain(meant.iter().map(|volume| ObjectKey::of(&volume.metadata))).collect()
        });
        wiring.maps::<PersistentVolume>(|volume, view| {
            let mut claims = match claimed(volume) {
                Some(key) => vec![key],
                None => unbound(view),
            };
            let name = volume.metadata.name.as_deref().unwrap_or_default();
            let holders = view.by_index::<PersistentVolumeClaim>(BY_VOLUME, name);
            claims.extend(holders.iter().map(|claim| ObjectKey::of(&claim.metadata)));
            claims
        });
        wiring.maps::<StorageClass>(|_, view| unbound(view));
        // Who waits for a consumer is told whom it waits for.
        wiring.maps::<Pod>(|pod, view| {
            let mut claims = claims_of(pod);
            claims.retain(|key| {
                view.get::<PersistentVolumeClaim>(key).is_some_and(|claim| !noted(&*claim, BIND_COMPLETED))
            });
            claims
        });
    }

    fn step(&self, key: &ObjectKey, view: &View<'_>, _: Timestamp) -> Turn {
        let mut turn = Turn::default();
        if !view.refused().is_empty() {
            return turn;
        }
        if key.namespace().is_some() {
            if let Some(found) = view.get::<PersistentVolumeClaim>(key) {
                claim::step(&mut turn, view, &found);
            }
        } else if let Some(found) = view.get::<PersistentVolume>(key) {
            volume::step(&mut turn, view, &found);
        }
        turn
    }
}

fn index(wiring: &mut Wiring) {
    wiring.index::<PersistentVolume>(Index::new(BY_CLAIM, |volume: &PersistentVolume| {
        claimed(volume).map(|key| key.to_string()).into_iter().collect()
    }));
    wiring.index::<PersistentVolume>(Index::new(FREE, |volume: &PersistentVolume| {
        let free = claimed(volume).is_none();
        free.then(|| volume_class(volume).to_owned()).into_iter().collect()
    }));
    wiring.index::<PersistentVolumeClaim>(Index::new(BY_VOLUME, |claim: &PersistentVolumeClaim| {
        volume_name(claim).map(str::to_owned).into_iter().collect()
    }));
    wiring.index::<PersistentVolumeClaim>(Index::new(UNBOUND, |claim: &PersistentVolumeClaim| {
        (!noted(claim, BIND_COMPLETED)).then(String::new).into_iter().collect()
    }));
    index_pods(wiring);
}

fn index_pods(wiring: &mut Wiring) {
    wiring.index::<Pod>(Index::new(BY_CLAIM, |pod: &Pod| {
        claims_of(pod).iter().map(ToString::to_string).collect()
    }));
}

/// The claims that a pod uses: those that it names, and those that are made for it alone.
fn claims_of(pod: &Pod) -> Vec<ObjectKey> {
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
    let own = pod.metadata.name.as_deref().unwrap_or_default();
    let names = volumes.iter().filter_map(|volume| match &volume.persistent_volume_claim {
        Some(claim) => Some(claim.claim_name.clone()),
        None => volume.ephemeral.as_ref().map(|_| format!("{own}-{}", volume.name)),
    });
    names.map(|name| ObjectKey::new(pod.metadata.namespace.as_deref(), &name)).collect()
}

fn unbound(view: &View<'_>) -> Vec<ObjectKey> {
    let claims = view.by_index::<PersistentVolumeClaim>(UNBOUND, "");
    claims.iter().map(|claim| ObjectKey::of(&claim.metadata)).collect()
}

/// The claim that a volume is for.
fn claimed(volume: &PersistentVolume) -> Option<ObjectKey> {
    let claim = volume.spec.as_ref()?.claim_ref.as_ref()?;
    Some(ObjectKey::new(claim.namespace.as_deref(), claim.name.as_deref().unwrap_or_default()))
}

/// The volume that a claim has, or wants.
fn volume_name(claim: &PersistentVolumeClaim) -> Option<&str> {
    claim.spec.as_ref()?.volume_name.as_deref().filter(|name| !name.is_empty())
}

/// An annotation.
fn note<'a, K: Object>(object: &'a K, key: &str) -> Option<&'a str> {
    object.meta().annotations.as_ref()?.get(key).map(String::as_str)
}

fn noted<K: Object>(object: &K, key: &str) -> bool {
    note(object, key).is_some()
}

fn annotate<K: Object>(object: &mut K, key: &str, value: &str) {
    object.meta_mut().annotations.get_or_insert_default().insert(key.to_owned(), value.to_owned());
}

/// The class of a claim, if it says something of it.
fn class_of(claim: &PersistentVolumeClaim) -> Option<&str> {
    let beta = note(claim, "volume.beta.kubernetes.io/storage-class");
    beta.or_else(|| claim.spec.as_ref()?.storage_class_name.as_deref())
}

fn volume_class(volume: &PersistentVolume) -> &str {
    let beta = note(volume, "volume.beta.kubernetes.io/storage-class");
    beta.or_else(|| volume.spec.as_ref()?.storage_class_name.as_deref()).unwrap_or_default()
}

fn class(view: &View<'_>, claim: &PersistentVolumeClaim) -> Option<Arc<StorageClass>> {
    let name = class_of(claim).filter(|name| !name.is_empty())?;
    view.get(&ObjectKey::cluster(name))
}

/// How much a claim wants.
fn wanted(claim: &PersistentVolumeClaim) -> i64 {
    let requests = claim.spec.as_ref().and_then(|spec| spec.resources.as_ref()?.requests.as_ref());
    requests.and_then(|requests| requests.get("storage")).map(units).unwrap_or_default()
}

/// How much a volume holds.
fn size(volume: &PersistentVolume) -> i64 {
    let capacity = volume.spec.as_ref().and_then(|spec| spec.capacity.as_ref());
    capacity.and_then(|capacity| capacity.get("storage")).map(units).unwrap_or_default()
}

fn is_block(mode: Option<&String>) -> bool {
    mode.is_some_and(|mode| mode == "Block")
}

/// Whether claim and volume disagree on what a volume is: a file system, or a device.
fn modes_differ(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> bool {
    let claim = claim.spec.as_ref().and_then(|spec| spec.volume_mode.as_ref());
    let volume = volume.spec.as_ref().and_then(|spec| spec.volume_mode.as_ref());
    is_block(claim) != is_block(volume)
}

/// Whether a volume can be used in all the ways that a claim wants.
fn gives_access(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> bool {
    let given = volume.spec.as_ref().and_then(|spec| spec.access_modes.as_deref()).unwrap_or_default();
    let wanted = claim.spec.as_ref().and_then(|spec| spec.access_modes.as_deref()).unwrap_or_default();
    wanted.iter().all(|mode| given.contains(mode))
}

/// Whether a volume is for a claim, and for no other of its name.
fn is_for(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let Some(reference) = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref()) else { return false };
    reference.name == claim.metadata.name
        && reference.namespace == claim.metadata.namespace
        && reference.uid.as_ref().is_none_or(|uid| uid.is_empty() || Some(uid) == claim.metadata.uid.as_ref())
}

fn phase(volume: &PersistentVolume) -> &str {
    volume.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// Sets the phase of a volume, where it is another one. Whether it was.
fn enter(turn: &mut Turn, volume: &PersistentVolume, phase: &str, message: Option<String>) -> bool {
    if self::phase(volume) == phase {
        return false;
    }
    let before = volume.status.clone().unwrap_or_default();
    let status = PersistentVolumeStatus { phase: Some(phase.to_owned()), message, ..before };
    turn.status(&PersistentVolume { status: Some(status), ..volume.clone() });
    true
}

fn spec_of(volume: &PersistentVolume) -> PersistentVolumeSpec {
    volume.spec.clone().unwrap_or_default()
}
