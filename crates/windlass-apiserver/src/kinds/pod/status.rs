//! What the status of a pod may be changed to.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::field::{Errors, Path, Reason};
use crate::kinds::check::{by_rule, ip, sloppy_ip};
use crate::kinds::meta::immutable;
use crate::kinds::names;
use crate::kinds::tree::{get, int, list, text};

const CONDITIONS: [&str; 3] = ["PodScheduled", "Ready", "Initialized"];

/// Checks the new status of a pod.
pub(crate) fn validate(new: &Value, old: &Value, errors: &mut Errors) {
    let (status, before) = (&new["status"], &old["status"]);
    let path = Path::Root.child("status");
    conditions(status, &path.child("conditions"), errors);
    nomination(status, old, &path.child("nominatedNodeName"), errors);
    generation(status, &path, errors);
    immutable(status, before, &path, "qosClass", errors);
    for field in ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"] {
        transitions(field, status, old, &path.child(field), errors);
    }
    claims(status, &new["spec"], &path.child("resourceClaimStatuses"), errors);
    addresses(status, before, "podIPs", &path.child("podIPs"), errors);
    let hosts = path.child("hostIPs");
    if let Some(first) = list(status, "hostIPs").first()
        && text(first, "ip") != text(status, "hostIP")
    {
        let at = hosts.index(0);
        errors.invalid(&at.child("ip"), &json!(text(first, "ip")), "must be equal to `hostIP`");
    }
    addresses(status, before, "hostIPs", &hosts, errors);
}

fn conditions(status: &Value, path: &Path<'_>, errors: &mut Errors) {
    for (index, condition) in list(status, "conditions").iter().enumerate() {
        let (path, kind) = (path.index(index), text(condition, "type"));
        generation(condition, &path, errors);
        if !CONDITIONS.contains(&kind) {
            by_rule(kind, names::label_key, &path.child("Type"), errors);
        }
    }
}

fn generation(holder: &Value, path: &Path<'_>, errors: &mut Errors) {
    if let Some(generation) = int(holder, "observedGeneration").filter(|generation| *generation < 0) {
        let at = path.child("observedGeneration");
        errors.invalid(&at, &json!(generation), "must be a non-negative integer");
    }
}

/// A node that a pod hopes for: it has none yet.
fn nomination(status: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    let node = text(status, "nominatedNodeName");
    if node.is_empty() || node == text(&old["status"], "nominatedNodeName") {
        return;
    }
    by_rule(node, names::dns_subdomain, path, errors);
    if !text(&old["spec"], "nodeName").is_empty() {
        errors.forbidden(path, "may not be set on pods that are already bound to a node");
    }
}

/// What has ended begins anew only where it is to be started again.
fn transitions(field: &str, status: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    let spec = &old["spec"];
    let containers = match field {
        "containerStatuses" => list(spec, "containers"),
        "initContainerStatuses" => list(spec, "initContainers"),
        _ => &[],
    };
    let all_restart = ["containers", "initContainers"]
        .iter()
        .flat_map(|field| list(spec, field))
        .flat_map(|container| list(container, "restartPolicyRules"))
        .any(|rule| text(rule, "action") == "RestartAllContainers");
    if all_restart && field != "ephemeralContainerStatuses" {
        return;
    }
    for (index, before) in list(&old["status"], field).iter().enumerate() {
        let name = text(before, "name");
        let Some(ended) = get(&before["state"], "terminated") else { continue };
        let after = list(status, field).iter().find(|after| text(after, "name") == name);
        if after.is_none_or(|after| get(&after["state"], "terminated").is_some()) {
            continue;
        }
        let container = containers.iter().find(|container| text(container, "name") == name);
        let code = int(ended, "exitCode").unwrap_or(0);
        if !container.is_some_and(|container| restarts(container, text(spec, "restartPolicy"), code)) {
            let at = path.index(index);
            errors.forbidden(&at.child("state"), "may not be transitioned to non-terminated state");
        }
    }
}

/// Whether a container is started again that has ended with a code.
fn restarts(container: &Value, policy_of_pod: &str, code: i64) -> bool {
    let own = text(container, "restartPolicy");
    let is_told = |rule: &Value| {
        let codes = &rule["exitCodes"];
        let has = list(codes, "values").iter().any(|value| value.as_i64() == Some(code));
        match text(codes, "operator") {
            "In" => has,
            "NotIn" => !has,
            _ => false,
        }
    };
    if !own.is_empty() && list(container, "restartPolicyRules").iter().any(is_told) {
        return true;
    }
    match if own.is_empty() { policy_of_pod } else { own } {
        "OnFailure" => code != 0,
        "Never" => false,
        _ => true,
    }
}

fn claims(status: &Value, spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for (index, claim) in list(status, "resourceClaimStatuses").iter().enumerate() {
        let (path, name) = (path.index(index), text(claim, "name"));
        if !list(spec, "resourceClaims").iter().any(|own| text(own, "name") == name) {
            let detail = "must match the name of an entry in `spec.resourceClaims`";
            errors.invalid(&path.child("name"), &json!(name), detail);
        }
        if !seen.insert(name) {
            errors.duplicate(&path.child("name"), &json!(name));
        }
        if let Some(made) = get(claim, "resourceClaimName").and_then(Value::as_str) {
            by_rule(made, names::dns_subdomain, &path.child("resourceClaimName"), errors);
        }
    }
}

/// One address, or one of each family. What an older server took is left alone.
fn addresses(status: &Value, before: &Value, field: &str, path: &Path<'_>, errors: &mut Errors) {
    let of = |status: &Value| -> Vec<String> {
        list(status, field).iter().map(|own| text(own, "ip").to_owned()).collect()
    };
    let (all, known) = (of(status), of(before));
    for (index, address) in all.iter().enumerate().filter(|(_, address)| !known.contains(address)) {
        ip(address, &path.index(index), errors);
    }
    if all.len() < 2 {
        return;
    }
    let parsed: Vec<_> = all.iter().map(|address| sloppy_ip(address)).collect();
    if let Some(index) = parsed.iter().position(Option::is_none) {
        let why = format!("failed to check for dual stack with error:invalid IP[{index}]: {}", all[index]);
        errors.push(Reason::Internal, path, format!("Internal error: {why}"));
    }
    if !matches!(&parsed[..], [Some(one), Some(other)] if one.is_ipv4() != other.is_ipv4()) {
        let shown: Value = all.iter().map(|address| json!({"IP": address})).collect();
        errors.invalid(path, &shown, "may specify no more than one IP for each IP family");
    }
}
