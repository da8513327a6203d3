//! Which nodes a pod may be on: selectors, affinity, taints.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{
    Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Taint, Toleration,
};

/// The taint of a node that takes no new pods.
pub(crate) const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// The name of a node.
pub(crate) fn name(node: &Node) -> &str {
    node.metadata.name.as_deref().unwrap_or_default()
}

/// A label of a node.
pub(crate) fn label<'a>(node: &'a Node, key: &str) -> Option<&'a str> {
    node.metadata.labels.as_ref()?.get(key).map(String::as_str)
}

/// The taints of a node.
pub(crate) fn taints(node: &Node) -> &[Taint] {
    node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default()
}

/// Whether a node takes no new pods.
pub(crate) fn is_unschedulable(node: &Node) -> bool {
    node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or_default()
}

/// The first taint with one of these effects that is not tolerated.
pub(crate) fn untolerated<'a>(
    taints: &'a [Taint],
    tolerations: &[Toleration],
    effects: &[&str],
) -> Option<&'a Taint> {
    let counts = |taint: &&Taint| effects.contains(&taint.effect.as_str());
    taints.iter().filter(counts).find(|taint| !tolerations.iter().any(|one| tolerates(one, taint)))
}

/// Whether a toleration is of this taint. One without a key, an effect or an operator is of all of them.
pub(crate) fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let open = |text: &Option<String>| text.as_deref().unwrap_or_default().is_empty();
    let effect = open(&toleration.effect) || toleration.effect.as_ref() == Some(&taint.effect);
    let key = open(&toleration.key) || toleration.key.as_ref() == Some(&taint.key);
    let value = match toleration.operator.as_deref().unwrap_or_default() {
        "" | "Equal" => {
            toleration.value.as_deref().unwrap_or_default() == taint.value.as_deref().unwrap_or_default()
        }
        "Exists" => true,
        _ => false,
    };
    effect && key && value
}

/// Whether a pod's node selector and its required node affinity take a node.
pub(crate) fn takes(pod: &PodSpec, node: &Node) -> bool {
    let selected = pod.node_selector.iter().flatten().all(|(key, value)| label(node, key) == Some(value));
    selected && required(pod).is_none_or(|selector| matches(selector, node))
}

/// The node affinity that a pod requires.
pub(crate) fn required(pod: &PodSpec) -> Option<&NodeSelector> {
    let affinity = pod.affinity.as_ref()?.node_affinity.as_ref()?;
    affinity.required_during_scheduling_ignored_during_execution.as_ref()
}

/// Whether one of the terms takes a node.
pub(crate) fn matches(selector: &NodeSelector, node: &Node) -> bool {
    selector.node_selector_terms.iter().any(|term| matches_term(term, node))
}

/// Whether a term takes a node; an empty one takes none.
pub(crate) fn matches_term(term: &NodeSelectorTerm, node: &Node) -> bool {
    let labels = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    if labels.is_empty() && fields.is_empty() {
        return false;
    }
    let field = |key: &str| (key == "metadata.name").then(|| name(node));
    labels.iter().all(|one| meets(one, label(node, &one.key)))
        && fields.iter().all(|one| meets(one, field(&one.key)))
}

fn meets(requirement: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let values = requirement.values.as_deref().unwrap_or_default();
    let listed = || value.is_some_and(|value| values.iter().any(|one| one == value));
    let numbers = || Some((value?.parse::<i64>().ok()?, values.first()?.parse::<i64>().ok()?));
    match requirement.operator.as_str() {
        "In" => listed(),
        "NotIn" => !listed(),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => numbers().is_some_and(|(has, than)| has > than),
        "Lt" => numbers().is_some_and(|(has, than)| has < than),
        _ => false,
    }
}

/// The nodes that a pod's affinity names one by one, as that of a DaemonSet's pods does; `None` where it names none.
pub(crate) fn named(pod: &PodSpec) -> Option<BTreeSet<String>> {
    let terms = &required(pod)?.node_selector_terms;
    let mut all = BTreeSet::new();
    for term in terms {
        let fields = term.match_fields.as_deref().unwrap_or_default().iter();
        let by_name = fields.filter(|field| field.key == "metadata.name" && field.operator == "In");
        let sets = by_name.map(|field| BTreeSet::from_iter(field.values.iter().flatten().cloned()));
        all.extend(sets.reduce(|a: BTreeSet<String>, b| a.intersection(&b).cloned().collect())?);
    }
    (!terms.is_empty()).then_some(all)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node() -> Node {
        serde_json::from_value(json!({"metadata": {"name": "a", "labels": {"zone": "one", "cpus": "8"}}}))
            .unwrap()
    }

    #[test]
    fn terms_take_nodes_by_labels_and_names() {
        let takes = |term: serde_json::Value| matches_term(&serde_json::from_value(term).unwrap(), &node());
        let label = |key: &str, operator: &str, values: &[&str]| {
            takes(json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]}))
        };
        assert!(label("zone", "In", &["one", "two"]) && !label("zone", "In", &["two"]));
        assert!(label("zone", "NotIn", &["two"]) && label("rack", "NotIn", &["two"]));
        assert!(label("zone", "Exists", &[]) && label("rack", "DoesNotExist", &[]));
        assert!(label("cpus", "Gt", &["4"]) && !label("cpus", "Lt", &["4"]) && !label("zone", "Gt", &["1"]));
        assert!(takes(json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]})));
        assert!(!takes(json!({})));
    }

    #[test]
    fn tolerations_are_of_taints() {
        let taint: Taint =
            serde_json::from_value(json!({"key": "gpu", "value": "yes", "effect": "NoSchedule"})).unwrap();
        let tolerates = |one: serde_json::Value| tolerates(&serde_json::from_value(one).unwrap(), &taint);
        assert!(tolerates(json!({"operator": "Exists"})));
        assert!(tolerates(json!({"key": "gpu", "operator": "Exists", "effect": "NoSchedule"})));
        assert!(tolerates(json!({"key": "gpu", "value": "yes"})));
        assert!(!tolerates(json!({"key": "gpu", "value": "no"})));
        assert!(!tolerates(json!({"key": "gpu", "operator": "Exists", "effect": "NoExecute"})));
    }
}
