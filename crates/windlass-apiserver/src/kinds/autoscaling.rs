//! Horizontal pod autoscalers, in both versions.

use serde_json::{Value, json};

use super::check::{by_rule, not_negative, one_of, quantity, required, required_by};
use super::meta::NOT_NEGATIVE;
use super::pod::container_resource_name;
use super::tree::{fill, get, int, is_zero, list, set, sub, text};
use super::{Hooks, names};
use crate::field::{Errors, Path};

/// The hooks of an autoscaling kind.
pub(super) fn hooks(kind: &str) -> Option<&'static Hooks> {
    (kind == "HorizontalPodAutoscaler").then_some(&AUTOSCALER)
}

const AUTOSCALER: Hooks = Hooks {
    default,
    validate_create: |new, _, errors| validate(new, None, errors),
    validate_update: |new, old, _, errors| validate(new, Some(old), errors),
    validate_status: |new, _, _, errors| {
        let counts = ["currentReplicas", "desiredReplicas"];
        not_negative(&new["status"], &counts, &Path::Root.child("status"), errors);
    },
    ..Hooks::NONE
};

/// The utilisation that is aimed at when nothing is said.
const UTILIZATION: i64 = 80;

/// The annotations in which version 1 has what it does not know, and which version 2 has not.
pub(crate) const ANNOTATIONS: [&str; 4] = [
    "autoscaling.alpha.kubernetes.io/metrics",
    "autoscaling.alpha.kubernetes.io/behavior",
    "autoscaling.alpha.kubernetes.io/current-metrics",
    "autoscaling.alpha.kubernetes.io/conditions",
];

/// Takes these away.
pub(crate) fn forget(autoscaler: &mut Value) {
    let Some(metadata) = autoscaler.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) else { return };
    let before = annotations.len();
    annotations.retain(|key, _| !ANNOTATIONS.contains(&key.as_str()));
    if annotations.is_empty() && before > 0 {
        metadata.shift_remove("annotations");
    }
}

fn default(autoscaler: &mut Value) {
    let old_version = text(autoscaler, "apiVersion") == "autoscaling/v1";
    if !old_version {
        forget(autoscaler);
    }
    let metrics_elsewhere =
        autoscaler.pointer("/metadata/annotations/autoscaling.alpha.kubernetes.io~1metrics");
    let metrics_elsewhere = metrics_elsewhere.is_some();
    let spec = sub(autoscaler, "spec");
    fill(spec, "minReplicas", 1);
    if old_version {
        if !metrics_elsewhere {
            fill(spec, "targetCPUUtilizationPercentage", UTILIZATION);
        }
        return;
    }
    if is_zero(spec.get("metrics")) {
        let target = json!({"type": "Utilization", "averageUtilization": UTILIZATION});
        set(spec, "metrics", json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]));
    }
    if get(spec, "behavior").is_some() {
        let behavior = sub(spec, "behavior");
        let up = sub(behavior, "scaleUp");
        fill(up, "stabilizationWindowSeconds", 0);
        fill(up, "selectPolicy", "Max");
        if is_zero(up.get("policies")) {
            let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
            set(up, "policies", json!([pods, {"type": "Percent", "value": 100, "periodSeconds": 15}]));
        }
        let down = sub(behavior, "scaleDown");
        fill(down, "selectPolicy", "Max");
        if is_zero(down.get("policies")) {
            set(down, "policies", json!([{"type": "Percent", "value": 100, "periodSeconds": 15}]));
        }
    }
}

fn validate(autoscaler: &Value, old: Option<&Value>, errors: &mut Errors) {
    let (spec, path) = (&autoscaler["spec"], Path::Root.child("spec"));
    let (least, most) = (int(spec, "minReplicas"), int(spec, "maxReplicas").unwrap_or(0));
    if let Some(least) = least.filter(|least| *least < 1) {
        errors.invalid(&path.child("minReplicas"), &json!(least), "must be greater than or equal to 1");
    }
    if most == 0 {
        errors.required(&path.child("maxReplicas"), "must be set and greater than 0");
    } else if most < 0 {
        errors.invalid(&path.child("maxReplicas"), &json!(most), "must be greater than or equal to 1");
    }
    if least.is_some_and(|least| most < least) {
        errors.invalid(
            &path.child("maxReplicas"),
            &json!(most),
            "must be greater than or equal to `minReplicas`",
        );
    }
    let target = &spec["scaleTargetRef"];
    let before = old.map(|old| &old["spec"]["scaleTargetRef"]);
    let grouped = text(target, "kind") != "ReplicationController";
    let kept = |before: &Value| ["apiVersion", "kind"].iter().all(|f| text(before, f) == text(target, f));
    let lenient = before.is_some_and(kept);
    reference(target, grouped, lenient, &path.child("scaleTargetRef"), errors);
    let metrics = path.child("metrics");
    // The one metric of the old version is the first inside.
    if let Some(percent) = int(spec, "targetCPUUtilizationPercentage").filter(|percent| *percent < 1) {
        let first = metrics.index(0);
        let at = first.child("resource");
        let at = at.child("target");
        errors.invalid(&at.child("averageUtilization"), &json!(percent), "must be greater than 0");
    }
    for (index, metric) in list(spec, "metrics").iter().enumerate() {
        validate_metric(metric, &metrics.index(index), errors);
    }
    let elsewhere = |metric: &Value| matches!(text(metric, "type"), "Object" | "External");
    if least == Some(0) && !list(spec, "metrics").iter().any(elsewhere) {
        let detail =
            "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.forbidden(&metrics, detail);
    }
    for direction in ["scaleUp", "scaleDown"] {
        if let Some(rules) = get(spec, "behavior").and_then(|behavior| get(behavior, direction)) {
            validate_rules(rules, &path.child("behavior").child(direction), errors);
        }
    }
}

/// Checks a reference to an object of some version, which may stay as it was (`lenient`).
fn reference(reference: &Value, grouped: bool, lenient: bool, path: &Path<'_>, errors: &mut Errors) {
    for field in ["kind", "name"] {
        required_by(reference, field, names::path_segment, path, errors);
    }
    if !lenient && let Some(fault) = version_fault(reference, grouped) {
        errors.invalid(&path.child("apiVersion"), &json!(text(reference, "apiVersion")), &fault);
    }
}

fn version_fault(reference: &Value, grouped: bool) -> Option<String> {
    let version = text(reference, "apiVersion");
    match version.split('/').collect::<Vec<_>>()[..] {
        [_] | ["", _] if grouped => Some("apiVersion must specify API group".to_owned()),
        [_] | [_, _] => None,
        _ => Some(format!("unexpected GroupVersion string: {version}")),
    }
}

fn validate_metric(metric: &Value, path: &Path<'_>, errors: &mut Errors) {
    required(metric, "type", "must specify a metric source type", path, errors);
    let kinds = ["ContainerResource", "External", "Object", "Pods", "Resource"];
    one_of(metric, "type", &kinds, path, errors);
    const FIELDS: [&str; 5] = ["object", "external", "pods", "resource", "containerResource"];
    let present: Vec<&str> = FIELDS.into_iter().filter(|field| get(metric, field).is_some()).collect();
    if let Some(field) = present.first() {
        validate_source(field, &metric[*field], &path.child(field), errors);
    }
    let expected = match kinds.iter().find(|kind| **kind == text(metric, "type")) {
        Some(kind) => {
            let field = format!("{}{}", kind[..1].to_lowercase(), &kind[1..]);
            if get(metric, &field).is_none() {
                let detail = "must populate information for the given metric source";
                errors.required(&path.child(&field), detail);
            }
            field
        }
        None => {
            // The real server finds this twice.
            errors.not_supported(&path.child("type"), &json!(text(metric, "type")), &kinds);
            String::new()
        }
    };
    if present.len() != 1 {
        for field in present.into_iter().filter(|field| *field != expected) {
            errors.forbidden(&path.child(field), "must populate the given metric source only");
        }
    }
}

fn validate_source(kind: &str, source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let target = &source["target"];
    let (at, has) = (path.child("target"), |field: &str| get(target, field).is_some());
    if kind == "object" {
        reference(&source["describedObject"], false, false, &path.child("describedObject"), errors);
    }
    if matches!(kind, "object" | "external" | "pods") {
        let (metric, at) = (&source["metric"], path.child("metric"));
        if required(metric, "name", "must specify a metric name", &at, errors) {
            by_rule(text(metric, "name"), names::path_segment, &at.child("name"), errors);
        }
    } else if required(source, "name", "must specify a resource name", path, errors)
        && kind == "containerResource"
    {
        container_resource_name(text(source, "name"), &path.child("name"), errors);
    }
    if kind == "containerResource" && required(source, "container", "must specify a container", path, errors)
    {
        by_rule(text(source, "container"), names::dns_label, &path.child("container"), errors);
    }
    validate_target(target, &at, errors);
    let (one, other, why, both) = match kind {
        "object" => ("averageValue", "value", "must set either a target value or averageValue", None),
        "external" => (
            "averageValue",
            "value",
            "must set either a target value for metric or a per-pod target",
            Some("may not set both a target value for metric and a per-pod target"),
        ),
        "pods" => ("averageValue", "averageValue", "must specify a positive target averageValue", None),
        _ => (
            "averageUtilization",
            "averageValue",
            "must set either a target raw value or a target utilization",
            Some("may not set both a target raw value and a target utilization"),
        ),
    };
    match (has(one), has(other)) {
        (false, false) => errors.required(&at.child(one), why),
        (true, true) => {
            if let Some(both) = both {
                errors.forbidden(&at.child(other), both);
            }
        }
        _ => {}
    }
}

fn validate_target(target: &Value, path: &Path<'_>, errors: &mut Errors) {
    required(target, "type", "must specify a metric target type", path, errors);
    let kind = text(target, "type");
    if !matches!(kind, "Utilization" | "Value" | "AverageValue") {
        let detail = "must be either Utilization, Value, or AverageValue";
        errors.invalid(&path.child("type"), &json!(kind), detail);
    }
    for field in ["value", "averageValue"] {
        if let Some(value) = get(target, field)
            && quantity(value).is_some_and(|amount| amount.signum() != 1)
        {
            errors.invalid(&path.child(field), value, "must be positive");
        }
    }
    if let Some(percent) = int(target, "averageUtilization").filter(|percent| *percent < 1) {
        errors.invalid(&path.child("averageUtilization"), &json!(percent), "must be greater than 0");
    }
}

fn validate_rules(rules: &Value, path: &Path<'_>, errors: &mut Errors) {
    if let Some(window) = int(rules, "stabilizationWindowSeconds") {
        let at = path.child("stabilizationWindowSeconds");
        if window < 0 {
            errors.invalid(&at, &json!(window), "must be greater than or equal to zero");
        } else if window > 3600 {
            errors.invalid(&at, &json!(window), "must be less than or equal to 3600");
        }
    }
    one_of(rules, "selectPolicy", &["Disabled", "Max", "Min"], path, errors);
    if let Some(tolerance) = get(rules, "tolerance")
        && quantity(tolerance).is_some_and(|amount| amount.signum() < 0)
    {
        errors.invalid(&path.child("tolerance"), tolerance, NOT_NEGATIVE);
    }
    let policies = path.child("policies");
    if list(rules, "policies").is_empty() {
        errors.required(&policies, "must specify at least one Policy");
    }
    for (index, policy) in list(rules, "policies").iter().enumerate() {
        let path = policies.index(index);
        one_of(policy, "type", &["Percent", "Pods"], &path, errors);
        for field in ["value", "periodSeconds"] {
            let value = int(policy, field).unwrap_or(0);
            if value <= 0 {
                errors.invalid(&path.child(field), &json!(value), "must be greater than zero");
            }
        }
        if int(policy, "periodSeconds").is_some_and(|period| period > 1800) {
            let detail = "must be less than or equal to 1800";
            errors.invalid(&path.child("periodSeconds"), &policy["periodSeconds"], detail);
        }
    }
}
