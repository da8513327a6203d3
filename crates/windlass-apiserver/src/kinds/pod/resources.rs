//! Resource requests and limits of containers.

use serde_json::{Value, json};

use crate::codec::Quantity;
use crate::field::{Errors, Path};
use crate::kinds::check::{by_rule, quantity};
use crate::kinds::meta::NOT_NEGATIVE;
use crate::kinds::names;
use crate::kinds::tree::{entries, get};

/// Checks the resources of a container.
pub(super) fn validate(container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(resources) = get(container, "resources") else { return };
    let path = path.child("resources");
    for (name, amount) in entries(resources, "limits") {
        one(name, amount, &path.child("limits").key(name), errors);
    }
    for (name, amount) in entries(resources, "requests") {
        let requests = path.child("requests");
        one(name, amount, &requests.key(name), errors);
        let limit = get(resources, "limits").and_then(|limits| get(limits, name));
        let (Some(wanted), Some(limit)) = (quantity(amount), limit.and_then(quantity)) else {
            if !overcommits(name) {
                errors.required(&path.child("limits"), "Limit must be set for non overcommitable resources");
            }
            continue;
        };
        let relation = match overcommits(name) {
            false if wanted != limit => "equal to",
            _ if wanted > limit => "less than or equal to",
            _ => continue,
        };
        errors.invalid(&requests, amount, &format!("must be {relation} {name} limit of {limit}"));
    }
}

/// Whether requests for a resource may stay below its limit.
fn overcommits(name: &str) -> bool {
    (!name.contains('/') || name.contains("kubernetes.io/")) && !name.starts_with("hugepages-")
}

fn one(name: &str, amount: &Value, path: &Path<'_>, errors: &mut Errors) {
    let before = errors.0.len();
    by_rule(name, names::label_key, path, errors);
    if !name.contains('/') {
        let standard = |known: &[&str]| known.contains(&name) || name.starts_with("hugepages-");
        if errors.0.len() == before && !standard(&STANDARD) {
            errors.invalid(path, &json!(name), "must be a standard resource type or fully qualified");
        }
        if !standard(&CONTAINER) {
            errors.invalid(path, &json!(name), "must be a standard resource for containers");
        }
    }
    let Some(value) = quantity(amount) else { return };
    if value < Quantity::from_i64(0) {
        errors.invalid(path, amount, NOT_NEGATIVE);
    }
    if !overcommits(name) && !name.starts_with("hugepages-") && !value.is_whole() {
        errors.invalid(path, amount, "must be an integer");
    }
}

/// Resources that need no qualified name.
pub(crate) const STANDARD: [&str; 23] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
    "requests.hugepages-2Mi",
    "requests.hugepages-1Gi",
    "resourceclaims",
];

const CONTAINER: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
