//! The scheduler: a node for each pod.
//!
//! ```text
//! pod without a node ─► which nodes will do? ─► which is best? ─► volumes there ─► binding
//!                             │ none
//!                             └─► condition PodScheduled=False, and wait until something changes
//! ```
//!
//! What is on each node is remembered and changed as pods come and go, so that a pod costs as many looks as there are
//! nodes, however many pods there are. A pod that is being bound counts at once. It does not make others go (no
//! preemption).

mod affinity;
mod fit;
mod memory;
mod requests;
mod score;
mod spread;
mod volumes;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, PodCondition,
};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;
use windlass::cache::Delta;
use windlass::events::Event;
use windlass_core::{Kind, ObjectKey};

use self::affinity::Neighbours;
use self::fit::{Reject, Wishes, explain, explain_all};
use self::memory::{Memory, Needs, Waiting};
use self::spread::Spread;
use self::volumes::Claims;
use super::{nodes, pods};
use crate::engine::{Controller, Turn, View, Wiring, Write};

/// Gives each pod a node.
#[derive(Default)]
pub(super) struct Scheduler {
    memory: Shared,
}

type Shared = Arc<Mutex<Memory>>;

fn lock(memory: &Shared) -> MutexGuard<'_, Memory> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Controller for Scheduler {
    fn name(&self) -> &'static str {
        "default-scheduler"
    }

    fn declare(&self, wiring: &mut Wiring) {
        // Before the keys of pods themselves: what is remembered is never behind what leads to a look.
        let memory = self.memory.clone();
        wiring.changes::<Pod>(move |delta, _| hear(&mut lock(&memory), delta));
        let memory = self.memory.clone();
        wiring.changes::<Node>(move |delta, _| {
            let same = delta.old.as_deref().map(offers) == delta.new.as_deref().map(offers);
            if same { Vec::new() } else { lock(&memory).waiting() }
        });
        wiring.maps::<Pod>(|pod, _| is_ours(pod).then(|| ObjectKey::of(&pod.metadata)).into_iter().collect());
        let memory = self.memory.clone();
        wiring.maps::<PersistentVolumeClaim>(move |claim, _| {
            lock(&memory).waiting_for_volumes(claim.metadata.namespace.as_deref())
        });
        let memory = self.memory.clone();
        wiring.maps::<PersistentVolume>(move |_, _| lock(&memory).waiting_for_volumes(None));
        let memory = self.memory.clone();
        wiring.maps::<StorageClass>(move |_, _| lock(&memory).waiting_for_volumes(None));
        wiring.reads::<Namespace>();
    }

    fn step(&self, key: &ObjectKey, view: &View<'_>, now: Timestamp) -> Turn {
        let mut memory = lock(&self.memory);
        let before = memory.forget(key);
        let mut turn = Turn::default();
        let Some(pod) = view.get::<Pod>(key).filter(|pod| is_ours(pod)) else { return turn };
        if !view.refused().is_empty() {
            return turn;
        }
        let needs = Needs {
            neighbours: affinity::has_terms(&pod) || spread::has_constraints(&pod),
            volumes: volumes::has_claims(&pod),
        };
        let mut waiting = before.unwrap_or(Waiting { needs, told: 0, quiet_until: now });
        match decide(&pod, view, &memory) {
            Err(_) if now < waiting.quiet_until => {
                turn.wake_at(waiting.quiet_until);
                memory.wait(key, waiting);
            }
            Err(message) => {
                waiting.told += 1;
                waiting.quiet_until = now.checked_add(quiet(waiting.told)).unwrap_or(now);
                memory.wait(key, waiting);
                note(&mut turn, &pod, message, now);
            }
            Ok((node, claims)) => {
                memory.assume(key, &pod, nodes::name(&node));
                match claims.prepare(&node, view, &mut turn) {
                    Some(()) => memory.wait(key, waiting),
                    None => bind(&mut turn, &pod, &node),
                }
            }
        }
        turn
    }
}

/// How long it is not said again that a pod has no node, after so many times: a second, and up to ten. What stands in its
/// way often goes meanwhile, such as the taint of a node that is only just starting.
fn quiet(told: u32) -> Duration {
    Duration::from_secs(1 << told.saturating_sub(1).min(4)).min(Duration::from_secs(10))
}

/// Whether a pod waits for us to find it a node.
fn is_ours(pod: &Pod) -> bool {
    let Some(spec) = &pod.spec else { return false };
    pods::is_active(pod)
        && pods::node(pod).is_empty()
        && spec.scheduler_name.as_deref().unwrap_or("default-scheduler") == "default-scheduler"
        && spec.scheduling_gates.as_deref().unwrap_or_default().is_empty()
}

/// The node for a pod, or why there is none.
fn decide(pod: &Pod, view: &View<'_>, memory: &Memory) -> Result<(Arc<Node>, Claims), String> {
    let all = view.list::<Node>(None);
    if all.is_empty() {
        return Err("no nodes available to schedule pods".to_owned());
    }
    let named = pod.spec.as_ref().and_then(nodes::named);
    if named.as_ref().is_some_and(|names| names.is_empty()) {
        return Err(explain_all(pod, all.len(), "pod affinity terms conflict"));
    }
    let claims = Claims::of(pod, view).map_err(|reason| explain_all(pod, all.len(), &reason))?;
    let by_name: BTreeMap<&str, &Node> = all.iter().map(|node| (nodes::name(node), &**node)).collect();
    let wishes = Wishes {
        pod,
        requests: requests::requests(pod),
        claims,
        neighbours: Neighbours::of(pod, view, memory, &by_name),
        spread: Spread::of(pod, memory, &by_name),
    };
    let mut rejects: Vec<Reject> = Vec::new();
    let mut feasible = Vec::new();
    for node in &all {
        if named.as_ref().is_some_and(|names| !names.contains(nodes::name(node))) {
            continue;
        }
        match wishes.check(node, memory, view) {
            Ok(()) => feasible.push(&**node),
            Err(reject) => rejects.push(reject),
        }
    }
    let elsewhere = "node(s) didn't satisfy plugin(s) [NodeAffinity]";
    let Some(best) = score::best(&wishes, &feasible, memory) else {
        return Err(explain(pod, all.len(), &rejects, elsewhere));
    };
    let best = all.iter().find(|node| nodes::name(node) == nodes::name(best)).cloned();
    Ok((best.expect("the best node is one of all"), wishes.claims))
}

fn bind(turn: &mut Turn, pod: &Pod, node: &Node) {
    let key = ObjectKey::of(&pod.metadata);
    let body = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": key.name(), "namespace": key.namespace(), "uid": pod.metadata.uid},
        "target": {"kind": "Node", "name": nodes::name(node)},
    });
    turn.writes.push(Write::Post { kind: Kind::of::<Pod>(), key: key.clone(), subresource: "binding", body });
    let note = format!("Successfully assigned {key} to {}", nodes::name(node));
    turn.event(pod, Event::normal("Scheduled", "Binding", note));
}

/// Says why a pod has no node, unless that was said.
fn note(turn: &mut Turn, pod: &Pod, message: String, now: Timestamp) {
    let before = pods::condition(pod, "PodScheduled");
    let said = |one: &PodCondition| one.status == "False" && one.message.as_deref() == Some(&message);
    if before.is_some_and(said) {
        return;
    }
    turn.event(pod, Event::warning("FailedScheduling", "Scheduling", message.clone()));
    let since = before.filter(|one| one.status == "False").and_then(|one| one.last_transition_time.clone());
    let condition = PodCondition {
        type_: "PodScheduled".to_owned(),
        status: "False".to_owned(),
        reason: Some("Unschedulable".to_owned()),
        message: Some(message),
        last_transition_time: Some(since.unwrap_or(Time(now))),
        observed_generation: pod.metadata.generation,
        ..PodCondition::default()
    };
    let mut told = pod.clone();
    let conditions = told.status.get_or_insert_default().conditions.get_or_insert_default();
    match conditions.iter_mut().find(|one| one.type_ == "PodScheduled") {
        Some(one) => *one = condition,
        None => conditions.push(condition),
    }
    turn.status(&told);
}

/// Takes in what became of a pod; those who wait and for whom that may change something.
fn hear(memory: &mut Memory, delta: &Delta<Pod>) -> Vec<ObjectKey> {
    let room = memory.hear(&delta.key, delta.new.as_ref());
    let place = |pod: &Arc<Pod>| (pods::node(pod).to_owned(), pod.metadata.labels.clone());
    let moved = delta.old.as_ref().map(place) != delta.new.as_ref().map(place);
    match (room, moved) {
        (true, _) => memory.waiting(),
        (false, true) => memory.waiting_for_neighbours(),
        (false, false) => Vec::new(),
    }
}

/// What matters of a node to pods that wait: not its heartbeat.
fn offers(node: &Node) -> impl PartialEq {
    let spec = node.spec.clone().unwrap_or_default();
    (node.metadata.labels.clone(), spec.taints, spec.unschedulable, requests::allocatable(node))
}
