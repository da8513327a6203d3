//! Pods of a group that are to be spread evenly over parts of the cluster.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Pod, PodSpec, TopologySpreadConstraint};
use windlass_core::select::LabelSelector;

use super::memory::Memory;
use crate::controllers::claim::selector;
use crate::controllers::nodes::{self, label};

/// The constraints of one pod, with what is there now.
pub(super) struct Spread {
    firm: Vec<Constraint>,
    soft: Vec<Constraint>,
}

/// Why a node will not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    NoLabel,
    Uneven,
}

struct Constraint {
    topology: String,
    skew: i64,
    /// What the pod itself adds.
    own: i64,
    least: i64,
    counts: BTreeMap<String, i64>,
}

/// Whether a pod has constraints.
pub(super) fn has_constraints(pod: &Pod) -> bool {
    !constraints(pod).is_empty()
}

fn constraints(pod: &Pod) -> &[TopologySpreadConstraint] {
    pod.spec.as_ref().and_then(|spec| spec.topology_spread_constraints.as_deref()).unwrap_or_default()
}

impl Spread {
    pub fn of(pod: &Pod, memory: &Memory, nodes: &BTreeMap<&str, &Node>) -> Spread {
        let (firm, soft): (Vec<_>, Vec<_>) =
            constraints(pod).iter().partition(|one| one.when_unsatisfiable == "DoNotSchedule");
        let counted = |all: Vec<&TopologySpreadConstraint>| {
            let keys: Vec<&str> = all.iter().map(|one| one.topology_key.as_str()).collect();
            all.iter().map(|one| Constraint::of(one, &keys, pod, memory, nodes)).collect()
        };
        Spread { firm: counted(firm), soft: counted(soft) }
    }

    /// Whether a node will do.
    pub fn check(&self, node: &Node) -> Result<(), Wrong> {
        for constraint in &self.firm {
            let Some(place) = label(node, &constraint.topology) else { return Err(Wrong::NoLabel) };
            let here = constraint.counts.get(place).copied().unwrap_or_default();
            if here + constraint.own - constraint.least > constraint.skew {
                return Err(Wrong::Uneven);
            }
        }
        Ok(())
    }

    /// How crowded a node's part of the cluster is; `None` where nobody wants to know.
    pub fn crowd(&self, node: &Node) -> Option<i64> {
        if self.soft.is_empty() {
            return None;
        }
        let crowd = |constraint: &Constraint| {
            let place = label(node, &constraint.topology);
            // A node outside of the topology is as bad as the worst inside.
            let outside = || constraint.counts.values().max().copied().unwrap_or_default();
            place.map_or_else(outside, |place| constraint.counts.get(place).copied().unwrap_or_default())
        };
        Some(self.soft.iter().map(crowd).sum())
    }
}

impl Constraint {
    fn of(
        constraint: &TopologySpreadConstraint,
        keys: &[&str],
        pod: &Pod,
        memory: &Memory,
        nodes: &BTreeMap<&str, &Node>,
    ) -> Constraint {
        let topology = constraint.topology_key.clone();
        let labels = constraint.label_selector.as_ref().map_or_else(LabelSelector::nothing, selector);
        let nothing = BTreeMap::new();
        let has = |pod: &Pod| labels.matches(pod.metadata.labels.as_ref().unwrap_or(&nothing));
        let spec = pod.spec.clone().unwrap_or_default();
        let counts_node = |node: &Node| is_counted(constraint, keys, &spec, node);
        let mut counts: BTreeMap<String, i64> = BTreeMap::new();
        for node in nodes.values().filter(|node| counts_node(node)) {
            if let Some(place) = label(node, &topology) {
                counts.entry(place.to_owned()).or_default();
            }
        }
        for placed in memory.placed_in(pod.metadata.namespace.as_deref().unwrap_or_default()) {
            let node = nodes.get(&*placed.node).filter(|node| counts_node(node));
            let place = node.and_then(|node| label(node, &topology));
            // Pods that are going make room.
            let stays = placed.pod.metadata.deletion_timestamp.is_none();
            if let Some(place) = place.filter(|_| stays && has(&placed.pod)) {
                *counts.entry(place.to_owned()).or_default() += 1;
            }
        }
        let wanted = constraint.min_domains.unwrap_or(1).try_into().unwrap_or(1);
        let least =
            if counts.len() < wanted { 0 } else { counts.values().min().copied().unwrap_or_default() };
        let own = i64::from(has(pod));
        Constraint { topology, skew: constraint.max_skew.into(), own, least, counts }
    }
}

/// Whether a node is a place for this pod at all, so that its emptiness counts.
fn is_counted(constraint: &TopologySpreadConstraint, keys: &[&str], spec: &PodSpec, node: &Node) -> bool {
    let by_affinity = constraint.node_affinity_policy.as_deref() != Some("Ignore");
    let by_taints = constraint.node_taints_policy.as_deref() == Some("Honor");
    let tolerations = spec.tolerations.as_deref().unwrap_or_default();
    let effects = ["NoSchedule", "NoExecute"];
    keys.iter().all(|key| label(node, key).is_some())
        && (!by_affinity || nodes::takes(spec, node))
        && (!by_taints || nodes::untolerated(nodes::taints(node), tolerations, &effects).is_none())
}
