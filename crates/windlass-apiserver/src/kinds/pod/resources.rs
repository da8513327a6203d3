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
pub(crate) fn overcommits(name: &str) -> bool {
    is_native(name) && !name.starts_with("hugepages-")
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// What a resource may be called anywhere.
pub(crate) fn resource_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    let before = errors.0.len();
    by_rule(name, names::label_key, path, errors);
    let huge = ["hugepages-", "requests.hugepages-"].iter().any(|prefix| name.starts_with(prefix));
    if errors.0.len() == before && !name.contains('/') && !STANDARD.contains(&name) && !huge {
        errors.invalid(path, &json!(name), "must be a standard resource type or fully qualified");
    }
}

/// What a resource of a container may be called.
pub(crate) fn container_resource_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    resource_name(name, path, errors);
    if !name.contains('/') {
        if !CONTAINER.contains(&name) && !name.starts_with("hugepages-") {
            errors.invalid(path, &json!(name), "must be a standard resource for containers");
        }
    } else if !is_native(name) {
        let in_quota = format!("requests.{name}");
        if name.starts_with("requests.") || !names::label_key(&in_quota).is_empty() {
            errors.invalid(path, &json!(name), "doesn't follow extended resource name standard");
        }
    }
}

fn one(name: &str, amount: &Value, path: &Path<'_>, errors: &mut Errors) {
    container_resource_name(name, path, errors);
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
