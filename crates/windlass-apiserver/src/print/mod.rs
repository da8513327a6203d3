//! Tables, as `kubectl get` shows them.
//!
//! [`cells`] prints a built-in kind as `k8s.io/kubernetes/pkg/printers/internalversion` does, with the columns of
//! `-o wide` at the end; kinds without a printer there show their name and when they were made. [`custom_cells`] prints
//! the columns that a custom resource definition declares.

mod custom;
mod json_path;

mod admission;
mod age;
mod aggregation;
mod autoscaling;
mod certificates;
mod core;
mod devices;
mod discovery;
mod events;
mod flow;
mod networking;
mod node;
mod object;
mod pod;
mod rbac;
mod scheduling;
mod storage;
mod workloads;

pub use age::human_duration;
pub use custom::{CustomColumn, custom_cells, custom_columns, name_column};
pub use json_path::{JsonPath, PathError, json_path};

use jiff::Timestamp;
use serde_json::{Value, json};

use self::object::Object;
use crate::json;

type Printer = fn(&Object<'_>) -> Vec<Value>;

/// The cells of the object's row. Ages are those at `now`.
pub fn cells(group: &str, kind: &str, object: &Value, now: Timestamp) -> Vec<Value> {
    let printer = printer(group, kind).unwrap_or(plain);
    printer(&Object { value: object, now })
}

/// Whether a built-in kind has columns of its own.
pub fn has_printer(group: &str, kind: &str) -> bool {
    printer(group, kind).is_some()
}

/// `rows[].conditions`, which only finished pods have.
pub fn row_conditions(group: &str, kind: &str, object: &Value) -> Option<Value> {
    if (group, kind) != ("", "Pod") {
        return None;
    }
    let phase = json::str_at(object, &["status", "phase"]);
    let message = match phase {
        "Succeeded" => "The pod has completed successfully.",
        "Failed" => "The pod failed.",
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": phase, "message": message}]))
}

/// What an object is ordered by.
type Order = fn(&Value) -> (i64, String);

/// What a table shows objects in the order of, where it is not the order of lists: of flow schemas, the precedence.
pub fn row_order(group: &str, kind: &str) -> Option<Order> {
    let precedence: Order = |object| {
        let precedence = json::at(object, &["spec", "matchingPrecedence"]).and_then(Value::as_i64);
        (precedence.unwrap_or(0), json::str_at(object, &["metadata", "name"]).to_owned())
    };
    ((group, kind) == ("flowcontrol.apiserver.k8s.io", "FlowSchema")).then_some(precedence)
}

fn printer(group: &str, kind: &str) -> Option<Printer> {
    match group {
        "" => core_printer(kind),
        "admissionregistration.k8s.io" => admission::printer(kind),
        "apiregistration.k8s.io" => aggregation::printer(kind),
        "apps" | "batch" => workloads::printer(kind),
        "autoscaling" => autoscaling::printer(kind),
        "certificates.k8s.io" => certificates::printer(kind),
        "coordination.k8s.io" => core::coordination_printer(kind),
        "discovery.k8s.io" => discovery::printer(kind),
        "events.k8s.io" => (kind == "Event").then_some(events::event),
        "flowcontrol.apiserver.k8s.io" => flow::printer(kind),
        "internal.apiserver.k8s.io" | "storagemigration.k8s.io" => storage::version_printer(kind),
        "networking.k8s.io" => networking::printer(kind),
        "node.k8s.io" => (kind == "RuntimeClass").then_some(node::runtime_class),
        "policy" => (kind == "PodDisruptionBudget").then_some(workloads::disruption_budget),
        "rbac.authorization.k8s.io" => rbac::printer(kind),
        "resource.k8s.io" => devices::printer(kind),
        "scheduling.k8s.io" => scheduling::printer(kind),
        "storage.k8s.io" => storage::printer(kind),
        _ => None,
    }
}

fn core_printer(kind: &str) -> Option<Printer> {
    Some(match kind {
        "Endpoints" => discovery::endpoints,
        "Event" => events::event,
        "Node" => node::node,
        "PersistentVolume" => storage::volume,
        "PersistentVolumeClaim" => storage::claim,
        "Pod" => pod::pod,
        "Service" => networking::service,
        "PodTemplate" => workloads::pod_template,
        "ReplicationController" => workloads::replication_controller,
        other => return core::printer(other),
    })
}

/// What kinds without a printer show.
fn plain(object: &Object<'_>) -> Vec<Value> {
    // Bookmarks are of no time, and Go has a date for that.
    let created = match object.text(&["metadata", "creationTimestamp"]) {
        "" => "0001-01-01T00:00:00Z",
        time => time,
    };
    vec![json!(object.name()), json!(created)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_without_a_printer_show_when_they_were_made() {
        let object = json!({"metadata": {"name": "a", "creationTimestamp": "2026-01-02T03:04:05Z"}});
        let now = Timestamp::UNIX_EPOCH;
        assert_eq!(cells("", "LimitRange", &object, now), [json!("a"), json!("2026-01-02T03:04:05Z")]);
        let bookmark = json!({"metadata": {"resourceVersion": "1"}});
        assert_eq!(cells("", "LimitRange", &bookmark, now), [json!(""), json!("0001-01-01T00:00:00Z")]);
    }

    #[test]
    fn only_finished_pods_carry_row_conditions() {
        let pod = |phase: &str| json!({"status": {"phase": phase}});
        assert_eq!(row_conditions("", "Pod", &pod("Running")), None);
        assert_eq!(row_conditions("", "Pod", &pod("Failed")).unwrap()[0]["reason"], "Failed");
        assert_eq!(row_conditions("", "Node", &pod("Failed")), None);
    }

    #[test]
    fn flow_schemas_are_shown_by_precedence() {
        let schema = |name: &str, precedence: i64| json!({"metadata": {"name": name}, "spec": {"matchingPrecedence": precedence}});
        let (a, b, c) = (schema("a", 9), schema("b", 1), schema("c", 1));
        let mut rows = [&a, &c, &b];
        rows.sort_by_key(|schema| row_order("flowcontrol.apiserver.k8s.io", "FlowSchema").unwrap()(schema));
        assert_eq!(rows, [&b, &c, &a]);
        assert!(row_order("", "Pod").is_none());
    }
}
