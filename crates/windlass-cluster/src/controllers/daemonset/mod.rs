//! DaemonSets: a pod on each node that takes it.

mod backoff;
mod history;
mod place;
mod rollout;
mod status;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use k8s_openapi::api::core::v1::{Node, Pod};
use windlass::cache::Delta;
use windlass::events::Event;
use windlass_core::ObjectKey;
use windlass_core::select::LabelSelector;

use self::backoff::Backoff;
use self::history::History;
use self::place::{Place, place};
use super::claim::{claim, selector};
use super::{nodes, pods};
use crate::engine::{Controller, Refusal, Turn, View, Wiring};

/// Keeps a pod of each DaemonSet on each node that takes it.
#[derive(Default)]
pub(super) struct DaemonSets {
    failures: Mutex<Backoff>,
}

/// How many pods are created or deleted in one turn.
const BURST: usize = 250;

/// One step of one DaemonSet.
struct Step<'a> {
    set: &'a DaemonSet,
    nodes: Vec<Arc<Node>>,
    /// The pods by the node that they are on or are meant for, the ones that count first.
    pods: BTreeMap<String, Vec<Arc<Pod>>>,
    hash: &'a str,
    now: Timestamp,
    turn: Turn,
}

impl Controller for DaemonSets {
    fn name(&self) -> &'static str {
        "daemonset-controller"
    }

    fn declare(&self, wiring: &mut Wiring) {
        wiring.keys::<DaemonSet>();
        wiring.children::<Pod, DaemonSet>(selects);
        wiring.children::<ControllerRevision, DaemonSet>(selects);
        wiring.changes::<Node>(concerned);
    }

    fn step(&self, key: &ObjectKey, view: &View<'_>, now: Timestamp) -> Turn {
        let mut turn = Turn::default();
        let Some(set) = view.get::<DaemonSet>(key) else { return turn };
        if set.metadata.deletion_timestamp.is_some() {
            return turn;
        }
        let selector = selects(&set);
        let revisions = claim::<_, ControllerRevision>(&mut turn, view, &*set, &selector, |_| true);
        let pods = claim::<_, Pod>(&mut turn, view, &*set, &selector, pods::is_active);
        if !turn.is_empty() {
            return turn;
        }
        let Some(history) = history::construct(&mut turn, view, &set, revisions, &pods) else { return turn };
        let mut step = Step {
            set: &set,
            nodes: view.list::<Node>(None),
            pods: by_node(&pods),
            hash: &history.hash,
            now,
            turn,
        };
        match view.refused().first() {
            Some(refusal) => step.tell(refusal),
            None => self.manage(&mut step, &history, &pods),
        }
        step.turn
    }
}

impl DaemonSets {
    fn manage(&self, step: &mut Step<'_>, history: &History, pods: &[Arc<Pod>]) {
        let wanted = {
            let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
            step.wanted(&mut failures)
        };
        step.write(wanted);
        if step.turn.is_empty() {
            let wanted = step.rolled();
            step.write(wanted);
        }
        history.clean_up(&mut step.turn, step.set, pods);
        // What was written to pods leads to another step, which sees what became of it.
        if step.turn.is_empty() {
            step.settle();
        }
    }
}

fn selects(set: &DaemonSet) -> LabelSelector {
    set.spec.as_ref().map_or_else(LabelSelector::nothing, |spec| selector(&spec.selector))
}

/// The DaemonSets for which a change of a node changes something.
fn concerned(delta: &Delta<Node>, view: &View<'_>) -> Vec<ObjectKey> {
    let sets = view.list::<DaemonSet>(None).into_iter();
    let at = |set: &DaemonSet, node: &Option<Arc<Node>>| node.as_ref().map(|node| place(set, node));
    let changed = sets.filter(|set| at(set, &delta.old) != at(set, &delta.new));
    changed.map(|set| ObjectKey::of(&set.metadata)).collect()
}

/// The pods of each node: those that have one first, then the older ones.
fn by_node(pods: &[Arc<Pod>]) -> BTreeMap<String, Vec<Arc<Pod>>> {
    let mut by_node: BTreeMap<String, Vec<Arc<Pod>>> = BTreeMap::new();
    for pod in pods {
        let ended = matches!(pods::phase(pod), "Succeeded" | "Failed");
        // One that has ended and is deleted is somebody else's to take away.
        if ended && pod.metadata.deletion_timestamp.is_some() {
            continue;
        }
        if let Some(node) = place::target(pod) {
            by_node.entry(node).or_default().push(pod.clone());
        }
    }
    for pods in by_node.values_mut() {
        pods.sort_by(|a, b| order(a, b));
    }
    by_node
}

fn order(a: &Pod, b: &Pod) -> Ordering {
    let by_place = pods::node(a).is_empty().cmp(&pods::node(b).is_empty());
    let age = |pod: &Pod| (pod.metadata.creation_timestamp.clone(), pod.metadata.name.clone());
    by_place.then_with(|| age(a).cmp(&age(b)))
}

/// What should be done: pods for these nodes, and without those pods.
#[derive(Default)]
struct Wanted {
    nodes: Vec<String>,
    gone: Vec<Arc<Pod>>,
}

impl Step<'_> {
    fn write(&mut self, wanted: Wanted) {
        for node in wanted.nodes.iter().take(BURST) {
            if let Some(pod) = place::pod(self.set, node, self.hash) {
                let event = Event::normal("SuccessfulCreate", "Create", "Created pod: {name}");
                self.turn.create_and_tell(&pod, self.set, event);
            }
        }
        for pod in wanted.gone.iter().take(BURST) {
            self.turn.delete(&**pod);
            let name = pod.metadata.name.as_deref().unwrap_or_default();
            let event = Event::normal("SuccessfulDelete", "Delete", format!("Deleted pod: {name}"));
            self.turn.event(self.set, event);
        }
    }

    /// Who looks at the set should know why a node has no pod.
    fn tell(&mut self, refusal: &Refusal) {
        let (reason, action, verb) = match refusal.verb {
            "delete" => ("FailedDelete", "Delete", "deleting"),
            _ => ("FailedCreate", "Create", "creating"),
        };
        if refusal.kind == "Pod" && !refusal.message.contains("because it is being terminated") {
            let note = format!("Error {verb}: {}", refusal.message);
            self.turn.event(self.set, Event::warning(reason, action, note));
        }
        self.settle();
    }

    /// The pods that should be there, without regard to their template.
    fn wanted(&mut self, failures: &mut Backoff) -> Wanted {
        let mut wanted = Wanted::default();
        let nodes = std::mem::take(&mut self.nodes);
        for node in &nodes {
            let name = nodes::name(node);
            let pods = self.pods.get(name).cloned();
            match (place(self.set, node), pods) {
                (Place::Wanted, None) => wanted.nodes.push(name.to_owned()),
                (Place::Unwanted, Some(pods)) => {
                    wanted.gone.extend(pods.into_iter().filter(|pod| stays(pod)))
                }
                (at @ (Place::Wanted | Place::Kept), Some(pods)) => {
                    let running = self.without_ended(name, pods, failures, &mut wanted);
                    if running.is_empty() && at == Place::Wanted && rollout::surges(self.set) {
                        wanted.nodes.push(name.to_owned());
                    }
                    self.without_extra(&running, &mut wanted);
                }
                (Place::Kept | Place::Unwanted, None) => {}
            }
        }
        // Pods for nodes that are gone would wait for ever.
        for (node, pods) in &self.pods {
            if !nodes.iter().any(|one| nodes::name(one) == node) {
                wanted.gone.extend(pods.iter().filter(|pod| pods::node(pod).is_empty()).cloned());
            }
        }
        self.nodes = nodes;
        wanted
    }

    /// Pods that have ended make room for the next; what fails again and again does so ever more slowly.
    fn without_ended(
        &mut self,
        node: &str,
        pods: Vec<Arc<Pod>>,
        failures: &mut Backoff,
        wanted: &mut Wanted,
    ) -> Vec<Arc<Pod>> {
        let mut running = Vec::new();
        for pod in pods.into_iter().filter(|pod| stays(pod)) {
            let key = ObjectKey::of(&pod.metadata);
            match pods::phase(&pod) {
                "Failed" => {
                    let uid = self.set.metadata.uid.clone().unwrap_or_default();
                    let generation = self.set.status.as_ref().and_then(|status| status.observed_generation);
                    let failed = (uid, generation.unwrap_or_default(), node.to_owned());
                    if let Some(until) = failures.hold(failed, self.now) {
                        self.turn.wake_at(until);
                        continue;
                    }
                    let note = format!("Found failed daemon pod {key} on node {node}, will try to kill it");
                    self.turn.event(self.set, Event::warning("FailedDaemonPod", "Delete", note));
                    wanted.gone.push(pod);
                }
                "Succeeded" => {
                    let note =
                        format!("Found succeeded daemon pod {key} on node {node}, will try to delete it");
                    self.turn.event(self.set, Event::normal("SucceededDaemonPod", "Delete", note));
                    wanted.gone.push(pod);
                }
                _ => running.push(pod),
            }
        }
        running
    }

    /// One pod is enough; while a new one comes beside the old one, one of each.
    fn without_extra(&self, running: &[Arc<Pod>], wanted: &mut Wanted) {
        if !rollout::surges(self.set) {
            wanted.gone.extend(running.iter().skip(1).cloned());
            return;
        }
        if running.len() < 2 {
            return;
        }
        let (new, old): (Vec<_>, Vec<_>) =
            running.iter().partition(|pod| history::hash_of(pod) == Some(self.hash));
        wanted.gone.extend(new.iter().chain(&old).enumerate().filter_map(|(at, pod)| {
            let first = at == 0 || at == new.len();
            (!first).then(|| (*pod).clone())
        }));
        if let ([new, ..], [old, ..]) = (&*new, &*old)
            && (!pods::is_ready(old) || pods::is_available(new, rollout::min_ready(self.set), self.now))
        {
            wanted.gone.push((*old).clone());
        }
    }
}

fn stays(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_none()
}
