//! Priority and fairness.

use serde_json::{Value, json};

use super::Printer;
use super::object::Object;

pub(super) fn printer(kind: &str) -> Option<Printer> {
    Some(match kind {
        "FlowSchema" => flow_schema,
        "PriorityLevelConfiguration" => priority_level,
        _ => return None,
    })
}

fn flow_schema(object: &Object<'_>) -> Vec<Value> {
    vec![
        json!(object.name()),
        json!(object.text(&["spec", "priorityLevelConfiguration", "name"])),
        json!(object.int(&["spec", "matchingPrecedence"])),
        json!(object.text_or(&["spec", "distinguisherMethod", "type"], "<none>")),
        json!(object.age()),
        json!(object.condition("Dangling").unwrap_or("?")),
    ]
}

fn priority_level(object: &Object<'_>) -> Vec<Value> {
    let number = |inside: &[&str], path: &[&str]| match object.get(inside) {
        Some(_) => json!(object.int(path)),
        None => json!("<none>"),
    };
    let queuing = ["spec", "limited", "limitResponse", "queuing"];
    let queue = |key: &str| number(&queuing, &[&queuing[..], &[key]].concat());
    vec![
        json!(object.name()),
        json!(object.text(&["spec", "type"])),
        number(&["spec", "limited"], &["spec", "limited", "nominalConcurrencyShares"]),
        queue("queues"),
        queue("handSize"),
        queue("queueLengthLimit"),
        json!(object.age()),
    ]
}
