//! Priority classes, workloads and pod groups.

use serde_json::{Value, json};

use super::Printer;
use super::core::named;
use super::object::{Object, text};

pub(super) fn printer(kind: &str) -> Option<Printer> {
    Some(match kind {
        "PodGroup" => pod_group,
        "PriorityClass" => priority_class,
        "Workload" => named,
        _ => return None,
    })
}

fn priority_class(object: &Object<'_>) -> Vec<Value> {
    vec![
        json!(object.name()),
        json!(object.int(&["value"])),
        json!(object.bool_or(&["globalDefault"], false)),
        json!(object.age()),
        json!(object.text(&["preemptionPolicy"])),
    ]
}

fn pod_group(object: &Object<'_>) -> Vec<Value> {
    let policy = if object.get(&["spec", "schedulingPolicy", "gang"]).is_some() { "Gang" } else { "Basic" };
    // Of several conditions of a type the last one counts.
    let conditions = object.list(&["status", "conditions"]);
    let condition = |kind: &str| conditions.iter().rev().find(|condition| text(condition, &["type"]) == kind);
    let status = match (condition("DisruptionTarget"), condition("PodGroupScheduled")) {
        (Some(disrupted), _) => text(disrupted, &["reason"]),
        (None, Some(scheduled)) if text(scheduled, &["status"]) == "True" => "Scheduled",
        (None, Some(_)) => "Unschedulable",
        (None, None) => "Pending",
    };
    let workload = match object.get(&["spec", "podGroupTemplateRef"]) {
        Some(reference) => text(reference, &["workload", "workloadName"]),
        None => "<none>",
    };
    vec![json!(object.name()), json!(policy), json!(workload), json!(status), json!(object.age())]
}
