//! Which objects a quota is about.

use serde_json::{Map, Value, json};

use super::pods::ends_by_itself;
use crate::qos;
use crate::select::LabelSelector;
use crate::tree::{at, list, text, text_at};

pub(super) fn of_pod(scope: &Value, pod: &Value) -> bool {
    match text(scope, "scopeName") {
        "Terminating" => ends_by_itself(pod),
        "NotTerminating" => !ends_by_itself(pod),
        "BestEffort" => qos::class(pod) == "BestEffort",
        "NotBestEffort" => qos::class(pod) != "BestEffort",
        "PriorityClass" => selects(scope, &[text_at(pod, &["spec", "priorityClassName"])]),
        "CrossNamespacePodAffinity" => crosses_namespaces(pod),
        _ => false,
    }
}

pub(super) fn of_claim(scope: &Value, claim: &Value) -> bool {
    let names = [
        text_at(claim, &["spec", "volumeAttributesClassName"]),
        text_at(claim, &["status", "currentVolumeAttributesClassName"]),
        text_at(claim, &["status", "modifyVolumeStatus", "targetVolumeAttributesClassName"]),
    ];
    text(scope, "scopeName") == "VolumeAttributesClass" && selects(scope, &names)
}

/// Whether one of some names is among those that a scope is about.
fn selects(scope: &Value, names: &[&str]) -> bool {
    let key = text(scope, "scopeName");
    let requirement =
        json!({"key": key, "operator": text(scope, "operator"), "values": list(scope, "values")});
    let selector = json!({"matchExpressions": [requirement]});
    let Ok(selector) = LabelSelector::from_object(Some(&selector)) else { return false };
    let named: Vec<&&str> = names.iter().filter(|name| !name.is_empty()).collect();
    let matches = |name: &str| selector.matches(&Map::from_iter([(key.to_owned(), json!(name))]));
    match named.as_slice() {
        [] => selector.matches(&Map::new()),
        named => named.iter().any(|name| matches(name)),
    }
}

fn crosses_namespaces(pod: &Value) -> bool {
    let crosses =
        |term: &Value| !list(term, "namespaces").is_empty() || at(term, &["namespaceSelector"]).is_some();
    ["podAffinity", "podAntiAffinity"].iter().any(|field| {
        let Some(affinity) = at(pod, &["spec", "affinity", field]) else { return false };
        let preferred = list(affinity, "preferredDuringSchedulingIgnoredDuringExecution").iter();
        list(affinity, "requiredDuringSchedulingIgnoredDuringExecution").iter().any(crosses)
            || preferred.filter_map(|term| at(term, &["podAffinityTerm"])).any(crosses)
    })
}
