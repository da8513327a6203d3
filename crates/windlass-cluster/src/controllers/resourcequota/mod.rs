//! Resource quotas: how much a namespace has used of each.
//!
//! ```text
//! names in spec.hard ─► evaluators ─► their kinds, watched from now on ─► objects of the namespace ─► status
//! ```
//!
//! Admission charges for what is created before it is there. To count at that moment would be to give back what was just
//! charged, so a new object is no reason to look, and neither is a charge: only what gives something back is. Where a quota
//! was changed it is counted once more soon after, in case that something was on its way just then.

mod count;
mod replenish;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, ResourceQuota, Service};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use windlass_core::quota::counted_as;
use windlass_core::{Kind, ObjectKey};

use self::count::Count;
use crate::engine::{Controller, Kinds, LookUp, Turn, View, Wiring};

/// Fills in what quotas have used.
#[derive(Default)]
pub(super) struct ResourceQuotas {
    served: Arc<Mutex<Known>>,
    /// The kinds that are listened to, by the path of the collection.
    heard: Mutex<BTreeSet<String>>,
}

/// A resource, by its group and its plural.
type Resource = (String, String);

/// Which kinds can be counted.
#[derive(Default)]
struct Known {
    /// One that is served no longer stays: there are none of it then.
    kinds: BTreeMap<Resource, Kind>,
    /// Whether a definition has changed since the server was asked.
    stale: bool,
    /// When it was asked.
    asked: Option<Timestamp>,
}

/// After how long everything is counted anew, whatever happened.
const RESYNC: Duration = Duration::from_secs(5 * 60);

/// After how long the server is asked again for a kind that it did not serve: not every one comes by a definition.
const UNSERVED: Duration = Duration::from_secs(30);

/// After how long it is counted again where something may have been on its way, or is not served yet.
const SOON: Duration = Duration::from_secs(1);

/// After how long it is looked whether a kind has been listed.
const LISTING: Duration = Duration::from_millis(50);

impl Controller for ResourceQuotas {
    fn name(&self) -> &'static str {
        "resourcequota-controller"
    }

    fn declare(&self, wiring: &mut Wiring) {
        wiring.changes::<ResourceQuota>(|delta, _| {
            let hard = |quota: &Arc<ResourceQuota>| quota.spec.as_ref().and_then(|spec| spec.hard.clone());
            let same = delta.old.is_some() && delta.old.as_ref().map(hard) == delta.new.as_ref().map(hard);
            if same { Vec::new() } else { vec![delta.key.clone()] }
        });
        let served = self.served.clone();
        wiring.maps::<CustomResourceDefinition>(move |definition, view| {
            lock(&served).stale = true;
            let spec = &definition.spec;
            let name = (spec.group.as_str(), spec.names.plural.as_str());
            replenish::quotas(view, None, |hard| counted_as(hard) == Some(name))
        });
    }

    fn step(&self, key: &ObjectKey, view: &View<'_>, now: Timestamp) -> Turn {
        let mut turn = Turn::default();
        let quota = view.get::<ResourceQuota>(key).filter(|_| view.refused().is_empty());
        let Some(quota) = quota else { return turn };
        let mut count = Count::of(&quota);
        let resources = count.resources();
        let Some(kinds) = self.kinds(&resources, view, now) else {
            turn.look_up(LookUp::Kinds);
            return turn;
        };
        let classes = count.may_be_of_classes().then(Kind::of::<DeviceClass>);
        let unheard = |kind: &&Kind| !lock(&self.heard).contains(&kind.path(None, None));
        turn.watch = kinds.values().chain(&classes).filter(unheard).cloned().collect();
        if !turn.watch.is_empty() {
            turn.wake_at(now);
            return turn;
        }
        if !count.add_up(&kinds, view, now) {
            turn.wake_at(now + LISTING);
            return turn;
        }
        turn.wake_at(now + RESYNC);
        let mut missing = resources.iter().filter(|resource| !kinds.contains_key(resource));
        let status = count.status(&quota);
        if count.is_partial() || status.is_some() || missing.any(|resource| is_defined(resource, view)) {
            turn.wake_at(now + SOON);
        }
        if status.is_some() {
            turn.status(&ResourceQuota { status, ..ResourceQuota::clone(&quota) });
        }
        turn
    }

    fn watch(&self, kind: &Kind, wiring: &mut Wiring) {
        if lock(&self.heard).insert(kind.path(None, None)) {
            replenish::listen(kind, wiring);
        }
    }
}

impl ResourceQuotas {
    /// The kinds of some resources, as far as they are served; `None` where the server has to be asked.
    fn kinds(
        &self,
        resources: &BTreeSet<Resource>,
        view: &View<'_>,
        now: Timestamp,
    ) -> Option<BTreeMap<Resource, Kind>> {
        let mut known = lock(&self.served);
        let mut others = resources.iter().filter(|resource| measured(resource).is_none());
        if others.any(|resource| known.has_to_ask(resource, view, now)) {
            known.learn(view.kinds()?, now);
        }
        let kind = |resource: &Resource| measured(resource).or_else(|| known.kinds.get(resource).cloned());
        Some(resources.iter().filter_map(|one| Some((one.clone(), kind(one)?))).collect())
    }
}

impl Known {
    fn has_to_ask(&self, resource: &Resource, view: &View<'_>, now: Timestamp) -> bool {
        let is_old = || self.asked.is_none_or(|asked| now >= asked + UNSERVED);
        self.stale || !self.kinds.contains_key(resource) && (is_old() || is_defined(resource, view))
    }

    fn learn(&mut self, served: &Kinds, now: Timestamp) {
        let countable = served.served.iter().filter(|served| {
            let is_stored = served.can(&["create", "list", "watch", "delete"]);
            served.preferred && served.kind.namespaced && is_stored
        });
        self.kinds.extend(countable.map(|served| {
            let resource = &served.kind.resource;
            ((resource.group.clone(), resource.plural.clone()), served.kind.clone())
        }));
        self.stale = false;
        self.asked = Some(now);
    }
}

/// The kinds of which more than the number is counted.
fn measured((group, plural): &Resource) -> Option<Kind> {
    Some(match (group.as_str(), plural.as_str()) {
        ("", "pods") => Kind::of::<Pod>(),
        ("", "services") => Kind::of::<Service>(),
        ("", "persistentvolumeclaims") => Kind::of::<PersistentVolumeClaim>(),
        ("resource.k8s.io", "resourceclaims") => Kind::of::<ResourceClaim>(),
        _ => return None,
    })
}

/// Whether there is a definition of a resource that holds: then it is served soon.
fn is_defined((group, plural): &Resource, view: &View<'_>) -> bool {
    let definitions = view.list::<CustomResourceDefinition>(None);
    let mut definitions = definitions.iter().filter(|one| one.spec.scope == "Namespaced");
    let found = definitions.find(|one| one.spec.group == *group && one.spec.names.plural == *plural);
    let conditions = found.and_then(|one| one.status.as_ref()?.conditions.as_deref());
    let mut conditions = conditions.unwrap_or_default().iter();
    conditions.any(|condition| condition.type_ == "Established" && condition.status == "True")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
