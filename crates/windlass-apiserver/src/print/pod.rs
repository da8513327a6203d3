//! Pods.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age;
use super::object::{Object, get, int, list, text, time};

/// One line of a pod: how many containers are ready, why it is as it is, how often it was restarted, where it runs.
pub(super) fn pod(object: &Object<'_>) -> Vec<Value> {
    let mut summary = Summary::of(object);
    if object.is_being_deleted() {
        let phase = object.text(&["status", "phase"]);
        if object.text(&["status", "reason"]) == "NodeLost" {
            summary.reason = "Unknown".to_owned();
        } else if !matches!(phase, "Succeeded" | "Failed") {
            summary.reason = "Terminating".to_owned();
        }
    }
    let restarts = match summary.restarts.last {
        Some(last) if summary.restarts.count != 0 => {
            format!("{} ({} ago)", summary.restarts.count, age::between(last, object.now))
        }
        _ => summary.restarts.count.to_string(),
    };
    let or_none = |text: &str| if text.is_empty() { "<none>".to_owned() } else { text.to_owned() };
    let ip = match object.text(&["status", "podIP"]) {
        "" => object.list(&["status", "podIPs"]).first().map_or("", |ip| text(ip, &["ip"])),
        ip => ip,
    };
    vec![
        json!(object.name()),
        json!(format!("{}/{}", summary.ready, summary.total)),
        json!(summary.reason),
        json!(restarts),
        json!(object.age()),
        json!(or_none(ip)),
        json!(or_none(object.text(&["spec", "nodeName"]))),
        json!(or_none(object.text(&["status", "nominatedNodeName"]))),
        json!(readiness_gates(object)),
    ]
}

/// How often containers were restarted, and when last.
#[derive(Clone, Copy, Default)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, status: &Value) {
        self.count += int(status, &["restartCount"]);
        self.last = self.last.max(time(status, &["lastState", "terminated", "finishedAt"]));
    }
}

struct Summary {
    reason: String,
    ready: usize,
    total: usize,
    restarts: Restarts,
}

impl Summary {
    fn of(object: &Object<'_>) -> Summary {
        let mut reason = match object.text(&["status", "reason"]) {
            "" => object.text(&["status", "phase"]),
            reason => reason,
        };
        let is_gated = |condition: &Value| {
            text(condition, &["type"]) == "PodScheduled" && text(condition, &["reason"]) == "SchedulingGated"
        };
        if object.list(&["status", "conditions"]).iter().any(is_gated) {
            reason = "SchedulingGated";
        }
        let init_containers = object.list(&["spec", "initContainers"]);
        let sidecars = init_containers.iter().filter(|container| is_sidecar(container)).count();
        let mut summary = Summary {
            reason: reason.to_owned(),
            ready: 0,
            total: object.list(&["spec", "containers"]).len() + sidecars,
            restarts: Restarts::default(),
        };
        let mut sidecar_restarts = Restarts::default();
        let initializing = summary.initialize(object, init_containers, &mut sidecar_restarts);
        if !initializing || object.condition("Initialized") == Some("True") {
            summary.restarts = sidecar_restarts;
            summary.run(object);
        }
        summary
    }

    /// Looks at the init containers, up to the first that is not done; whether there is one.
    fn initialize(
        &mut self,
        object: &Object<'_>,
        containers: &[Value],
        sidecar_restarts: &mut Restarts,
    ) -> bool {
        for (i, status) in object.list(&["status", "initContainerStatuses"]).iter().enumerate() {
            self.restarts.add(status);
            let container = containers.iter().rev().find(|c| text(c, &["name"]) == text(status, &["name"]));
            let sidecar = container.is_some_and(is_sidecar);
            if sidecar {
                sidecar_restarts.add(status);
            }
            let terminated = get(status, &["state", "terminated"]);
            if terminated.is_some_and(|terminated| int(terminated, &["exitCode"]) == 0) {
                continue;
            }
            if sidecar && flag(status, "started") {
                self.ready += usize::from(flag(status, "ready"));
                continue;
            }
            let waiting = text(status, &["state", "waiting", "reason"]);
            self.reason = match terminated {
                Some(terminated) => format!("Init:{}", exit_reason(terminated)),
                None if !waiting.is_empty() && waiting != "PodInitializing" => format!("Init:{waiting}"),
                None => format!("Init:{i}/{}", containers.len()),
            };
            return true;
        }
        false
    }

    /// Looks at the containers, the last one first, so that the first one has the last word.
    fn run(&mut self, object: &Object<'_>) {
        let mut has_running = false;
        let mut error = None;
        for status in object.list(&["status", "containerStatuses"]).iter().rev() {
            self.restarts.add(status);
            let waiting = text(status, &["state", "waiting", "reason"]);
            if !waiting.is_empty() {
                self.reason = waiting.to_owned();
            } else if let Some(terminated) = get(status, &["state", "terminated"]) {
                self.reason = exit_reason(terminated);
                if int(terminated, &["exitCode"]) != 0 {
                    error = Some(self.reason.clone());
                }
            } else if flag(status, "ready") && get(status, &["state", "running"]).is_some() {
                has_running = true;
                self.ready += 1;
            }
        }
        // A container that completed does not make the pod complete while another one still runs.
        if self.reason == "Completed" {
            let is_ready = |condition: &Value| {
                text(condition, &["type"]) == "Ready" && text(condition, &["status"]) == "True"
            };
            if has_running && object.list(&["status", "conditions"]).iter().any(is_ready) {
                self.reason = "Running".to_owned();
            } else if let Some(error) = error {
                self.reason = error;
            } else if has_running {
                self.reason = "NotReady".to_owned();
            }
        }
    }
}

fn exit_reason(terminated: &Value) -> String {
    match (text(terminated, &["reason"]), int(terminated, &["signal"])) {
        ("", 0) => format!("ExitCode:{}", int(terminated, &["exitCode"])),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn is_sidecar(container: &Value) -> bool {
    text(container, &["restartPolicy"]) == "Always"
}

fn flag(status: &Value, key: &str) -> bool {
    get(status, &[key]).and_then(Value::as_bool).unwrap_or(false)
}

fn readiness_gates(object: &Object<'_>) -> String {
    let gates = object.list(&["spec", "readinessGates"]);
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let conditions = list(object.value, &["status", "conditions"]);
    let holds = |gate: &&Value| {
        let condition = conditions.iter().find(|c| text(c, &["type"]) == text(gate, &["conditionType"]));
        condition.is_some_and(|condition| text(condition, &["status"]) == "True")
    };
    format!("{}/{}", gates.iter().filter(holds).count(), gates.len())
}
