//! Which nodes a DaemonSet wants a pod on, and the pod for one.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{
    Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodSpec, Toleration,
};

use super::history::HASH;
use crate::controllers::{nodes, pods};

/// The revision of the template, as it was counted before there were hashes.
const GENERATION: &str = "deprecated.daemonset.template.generation";
const GENERATION_LABEL: &str = "pod-template-generation";

/// Whether a pod of a DaemonSet should be on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Yes.
    Wanted,
    /// Not if it is not there already.
    Kept,
    /// No.
    Unwanted,
}

/// Whether a pod of a DaemonSet should be on a node.
pub(super) fn place(set: &DaemonSet, node: &Node) -> Place {
    let Some(mut spec) = set.spec.as_ref().and_then(|spec| spec.template.spec.clone()) else {
        return Place::Unwanted;
    };
    let named = spec.node_name.as_deref().unwrap_or_default();
    if !(named.is_empty() || named == nodes::name(node)) || !nodes::takes(&spec, node) {
        return Place::Unwanted;
    }
    tolerate(&mut spec);
    let tolerations = spec.tolerations.as_deref().unwrap_or_default();
    let avoids = |effects: &[&str]| nodes::untolerated(nodes::taints(node), tolerations, effects).is_some();
    if !avoids(&["NoSchedule", "NoExecute"]) {
        Place::Wanted
    } else if avoids(&["NoExecute"]) {
        Place::Unwanted
    } else {
        Place::Kept
    }
}

/// A pod of a DaemonSet for a node. It names the node by its affinity: the scheduler binds it.
pub(super) fn pod(set: &DaemonSet, node: &str, hash: &str) -> Option<Pod> {
    let template = &set.spec.as_ref()?.template;
    let mut pod = pods::from_template(template, set);
    let labels = pod.metadata.labels.get_or_insert_default();
    if let Some(generation) = generation(set) {
        labels.insert(GENERATION_LABEL.to_owned(), generation.to_string());
    }
    labels.insert(HASH.to_owned(), hash.to_owned());
    let spec = pod.spec.get_or_insert_default();
    tolerate(spec);
    let by_name = NodeSelectorRequirement {
        key: "metadata.name".to_owned(),
        operator: "In".to_owned(),
        values: Some(vec![node.to_owned()]),
    };
    let term = NodeSelectorTerm { match_fields: Some(vec![by_name]), match_expressions: None };
    let affinity = spec.affinity.get_or_insert_default().node_affinity.get_or_insert_default();
    affinity.required_during_scheduling_ignored_during_execution =
        Some(NodeSelector { node_selector_terms: vec![term] });
    Some(pod)
}

/// The node that a pod is on, or that its affinity names.
pub(super) fn target(pod: &Pod) -> Option<String> {
    let node = pods::node(pod);
    if !node.is_empty() {
        return Some(node.to_owned());
    }
    let terms = nodes::required(pod.spec.as_ref()?)?.node_selector_terms.iter();
    let mut fields = terms.flat_map(|term| term.match_fields.iter().flatten());
    let by_name = fields.find(|field| field.key == "metadata.name" && field.operator == "In")?;
    match by_name.values.as_deref().unwrap_or_default() {
        [only] => Some(only.clone()),
        _ => None,
    }
}

/// Whether a pod has the template that its DaemonSet has now.
pub(super) fn is_updated(set: &DaemonSet, pod: &Pod, hash: &str) -> bool {
    let label = |key: &str| pod.metadata.labels.as_ref().and_then(|labels: &BTreeMap<_, _>| labels.get(key));
    let same_generation =
        generation(set).is_some_and(|now| label(GENERATION_LABEL) == Some(&now.to_string()));
    same_generation || label(HASH).is_some_and(|has| has == hash)
}

fn generation(set: &DaemonSet) -> Option<i64> {
    set.metadata.annotations.as_ref()?.get(GENERATION)?.parse().ok()
}

/// A DaemonSet's pods stay on nodes with problems: they are often there to see to these.
fn tolerate(spec: &mut PodSpec) {
    let mut taints = vec![
        ("node.kubernetes.io/not-ready", "NoExecute"),
        ("node.kubernetes.io/unreachable", "NoExecute"),
        ("node.kubernetes.io/disk-pressure", "NoSchedule"),
        ("node.kubernetes.io/memory-pressure", "NoSchedule"),
        ("node.kubernetes.io/pid-pressure", "NoSchedule"),
        (nodes::UNSCHEDULABLE, "NoSchedule"),
    ];
    if spec.host_network == Some(true) {
        taints.push(("node.kubernetes.io/network-unavailable", "NoSchedule"));
    }
    let tolerations = spec.tolerations.get_or_insert_default();
    for (key, effect) in taints {
        let wanted = Toleration {
            key: Some(key.to_owned()),
            operator: Some("Exists".to_owned()),
            effect: Some(effect.to_owned()),
            ..Toleration::default()
        };
        let same = |one: &&mut Toleration| {
            one.key == wanted.key
                && one.effect == wanted.effect
                && one.operator == wanted.operator
                && one.value.as_deref().unwrap_or_default().is_empty()
        };
        match tolerations.iter_mut().find(same) {
            Some(one) => *one = wanted,
            None => tolerations.push(wanted),
        }
    }
}
