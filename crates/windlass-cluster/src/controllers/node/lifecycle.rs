//! Nodes that fall silent: their conditions, their taints, and that their pods are not ready.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, NodeCondition, ObjectReference, Pod, PodCondition, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;
use windlass::events::Event;
use windlass_core::ObjectKey;

use super::health::Heard;
use super::{BY_NODE, condition, index_by_node, mark, readiness};
use crate::controllers::{nodes, pods};
use crate::engine::{Controller, Told, Turn, View, Wiring, Write};

/// Watches over nodes.
#[derive(Default)]
pub(in crate::controllers) struct NodeLifecycle {
    /// By the name of the node. It is only since when it is silent: who starts anew waits a little more.
    heard: Mutex<BTreeMap<String, Heard>>,
}

const LEASES: &str = "kube-node-lease";
const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
/// The conditions that a silent node says nothing of any more.
const SPOKEN: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];
/// The conditions that keep new pods away, and how.
const TAINTS: [(&str, &str, &str); 6] = [
    ("Ready", "False", NOT_READY),
    ("Ready", "Unknown", UNREACHABLE),
    ("MemoryPressure", "True", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "True", "node.kubernetes.io/disk-pressure"),
    ("NetworkUnavailable", "True", "node.kubernetes.io/network-unavailable"),
    ("PIDPressure", "True", "node.kubernetes.io/pid-pressure"),
];
/// Labels that others still look for, and those that they follow.
const OLD_LABELS: [(&str, &str); 2] =
    [("kubernetes.io/os", "beta.kubernetes.io/os"), ("kubernetes.io/arch", "beta.kubernetes.io/arch")];

impl Controller for NodeLifecycle {
    fn name(&self) -> &'static str {
        "node-controller"
    }

    fn declare(&self, wiring: &mut Wiring) {
        // Whether pods are driven away from one depends on all of them.
        wiring.maps::<Node>(|node, view| {
            let of_all = view.list::<Node>(None).into_iter().filter(|other| readiness(other) != Some("True"));
            let others = of_all.map(|other| ObjectKey::of(&other.metadata));
            others.chain([ObjectKey::of(&node.metadata)]).collect()
        });
        wiring.maps::<Lease>(|lease, _| {
            let ours = lease.metadata.namespace.as_deref() == Some(LEASES);
            let name = lease.metadata.name.as_deref().filter(|_| ours);
            name.map(ObjectKey::cluster).into_iter().collect()
        });
        index_by_node(wiring);
    }

    fn step(&self, key: &ObjectKey, view: &View<'_>, now: Timestamp) -> Turn {
        let mut turn = Turn::default();
        let mut all = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(node) = view.get::<Node>(key) else {
            if let Some(heard) = all.remove(key.name()) {
                let note = format!("Removing Node {} from Controller", key.name());
                tell(&mut turn, key.name(), &heard.uid, "RemovingNode", &note);
            }
            return turn;
        };
        let lease = view.get::<Lease>(&ObjectKey::namespaced(LEASES, key.name()));
        let heard = all.entry(key.name().to_owned()).or_insert_with(|| {
            let heard = Heard::first(&node, lease.as_deref(), now);
            let note = format!("Registered Node {} in Controller", key.name());
            tell(&mut turn, key.name(), &heard.uid, "RegisteredNode", &note);
            heard
        });
        heard.again(&node, lease.as_deref(), now);
        let silent_at = heard.silent_at(&node);
        if silent_at > now {
            turn.wake_at(silent_at);
        } else if let Some(silent) = silence(&node, now) {
            let was_ready = readiness(&node) == Some("True");
            turn.status(&silent);
            if was_ready {
                let note = format!("Node {} status is now: NodeNotReady", key.name());
                turn.event(&*node, Event::normal("NodeNotReady", "NodeNotReady", note));
            }
            // What follows stands on another version of it, which is looked at next.
            return turn;
        }
        if is_silenced(&node) {
            unready_pods(&mut turn, view, key.name(), now);
        }
        let mut wanted = Node::clone(&node);
        let drives_away = !is_disrupted(view);
        taint(&mut wanted, drives_away, now);
        label(&mut wanted);
        if wanted != *node {
            let patch = json!({
                "metadata": {
                    "uid": node.metadata.uid, "resourceVersion": node.metadata.resource_version,
                    "labels": wanted.metadata.labels,
                },
                "spec": {"taints": nodes::taints(&wanted)},
            });
            turn.patch::<Node>(key, patch);
        }
        turn
    }
}

/// Tells of something that happened to a node, as kube-controller-manager words it.
fn tell(turn: &mut Turn, name: &str, uid: &str, reason: &str, note: &str) {
    let regarding = ObjectReference {
        api_version: Some("v1".into()),
        kind: Some("Node".into()),
        name: Some(name.to_owned()),
        uid: Some(uid.to_owned()),
        ..ObjectReference::default()
    };
    let event = Event::normal(reason, reason, format!("Node {name} event: {note}"));
    turn.writes.push(Write::Event(Box::new(Told { regarding, event })));
}

/// The node as it is to be after it has fallen silent; `None` where that is known.
fn silence(node: &Node, now: Timestamp) -> Option<Node> {
    let mut silent = node.clone();
    let conditions = silent.status.get_or_insert_default().conditions.get_or_insert_default();
    for kind in SPOKEN {
        match conditions.iter_mut().find(|condition| condition.type_ == kind) {
            Some(known) if known.status == "Unknown" => {}
            Some(known) => {
                known.status = "Unknown".into();
                known.reason = Some("NodeStatusUnknown".into());
                known.message = Some("Kubelet stopped posting node status.".into());
                known.last_transition_time = Some(Time(now));
            }
            None => conditions.push(NodeCondition {
                type_: kind.into(),
                status: "Unknown".into(),
                reason: Some("NodeStatusNeverUpdated".into()),
                message: Some("Kubelet never posted node status.".into()),
                last_heartbeat_time: node.metadata.creation_timestamp.clone(),
                last_transition_time: Some(Time(now)),
            }),
        }
    }
    (condition(&silent, "Ready") != condition(node, "Ready")).then_some(silent)
}

/// Whether it was found to be silent.
fn is_silenced(node: &Node) -> bool {
    condition(node, "Ready").and_then(|ready| ready.reason.as_deref()) == Some("NodeStatusUnknown")
}

/// Nobody can tell whether the pods of a silent node are ready: nobody should be sent to them.
fn unready_pods(turn: &mut Turn, view: &View<'_>, node: &str, now: Timestamp) {
    for pod in view.by_index::<Pod>(BY_NODE, node) {
        if !pods::is_ready(&pod) {
            continue;
        }
        let ready = pods::condition(&pod, "Ready").cloned().unwrap_or_default();
        let unready = PodCondition { status: "False".into(), ..ready };
        mark(turn, &pod, None, Some(unready), now);
        turn.event(&*pod, Event::warning("NodeNotReady", "NodeNotReady", "Node is not ready"));
    }
}

/// Whether no node at all is ready. Then it is rather us who hear nothing, and no pod is driven away.
fn is_disrupted(view: &View<'_>) -> bool {
    let all = view.list::<Node>(None);
    let counts =
        |node: &&std::sync::Arc<Node>| nodes::label(node, "node.kubernetes.io/exclude-disruption").is_none();
    !all.iter().filter(counts).any(|node| readiness(node) == Some("True"))
}

/// The taints that follow from the conditions of a node.
fn taint(node: &mut Node, drives_away: bool, now: Timestamp) {
    let mut wanted: Vec<(&str, &str)> = Vec::new();
    let is =
        |kind: &str, status: &str| condition(node, kind).is_some_and(|condition| condition.status == status);
    for (kind, status, key) in TAINTS {
        if is(kind, status) {
            wanted.push((key, "NoSchedule"));
            if kind == "Ready" && drives_away {
                wanted.push((key, "NoExecute"));
            }
        }
    }
    if nodes::is_unschedulable(node) {
        wanted.push((nodes::UNSCHEDULABLE, "NoSchedule"));
    }
    let ours = |taint: &Taint| match taint.effect.as_str() {
        "NoSchedule" => {
            taint.key == nodes::UNSCHEDULABLE || TAINTS.iter().any(|(_, _, key)| *key == taint.key)
        }
        "NoExecute" => taint.key == NOT_READY || taint.key == UNREACHABLE,
        _ => false,
    };
    let mut taints = nodes::taints(node).to_vec();
    taints.retain(|taint| !ours(taint) || wanted.contains(&(&taint.key, &taint.effect)));
    for (key, effect) in wanted {
        if !taints.iter().any(|taint| taint.key == key && taint.effect == effect) {
            taints.push(Taint {
                key: key.to_owned(),
                effect: effect.to_owned(),
                time_added: Some(Time(now)),
                value: None,
            });
        }
    }
    if taints != nodes::taints(node) {
        node.spec.get_or_insert_default().taints = Some(taints);
    }
}

fn label(node: &mut Node) {
    let Some(labels) = &mut node.metadata.labels else { return };
    for (new, old) in OLD_LABELS {
        if let Some(value) = labels.get(new).cloned() {
            labels.insert(old.to_owned(), value);
        }
    }
}
