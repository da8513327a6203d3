//! Role bindings.

use serde_json::{Value, json};

use super::Printer;
use super::object::{Object, text};

pub(super) fn printer(kind: &str) -> Option<Printer> {
    matches!(kind, "RoleBinding" | "ClusterRoleBinding").then_some(binding)
}

fn binding(object: &Object<'_>) -> Vec<Value> {
    let subjects = |kind: &str| {
        let subjects = object.list(&["subjects"]).iter().filter(|subject| text(subject, &["kind"]) == kind);
        let name = |subject: &Value| match kind {
            "ServiceAccount" => format!("{}/{}", text(subject, &["namespace"]), text(subject, &["name"])),
            _ => text(subject, &["name"]).to_owned(),
        };
        json!(subjects.map(name).collect::<Vec<_>>().join(", "))
    };
    vec![
        json!(object.name()),
        json!(format!("{}/{}", object.text(&["roleRef", "kind"]), object.text(&["roleRef", "name"]))),
        json!(object.age()),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}
