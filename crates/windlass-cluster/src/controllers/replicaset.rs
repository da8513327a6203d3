//! ReplicaSets: as many pods as are wanted.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use windlass::events::Event;
use windlass_core::select::LabelSelector;
use windlass_core::{ObjectKey, owner};

use super::claim::{claim, selector};
use super::pods;
use crate::engine::{Controller, Refusal, Turn, View, Wiring};

/// Keeps as many pods as a ReplicaSet wants.
pub(super) struct ReplicaSets;

/// How many pods are created or deleted in one turn.
const BURST: usize = 500;

impl Controller for ReplicaSets {
    fn name(&self) -> &'static str {
        "replicaset-controller"
    }

    fn declare(&self, wiring: &mut Wiring) {
        wiring.keys::<ReplicaSet>();
        wiring.children::<Pod, ReplicaSet>(selects);
        // Siblings are counted when it is decided which pods go first.
        wiring.children::<ReplicaSet, k8s_openapi::api::apps::v1::Deployment>(|_| LabelSelector::nothing());
    }

    fn step(&self, key: &ObjectKey, view: &View<'_>, now: Timestamp) -> Turn {
        let mut turn = Turn::default();
        let Some(set) = view.get::<ReplicaSet>(key) else { return turn };
        let claimed = claim::<_, Pod>(&mut turn, view, &*set, &selects(&set), pods::is_active);
        let active: Vec<&Arc<Pod>> = claimed.iter().filter(|pod| pods::is_active(pod)).collect();
        let terminating = claimed.iter().filter(|pod| pods::is_terminating(pod)).count();
        let refused = view.refused().first();
        if set.metadata.deletion_timestamp.is_none() {
            match refused {
                None => manage(&mut turn, view, &set, &active, now),
                Some(refusal) => tell(&mut turn, &set, refusal),
            }
        }
        let status = status(&set, &active, terminating, refused, now);
        if set.status.as_ref() != Some(&status) {
            turn.status(&ReplicaSet { status: Some(status), ..ReplicaSet::clone(&set) });
        }
        let min_ready = min_ready(&set);
        let waiting =
            active.iter().filter(|pod| pods::is_ready(pod) && !pods::is_available(pod, min_ready, now));
        if let Some(time) = waiting.filter_map(|pod| pods::available_at(pod, min_ready)).min() {
            turn.wake_at(time);
        }
        turn
    }
}

fn selects(set: &ReplicaSet) -> LabelSelector {
    set.spec.as_ref().map_or_else(LabelSelector::nothing, |spec| selector(&spec.selector))
}

fn wanted(set: &ReplicaSet) -> usize {
    let replicas = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    replicas.try_into().unwrap_or_default()
}

fn min_ready(set: &ReplicaSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.min_ready_seconds).unwrap_or_default()
}

/// Creates what is missing, and deletes what is too much.
fn manage(turn: &mut Turn, view: &View<'_>, set: &ReplicaSet, active: &[&Arc<Pod>], now: Timestamp) {
    let wanted = wanted(set);
    let template = set.spec.as_ref().and_then(|spec| spec.template.as_ref());
    if let Some(template) = template.filter(|_| active.len() < wanted) {
        for _ in 0..(wanted - active.len()).min(BURST) {
            let event = Event::normal("SuccessfulCreate", "Create", "Created pod: {name}");
            turn.create_and_tell(&pods::from_template(template, set), set, event);
        }
    }
    if active.len() > wanted {
        let crowd = crowd(view, set);
        let crowd = |pod: &Pod| crowd.get(pods::node(pod)).copied().unwrap_or_default();
        let mut going: Vec<&Arc<Pod>> = active.to_vec();
        going.sort_by(|a, b| pods::goes_first((a, crowd(a)), (b, crowd(b)), now));
        for pod in going.into_iter().take((active.len() - wanted).min(BURST)) {
            turn.delete(&**pod);
            let name = pod.metadata.name.as_deref().unwrap_or_default();
            let event = Event::normal("SuccessfulDelete", "Delete", format!("Deleted pod: {name}"));
            turn.event(set, event);
        }
    }
}

/// How many active pods each node has, of this set and of those with the same controller.
fn crowd(view: &View<'_>, set: &ReplicaSet) -> BTreeMap<String, usize> {
    let siblings = match owner::controller_of(&set.metadata) {
        Some(owner) => view.children::<ReplicaSet>(&owner.uid),
        None => vec![Arc::new(set.clone())],
    };
    let mut crowd = BTreeMap::new();
    for sibling in siblings {
        for pod in view.children::<Pod>(sibling.metadata.uid.as_deref().unwrap_or_default()) {
            if pods::is_active(&pod) {
                *crowd.entry(pods::node(&pod).to_owned()).or_default() += 1;
            }
        }
    }
    crowd
}

/// Whoever looks at the set should know why it has no pods.
fn tell(turn: &mut Turn, set: &ReplicaSet, refusal: &Refusal) {
    let (reason, action) = match refusal.verb {
        "delete" => ("FailedDelete", "Delete"),
        _ => ("FailedCreate", "Create"),
    };
    let verb = if refusal.verb == "delete" { "deleting" } else { "creating" };
    turn.event(set, Event::warning(reason, action, format!("Error {verb}: {}", refusal.message)));
}

fn status(
    set: &ReplicaSet,
    active: &[&Arc<Pod>],
    terminating: usize,
    refused: Option<&Refusal>,
    now: Timestamp,
) -> ReplicaSetStatus {
    let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    let template = set.spec.as_ref().and_then(|spec| spec.template.as_ref());
    let labels = template.and_then(|template| template.metadata.as_ref()?.labels.clone()).unwrap_or_default();
    let labelled = |pod: &Pod| {
        labels
            .iter()
            .all(|(key, value)| pod.metadata.labels.as_ref().is_some_and(|has| has.get(key) == Some(value)))
    };
    let min_ready = min_ready(set);
    // A count of zero is left out, as the server leaves it out.
    let some = |number: usize| Some(count(number)).filter(|number| *number > 0);
    ReplicaSetStatus {
        replicas: count(active.len()),
        fully_labeled_replicas: some(active.iter().filter(|pod| labelled(pod)).count()),
        ready_replicas: some(active.iter().filter(|pod| pods::is_ready(pod)).count()),
        available_replicas: some(active.iter().filter(|pod| pods::is_available(pod, min_ready, now)).count()),
        terminating_replicas: Some(count(terminating)),
        observed_generation: set.metadata.generation,
        conditions: conditions(set, refused, now),
    }
}

/// That pods cannot be made is said once, and taken back when they can.
fn conditions(
    set: &ReplicaSet,
    refused: Option<&Refusal>,
    now: Timestamp,
) -> Option<Vec<ReplicaSetCondition>> {
    let before = set.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    let is_failure = |condition: &ReplicaSetCondition| condition.type_ == "ReplicaFailure";
    let mut all = before;
    match refused {
        Some(refusal) if !all.iter().any(is_failure) => all.push(ReplicaSetCondition {
            type_: "ReplicaFailure".into(),
            status: "True".into(),
            reason: Some(if refusal.verb == "delete" { "FailedDelete" } else { "FailedCreate" }.into()),
            message: Some(refusal.message.clone()),
            last_transition_time: Some(Time(now)),
        }),
        Some(_) => {}
        None => all.retain(|condition| !is_failure(condition)),
    }
    Some(all).filter(|all| !all.is_empty())
}
