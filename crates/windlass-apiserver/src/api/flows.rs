//! Flow schemas: whether the priority level that each names is there, as kube-apiserver's own controller tells it.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::object::meta_str;
use super::registry::Resource;
use super::server::Server;
use crate::codec::scalar::time::{self, Precision};
use crate::json::str_at;
use crate::managed;
use crate::status::Result;
use crate::store::Object;

pub(super) const GROUP: &str = "flowcontrol.apiserver.k8s.io";
/// The name under which that controller writes.
const MANAGER: &str = "api-priority-and-fairness-config-consumer-v1";

impl Server {
    /// Brings the conditions of all flow schemas up to date. They are few.
    pub(super) fn settle_flows(&mut self, now: Timestamp) -> Result<()> {
        let find = |plural| self.registry.find(GROUP, "v1", plural).expect("built-in kinds are served");
        let (schemas, levels) = (find("flowschemas"), find("prioritylevelconfigurations"));
        let all: Vec<Arc<Object>> = self.store.list(&schemas.storage).range(None, None).cloned().collect();
        for object in all {
            let tree = self.load(&schemas, &object);
            let level = str_at(&tree, &["spec", "priorityLevelConfiguration", "name"]);
            let wanted = condition(level, self.store.get(&levels.storage, "", level).is_some());
            if !has(&tree, &wanted) {
                let told = told(&schemas, &tree, wanted, now)?;
                self.put(&schemas, Some(&object), told, false)?;
            }
        }
        Ok(())
    }
}

fn condition(level: &str, found: bool) -> Value {
    let (status, reason, rest) = if found {
        ("False", "Found", "and it exists")
    } else {
        ("True", "NotFound", "but there is no such object")
    };
    let message =
        format!("This FlowSchema references the PriorityLevelConfiguration object named {level:?} {rest}");
    json!({"type": "Dangling", "status": status, "reason": reason, "message": message})
}

fn has(schema: &Value, wanted: &Value) -> bool {
    let conditions = schema.pointer("/status/conditions").and_then(Value::as_array);
    let same =
        |one: &Value| ["type", "status", "reason", "message"].iter().all(|key| one[key] == wanted[key]);
    conditions.is_some_and(|all| all.iter().any(same))
}

/// The schema with this condition, which is applied as its controller applies it.
fn told(resource: &Resource, schema: &Value, mut condition: Value, now: Timestamp) -> Result<Value> {
    condition["lastTransitionTime"] = json!(time::format(now, Precision::Seconds));
    let config = json!({
        "apiVersion": resource.api_version(), "kind": resource.kind, "metadata": {"name": meta_str(schema, "name")},
        "status": {"conditions": [condition]},
    });
    let (types, root) = resource.types();
    let write = managed::Write {
        manager: MANAGER,
        api_version: &resource.api_version(),
        kind: &resource.kind,
        subresource: "status",
        now,
        reset: managed::Reset::Only(&[&["status"]]),
    };
    Ok(managed::apply(&managed::Schema::builtin(types, root), Some(schema), &config, &write, true)?)
}
