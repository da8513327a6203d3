//! Dynamic resource allocation.

use serde_json::{Value, json};

use super::Printer;
use super::core::named;
use super::object::{Object, get, int, text};

pub(super) fn printer(kind: &str) -> Option<Printer> {
    Some(match kind {
        "DeviceClass" | "ResourceClaimTemplate" => named,
        "DeviceTaintRule" => taint_rule,
        "ResourceClaim" => claim,
        "ResourcePoolStatusRequest" => pool_status_request,
        "ResourceSlice" => slice,
        _ => return None,
    })
}

fn claim(object: &Object<'_>) -> Vec<Value> {
    let deleted = object.is_being_deleted();
    let mut states = Vec::new();
    if deleted {
        states.push("deleted");
    }
    if object.get(&["status", "allocation"]).is_some() {
        states.push("allocated");
        if object.count(&["status", "reservedFor"]) > 0 {
            states.push("reserved");
        }
    } else if !deleted {
        states.push("pending");
    }
    vec![json!(object.name()), json!(states.join(",")), json!(object.age())]
}

fn slice(object: &Object<'_>) -> Vec<Value> {
    vec![
        json!(object.name()),
        json!(object.text(&["spec", "nodeName"])),
        json!(object.text(&["spec", "driver"])),
        json!(object.text(&["spec", "pool", "name"])),
        json!(object.age()),
    ]
}

fn taint_rule(object: &Object<'_>) -> Vec<Value> {
    let added = match object.get(&["spec", "taint", "timeAdded"]) {
        Some(_) => object.since(object.value, &["spec", "taint", "timeAdded"]),
        None => String::new(),
    };
    let taint = |key: &str| json!(object.text(&["spec", "taint", key]));
    vec![
        json!(object.name()),
        taint("key"),
        taint("value"),
        taint("effect"),
        json!(added),
        json!(object.age()),
    ]
}

fn pool_status_request(object: &Object<'_>) -> Vec<Value> {
    let has_status = object.get(&["status"]).is_some();
    let pools = object.list(&["status", "pools"]);
    let pool_count = object.int(&["status", "poolCount"]);
    let holds = |condition: &&Value| {
        matches!(text(condition, &["type"]), "Complete" | "Failed") && text(condition, &["status"]) == "True"
    };
    let done = object.list(&["status", "conditions"]).iter().find(holds);
    let state = done.map_or("Pending", |condition| text(condition, &["type"]));
    let status = match usize::try_from(pool_count) {
        Ok(count) if state == "Complete" && count > pools.len() => {
            format!("Complete ({}/{count} pools)", pools.len())
        }
        _ => state.to_owned(),
    };
    let counted = has_status && state != "Failed";
    let sum = |key: &str| match counted {
        true => json!(pools.iter().map(|pool| int(pool, &[key])).sum::<i64>().to_string()),
        false => json!("-"),
    };
    let errors = match counted {
        true => pools.iter().filter(|pool| get(pool, &["validationError"]).is_some()).count().to_string(),
        false => "-".to_owned(),
    };
    let completed = match done {
        Some(condition) if state == "Complete" => object.since(condition, &["lastTransitionTime"]),
        _ => "<none>".to_owned(),
    };
    vec![
        json!(object.name()),
        json!(object.text(&["spec", "driver"])),
        sum("totalDevices"),
        sum("availableDevices"),
        sum("allocatedDevices"),
        sum("unavailableDevices"),
        json!(errors),
        json!(pool_count),
        json!(status),
        json!(completed),
    ]
}
