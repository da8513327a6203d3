//! Which volume a claim gets, of those that are there.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use windlass_core::ObjectKey;

use super::{BY_CLAIM, FREE};
use crate::controllers::claim::selector;
use crate::engine::View;

/// What is there for a claim.
pub(super) enum Found {
    /// This one.
    Volume(Arc<PersistentVolume>),
    /// One that will do, and was not looked at yet: it is free in a moment.
    Soon,
    /// None.
    Nothing,
}

/// The volume that is for the claim already; else the smallest that will do, unless the scheduler is to choose.
pub(super) fn volume(view: &View<'_>, claim: &PersistentVolumeClaim, scheduler_chooses: bool) -> Found {
    let key = ObjectKey::of(&claim.metadata).to_string();
    let mut meant = view.by_index::<PersistentVolume>(BY_CLAIM, &key);
    meant.retain(|volume| super::is_for(volume, claim) && suits(volume, claim));
    meant.sort_by_key(|volume| modes(volume));
    if scheduler_chooses || !meant.is_empty() {
        return meant.into_iter().next().map_or(Found::Nothing, Found::Volume);
    }
    let nothing = BTreeMap::new();
    let labels = claim.spec.as_ref().and_then(|spec| spec.selector.as_ref()).map(selector);
    let matches = |volume: &PersistentVolume| {
        let own = volume.metadata.labels.as_ref().unwrap_or(&nothing);
        labels.as_ref().is_none_or(|labels| labels.matches(own))
    };
    let mut free = view.by_index::<PersistentVolume>(FREE, super::class_of(claim).unwrap_or_default());
    free.retain(|volume| suits(volume, claim) && matches(volume));
    let available = free.iter().filter(|volume| super::phase(volume) == "Available");
    let best = available.min_by_key(|volume| (modes(volume), super::size(volume)));
    match best {
        Some(best) => Found::Volume(best.clone()),
        None if free.iter().any(|volume| matches!(super::phase(volume), "" | "Pending")) => Found::Soon,
        None => Found::Nothing,
    }
}

fn modes(volume: &PersistentVolume) -> usize {
    volume.spec.as_ref().and_then(|spec| spec.access_modes.as_ref()).map_or(0, Vec::len)
}

fn suits(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    super::size(volume) >= super::wanted(claim)
        && !super::modes_differ(claim, volume)
        && attributes(volume, claim)
        && super::gives_access(claim, volume)
        && volume.metadata.deletion_timestamp.is_none()
}

/// Whether both are of the same class of attributes.
fn attributes(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let of_volume = volume.spec.as_ref().and_then(|spec| spec.volume_attributes_class_name.as_deref());
    let of_claim = claim.spec.as_ref().and_then(|spec| spec.volume_attributes_class_name.as_deref());
    of_volume.unwrap_or_default() == of_claim.unwrap_or_default()
}

/// Why the volume that a claim names will not do.
pub(super) fn mismatch(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> Option<String> {
    let name = volume.metadata.name.as_deref().unwrap_or_default();
    if volume.metadata.deletion_timestamp.is_some() {
        return Some(format!("the volume is marked for deletion {name:?}"));
    }
    let class = super::class_of(claim).unwrap_or_default();
    let faults = [
        (super::size(volume) < super::wanted(claim), "requested PV is too small"),
        (super::volume_class(volume) != class, "storageClassName does not match"),
        (!attributes(volume, claim), "volumeAttributesClassName does not match"),
        (super::modes_differ(claim, volume), "incompatible volumeMode"),
        (!super::gives_access(claim, volume), "incompatible accessMode"),
    ];
    faults.into_iter().find(|(is, _)| *is).map(|(_, why)| why.to_owned())
}
