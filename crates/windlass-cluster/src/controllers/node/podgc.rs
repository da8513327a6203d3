//! Pods that no node will ever end.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod, PodCondition};
use windlass_core::{Kind, ObjectKey};

use super::{BY_NODE, disruption, index_by_node, mark, readiness};
use crate::controllers::{nodes, pods};
use crate::engine::{Controller, Delete, LookUp, Looked, Turn, View, Wiring, Write};

/// Ends pods whose node is gone, and pods that should end and never had one.
#[derive(Default)]
pub(in crate::controllers) struct PodGc {
    /// Since when a node is missed.
    missed: Mutex<BTreeMap<String, Timestamp>>,
}

/// How long a node may be missed before its pods are.
const QUARANTINE: Duration = Duration::from_secs(40);
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

impl Controller for PodGc {
    fn name(&self) -> &'static str {
        "pod-garbage-collector-controller"
    }

    fn declare(&self, wiring: &mut Wiring) {
        wiring.keys::<Pod>();
        index_by_node(wiring);
        wiring.maps::<Node>(|node, view| {
            let gone = view.get::<Node>(&ObjectKey::of(&node.metadata)).is_none();
            let out = nodes::taints(node).iter().any(|taint| taint.key == OUT_OF_SERVICE);
            if !gone && !out {
                return Vec::new();
            }
            let there = view.by_index::<Pod>(BY_NODE, nodes::name(node));
            there.iter().map(|pod| ObjectKey::of(&pod.metadata)).collect()
        });
    }

    fn step(&self, key: &ObjectKey, view: &View<'_>, now: Timestamp) -> Turn {
        let mut turn = Turn::default();
        let Some(pod) = view.get::<Pod>(key) else { return turn };
        let name = pods::node(&pod);
        let ends = pod.metadata.deletion_timestamp.is_some();
        if name.is_empty() {
            if ends {
                end(&mut turn, &pod, None, now);
            }
            return turn;
        }
        let mut missed = self.missed.lock().unwrap_or_else(PoisonError::into_inner);
        let node = ObjectKey::cluster(name);
        if let Some(node) = view.get::<Node>(&node) {
            missed.remove(name);
            let out = nodes::taints(&node).iter().any(|taint| taint.key == OUT_OF_SERVICE);
            if ends && out && readiness(&node) != Some("True") {
                end(&mut turn, &pod, None, now);
            }
            return turn;
        }
        let since = *missed.entry(name.to_owned()).or_insert(now);
        let over = since.checked_add(QUARANTINE).unwrap_or(Timestamp::MAX);
        if over > now {
            turn.wake_at(over);
            return turn;
        }
        match view.looked(&Kind::of::<Node>(), &node) {
            Looked::NotYet => turn.look_up(LookUp::Object { kind: Kind::of::<Node>(), key: node }),
            // It is there, and nobody told us yet.
            Looked::There(_) => {}
            Looked::Missing => {
                let condition = disruption("DeletionByPodGC", "PodGC: node no longer exists");
                end(&mut turn, &pod, Some(condition), now);
            }
        }
        turn
    }
}

/// Nobody else says that it has ended.
fn end(turn: &mut Turn, pod: &Pod, condition: Option<PodCondition>, now: Timestamp) {
    let ended = matches!(pods::phase(pod), "Succeeded" | "Failed");
    let told_to_end_now =
        pod.metadata.deletion_timestamp.is_some() && pod.metadata.deletion_grace_period_seconds == Some(0);
    if ended && told_to_end_now {
        return;
    }
    if !ended {
        mark(turn, pod, Some("Failed"), condition, now);
    }
    turn.writes.push(Write::Delete(Delete {
        kind: Kind::of::<Pod>(),
        key: ObjectKey::of(&pod.metadata),
        uid: pod.metadata.uid.clone(),
        version: None,
        propagation: None,
        grace: Some(0),
    }));
}
