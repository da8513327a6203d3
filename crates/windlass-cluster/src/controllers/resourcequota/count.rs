//! Counting what is there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, ResourceQuota, ResourceQuotaStatus, Service};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde::Serialize;
use serde_json::Value;
use windlass::cache::{ReadError, State};
use windlass_core::amounts::{Amounts, add, amounts};
use windlass_core::quantity;
use windlass_core::quota::{Classes, Evaluator, MEASURED, World, counted_as, may_be_devices};
use windlass_core::{Kind, ObjectKey};

use super::Resource;
use crate::engine::{Metadata, View};

/// What a quota is about, and what was found of it.
pub(super) struct Count {
    quota: Value,
    namespace: String,
    hard: Amounts,
    found: Amounts,
    /// What cannot be counted now.
    unknown: BTreeSet<String>,
}

impl Count {
    pub fn of(quota: &ResourceQuota) -> Count {
        let namespace = quota.metadata.namespace.clone().unwrap_or_default();
        let quota = tree(quota);
        let hard = amounts(&quota["spec"], "hard");
        Count { quota, namespace, hard, found: Amounts::new(), unknown: BTreeSet::new() }
    }

    /// Whether something may be devices of a class, depending on the classes there are.
    pub fn may_be_of_classes(&self) -> bool {
        self.hard.keys().any(|name| may_be_devices(name))
    }

    /// The resources whose objects may count.
    pub fn resources(&self) -> BTreeSet<Resource> {
        let by_number = self.hard.keys().filter_map(|name| counted_as(name));
        let all = by_number.chain(MEASURED).filter(|(group, plural)| {
            let evaluator = Evaluator::of(group, plural, Classes::default);
            evaluator.is_some_and(|evaluator| self.hard.keys().any(|name| may_count(&evaluator, name)))
        });
        all.map(|(group, plural)| (group.to_owned(), plural.to_owned())).collect()
    }

    /// Adds up what there is of these kinds. Whether all of them could be looked at, or never will: others are listed just now.
    pub fn add_up(&mut self, kinds: &BTreeMap<Resource, Kind>, view: &View<'_>, now: Timestamp) -> bool {
        let mut classes = Classes::default();
        if self.may_be_of_classes() {
            match view.cache().list::<DeviceClass>(None) {
                Ok(found) => classes = Classes::of(&trees(&found)),
                Err(_) if fails(&Kind::of::<DeviceClass>(), view) => {}
                Err(_) => return false,
            }
        }
        for ((group, plural), kind) in kinds {
            let Some(evaluator) = Evaluator::of(group, plural, || classes.clone()) else { continue };
            let names: Vec<String> =
                self.hard.keys().filter(|name| evaluator.counts(name)).cloned().collect();
            if names.is_empty() {
                continue;
            }
            match objects(&evaluator, kind, &self.namespace, view) {
                Ok(objects) => self.add(&evaluator, names, &objects, &Seen { view, now }),
                Err(_) if fails(kind, view) => self.unknown.extend(names),
                Err(_) => return false,
            }
        }
        true
    }

    fn add(&mut self, evaluator: &Evaluator, names: Vec<String>, objects: &[Value], seen: &Seen<'_>) {
        let zero = quantity::Quantity::from_i64(0);
        let mut sum: Amounts = names.into_iter().map(|name| (name, zero.clone())).collect();
        for object in objects.iter().filter(|object| evaluator.is_in_scope(&self.quota, object)) {
            let mut usage = evaluator.usage(object, seen);
            usage.retain(|name, _| sum.contains_key(name));
            add(&mut sum, &usage);
        }
        add(&mut self.found, &sum);
    }

    /// Whether something could not be counted.
    pub fn is_partial(&self) -> bool {
        !self.unknown.is_empty()
    }

    /// The status that the quota should have, if it has another.
    pub fn status(&self, quota: &ResourceQuota) -> Option<ResourceQuotaStatus> {
        let status = &self.quota["status"];
        let mut used = amounts(status, "used");
        let before = used.clone();
        used.extend(self.found.clone());
        for name in &self.unknown {
            // What was known of it stays.
            used.remove(name);
            used.extend(before.get_key_value(name).map(|(name, amount)| (name.clone(), amount.clone())));
        }
        used.retain(|name, _| self.hard.contains_key(name));
        if used == before && amounts(status, "hard") == self.hard {
            return None;
        }
        let used = used.into_iter().map(|(name, amount)| (name, Quantity(amount.to_string())));
        let hard = quota.spec.as_ref().and_then(|spec| spec.hard.clone());
        Some(ResourceQuotaStatus { hard, used: Some(used.collect()) })
    }
}

/// Whether objects may count under a name, depending on the classes of devices there are.
pub(super) fn may_count(evaluator: &Evaluator, name: &str) -> bool {
    let is_of_devices = matches!(evaluator, Evaluator::DeviceClaims(_));
    evaluator.counts(name) || is_of_devices && may_be_devices(name)
}

/// The objects of a namespace, as they are counted. Of what is only numbered nothing is looked at.
fn objects(
    evaluator: &Evaluator,
    kind: &Kind,
    namespace: &str,
    view: &View<'_>,
) -> Result<Vec<Value>, ReadError> {
    let (cache, namespace) = (view.cache(), Some(namespace));
    Ok(match evaluator {
        Evaluator::Pods => trees(&cache.list::<Pod>(namespace)?),
        Evaluator::Services => trees(&cache.list::<Service>(namespace)?),
        Evaluator::Claims => trees(&cache.list::<PersistentVolumeClaim>(namespace)?),
        Evaluator::DeviceClaims(_) => trees(&cache.list::<ResourceClaim>(namespace)?),
        Evaluator::Number(_) => vec![Value::Null; cache.list_of::<Metadata>(kind, namespace)?.len()],
    })
}

/// Whether a kind cannot be listed: what else there is does not wait for it.
fn fails(kind: &Kind, view: &View<'_>) -> bool {
    let fails = |state: &State| matches!(state, State::Failing { .. });
    view.cache().health().iter().any(|one| one.target.kind == *kind && fails(&one.state))
}

fn trees<K: Serialize>(objects: &[Arc<K>]) -> Vec<Value> {
    objects.iter().map(|object| tree(&**object)).collect()
}

fn tree<K: Serialize>(object: &K) -> Value {
    serde_json::to_value(object).expect("an object of the API is JSON")
}

/// What is there, for those who have to know more than an object.
struct Seen<'a> {
    view: &'a View<'a>,
    now: Timestamp,
}

impl World for Seen<'_> {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn pod(&self, namespace: &str, name: &str) -> Option<Value> {
        let pod = self.view.cache().get::<Pod>(&ObjectKey::namespaced(namespace, name)).ok()??;
        Some(tree(&*pod))
    }

    fn device_claims(&self, namespace: &str) -> Vec<Value> {
        let claims = self.view.cache().list::<ResourceClaim>(Some(namespace));
        claims.map(|claims| trees(&claims)).unwrap_or_default()
    }
}
