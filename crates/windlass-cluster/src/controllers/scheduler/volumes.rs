//! Claims of a pod: where their volumes can be had, and what has to happen before the pod can go there.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod, Volume};
use k8s_openapi::api::storage::v1::StorageClass;
use serde_json::json;
use windlass_core::{ObjectKey, owner};

use crate::controllers::nodes;
use crate::controllers::quantity::units;
use crate::engine::{Turn, View};

/// Where a volume is to be made, for whoever makes it.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// The claim and its volume know of each other.
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// The claim was bound by us, and is unbound by us.
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
/// A class whose volumes nobody makes.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// The claims of one pod.
#[derive(Default)]
pub(super) struct Claims {
    /// Volumes of claims that are bound; `None` where the volume is missing.
    bound: Vec<Option<Arc<PersistentVolume>>>,
    /// Claims that wait for this pod to have a node.
    waiting: Vec<Arc<PersistentVolumeClaim>>,
}

/// Why a node will not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// A volume cannot be had there.
    Place,
    /// There is none, and none can be made.
    None,
    /// A claim's volume is gone.
    Gone,
}

/// Whether a pod has claims.
pub(super) fn has_claims(pod: &Pod) -> bool {
    volumes(pod).iter().any(|volume| volume.persistent_volume_claim.is_some() || volume.ephemeral.is_some())
}

fn volumes(pod: &Pod) -> &[Volume] {
    pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default()
}

impl Claims {
    /// The claims of a pod, or why it cannot go anywhere yet.
    pub fn of(pod: &Pod, view: &View<'_>) -> Result<Claims, String> {
        let mut claims = Claims::default();
        let mut immediate = false;
        for volume in volumes(pod) {
            let Some(claim) = claim(pod, volume, view)? else { continue };
            let name =
                claim.spec.as_ref().and_then(|spec| spec.volume_name.clone()).filter(|name| !name.is_empty());
            let completed =
                claim.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(BIND_COMPLETED));
            match name {
                Some(name) if completed => claims.bound.push(view.get(&ObjectKey::cluster(&name))),
                None if class(&claim, view)?.is_some_and(|class| waits(&class)) => claims.waiting.push(claim),
                _ => immediate = true,
            }
        }
        match immediate {
            true => Err("pod has unbound immediate PersistentVolumeClaims".to_owned()),
            false => Ok(claims),
        }
    }

    /// Whether all volumes can be had at a node.
    pub fn check(&self, node: &Node, view: &View<'_>) -> Result<(), Wrong> {
        if self.bound.iter().any(Option::is_none) {
            return Err(Wrong::Gone);
        }
        if !self.bound.iter().flatten().all(|volume| is_at(volume, node)) {
            return Err(Wrong::Place);
        }
        if self.waiting.is_empty() { Ok(()) } else { self.plan(node, view).map(|_| ()) }
    }

    /// What has to be written before the pod can go to a node; `None` where it can go now.
    pub fn prepare(&self, node: &Node, view: &View<'_>, turn: &mut Turn) -> Option<()> {
        if self.waiting.is_empty() {
            return None;
        }
        for (claim, way) in self.plan(node, view).unwrap_or_default() {
            match way {
                Way::Made if selected(&claim).is_some() => {}
                Way::Made => {
                    let patch = json!({"metadata": {
                        "uid": claim.metadata.uid,
                        "resourceVersion": claim.metadata.resource_version,
                        "annotations": {SELECTED_NODE: nodes::name(node)},
                    }});
                    turn.patch::<PersistentVolumeClaim>(&ObjectKey::of(&claim.metadata), patch);
                }
                Way::Found(volume) => reserve(&volume, &claim, turn),
            }
        }
        Some(())
    }

    /// How each claim that waits is to get its volume at a node.
    fn plan(&self, node: &Node, view: &View<'_>) -> Result<Vec<(Arc<PersistentVolumeClaim>, Way)>, Wrong> {
        let mut claims = self.waiting.clone();
        claims.sort_by_key(|claim| wanted(claim));
        let mut taken = BTreeSet::new();
        let mut plan = Vec::new();
        for claim in claims {
            if let Some(place) = selected(&claim) {
                if place != nodes::name(node) {
                    return Err(Wrong::None);
                }
                plan.push((claim, Way::Made));
                continue;
            }
            if let Some(volume) = find(&claim, node, view, &taken) {
                taken.insert(volume.metadata.name.clone());
                plan.push((claim, Way::Found(volume)));
                continue;
            }
            let class = class(&claim, view).ok().flatten();
            if !class.is_some_and(|class| class.provisioner != NO_PROVISIONER && makes_at(&class, node)) {
                return Err(Wrong::None);
            }
            plan.push((claim, Way::Made));
        }
        Ok(plan)
    }
}

/// How a claim gets its volume.
enum Way {
    /// One is there.
    Found(Arc<PersistentVolume>),
    /// One is made.
    Made,
}

/// The claim of a volume, if it has one.
fn claim(pod: &Pod, volume: &Volume, view: &View<'_>) -> Result<Option<Arc<PersistentVolumeClaim>>, String> {
    let own = volume.ephemeral.is_some();
    let name = match &volume.persistent_volume_claim {
        Some(claim) => claim.claim_name.clone(),
        None if own => format!("{}-{}", pod.metadata.name.as_deref().unwrap_or_default(), volume.name),
        None => return Ok(None),
    };
    let key = ObjectKey::new(pod.metadata.namespace.as_deref(), &name);
    let Some(claim) = view.get::<PersistentVolumeClaim>(&key) else {
        return Err(match own {
            true => {
                format!(
                    "waiting for ephemeral volume controller to create the persistentvolumeclaim {name:?}"
                )
            }
            false => format!("persistentvolumeclaim {name:?} not found"),
        });
    };
    if claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Lost") {
        let volume = claim.spec.as_ref().and_then(|spec| spec.volume_name.clone()).unwrap_or_default();
        return Err(format!(
            "persistentvolumeclaim {name:?} bound to non-existent persistentvolume {volume:?}"
        ));
    }
    if claim.metadata.deletion_timestamp.is_some() {
        return Err(format!("persistentvolumeclaim {name:?} is being deleted"));
    }
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    if own && !owner::is_controlled_by(&claim.metadata, uid) {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let pod = pod.metadata.name.as_deref().unwrap_or_default();
        return Err(format!(
            "PVC {namespace}/{name} was not created for pod {namespace}/{pod} (pod is not owner)"
        ));
    }
    Ok(Some(claim))
}

fn class_name(claim: &PersistentVolumeClaim) -> &str {
    let noted = claim
        .metadata
        .annotations
        .as_ref()
        .and_then(|all| all.get("volume.beta.kubernetes.io/storage-class"));
    let named = claim.spec.as_ref().and_then(|spec| spec.storage_class_name.as_ref());
    noted.or(named).map(String::as_str).unwrap_or_default()
}

/// The class of a claim; `None` where it has none.
fn class(claim: &PersistentVolumeClaim, view: &View<'_>) -> Result<Option<Arc<StorageClass>>, String> {
    match class_name(claim) {
        "" => Ok(None),
        name => match view.get::<StorageClass>(&ObjectKey::cluster(name)) {
            Some(class) => Ok(Some(class)),
            None => Err(format!("storageclass.storage.k8s.io {name:?} not found")),
        },
    }
}

fn waits(class: &StorageClass) -> bool {
    class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer")
}

/// Whether a class makes volumes at a node.
fn makes_at(class: &StorageClass, node: &Node) -> bool {
    let Some(topologies) = class.allowed_topologies.as_deref().filter(|all| !all.is_empty()) else {
        return true;
    };
    topologies.iter().any(|term| {
        term.match_label_expressions.iter().flatten().all(|one| {
            nodes::label(node, &one.key)
                .is_some_and(|value| one.values.iter().any(|allowed| allowed == value))
        })
    })
}

fn selected(claim: &PersistentVolumeClaim) -> Option<&str> {
    claim.metadata.annotations.as_ref()?.get(SELECTED_NODE).map(String::as_str)
}

fn wanted(claim: &PersistentVolumeClaim) -> i64 {
    let requests = claim.spec.as_ref().and_then(|spec| spec.resources.as_ref()?.requests.as_ref());
    requests.and_then(|requests| requests.get("storage")).map(units).unwrap_or_default()
}

fn is_at(volume: &PersistentVolume, node: &Node) -> bool {
    let affinity = volume.spec.as_ref().and_then(|spec| spec.node_affinity.as_ref());
    affinity
        .and_then(|affinity| affinity.required.as_ref())
        .is_none_or(|required| nodes::matches(required, node))
}

/// The smallest volume that is free, large enough, of the claim's class and modes, and at the node.
fn find(
    claim: &PersistentVolumeClaim,
    node: &Node,
    view: &View<'_>,
    taken: &BTreeSet<Option<String>>,
) -> Option<Arc<PersistentVolume>> {
    let size = |volume: &PersistentVolume| {
        let capacity = volume.spec.as_ref().and_then(|spec| spec.capacity.as_ref());
        capacity.and_then(|capacity| capacity.get("storage")).map(units).unwrap_or_default()
    };
    let wants = claim.spec.clone().unwrap_or_default();
    let labels = wants.selector.as_ref().map(crate::controllers::claim::selector);
    let fits = |volume: &Arc<PersistentVolume>| {
        let Some(spec) = &volume.spec else { return false };
        let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default();
        let modes = spec.access_modes.as_deref().unwrap_or_default();
        let block = |mode: &Option<String>| mode.as_deref() == Some("Block");
        let labelled = labels.as_ref().is_none_or(|labels| {
            labels.matches(volume.metadata.labels.as_ref().unwrap_or(&std::collections::BTreeMap::new()))
        });
        let for_us = spec.claim_ref.as_ref().is_none_or(|claimed| {
            claimed.name == claim.metadata.name
                && claimed.namespace == claim.metadata.namespace
                && claimed.uid.as_ref().is_none_or(|uid| Some(uid) == claim.metadata.uid.as_ref())
        });
        for_us
            && labelled
            && volume.metadata.deletion_timestamp.is_none()
            && matches!(phase, "Available" | "Pending" | "")
            && !taken.contains(&volume.metadata.name)
            && spec.storage_class_name.as_deref().unwrap_or_default() == class_name(claim)
            && block(&spec.volume_mode) == block(&wants.volume_mode)
            && wants.access_modes.iter().flatten().all(|mode| modes.contains(mode))
            && size(volume) >= wanted(claim)
            && is_at(volume, node)
    };
    view.list::<PersistentVolume>(None).into_iter().filter(fits).min_by_key(|volume| size(volume))
}

/// A volume is given to a claim; the claim is told by whoever binds volumes.
fn reserve(volume: &PersistentVolume, claim: &PersistentVolumeClaim, turn: &mut Turn) {
    let patch = json!({
        "metadata": {
            "uid": volume.metadata.uid,
            "resourceVersion": volume.metadata.resource_version,
            "annotations": {BOUND_BY_CONTROLLER: "yes"},
        },
        "spec": {"claimRef": {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": claim.metadata.namespace,
            "name": claim.metadata.name,
            "uid": claim.metadata.uid,
            "resourceVersion": claim.metadata.resource_version,
        }},
    });
    let reserved =
        volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref()?.uid.clone()) == claim.metadata.uid;
    if !reserved {
        turn.patch::<PersistentVolume>(&ObjectKey::of(&volume.metadata), patch);
    }
}
