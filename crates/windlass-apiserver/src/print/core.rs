//! The small kinds of the core group, and leases.

use serde_json::{Value, json};

use super::Printer;
use super::object::{Object, quantity, text};

pub(super) fn printer(kind: &str) -> Option<Printer> {
    Some(match kind {
        "ComponentStatus" => component_status,
        "ConfigMap" => config_map,
        "Namespace" => namespace,
        "ResourceQuota" => resource_quota,
        "Secret" => secret,
        "ServiceAccount" => named,
        _ => return None,
    })
}

pub(super) fn coordination_printer(kind: &str) -> Option<Printer> {
    Some(match kind {
        "Lease" => lease,
        "LeaseCandidate" => lease_candidate,
        _ => return None,
    })
}

/// Name and age, for kinds that have nothing else to show.
pub(super) fn named(object: &Object<'_>) -> Vec<Value> {
    vec![json!(object.name()), json!(object.age())]
}

fn component_status(object: &Object<'_>) -> Vec<Value> {
    let healthy =
        object.list(&["conditions"]).iter().find(|condition| text(condition, &["type"]) == "Healthy");
    let status = match healthy.map(|condition| text(condition, &["status"])) {
        Some("True") => "Healthy",
        Some(_) => "Unhealthy",
        None => "Unknown",
    };
    let part = |key: &str| healthy.map_or("", |condition| text(condition, &[key]));
    vec![json!(object.name()), json!(status), json!(part("message")), json!(part("error"))]
}

fn config_map(object: &Object<'_>) -> Vec<Value> {
    let entries = object.count(&["data"]) + object.count(&["binaryData"]);
    vec![json!(object.name()), json!(entries), json!(object.age())]
}

fn namespace(object: &Object<'_>) -> Vec<Value> {
    vec![json!(object.name()), json!(object.text(&["status", "phase"])), json!(object.age())]
}

/// Used and hard amounts of each resource, limits apart from requests.
fn resource_quota(object: &Object<'_>) -> Vec<Value> {
    let mut resources = object
        .map(&["status", "hard"])
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str())
        .collect::<Vec<_>>();
    resources.sort_unstable();
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for resource in resources {
        let amount = |kind: &str| {
            quantity(object.value, &["status", kind, resource]).unwrap_or_else(|| "0".to_owned())
        };
        let column = if resource.starts_with("limits.") { &mut limits } else { &mut requests };
        column.push(format!("{resource}: {}/{}", amount("used"), amount("hard")));
    }
    vec![json!(object.name()), json!(requests.join(", ")), json!(limits.join(", ")), json!(object.age())]
}

fn secret(object: &Object<'_>) -> Vec<Value> {
    vec![
        json!(object.name()),
        json!(object.text(&["type"])),
        json!(object.count(&["data"])),
        json!(object.age()),
    ]
}

fn lease(object: &Object<'_>) -> Vec<Value> {
    vec![json!(object.name()), json!(object.text(&["spec", "holderIdentity"])), json!(object.age())]
}

fn lease_candidate(object: &Object<'_>) -> Vec<Value> {
    vec![
        json!(object.name()),
        json!(object.text(&["spec", "leaseName"])),
        json!(object.text(&["spec", "binaryVersion"])),
        json!(object.text(&["spec", "emulationVersion"])),
        json!(object.age()),
    ]
}
