//! LimitRanger and RuntimeClass: what namespace and runtime class say of a pod, given to it or held against it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::codec::Quantity;
use crate::kinds::Context;
use crate::kinds::check::quantity;
use crate::kinds::tree::{each, entries, fill, get, list, set, sub, text, text_at};
use crate::status::Status;

type Amounts = BTreeMap<String, Quantity>;

/// Fills what containers do not say from the limit ranges of the namespace.
pub(super) fn default_limits(pod: &mut Value, context: &Context<'_>) {
    for range in ranges(pod, context) {
        let mut notes = Vec::new();
        let spec = sub(pod, "spec");
        for (field, word) in [("containers", "container"), ("initContainers", "init container")] {
            each(spec, field, |container| {
                let mut set_by_us = [Vec::new(), Vec::new()];
                for limit in list(&range["spec"], "limits").iter().filter(|l| text(l, "type") == "Container")
                {
                    for ((from, to), set) in
                        [("default", "limits"), ("defaultRequest", "requests")].iter().zip(&mut set_by_us)
                    {
                        for (name, amount) in entries(limit, from) {
                            let amounts = sub(sub(container, "resources"), to);
                            if get(amounts, name).is_none() {
                                fill(amounts, name, amount.clone());
                                set.push(name.clone());
                            }
                            if let Some(map) = amounts.as_object_mut() {
                                map.sort_keys();
                            }
                        }
                    }
                }
                let name = text(container, "name");
                let [mut limits, mut requests] = set_by_us;
                for (names, what) in [(&mut requests, "request"), (&mut limits, "limit")] {
                    if !names.is_empty() {
                        names.sort_unstable();
                        notes.push(format!("{} {what} for {word} {name}", names.join(", ")));
                    }
                }
            });
        }
        if !notes.is_empty() {
            let note = format!("LimitRanger plugin set: {}", notes.join("; "));
            let annotations = sub(sub(pod, "metadata"), "annotations");
            set(annotations, "kubernetes.io/limit-ranger", note);
            if let Some(map) = annotations.as_object_mut() {
                map.sort_keys();
            }
        }
    }
}

/// Refuses a pod that is outside the limits of its namespace.
pub(crate) fn review(pod: &Value, old: Option<&Value>, context: &Context<'_>) -> Result<(), Status> {
    if old.is_some() && context.subresource != "resize" {
        return Ok(());
    }
    for range in ranges(pod, context) {
        let mut faults = Vec::new();
        for limit in list(&range["spec"], "limits") {
            let kind = text(limit, "type");
            match kind {
                "Container" => {
                    let spec = &pod["spec"];
                    for container in list(spec, "containers").iter().chain(list(spec, "initContainers")) {
                        let of = |field| amounts(&container["resources"], field);
                        faults.extend(within(limit, kind, &of("requests"), &of("limits")));
                    }
                }
                "Pod" => faults.extend(within(limit, kind, &total(pod, "requests"), &total(pod, "limits"))),
                _ => {}
            }
        }
        forbid(pod, faults, context)?;
    }
    Ok(())
}

/// Refuses a claim that is outside the limits of its namespace.
pub(crate) fn review_claim(claim: &Value, context: &Context<'_>) -> Result<(), Status> {
    let requests = amounts(&claim["spec"]["resources"], "requests");
    for range in ranges(claim, context) {
        let mut faults = Vec::new();
        for limit in
            list(&range["spec"], "limits").iter().filter(|l| text(l, "type") == "PersistentVolumeClaim")
        {
            for (name, least) in amounts(limit, "min") {
                faults.extend(at_least("PersistentVolumeClaim", &name, &least, &requests, &Amounts::new()));
            }
            for (name, most) in amounts(limit, "max") {
                let head = format!("maximum {name} usage per PersistentVolumeClaim is {most}");
                match requests.get(&name) {
                    None => faults.push(format!("{head}.  No request is specified")),
                    Some(request) if *request > most => {
                        faults.push(format!("{head}, but request is {request}"))
                    }
                    Some(_) => {}
                }
            }
        }
        forbid(claim, faults, context)?;
    }
    Ok(())
}

fn ranges(object: &Value, context: &Context<'_>) -> Vec<Value> {
    context.world.list("", "LimitRange", text_at(object, &["metadata", "namespace"]))
}

fn forbid(object: &Value, faults: Vec<String>, context: &Context<'_>) -> Result<(), Status> {
    let mut told: Vec<String> = Vec::new();
    for fault in faults {
        if !told.contains(&fault) {
            told.push(fault);
        }
    }
    let why = match told.as_slice() {
        [] => return Ok(()),
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    };
    Err(Status::forbidden(context.group, context.resource, text_at(object, &["metadata", "name"]), &why))
}

fn amounts(holder: &Value, field: &str) -> Amounts {
    entries(holder, field).filter_map(|(name, amount)| Some((name.clone(), quantity(amount)?))).collect()
}

/// What a pod needs at most: its containers together, or its greediest init container.
fn total(pod: &Value, field: &str) -> Amounts {
    let spec = &pod["spec"];
    let mut sum = Amounts::new();
    for container in list(spec, "containers") {
        for (name, amount) in amounts(&container["resources"], field) {
            let so_far = sum.remove(&name).unwrap_or_else(|| Quantity::from_i64(0));
            sum.insert(name, so_far.checked_add(&amount).unwrap_or(so_far));
        }
    }
    for container in list(spec, "initContainers") {
        for (name, amount) in amounts(&container["resources"], field) {
            if sum.get(&name).is_none_or(|so_far| *so_far < amount) {
                sum.insert(name, amount);
            }
        }
    }
    sum
}

fn within(limit: &Value, kind: &str, requests: &Amounts, limits: &Amounts) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, least) in amounts(limit, "min") {
        faults.extend(at_least(kind, &name, &least, requests, limits));
    }
    for (name, most) in amounts(limit, "max") {
        let head = format!("maximum {name} usage per {kind} is {most}");
        match (limits.get(&name), requests.get(&name)) {
            (None, _) => faults.push(format!("{head}.  No limit is specified")),
            (Some(limit), _) if *limit > most => faults.push(format!("{head}, but limit is {limit}")),
            (_, Some(request)) if *request > most => faults.push(format!("{head}, but request is {request}")),
            _ => {}
        }
    }
    for (name, most) in amounts(limit, "maxLimitRequestRatio") {
        let head = format!("{name} max limit to request ratio per {kind} is {most}, but");
        let milli =
            |amounts: &Amounts| amounts.get(&name).and_then(Quantity::as_milli).filter(|milli| *milli != 0);
        match (milli(requests), milli(limits)) {
            (None, _) => faults.push(format!("{head} no request is specified or request is 0")),
            (_, None) => faults.push(format!("{head} no limit is specified or limit is 0")),
            (Some(request), Some(limit)) => {
                let ratio = limit as f64 / request as f64;
                let most = most.as_milli().unwrap_or(i64::MAX) as f64;
                if ratio * 1000.0 > most {
                    faults.push(format!("{head} provided ratio is {ratio:.6}"));
                }
            }
        }
    }
    faults
}

fn at_least(
    kind: &str,
    name: &str,
    least: &Quantity,
    requests: &Amounts,
    limits: &Amounts,
) -> Option<String> {
    let head = format!("minimum {name} usage per {kind} is {least}");
    match (requests.get(name), limits.get(name)) {
        (None, _) => Some(format!("{head}.  No request is specified")),
        (Some(request), _) if request < least => Some(format!("{head}, but request is {request}")),
        (_, Some(limit)) if limit < least => Some(format!("{head}, but limit is {limit}")),
        _ => None,
    }
}

/// RuntimeClass: the overhead of the class is the pod's, and its place is among nodes that can run it.
pub(super) fn runtime_class(pod: &mut Value, context: &Context<'_>) -> Result<(), Status> {
    let refuse = |pod: &Value, why: &str| {
        Err(Status::forbidden(context.group, context.resource, text_at(pod, &["metadata", "name"]), why))
    };
    let name = text_at(pod, &["spec", "runtimeClassName"]).to_owned();
    let class = match name.as_str() {
        "" => None,
        name => match context.world.get("node.k8s.io", "RuntimeClass", "", name) {
            Some(class) => Some(class),
            None => return refuse(pod, &format!("pod rejected: RuntimeClass {name:?} not found")),
        },
    };
    let overhead = class.as_ref().and_then(|class| class.pointer("/overhead/podFixed")).cloned();
    match (pod.pointer("/spec/overhead"), &overhead) {
        (Some(_), None) => {
            return refuse(
                pod,
                "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
            );
        }
        (Some(given), Some(defined)) if given != defined => {
            return refuse(pod, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead");
        }
        _ => {}
    }
    if let Some(overhead) = overhead {
        set(sub(pod, "spec"), "overhead", overhead);
    }
    let Some(scheduling) = class.as_ref().and_then(|class| get(class, "scheduling")) else { return Ok(()) };
    for (key, value) in entries(scheduling, "nodeSelector") {
        let selector = sub(sub(pod, "spec"), "nodeSelector");
        if let Some(given) = get(selector, key).filter(|given| *given != value) {
            let (given, value) = (given.as_str().unwrap_or(""), value.as_str().unwrap_or(""));
            let why = format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {given}"
            );
            return refuse(pod, &why);
        }
        fill(selector, key, value.clone());
    }
    let mut tolerations = list(&pod["spec"], "tolerations").to_vec();
    for toleration in list(scheduling, "tolerations") {
        if !tolerations.contains(toleration) {
            tolerations.push(json!(toleration));
        }
    }
    if !tolerations.is_empty() {
        set(sub(pod, "spec"), "tolerations", tolerations);
    }
    Ok(())
}
