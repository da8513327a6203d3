//! What gives something back: an object that goes, a pod that ends, a Service of another type.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, ResourceQuota, ResourceRequirements, Service};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim};
use windlass::cache::{Cached, Declared, Delta};
use windlass_core::quota::{Classes, Evaluator};
use windlass_core::{Kind, ObjectKey};

use super::count::may_count;
use crate::controllers::pods;
use crate::engine::{View, Wiring};

/// Listens to a kind from now on.
pub(super) fn listen(kind: &Kind, wiring: &mut Wiring) {
    let (group, plural) = (kind.resource.group.as_str(), kind.resource.plural.as_str());
    if *kind == Kind::of::<DeviceClass>() {
        // It says how devices are called, and is not counted itself.
        wiring.cache().declare(Declared::<DeviceClass>::typed().optional());
        return;
    }
    let Some(evaluator) = Evaluator::of(group, plural, Classes::default) else { return };
    match evaluator {
        Evaluator::Pods => wiring.changes(gives_back(evaluator, pod_gives_back)),
        Evaluator::Services => wiring.changes(gives_back(evaluator, service_gives_back)),
        Evaluator::Claims => wiring.changes(gives_back::<PersistentVolumeClaim>(evaluator, |_, _| true)),
        Evaluator::DeviceClaims(_) => {
            let informer = wiring.cache().declare(Declared::<ResourceClaim>::typed().optional());
            wiring.follow(&informer, gives_back(evaluator, |_, _| false));
        }
        Evaluator::Number(_) => {
            let informer = wiring.metadata(kind);
            wiring.follow(&informer, gives_back(evaluator, |_, _| false));
        }
    }
}

/// The quotas to look at when an object is gone, or is no longer what it was.
fn gives_back<K: Cached>(
    evaluator: Evaluator,
    changes: fn(&K, &K) -> bool,
) -> impl Fn(&Delta<K>, &View<'_>) -> Vec<ObjectKey> + Send + Sync + 'static {
    move |delta, view| {
        let gives = match (&delta.old, &delta.new) {
            (Some(old), Some(new)) => old.meta().uid != new.meta().uid || changes(old, new),
            (Some(_), None) => true,
            (None, _) => false,
        };
        match gives {
            true => quotas(view, delta.key.namespace(), |name| may_count(&evaluator, name)),
            false => Vec::new(),
        }
    }
}

/// The quotas, of one namespace or of all, that name something.
pub(super) fn quotas(
    view: &View<'_>,
    namespace: Option<&str>,
    is_named: impl Fn(&str) -> bool,
) -> Vec<ObjectKey> {
    let names_it = |quota: &ResourceQuota| {
        let hard = quota.spec.as_ref().and_then(|spec| spec.hard.as_ref());
        hard.is_some_and(|hard| hard.keys().any(|name| is_named(name)))
    };
    let all = view.list::<ResourceQuota>(namespace);
    all.iter().filter(|quota| names_it(quota)).map(|quota| ObjectKey::of(&quota.metadata)).collect()
}

fn pod_gives_back(old: &Pod, new: &Pod) -> bool {
    let has_ended = |pod: &Pod| matches!(pods::phase(pod), "Succeeded" | "Failed");
    let deadline = |pod: &Pod| pod.spec.as_ref().is_some_and(|spec| spec.active_deadline_seconds.is_some());
    !has_ended(old) && has_ended(new) || deadline(old) != deadline(new) || has_other_resources(old, new)
}

/// Whether a container has other resources than it had.
fn has_other_resources(old: &Pod, new: &Pod) -> bool {
    let of = |pod: &Pod| -> BTreeMap<String, Option<ResourceRequirements>> {
        let Some(status) = &pod.status else { return BTreeMap::new() };
        let all = status.container_statuses.iter().chain(&status.init_container_statuses).flatten();
        all.map(|container| (container.name.clone(), container.resources.clone())).collect()
    };
    let (old, new) = (of(old), of(new));
    old.iter().any(|(name, resources)| new.get(name).is_some_and(|now| now != resources))
}

fn service_gives_back(old: &Service, new: &Service) -> bool {
    let of = |service: &Service| {
        let kind = service.spec.as_ref().and_then(|spec| spec.type_.clone());
        kind.filter(|kind| matches!(kind.as_str(), "NodePort" | "LoadBalancer"))
    };
    of(old) != of(new)
}
