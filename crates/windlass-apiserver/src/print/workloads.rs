//! What runs pods: deployments, sets, jobs, and the budgets that protect them.

use serde_json::{Value, json};
use windlass_core::select::LabelSelector;

use super::Printer;
use super::age::{self, human_duration};
use super::object::{Object, get, text, time};

const TEMPLATE_CONTAINERS: [&str; 4] = ["spec", "template", "spec", "containers"];
const SELECTOR: [&str; 2] = ["spec", "selector"];

pub(super) fn printer(kind: &str) -> Option<Printer> {
    Some(match kind {
        "ControllerRevision" => controller_revision,
        "CronJob" => cron_job,
        "DaemonSet" => daemon_set,
        "Deployment" => deployment,
        "Job" => job,
        "ReplicaSet" => replica_set,
        "StatefulSet" => stateful_set,
        _ => return None,
    })
}

pub(super) fn pod_template(object: &Object<'_>) -> Vec<Value> {
    let (names, images) = object.containers(&["template", "spec", "containers"]);
    let labels = object.labels(&["template", "metadata", "labels"]);
    vec![json!(object.name()), json!(names), json!(images), json!(labels)]
}

pub(super) fn replication_controller(object: &Object<'_>) -> Vec<Value> {
    replicas(object, object.labels(&SELECTOR))
}

fn replica_set(object: &Object<'_>) -> Vec<Value> {
    replicas(object, object.selector(&SELECTOR))
}

fn replicas(object: &Object<'_>, selector: String) -> Vec<Value> {
    let (names, images) = object.containers(&TEMPLATE_CONTAINERS);
    vec![
        json!(object.name()),
        json!(object.int(&["spec", "replicas"])),
        json!(object.int(&["status", "replicas"])),
        json!(object.int(&["status", "readyReplicas"])),
        json!(object.age()),
        json!(names),
        json!(images),
        json!(selector),
    ]
}

fn ready(object: &Object<'_>) -> String {
    format!("{}/{}", object.int(&["status", "readyReplicas"]), object.int(&["spec", "replicas"]))
}

fn deployment(object: &Object<'_>) -> Vec<Value> {
    let (names, images) = object.containers(&TEMPLATE_CONTAINERS);
    let selector = LabelSelector::from_object(object.get(&SELECTOR));
    vec![
        json!(object.name()),
        json!(ready(object)),
        json!(object.int(&["status", "updatedReplicas"])),
        json!(object.int(&["status", "availableReplicas"])),
        json!(object.age()),
        json!(names),
        json!(images),
        json!(selector.map_or_else(|_| "<invalid>".to_owned(), |selector| selector.to_string())),
    ]
}

fn stateful_set(object: &Object<'_>) -> Vec<Value> {
    let (names, images) = object.containers(&TEMPLATE_CONTAINERS);
    vec![json!(object.name()), json!(ready(object)), json!(object.age()), json!(names), json!(images)]
}

fn daemon_set(object: &Object<'_>) -> Vec<Value> {
    let (names, images) = object.containers(&TEMPLATE_CONTAINERS);
    vec![
        json!(object.name()),
        json!(object.int(&["status", "desiredNumberScheduled"])),
        json!(object.int(&["status", "currentNumberScheduled"])),
        json!(object.int(&["status", "numberReady"])),
        json!(object.int(&["status", "updatedNumberScheduled"])),
        json!(object.int(&["status", "numberAvailable"])),
        json!(object.labels(&["spec", "template", "spec", "nodeSelector"])),
        json!(object.age()),
        json!(names),
        json!(images),
        json!(object.selector(&SELECTOR)),
    ]
}

fn job(object: &Object<'_>) -> Vec<Value> {
    let (names, images) = object.containers(&TEMPLATE_CONTAINERS);
    let succeeded = object.int(&["status", "succeeded"]);
    let parallelism = object.int(&["spec", "parallelism"]);
    let completions = match object.get(&["spec", "completions"]) {
        Some(completions) => format!("{succeeded}/{completions}"),
        None if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        None => format!("{succeeded}/1"),
    };
    let start = time(object.value, &["status", "startTime"]);
    let duration = match (start, time(object.value, &["status", "completionTime"])) {
        (None, _) => String::new(),
        (Some(start), None) => age::between(start, object.now),
        (Some(start), Some(end)) => age::between(start, end),
    };
    vec![
        json!(object.name()),
        json!(job_status(object)),
        json!(completions),
        json!(duration),
        json!(object.age()),
        json!(names),
        json!(images),
        json!(object.selector(&SELECTOR)),
    ]
}

fn job_status(object: &Object<'_>) -> &'static str {
    let holds = |kind: &str| object.condition(kind) == Some("True");
    if holds("Complete") {
        "Complete"
    } else if holds("Failed") {
        "Failed"
    } else if object.is_being_deleted() {
        "Terminating"
    } else if holds("Suspended") {
        "Suspended"
    } else if holds("FailureTarget") {
        "FailureTarget"
    } else if holds("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    }
}

fn cron_job(object: &Object<'_>) -> Vec<Value> {
    let last = match object.get(&["status", "lastScheduleTime"]) {
        Some(_) => object.since(object.value, &["status", "lastScheduleTime"]),
        None => "<none>".to_owned(),
    };
    let suspend = match object.get(&["spec", "suspend"]).and_then(Value::as_bool) {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    };
    let path = ["spec", "jobTemplate", "spec", "template", "spec", "containers"];
    let (names, images) = object.containers(&path);
    vec![
        json!(object.name()),
        json!(object.text(&["spec", "schedule"])),
        json!(object.text_or(&["spec", "timeZone"], "<none>")),
        json!(suspend),
        json!(object.count(&["status", "active"])),
        json!(last),
        json!(object.age()),
        json!(names),
        json!(images),
        json!(object.selector(&["spec", "jobTemplate", "spec", "selector"])),
    ]
}

fn controller_revision(object: &Object<'_>) -> Vec<Value> {
    let owners = object.list(&["metadata", "ownerReferences"]);
    let is_controller = |owner: &&Value| get(owner, &["controller"]).and_then(Value::as_bool) == Some(true);
    let controller = owners.iter().find(is_controller).map(|owner| {
        let group = text(owner, &["apiVersion"]).split_once('/').map(|(group, _)| format!(".{group}"));
        let kind = format!("{}{}", text(owner, &["kind"]), group.unwrap_or_default());
        format!("{}/{}", kind.to_lowercase(), text(owner, &["name"]))
    });
    vec![
        json!(object.name()),
        json!(controller.unwrap_or_else(|| "<none>".to_owned())),
        json!(object.int(&["revision"])),
        json!(object.age()),
    ]
}

pub(super) fn disruption_budget(object: &Object<'_>) -> Vec<Value> {
    let bound = |key: &str| match object.get(&["spec", key]) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => "N/A".to_owned(),
    };
    vec![
        json!(object.name()),
        json!(bound("minAvailable")),
        json!(bound("maxUnavailable")),
        json!(object.int(&["status", "disruptionsAllowed"])),
        json!(object.age()),
    ]
}

/// A number of seconds as an age.
pub(super) fn seconds(seconds: i64) -> String {
    human_duration(i128::from(seconds) * 1_000_000_000)
}
