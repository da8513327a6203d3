//! Nodes that fall silent, and what becomes of their pods.
//!
//! ```text
//! lease, heartbeat ─► lifecycle: conditions, taints, pods not ready ─► eviction: by taint and toleration
//!                                                   node removed ─► podgc: what nobody will ever end
//! ```

mod eviction;
mod health;
mod lifecycle;
mod podgc;

pub(super) use eviction::TaintEviction;
pub(super) use lifecycle::NodeLifecycle;
pub(super) use podgc::PodGc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, NodeCondition, Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;
use windlass::cache::Index;
use windlass_core::{Kind, ObjectKey};

use super::pods;
use crate::engine::{Turn, Wiring, Write};

/// The index of pods by the node that they are on.
const BY_NODE: &str = "node";

fn index_by_node(wiring: &mut Wiring) {
    wiring.index::<Pod>(Index::new(BY_NODE, |pod: &Pod| {
        let node = pods::node(pod);
        Some(node.to_owned()).filter(|node| !node.is_empty()).into_iter().collect()
    }));
}

/// A condition of a node.
fn condition<'a>(node: &'a Node, kind: &str) -> Option<&'a NodeCondition> {
    node.status.as_ref()?.conditions.as_deref()?.iter().find(|condition| condition.type_ == kind)
}

/// What a node says of its readiness.
fn readiness(node: &Node) -> Option<&str> {
    condition(node, "Ready").map(|ready| ready.status.as_str())
}

/// Changes the status of a pod: its phase, where there is one, and one condition.
fn mark(turn: &mut Turn, pod: &Pod, phase: Option<&str>, condition: Option<PodCondition>, now: Timestamp) {
    let mut conditions = pod.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    if let Some(mut new) = condition {
        let old = conditions.iter_mut().find(|old| old.type_ == new.type_);
        let same = old.as_ref().is_some_and(|old| old.status == new.status);
        new.last_transition_time = if same {
            old.as_ref().and_then(|old| old.last_transition_time.clone())
        } else {
            Some(Time(now))
        };
        match old {
            Some(old) => *old = new,
            None => conditions.push(new),
        }
    }
    let mut status = json!({"conditions": conditions});
    if let Some(phase) = phase {
        status["phase"] = phase.into();
    }
    let meta = &pod.metadata;
    turn.writes.push(Write::Patch {
        kind: Kind::of::<Pod>(),
        key: ObjectKey::of(meta),
        subresource: "status",
        patch: json!({
            "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version}, "status": status,
        }),
    });
}

/// That a pod goes for no fault of its own.
fn disruption(reason: &str, message: &str) -> PodCondition {
    PodCondition {
        type_: "DisruptionTarget".into(),
        status: "True".into(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        ..PodCondition::default()
    }
}
