//! LimitRanger: what limit ranges of the namespace say is given to containers that say nothing, and held against all.

use serde_json::Value;
use windlass_core::amounts::{Amounts, Side, Summed, amounts, total};

use super::{Admission, Operation};
use crate::codec::Quantity;
use crate::kinds::tree::{at, each, entries, fill, get, list, set, sub, text};
use crate::status::{Result, Status};

const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// Fills what containers do not say from the limit ranges of the namespace.
pub(super) fn admit(pod: &mut Value, admission: &mut Admission<'_>) -> Result<()> {
    if !concerns(admission) || !admission.is_in("", "pods") {
        return Ok(());
    }
    for range in ranges(admission) {
        let mut notes = Vec::new();
        let spec = sub(pod, "spec");
        for (field, word) in [("containers", "container"), ("initContainers", "init container")] {
            each(spec, field, |container| fill_container(container, word, &range, &mut notes));
        }
        if !notes.is_empty() {
            let note = format!("LimitRanger plugin set: {}", notes.join("; "));
            let annotations = sub(sub(pod, "metadata"), "annotations");
            set(annotations, ANNOTATION, note);
            if let Some(map) = annotations.as_object_mut() {
                map.sort_keys();
            }
        }
    }
    Ok(())
}

fn fill_container(container: &mut Value, word: &str, range: &Value, notes: &mut Vec<String>) {
    let mut set_by_us = [Vec::new(), Vec::new()];
    for limit in list(&range["spec"], "limits").iter().filter(|limit| text(limit, "type") == "Container") {
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
}

/// Refuses a pod or a claim that is outside the limits of its namespace.
pub(super) fn validate(object: &Value, admission: &mut Admission<'_>) -> Result<()> {
    if !concerns(admission) {
        return Ok(());
    }
    for range in ranges(admission) {
        let limits = list(&range["spec"], "limits").iter();
        let faults = match admission.is_in("", "pods") {
            true => limits.flat_map(|limit| pod_faults(object, limit)).collect(),
            false => limits.flat_map(|limit| claim_faults(object, limit)).collect(),
        };
        forbid(object, faults, admission)?;
    }
    Ok(())
}

/// What is created, and what is resized; but nothing that is on its way out.
fn concerns(admission: &Admission<'_>) -> bool {
    let deleting = admission.old.is_some_and(|old| at(old, &["metadata", "deletionTimestamp"]).is_some());
    let resized = admission.context.subresource == "resize";
    !deleting
        && match admission.operation {
            _ if admission.is_of("", "persistentvolumeclaims") => true,
            Operation::Create => admission.is_of("", "pods"),
            _ => resized && admission.is_in("", "pods"),
        }
}

fn ranges(admission: &Admission<'_>) -> Vec<Value> {
    admission.context.world.list("", "LimitRange", admission.namespace)
}

fn pod_faults(pod: &Value, limit: &Value) -> Vec<String> {
    let (kind, spec) = (text(limit, "type"), &pod["spec"]);
    match kind {
        "Container" => {
            let all = list(spec, "containers").iter().chain(list(spec, "initContainers"));
            let of = |container: &Value, field| amounts(&container["resources"], field);
            all.flat_map(|one| within(limit, kind, &of(one, "requests"), &of(one, "limits"))).collect()
        }
        "Pod" => {
            let asked = |side| total(pod, side, Summed::Asked);
            within(limit, kind, &asked(Side::Requests), &asked(Side::Limits))
        }
        _ => Vec::new(),
    }
}

fn claim_faults(claim: &Value, limit: &Value) -> Vec<String> {
    const KIND: &str = "PersistentVolumeClaim";
    let mut faults = Vec::new();
    if text(limit, "type") != KIND {
        return faults;
    }
    let requests = amounts(&claim["spec"]["resources"], "requests");
    for (name, least) in amounts(limit, "min") {
        faults.extend(at_least(KIND, &name, &least, &requests, &Amounts::new()));
    }
    for (name, most) in amounts(limit, "max") {
        let head = format!("maximum {name} usage per {KIND} is {most}");
        match requests.get(&name) {
            None => faults.push(format!("{head}.  No request is specified")),
            Some(request) if *request > most => faults.push(format!("{head}, but request is {request}")),
            Some(_) => {}
        }
    }
    faults
}

/// Each fault is told once.
fn forbid(object: &Value, faults: Vec<String>, admission: &Admission<'_>) -> std::result::Result<(), Status> {
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
    Err(admission.refuse(object, &why))
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
