//! Horizontal pod autoscalers and scales.

use serde_json::{Value, json};

use super::Printer;
use super::object::{Object, get, quantity, text};

pub(super) fn printer(kind: &str) -> Option<Printer> {
    Some(match kind {
        "HorizontalPodAutoscaler" => autoscaler,
        "Scale" => scale,
        _ => return None,
    })
}

fn scale(object: &Object<'_>) -> Vec<Value> {
    vec![
        json!(object.name()),
        json!(object.int(&["spec", "replicas"])),
        json!(object.int(&["status", "replicas"])),
        json!(object.age()),
    ]
}

fn autoscaler(object: &Object<'_>) -> Vec<Value> {
    let target = ["spec", "scaleTargetRef"];
    let reference =
        object.get(&target).map(|target| format!("{}/{}", text(target, &["kind"]), text(target, &["name"])));
    let min = object.get(&["spec", "minReplicas"]).map(ToString::to_string);
    vec![
        json!(object.name()),
        json!(reference.unwrap_or_default()),
        json!(metrics(object)),
        json!(min.unwrap_or_else(|| "<unset>".to_owned())),
        json!(object.int(&["spec", "maxReplicas"])),
        json!(object.int(&["status", "currentReplicas"])),
        json!(object.age()),
    ]
}

/// Two metrics at most.
fn metrics(object: &Object<'_>) -> String {
    const MAX: usize = 2;
    let specs = object.list(&["spec", "metrics"]);
    let statuses = object.list(&["status", "currentMetrics"]);
    let mut shown =
        specs.iter().enumerate().map(|(i, spec)| metric(spec, statuses.get(i))).collect::<Vec<_>>();
    // autoscaling/v1 has one metric, in fields of its own.
    if let Some(target) = object.get(&["spec", "targetCPUUtilizationPercentage"]) {
        let current = object.get(&["status", "currentCPUUtilizationPercentage"]);
        let current = current.map_or_else(|| "<unknown>".to_owned(), |current| format!("{current}%"));
        shown.push(format!("cpu: {current}/{target}%"));
    }
    match shown.len() {
        0 => "<none>".to_owned(),
        count if count > MAX => format!("{} + {} more...", shown[..MAX].join(", "), count - MAX),
        _ => shown.join(", "),
    }
}

/// The current value and the target of one metric.
fn metric(spec: &Value, status: Option<&Value>) -> String {
    let kind = text(spec, &["type"]);
    let key = match kind {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".to_owned(),
    };
    // What Go prints of a quantity that is not there.
    let target = |value: &str| quantity(spec, &[key, "target", value]).unwrap_or_else(|| "<nil>".to_owned());
    let current = status.and_then(|status| get(status, &[key])).and_then(|status| get(status, &["current"]));
    let current_or = |value: &str, absent: &str| match current {
        Some(current) => quantity(current, &[value]).unwrap_or_else(|| absent.to_owned()),
        None => "<unknown>".to_owned(),
    };
    let is_average = get(spec, &[key, "target", "averageValue"]).is_some();
    match kind {
        "External" | "Object" if is_average => {
            format!("{}/{} (avg)", current_or("averageValue", "<unknown>"), target("averageValue"))
        }
        "External" | "Object" => format!("{}/{}", current_or("value", "<nil>"), target("value")),
        "Pods" => format!("{}/{}", current_or("averageValue", "<nil>"), target("averageValue")),
        _ => {
            let name = text(spec, &[key, "name"]);
            if is_average {
                return format!("{name}: {}/{}", current_or("averageValue", "<nil>"), target("averageValue"));
            }
            let utilization = current.and_then(|current| get(current, &["averageUtilization"]));
            let percent = |value: Option<&Value>, absent: &str| {
                value.map_or_else(|| absent.to_owned(), |value| format!("{value}%"))
            };
            let target = get(spec, &[key, "target", "averageUtilization"]);
            format!("{name}: {}/{}", percent(utilization, "<unknown>"), percent(target, "<auto>"))
        }
    }
}
