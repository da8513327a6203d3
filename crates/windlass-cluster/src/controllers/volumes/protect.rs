//! Nothing that is in use is removed: claims that pods use, and volumes that claims have.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use windlass::Object;
use windlass_core::{Kind, ObjectKey, owner};

use super::{BY_CLAIM, claims_of, index_pods, phase};
use crate::controllers::pods;
use crate::engine::{Controller, Listed, LookUp, Turn, View, Wiring};

/// What holds a claim.
const CLAIM: &str = "kubernetes.io/pvc-protection";
/// What holds a volume.
const VOLUME: &str = "kubernetes.io/pv-protection";

/// When to look again at what the server could not say, or what is not known here yet.
const SOON: Duration = Duration::from_secs(1);

/// Holds claims that pods use.
pub(in crate::controllers) struct ClaimProtection;

impl Controller for ClaimProtection {
    fn name(&self) -> &'static str {
        "persistentvolumeclaim-protection-controller"
    }

    fn declare(&self, wiring: &mut Wiring) {
        wiring.keys::<PersistentVolumeClaim>();
        index_pods(wiring);
        wiring.maps::<Pod>(|pod, _| claims_of(pod));
    }

    fn step(&self, key: &ObjectKey, view: &View<'_>, now: Timestamp) -> Turn {
        let mut turn = Turn::default();
        let Some(claim) = view.get::<PersistentVolumeClaim>(key) else { return turn };
        if claim.metadata.deletion_timestamp.is_none() {
            hold(&mut turn, &*claim, CLAIM);
            return turn;
        }
        if !has(&*claim, CLAIM) {
            return turn;
        }
        let users = view.by_index::<Pod>(BY_CLAIM, &key.to_string());
        if users.iter().any(|pod| uses(pod, &claim)) {
            return turn;
        }
        // What was watched may be behind: a claim is let go when the server, too, has no pod that is not known here.
        let kind = Kind::of::<Pod>();
        let known = |meta: &kube::api::ObjectMeta| {
            let pod = view.get::<Pod>(&ObjectKey::of(meta));
            pod.is_some_and(|pod| pod.metadata.uid == meta.uid)
        };
        match view.listed(&kind, key.namespace()) {
            None => {
                let namespace = key.namespace().map(str::to_owned);
                turn.look_up(LookUp::Objects { kind, namespace });
            }
            Some(Listed::Objects(all)) if all.iter().all(known) => let_go(&mut turn, &*claim, CLAIM),
            // Some are not known yet: they will be.
            Some(_) => turn.wake_at(now + SOON),
        }
        turn
    }
}

/// Whether a pod uses a claim: one that has no node yet will not start with a claim that goes.
fn uses(pod: &Pod, claim: &PersistentVolumeClaim) -> bool {
    if pods::node(pod).is_empty() {
        return false;
    }
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
    let named = volumes.iter().any(|volume| {
        let name = volume.persistent_volume_claim.as_ref().map(|claim| &claim.claim_name);
        name.is_some() && name == claim.metadata.name.as_ref()
    });
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let ended =
        matches!(pods::phase(pod), "Failed" | "Succeeded") && pod.metadata.deletion_timestamp.is_some();
    named || (!ended && owner::is_controlled_by(&claim.metadata, uid))
}

/// Holds volumes that claims have.
pub(in crate::controllers) struct VolumeProtection;

impl Controller for VolumeProtection {
    fn name(&self) -> &'static str {
        "persistentvolume-protection-controller"
    }

    fn declare(&self, wiring: &mut Wiring) {
        wiring.keys::<PersistentVolume>();
    }

    fn step(&self, key: &ObjectKey, view: &View<'_>, _: Timestamp) -> Turn {
        let mut turn = Turn::default();
        let Some(volume) = view.get::<PersistentVolume>(key) else { return turn };
        if volume.metadata.deletion_timestamp.is_none() {
            hold(&mut turn, &*volume, VOLUME);
        } else if has(&*volume, VOLUME) && phase(&volume) != "Bound" {
            let_go(&mut turn, &*volume, VOLUME);
        }
        turn
    }
}

fn has<K: Object>(object: &K, finalizer: &str) -> bool {
    object.meta().finalizers.iter().flatten().any(|one| one == finalizer)
}

fn hold<K: Object>(turn: &mut Turn, object: &K, finalizer: &str) {
    if !has(object, finalizer) {
        let mut held = object.clone();
        held.meta_mut().finalizers.get_or_insert_default().push(finalizer.to_owned());
        turn.replace(&held);
    }
}

fn let_go<K: Object>(turn: &mut Turn, object: &K, finalizer: &str) {
    let mut free = object.clone();
    if let Some(finalizers) = &mut free.meta_mut().finalizers {
        finalizers.retain(|one| one != finalizer);
    }
    turn.replace(&free);
}
