//! API services, which the aggregator prints itself.

use serde_json::{Value, json};

use super::Printer;
use super::object::{Object, text};

pub(super) fn printer(kind: &str) -> Option<Printer> {
    (kind == "APIService").then_some(api_service)
}

fn api_service(object: &Object<'_>) -> Vec<Value> {
    let service = object.get(&["spec", "service"]);
    let service =
        service.map(|service| format!("{}/{}", text(service, &["namespace"]), text(service, &["name"])));
    let mut conditions = object.list(&["status", "conditions"]).iter();
    let available = conditions.find(|condition| text(condition, &["type"]) == "Available");
    let available =
        available.map(|condition| match (text(condition, &["status"]), text(condition, &["reason"])) {
            (status @ "True", _) | (status, "") => status.to_owned(),
            (status, reason) => format!("{status} ({reason})"),
        });
    vec![
        json!(object.name()),
        json!(service.unwrap_or_else(|| "Local".to_owned())),
        json!(available.unwrap_or_else(|| "Unknown".to_owned())),
        json!(object.age()),
    ]
}
