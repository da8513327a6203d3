//! Resource requests and limits of containers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use windlass_core::amounts::is_native;

use super::Scene;
use crate::codec::Quantity;
use crate::field::{Errors, Path, Reason};
use crate::kinds::check::{by_rule, quantity, text_by};
use crate::kinds::meta::NOT_NEGATIVE;
use crate::kinds::names;
use crate::kinds::tree::{entries, get, list, text};

/// Checks the resources of a container.
pub(super) fn of_container(container: &Value, scene: &Scene<'_>, path: &Path<'_>, errors: &mut Errors) {
    let Some(resources) = get(container, "resources") else { return };
    let path = path.child("resources");
    requirements(resources, container_resource_name, &path, errors);
    claims(resources, scene, &path.child("claims"), errors);
}

/// Checks what a pod takes besides its containers.
pub(crate) fn overhead(holder: &Value, field: &str, path: &Path<'_>, errors: &mut Errors) {
    if let Some(overhead) = get(holder, field) {
        requirements(&json!({"limits": overhead}), container_resource_name, &path.child(field), errors);
    }
}

/// Checks the resources of a pod as a whole.
pub(super) fn of_pod(spec: &Value, scene: &Scene<'_>, path: &Path<'_>, errors: &mut Errors) {
    let Some(resources) = get(spec, "resources") else { return };
    let path = path.child("resources");
    if text(&spec["os"], "name") == "windows" {
        errors.forbidden(&path, "may not be set for a windows pod");
        return;
    }
    if get(resources, "claims").is_some() {
        errors.forbidden(&path.child("claims"), "claims may not be set for Resources at pod-level");
    }
    requirements(resources, pod_resource_name, &path, errors);
    claims(resources, scene, &path.child("claims"), errors);
    let amount =
        |kind: &str, name: &str| get(resources, kind).and_then(|all| get(all, name)).and_then(quantity);
    for (kind, huge_only) in [("requests", false), ("limits", true)] {
        for (name, total) in of_containers(spec, kind) {
            let (false, Some(whole)) = (huge_only && !is_huge(&name), amount(kind, &name)) else { continue };
            if total > whole {
                let detail =
                    format!("must be greater than or equal to aggregate container {kind} of {total}");
                errors.invalid(&path.child(kind).key(&name), &json!(whole.to_string()), &detail);
            }
        }
    }
    for (index, container) in list(spec, "containers").iter().enumerate() {
        for (name, limit) in entries(&container["resources"], "limits") {
            let (Some(limit), Some(whole)) = (quantity(limit), amount("limits", name)) else { continue };
            if limit > whole {
                let at = path.child("containers");
                let at = at.index(index);
                let at = at.key(name);
                let detail = format!("must be less than or equal to pod limits of {whole}");
                errors.invalid(&at.child("limits"), &json!(limit.to_string()), &detail);
            }
        }
    }
}

/// What the containers of a pod take together: those that run at once, or the largest step before.
fn of_containers(spec: &Value, kind: &str) -> BTreeMap<String, Quantity> {
    let amounts = |container: &Value| {
        entries(&container["resources"], kind)
            .filter_map(|(name, amount)| Some((name.clone(), quantity(amount)?)))
            .collect::<BTreeMap<_, _>>()
    };
    let add = |to: &mut BTreeMap<String, Quantity>, from: &BTreeMap<String, Quantity>| {
        for (name, amount) in from {
            let before = to.get(name).cloned().unwrap_or_else(|| Quantity::from_i64(0));
            to.insert(name.clone(), before.checked_add(amount).unwrap_or(before));
        }
    };
    let (mut running, mut beside, mut largest) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for container in list(spec, "containers") {
        add(&mut running, &amounts(container));
    }
    for container in list(spec, "initContainers") {
        let mut step = amounts(container);
        if text(container, "restartPolicy") == "Always" {
            add(&mut running, &step);
            add(&mut beside, &step);
            step = beside.clone();
        } else {
            add(&mut step, &beside);
        }
        for (name, amount) in step {
            if largest.get(&name).is_none_or(|most| *most < amount) {
                largest.insert(name, amount);
            }
        }
    }
    for (name, amount) in largest {
        if running.get(&name).is_none_or(|sum| *sum < amount) {
            running.insert(name, amount);
        }
    }
    running
}

fn requirements(
    resources: &Value,
    name_rule: fn(&str, &Path<'_>, &mut Errors),
    path: &Path<'_>,
    errors: &mut Errors,
) {
    for kind in ["limits", "requests"] {
        for (name, amount) in entries(resources, kind) {
            let at = path.child(kind);
            let at = at.key(name);
            name_rule(name, &at, errors);
            value_of(name, amount, &at, errors);
            if is_huge(name) && !is_whole_pages(name, amount) {
                let detail = format!("{} is not positive integer multiple of {name}", plain(amount));
                errors.invalid(&at, amount, &detail);
            }
        }
    }
    for (name, amount) in entries(resources, "requests") {
        let requests = path.child("requests");
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
    let any = |of: fn(&str) -> bool| {
        ["limits", "requests"].iter().any(|kind| entries(resources, kind).any(|(name, _)| of(name)))
    };
    if any(is_huge) && !any(|name| name == "cpu" || name == "memory") {
        errors.forbidden(path, "HugePages require cpu or memory");
    }
}

fn plain(amount: &Value) -> String {
    amount.as_str().map_or_else(|| amount.to_string(), str::to_owned)
}

/// Pages of memory that are larger than usual.
fn is_huge(name: &str) -> bool {
    name.starts_with("hugepages-")
}

fn is_whole_pages(name: &str, amount: &Value) -> bool {
    let size = name.strip_prefix("hugepages-").and_then(|size| Quantity::parse(size).ok());
    let (Some(size), Some(amount)) = (size, quantity(amount)) else { return false };
    match (size.as_i64(), amount.as_i64()) {
        (Some(size), Some(amount)) if size > 0 => amount % size == 0,
        _ => false,
    }
}

/// Claims of a container are claims of its pod, each named once.
fn claims(resources: &Value, scene: &Scene<'_>, path: &Path<'_>, errors: &mut Errors) {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for (index, claim) in list(resources, "claims").iter().enumerate() {
        let at = path.index(index);
        let (name, request) = (text(claim, "name"), text(claim, "request"));
        if name.is_empty() {
            errors.required(&at, "");
            continue;
        }
        if seen.contains(name) {
            errors.duplicate(&at, &json!(name));
        } else {
            text_by(claim, "request", names::dns_label, &at, errors);
            let key = if request.is_empty() { name.to_owned() } else { format!("{name}/{request}") };
            if seen.contains(&key) {
                errors.duplicate(&at, &json!(key));
            } else if request.is_empty() {
                for _ in seen.iter().filter(|key| key.split_once('/').is_some_and(|(of, _)| of == name)) {
                    errors.duplicate(&at, &json!(name));
                }
            }
            seen.insert(key);
        }
        if !scene.claims.contains(name) {
            let list = scene.claims.iter().copied().collect::<Vec<_>>().join(", ");
            let rest = if list.is_empty() { " which is empty".to_owned() } else { format!(": {list}") };
            let detail = format!("must be one of the names in pod.spec.resourceClaims{rest}");
            errors.push(Reason::NotFound, &at, format!("Not found: {}: {detail}", json!(name)));
        }
    }
}

/// What a resource of a pod as a whole may be called.
fn pod_resource_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    let before = errors.0.len();
    resource_name(name, path, errors);
    if errors.0.len() == before && !["cpu", "memory"].contains(&name) && !is_huge(name) {
        errors.not_supported(path, &json!(name), &["cpu", "hugepages-", "memory"]);
    }
}

/// Whether requests for a resource may stay below its limit.
pub(crate) fn overcommits(name: &str) -> bool {
    is_native(name) && !name.starts_with("hugepages-")
}

/// Whether a resource is one that somebody else brings along.
fn is_extended(name: &str) -> bool {
    let in_quota = || format!("requests.{name}");
    !is_native(name) && !name.starts_with("requests.") && names::label_key(&in_quota()).is_empty()
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
    } else if !is_native(name) && !is_extended(name) {
        errors.invalid(path, &json!(name), "doesn't follow extended resource name standard");
    }
}

/// The amount of a resource, of a container or in a quota.
pub(crate) fn value_of(name: &str, amount: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(value) = quantity(amount) else { return };
    if value < Quantity::from_i64(0) {
        errors.invalid(path, amount, NOT_NEGATIVE);
    }
    if is_counted(name) && !value.is_whole() {
        errors.invalid(path, amount, "must be an integer");
    }
}

/// Whether there are only whole ones of a resource.
fn is_counted(name: &str) -> bool {
    const COUNTED: [&str; 9] = [
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    ];
    COUNTED.contains(&name) || is_extended(name)
}

/// Resources that need no qualified name.
const STANDARD: [&str; 23] = [
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
