//! StatefulSets: pods that keep their names and their volumes, one after the other.
//!
//! As in Kubernetes 1.36 with its default features, `maxUnavailable` of a rolling update counts as one.

mod claims;
mod identity;
mod plan;
mod revisions;

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet, StatefulSetStatus};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use windlass::events::Event;
use windlass_core::ObjectKey;
use windlass_core::select::LabelSelector;

use super::claim::{claim, selector};
use super::{history, pods};
use crate::engine::{Controller, Refusal, Turn, View, Wiring};
use plan::Plan;
use revisions::{Revisions, name};

/// Keeps the pods of StatefulSets.
pub(super) struct StatefulSets;

impl Controller for StatefulSets {
    fn name(&self) -> &'static str {
        "statefulset-controller"
    }

    fn declare(&self, wiring: &mut Wiring) {
        wiring.keys::<StatefulSet>();
        wiring.children::<Pod, StatefulSet>(selects);
        wiring.children::<ControllerRevision, StatefulSet>(selects);
        wiring.maps::<PersistentVolumeClaim>(|claim, _| may_be_of(claim));
    }

    fn step(&self, key: &ObjectKey, view: &View<'_>, now: Timestamp) -> Turn {
        let mut turn = Turn::default();
        let Some(set) = view.get::<StatefulSet>(key) else { return turn };
        let selector = selects(&set);
        let mut history = claim::<_, ControllerRevision>(&mut turn, view, &*set, &selector, |_| true);
        let member = |pod: &Pod| identity::is_member(&set, pod);
        let pods = claim::<_, Pod>(&mut turn, view, &*set, &selector, member);
        history::sort(&mut history);
        let revisions = Revisions::find(&mut turn, view, &set, &history);
        let mut status = count(&set, &revisions, &pods, now);
        if set.metadata.deletion_timestamp.is_none() {
            let mut plan = Plan::new(&set, &revisions, &pods, view, now);
            let updated = plan.go();
            if view.refused().is_empty() {
                turn.writes.append(&mut plan.turn.writes);
                status.current_replicas = status.current_replicas.map(|count| count - updated);
            }
        }
        if let Some(refusal) = view.refused().first() {
            turn.writes.clear();
            tell(&mut turn, &set, refusal);
        }
        complete(&set, &mut status);
        if differs(set.status.as_ref(), &status) {
            turn.status(&StatefulSet { status: Some(status), ..StatefulSet::clone(&set) });
        }
        if view.refused().is_empty() {
            let mut live: BTreeSet<String> =
                pods.iter().map(|pod| identity::revision(pod).to_owned()).collect();
            live.extend([&revisions.current, &revisions.update].map(|revision| name(revision).to_owned()));
            let limit = set.spec.as_ref().and_then(|spec| spec.revision_history_limit);
            history::truncate(&mut turn, &history, &live, limit);
        }
        let waiting = pods.iter().filter(|pod| is_running(pod) && !is_available(&set, pod, now));
        if let Some(time) = waiting.filter_map(|pod| pods::available_at(pod, min_ready(&set))).min() {
            turn.wake_at(time);
        }
        turn
    }
}

fn selects(set: &StatefulSet) -> LabelSelector {
    set.spec.as_ref().map_or_else(LabelSelector::nothing, |spec| selector(&spec.selector))
}

/// The sets that a claim may be of, by its name: `<template>-<set>-<ordinal>`, where either may have dashes in it.
fn may_be_of(claim: &PersistentVolumeClaim) -> Vec<ObjectKey> {
    let name = claim.metadata.name.as_deref().unwrap_or_default();
    let Some((rest, _)) = identity::of_name(name) else { return Vec::new() };
    let suffixes = rest.match_indices('-').map(|(at, _)| &rest[at + 1..]);
    suffixes.map(|set| ObjectKey::new(claim.metadata.namespace.as_deref(), set)).collect()
}

fn min_ready(set: &StatefulSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.min_ready_seconds).unwrap_or_default()
}

fn is_running(pod: &Pod) -> bool {
    pods::phase(pod) == "Running" && pods::is_ready(pod)
}

fn is_available(set: &StatefulSet, pod: &Pod, now: Timestamp) -> bool {
    pods::is_available(pod, min_ready(set), now)
}

fn count(set: &StatefulSet, revisions: &Revisions, pods: &[Arc<Pod>], now: Timestamp) -> StatefulSetStatus {
    let of = |wanted: &dyn Fn(&Pod) -> bool| {
        i32::try_from(pods.iter().filter(|pod| wanted(pod)).count()).unwrap_or(i32::MAX)
    };
    let made_from = |revision: &ControllerRevision| {
        of(&|pod| pod.metadata.deletion_timestamp.is_none() && identity::revision(pod) == name(revision))
    };
    StatefulSetStatus {
        observed_generation: set.metadata.generation,
        replicas: of(&|pod| !pods::phase(pod).is_empty()),
        ready_replicas: Some(of(&is_running)),
        available_replicas: Some(of(&|pod| is_running(pod) && is_available(set, pod, now))),
        current_replicas: Some(made_from(&revisions.current)),
        updated_replicas: Some(made_from(&revisions.update)),
        current_revision: Some(name(&revisions.current).to_owned()),
        update_revision: Some(name(&revisions.update).to_owned()),
        collision_count: Some(revisions.collisions),
        conditions: None,
    }
}

/// When all pods are of the new revision and ready, it is the current one.
fn complete(set: &StatefulSet, status: &mut StatefulSetStatus) {
    let Some(spec) = set.spec.as_ref() else { return };
    let rolls = spec.update_strategy.as_ref().and_then(|strategy| strategy.type_.as_deref());
    let wanted = spec.replicas.unwrap_or(1);
    let all = [status.updated_replicas.unwrap_or_default(), status.ready_replicas.unwrap_or_default()];
    if rolls.unwrap_or("RollingUpdate") == "RollingUpdate" && all == [wanted; 2] && status.replicas == wanted
    {
        status.current_replicas = status.updated_replicas;
        status.current_revision = status.update_revision.clone();
    }
}

/// Whether a status says something new. A count of zero is as good as none.
fn differs(old: Option<&StatefulSetStatus>, new: &StatefulSetStatus) -> bool {
    let nothing = StatefulSetStatus::default();
    let counts = |status: &StatefulSetStatus| {
        [
            Some(status.replicas),
            status.ready_replicas,
            status.available_replicas,
            status.current_replicas,
            status.updated_replicas,
        ]
        .map(Option::unwrap_or_default)
    };
    let old = old.unwrap_or(&nothing);
    new.observed_generation > old.observed_generation
        || counts(old) != counts(new)
        || old.current_revision != new.current_revision
        || old.update_revision != new.update_revision
}

/// Whoever looks at the set should know what was refused.
fn tell(turn: &mut Turn, set: &StatefulSet, refusal: &Refusal) {
    let Refusal { kind, name, message, .. } = refusal;
    let own = identity::set_name(set);
    let (reason, action) = match refusal.verb {
        "create" => ("FailedCreate", "Create"),
        "delete" => ("FailedDelete", "Delete"),
        _ => ("FailedUpdate", "Update"),
    };
    let mut warn = |note: String| turn.event(set, Event::warning(reason, action, note));
    match kind.as_str() {
        "Pod" => warn(format!("{action} Pod {name} in StatefulSet {own} failed error: {message}")),
        "PersistentVolumeClaim" => {
            let ordinal = identity::of_name(name).map(|(_, ordinal)| ordinal).unwrap_or_default();
            let pod = format!("{own}-{ordinal}");
            warn(format!("{action} Claim {name} for Pod {pod} in StatefulSet {own} failed error: {message}"));
            let why = format!("failed to create PVC {name}: {message}");
            warn(format!("{action} Pod {pod} in StatefulSet {own} failed error: {why}"));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_may_be_of_each_set_that_its_name_allows() {
        let mut claim = PersistentVolumeClaim::default();
        claim.metadata.name = Some("my-data-web-7".into());
        let names: Vec<String> = may_be_of(&claim).iter().map(|key| key.name().to_owned()).collect();
        assert_eq!(names, ["data-web", "web"]);
        claim.metadata.name = Some("data".into());
        assert!(may_be_of(&claim).is_empty());
    }
}
