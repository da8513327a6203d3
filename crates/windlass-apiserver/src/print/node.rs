//! Nodes, and the classes of what runs containers on them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::object::{Object, text};

pub(super) fn node(object: &Object<'_>) -> Vec<Value> {
    let info = |key: &str| match object.text(&["status", "nodeInfo", key]) {
        "" => "<unknown>".to_owned(),
        text => text.to_owned(),
    };
    let kernel = match object.text(&["status", "nodeInfo", "architecture"]) {
        "" => info("kernelVersion"),
        architecture => format!("{} ({architecture})", info("kernelVersion")),
    };
    vec![
        json!(object.name()),
        json!(status(object)),
        json!(roles(object)),
        json!(object.age()),
        json!(object.text(&["status", "nodeInfo", "kubeletVersion"])),
        json!(address(object, "InternalIP")),
        json!(address(object, "ExternalIP")),
        json!(info("osImage")),
        json!(kernel),
        json!(info("containerRuntimeVersion")),
    ]
}

fn status(object: &Object<'_>) -> String {
    // Of several conditions of a type the last one counts.
    let conditions = object.list(&["status", "conditions"]).iter().rev();
    let ready = conditions.clone().find(|condition| text(condition, &["type"]) == "Ready");
    let ready = match ready.map(|condition| text(condition, &["status"])) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    let disabled = object.bool_or(&["spec", "unschedulable"], false);
    if disabled { format!("{ready},SchedulingDisabled") } else { ready.to_owned() }
}

/// `node-role.kubernetes.io/<role>` and `kubernetes.io/role=<role>`.
fn roles(object: &Object<'_>) -> String {
    let mut roles = BTreeSet::new();
    for (key, value) in object.map(&["metadata", "labels"]).into_iter().flatten() {
        let role = match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => role,
            None if key == "kubernetes.io/role" => value.as_str().unwrap_or_default(),
            None => "",
        };
        if !role.is_empty() {
            roles.insert(role);
        }
    }
    if roles.is_empty() { "<none>".to_owned() } else { roles.into_iter().collect::<Vec<_>>().join(",") }
}

fn address<'a>(object: &Object<'a>, kind: &str) -> &'a str {
    let mut addresses = object.list(&["status", "addresses"]).iter();
    addresses
        .find(|address| text(address, &["type"]) == kind)
        .map_or("<none>", |address| text(address, &["address"]))
}

pub(super) fn runtime_class(object: &Object<'_>) -> Vec<Value> {
    vec![json!(object.name()), json!(object.text(&["handler"])), json!(object.age())]
}
