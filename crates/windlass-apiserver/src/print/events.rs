//! Events, of the core group and of `events.k8s.io`, which names the same fields otherwise.

use serde_json::{Value, json};

use super::object::{Object, get, int, text, time};

pub(super) fn event(object: &Object<'_>) -> Vec<Value> {
    let value = object.value;
    // The old name of a field, or the new one.
    let either =
        |core: &'static str, events: &'static str| if get(value, &[core]).is_some() { core } else { events };
    let since = |path: &[&str]| object.since(value, path);
    let first_key = either("firstTimestamp", "deprecatedFirstTimestamp");
    let last_key = either("lastTimestamp", "deprecatedLastTimestamp");
    let first = if time(value, &[first_key]).is_some() { since(&[first_key]) } else { since(&["eventTime"]) };
    let mut last = if time(value, &[last_key]).is_some() { since(&[last_key]) } else { first.clone() };
    let mut count = int(value, &[either("count", "deprecatedCount")]);
    if get(value, &["series"]).is_some() {
        last = since(&["series", "lastObservedTime"]);
        count = int(value, &["series", "count"]);
    } else if count == 0 {
        count = 1;
    }
    let involved = either("involvedObject", "regarding");
    let kind = text(value, &[involved, "kind"]).to_lowercase();
    let target = match text(value, &[involved, "name"]) {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    vec![
        json!(last),
        json!(object.text(&["type"])),
        json!(object.text(&["reason"])),
        json!(target),
        json!(text(value, &[involved, "fieldPath"])),
        json!(source(object, either("source", "deprecatedSource"))),
        json!(object.text(&[either("message", "note")]).trim()),
        json!(first),
        json!(count),
        json!(object.name()),
    ]
}

fn source(object: &Object<'_>, key: &str) -> String {
    let first = |old: &str, new: &str| {
        let old = object.text(&[key, old]);
        if old.is_empty() { object.text(&[new]).to_owned() } else { old.to_owned() }
    };
    let component_key = if object.get(&["reportingComponent"]).is_some() {
        "reportingComponent"
    } else {
        "reportingController"
    };
    let component = first("component", component_key);
    match first("host", "reportingInstance") {
        host if host.is_empty() => component,
        host => format!("{component}, {host}"),
    }
}
