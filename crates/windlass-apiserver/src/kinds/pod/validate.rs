//! What a pod spec must look like.

use serde_json::{Value, json};

use super::{containers, volumes};
use crate::field::{Errors, Path};
use crate::kinds::check::{self, by_rule, in_range, one_of, required, text_by, within};
use crate::kinds::tree::{get, int, list, text};
use crate::kinds::{Context, meta, names};

/// Checks a new pod.
pub(crate) fn create(pod: &Value, errors: &mut Errors) {
    pod_spec_of(pod, errors);
    let (spec, path) = (&pod["spec"], Path::Root.child("spec"));
    if !list(spec, "ephemeralContainers").is_empty() {
        errors.forbidden(&path.child("ephemeralContainers"), "cannot be set on create");
    }
    if !text(spec, "nodeName").is_empty() && !list(spec, "schedulingGates").is_empty() {
        let detail = "cannot be set until all schedulingGates have been cleared";
        errors.forbidden(&path.child("nodeName"), detail);
    }
}

/// Checks the spec of a pod, at its create and at each update.
pub(super) fn pod_spec_of(pod: &Value, errors: &mut Errors) {
    let (pod_spec, path) = (&pod["spec"], Path::Root.child("spec"));
    spec(pod_spec, &path, errors);
    for field in ["containers", "initContainers"] {
        let path = path.child(field);
        for (index, container) in list(pod_spec, field).iter().enumerate() {
            let image = text(container, "image");
            if image.trim() != image {
                let detail = "must not have leading or trailing whitespace";
                errors.invalid(&path.index(index).child("image"), &json!(image), detail);
            }
        }
    }
    if text(pod_spec, "serviceAccountName").is_empty() {
        volumes::no_tokens_without_account(pod_spec, &path, errors);
    }
}

/// Checks the pod template of a workload.
/// Whether an object has a template with labels that are there, but empty.
pub(crate) fn has_empty_labels(object: &Value) -> bool {
    object
        .pointer("/spec/template/metadata/labels")
        .and_then(Value::as_object)
        .is_some_and(|labels| labels.is_empty())
}

/// The labels of a template as a refusal shows them, which tells empty ones from none ([`has_empty_labels`]).
pub(crate) fn shown_labels(labels: Option<&Value>, context: &Context<'_>) -> Value {
    match labels {
        Some(labels) => labels.clone(),
        None if context.noted => json!({}),
        None => Value::Null,
    }
}

pub(crate) fn template(template: &Value, path: &Path<'_>, errors: &mut Errors) {
    let metadata = get(template, "metadata").unwrap_or(&Value::Null);
    meta::labels(metadata, "labels", path, errors);
    meta::annotations(metadata, path, errors);
    spec(&template["spec"], &path.child("spec"), errors);
    if !list(&template["spec"], "ephemeralContainers").is_empty() {
        let detail = "ephemeral containers not allowed in pod template";
        errors.forbidden(&path.child("spec").child("ephemeralContainers"), detail);
    }
}

fn dns_config(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("dnsConfig");
    let config = get(spec, "dnsConfig");
    let servers = config.map_or(&[][..], |config| list(config, "nameservers"));
    if text(spec, "dnsPolicy") == "None" && servers.is_empty() {
        match config {
            None => errors.required(&path, "must provide `dnsConfig` when `dnsPolicy` is None"),
            Some(_) => {
                let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
                errors.required(&path.child("nameservers"), detail);
            }
        }
        return;
    }
    let Some(config) = config else { return };
    if servers.len() > 3 {
        let detail = "must not have more than 3 nameservers";
        errors.invalid(&path.child("nameservers"), &config["nameservers"], detail);
    }
    for (index, server) in servers.iter().filter_map(Value::as_str).enumerate() {
        check::ip(server, &path.child("nameservers").index(index), errors);
    }
    if list(config, "searches").len() > 32 {
        let detail = "must not have more than 32 search paths";
        errors.invalid(&path.child("searches"), &config["searches"], detail);
    }
    for (index, option) in list(config, "options").iter().enumerate() {
        if text(option, "name").is_empty() {
            errors.required(&path.child("options").index(index), "must not be empty");
        }
    }
}

fn spec(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mounted = volumes::validate(spec, path, errors);
    containers::validate(spec, &mounted, path, errors);
    one_of(spec, "restartPolicy", &["Always", "OnFailure", "Never"], path, errors);
    one_of(spec, "dnsPolicy", &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"], path, errors);
    dns_config(spec, path, errors);
    meta::labels(spec, "nodeSelector", path, errors);
    security_context(spec, path, errors);
    affinity(spec, path, errors);
    gates(spec, path, errors);
    spread(spec, path, errors);
    text_by(spec, "serviceAccountName", names::dns_subdomain, path, errors);
    text_by(spec, "nodeName", names::dns_subdomain, path, errors);
    within(spec, "activeDeadlineSeconds", 1, i64::from(i32::MAX), path, errors);
    text_by(spec, "hostname", names::dns_label, path, errors);
    text_by(spec, "subdomain", names::dns_label, path, errors);
    tolerations(spec, path, errors);
    for (index, alias) in list(spec, "hostAliases").iter().enumerate() {
        let aliases = path.child("hostAliases");
        let aliases = aliases.index(index);
        check::ip(text(alias, "ip"), &aliases.child("ip"), errors);
        for host in list(alias, "hostnames").iter().filter_map(Value::as_str) {
            by_rule(host, names::dns_subdomain, &aliases.child("hostnames"), errors);
        }
    }
    text_by(spec, "priorityClassName", names::dns_subdomain, path, errors);
    text_by(spec, "runtimeClassName", names::dns_subdomain, path, errors);
    one_of(spec, "preemptionPolicy", &["PreemptLowerPriority", "Never"], path, errors);
}

fn security_context(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(context) = get(spec, "securityContext") else { return };
    let path = path.child("securityContext");
    for field in ["fsGroup", "runAsUser", "runAsGroup"] {
        within(context, field, 0, i64::from(i32::MAX), &path, errors);
    }
    for (index, group) in list(context, "supplementalGroups").iter().filter_map(Value::as_i64).enumerate() {
        in_range(group, 0, i64::from(i32::MAX), &path.child("supplementalGroups").index(index), errors);
    }
    one_of(context, "fsGroupChangePolicy", &["Always", "OnRootMismatch"], &path, errors);
}

fn gates(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("schedulingGates");
    for (index, gate) in list(spec, "schedulingGates").iter().enumerate() {
        by_rule(text(gate, "name"), names::label_key, &path.index(index), errors);
    }
    check::unique(list(spec, "schedulingGates"), "name", &path, errors);
    for (index, gate) in list(spec, "readinessGates").iter().enumerate() {
        let gates = path.child("readinessGates");
        by_rule(
            text(gate, "conditionType"),
            names::label_key,
            &gates.index(index).child("conditionType"),
            errors,
        );
    }
}

/// Keys of the pod's own labels make sense only beside a selector, and only once.
fn label_keys(term: &Value, path: &Path<'_>, errors: &mut Errors) {
    for field in ["matchLabelKeys", "mismatchLabelKeys"] {
        let at = path.child(field);
        let keys = list(term, field);
        if !keys.is_empty() && get(term, "labelSelector").is_none() {
            errors.forbidden(&at, "must not be specified when labelSelector is not set");
        }
        for (index, key) in keys.iter().filter_map(Value::as_str).enumerate() {
            by_rule(key, names::label_key, &at.index(index), errors);
        }
    }
}

fn affinity(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(affinity) = get(spec, "affinity") else { return };
    let path = path.child("affinity");
    for side in ["podAffinity", "podAntiAffinity"] {
        let Some(terms) = get(affinity, side) else { continue };
        let path = path.child(side);
        const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
        const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
        for (index, term) in list(terms, REQUIRED).iter().enumerate() {
            affinity_term(term, &path.child(REQUIRED).index(index), errors);
        }
        for (index, weighted) in list(terms, PREFERRED).iter().enumerate() {
            let at = path.child(PREFERRED);
            let at = at.index(index);
            within(weighted, "weight", 1, 100, &at, errors);
            affinity_term(&weighted["podAffinityTerm"], &at.child("podAffinityTerm"), errors);
        }
    }
}

fn affinity_term(term: &Value, path: &Path<'_>, errors: &mut Errors) {
    check::selector(term, "labelSelector", path, errors);
    check::selector(term, "namespaceSelector", path, errors);
    for name in list(term, "namespaces").iter().filter_map(Value::as_str) {
        by_rule(name, names::dns_label, &path.child("namespace"), errors);
    }
    label_keys(term, path, errors);
    required(term, "topologyKey", "can not be empty", path, errors);
    by_rule(text(term, "topologyKey"), names::label_key, &path.child("topologyKey"), errors);
}

fn spread(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("topologySpreadConstraints");
    for (index, constraint) in list(spec, "topologySpreadConstraints").iter().enumerate() {
        let path = path.index(index);
        let skew = int(constraint, "maxSkew").unwrap_or(0);
        if skew <= 0 {
            errors.invalid(&path.child("maxSkew"), &json!(skew), "must be greater than zero");
        }
        required(constraint, "topologyKey", "can not be empty", &path, errors);
        text_by(constraint, "topologyKey", names::label_key, &path, errors);
        one_of(constraint, "whenUnsatisfiable", &["DoNotSchedule", "ScheduleAnyway"], &path, errors);
        label_keys(constraint, &path, errors);
        check::selector(constraint, "labelSelector", &path, errors);
    }
}

/// Checks the tolerations of a pod.
pub(super) fn tolerations(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("tolerations");
    for (index, toleration) in list(spec, "tolerations").iter().enumerate() {
        let path = path.index(index);
        let (key, operator) = (text(toleration, "key"), text(toleration, "operator"));
        let (value, effect) = (text(toleration, "value"), text(toleration, "effect"));
        text_by(toleration, "key", names::label_key, &path, errors);
        let at = path.child("operator");
        if key.is_empty() && operator != "Exists" {
            let detail =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.invalid(&at, &json!(operator), detail);
        }
        if get(toleration, "tolerationSeconds").is_some() && effect != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.invalid(&path.child("effect"), &json!(effect), detail);
        }
        match operator {
            "Equal" | "" => {
                let faults = names::label_value(value);
                if !faults.is_empty() {
                    errors.invalid(&at, &json!(value), &faults.join(";"));
                }
            }
            "Exists" if !value.is_empty() => {
                errors.invalid(&at, &json!(value), "value must be empty when `operator` is 'Exists'");
            }
            "Exists" => {}
            _ => errors.not_supported(&at, &json!(operator), &["Equal", "Exists"]),
        }
        if !effect.is_empty() {
            one_of(toleration, "effect", &["NoSchedule", "PreferNoSchedule", "NoExecute"], &path, errors);
        }
    }
}
