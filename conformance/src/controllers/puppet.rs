//! A kubelet without processes: what becomes of a pod is what its image is named.
//!
//! It does one thing at a time, to the oldest pod that has something to come, and only after nothing has happened for a
//! while: so the controllers see the same changes one after the other, however fast they are.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::mirror::{Entry, View};

/// What the puppet does to a pod.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// It is bound to this node.
    Bind(String),
    /// Its status becomes so, by a strategic merge.
    Status(Value),
    /// It has ended, with this last status, and is removed.
    Finish(Value),
}

/// What becomes of a pod, as its image `puppet/NAME:TAG` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// `ready`: it runs and is ready. The tag is free.
    Ready,
    /// `running`: it runs and never gets ready. The tag is free.
    Running,
    /// `pending`: it is bound to a node and no more.
    Pending,
    /// `unbound`: not even that.
    Unbound,
    /// `succeed`: it runs, then ends well.
    Succeed,
    /// `fail:CODE`: it runs, then ends with this code; 1 where there is no tag.
    Fail(i64),
    /// `stuck`: as `ready`, but it does not end when it is deleted.
    Stuck,
}

/// What images of pods that really run begin with: `puppet/fail:3` is `busybox:fail.3` there.
pub const ON_STRINGS: &str = "busybox:";

/// The node of pods that no scheduler has bound and that ask for none.
pub const NODE: &str = "puppet";

/// The next thing to do in a namespace: which pod, and what.
pub fn next(view: &View, bind: bool, now: Timestamp) -> Option<(&Entry, Act)> {
    let pods = || view.iter().filter(|entry| entry.kind.kind == "Pod");
    pods().filter(|pod| !pod.gone).find_map(|pod| {
        let before = pods().filter(|other| other.order < pod.order && image(other) == image(pod)).count();
        Some((pod, act(&pod.object, fate(&pod.object, before), pod.order, bind, now)?))
    })
}

fn image(pod: &Entry) -> &str {
    pod.object["spec"]["containers"][0]["image"].as_str().unwrap_or_default()
}

fn act(pod: &Value, fate: Fate, order: u64, bind: bool, now: Timestamp) -> Option<Act> {
    let phase = pod["status"]["phase"].as_str().unwrap_or("Pending");
    if pod["metadata"]["deletionTimestamp"].is_string() {
        let removed = pod["metadata"]["deletionGracePeriodSeconds"] == 0;
        let to_come = fate != Fate::Stuck && !removed;
        return to_come.then(|| Act::Finish(ended(pod, phase, now)));
    }
    if pod["spec"]["nodeName"].as_str().is_none_or(str::is_empty) {
        return (bind && fate != Fate::Unbound).then(|| Act::Bind(wanted_node(pod)));
    }
    match (phase, fate) {
        ("Pending", Fate::Pending | Fate::Unbound) => None,
        ("Pending", _) => Some(Act::Status(running(pod, fate != Fate::Running, order, now))),
        ("Running", Fate::Succeed) => Some(Act::Status(terminated(pod, 0, now))),
        ("Running", Fate::Fail(code)) => Some(Act::Status(terminated(pod, code, now))),
        _ => None,
    }
}

/// What becomes of a pod; `before`: how many there were of its image before it.
pub fn fate(pod: &Value, before: usize) -> Fate {
    let image = pod["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
    let named = image.strip_prefix("puppet/").or(image.strip_prefix(ON_STRINGS)).unwrap_or("ready");
    let (name, tag) = named.split_once([':', '.']).unwrap_or((named, ""));
    let number = tag.parse::<usize>().ok();
    match name {
        "running" => Fate::Running,
        "pending" => Fate::Pending,
        "unbound" => Fate::Unbound,
        "succeed" => Fate::Succeed,
        "stuck" => Fate::Stuck,
        "fail" => Fate::Fail(number.map_or(1, |code| i64::try_from(code).unwrap_or(1))),
        // The first of its image fail, the others end well.
        "fail-first" if before < number.unwrap_or(1) => Fate::Fail(1),
        "fail-first" => Fate::Succeed,
        // The pods of an index of an indexed Job fail.
        "fail-index" if index(pod) == Some(tag) => Fate::Fail(1),
        "fail-index" => Fate::Succeed,
        _ => Fate::Ready,
    }
}

fn index(pod: &Value) -> Option<&str> {
    pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"].as_str()
}

/// A pod of a DaemonSet asks for its node by name.
pub fn wanted_node(pod: &Value) -> String {
    let terms = &pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let fields = &terms["nodeSelectorTerms"][0]["matchFields"][0];
    match (fields["key"].as_str(), fields["values"][0].as_str()) {
        (Some("metadata.name"), Some(name)) => name.to_owned(),
        _ => NODE.to_owned(),
    }
}

/// The status of a pod that runs.
pub fn running(pod: &Value, ready: bool, order: u64, now: Timestamp) -> Value {
    let ip = format!("10.244.{}.{}", order / 250 % 250, order % 250 + 1);
    let state = json!({"running": {"startedAt": seconds(now)}});
    let not_ready = (!ready).then_some("ContainersNotReady");
    json!({"status": {
        "phase": "Running",
        "hostIP": "10.243.0.10",
        "hostIPs": [{"ip": "10.243.0.10"}],
        "podIP": ip,
        "podIPs": [{"ip": ip}],
        "startTime": seconds(now),
        "conditions": [
            condition("PodReadyToStartContainers", true, None, now),
            condition("Initialized", true, None, now),
            condition("Ready", ready, not_ready, now),
            condition("ContainersReady", ready, not_ready, now),
        ],
        "containerStatuses": containers(pod, &state, ready),
    }})
}

/// The status of a pod that has ended with a code.
pub fn terminated(pod: &Value, code: i64, now: Timestamp) -> Value {
    let reason = if code == 0 { "Completed" } else { "Error" };
    let state = json!({"terminated": {
        "exitCode": code, "reason": reason, "startedAt": seconds(now), "finishedAt": seconds(now),
    }});
    let why = Some(if code == 0 { "PodCompleted" } else { "PodFailed" });
    json!({"status": {
        "phase": if code == 0 { "Succeeded" } else { "Failed" },
        "conditions": [
            condition("PodReadyToStartContainers", false, None, now),
            condition("Initialized", true, why.filter(|_| code == 0), now),
            condition("Ready", false, why, now),
            condition("ContainersReady", false, why, now),
        ],
        "containerStatuses": containers(pod, &state, false),
    }})
}

/// The status that a readiness probe leaves when it begins to fail, or to succeed.
pub fn readiness(pod: &Value, ready: bool, now: Timestamp) -> Value {
    let mut statuses = pod["status"]["containerStatuses"].clone();
    for status in statuses.as_array_mut().into_iter().flatten() {
        status["ready"] = json!(ready);
    }
    let why = (!ready).then_some("ContainersNotReady");
    json!({"status": {
        "conditions": [condition("Ready", ready, why, now), condition("ContainersReady", ready, why, now)],
        "containerStatuses": statuses,
    }})
}

/// The last status of a pod that was deleted: what ran is killed.
fn ended(pod: &Value, phase: &str, now: Timestamp) -> Value {
    match phase {
        "Running" => terminated(pod, 137, now),
        _ => Value::Null,
    }
}

fn containers(pod: &Value, state: &Value, ready: bool) -> Vec<Value> {
    let specs = pod["spec"]["containers"].as_array().into_iter().flatten();
    let status = |container: &Value| {
        json!({
            "name": container["name"], "image": container["image"], "imageID": "puppet", "restartCount": 0,
            "ready": ready, "started": ready, "state": state,
        })
    };
    specs.map(status).collect()
}

fn condition(kind: &str, holds: bool, reason: Option<&str>, now: Timestamp) -> Value {
    let status = if holds { "True" } else { "False" };
    let mut condition = json!({
        "type": kind, "status": status, "lastProbeTime": null, "lastTransitionTime": seconds(now),
    });
    condition["reason"] = reason.map_or(Value::Null, |reason| json!(reason));
    condition
}

/// Times on the wire have whole seconds.
fn seconds(now: Timestamp) -> String {
    Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(image: &str, more: Value) -> Value {
        let mut pod = json!({"metadata": {}, "spec": {"containers": [{"name": "c", "image": image}]}});
        json_patch::merge(&mut pod, &more);
        pod
    }

    fn step(pod: &Value) -> Option<Act> {
        act(pod, fate(pod, 0), 1, true, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn an_image_says_what_becomes_of_a_pod() {
        let of = |image: &str, before| fate(&pod(image, json!({})), before);
        assert_eq!(of("puppet/ready:2", 0), Fate::Ready);
        assert_eq!(of("nginx", 0), Fate::Ready);
        assert_eq!(of("puppet/running", 0), Fate::Running);
        assert_eq!(of("puppet/fail:3", 0), Fate::Fail(3));
        assert_eq!(of("puppet/fail-first:2", 1), Fate::Fail(1));
        assert_eq!(of("puppet/fail-first:2", 2), Fate::Succeed);
        assert_eq!(of("busybox:fail-first.2", 1), Fate::Fail(1));
    }

    #[test]
    fn a_pod_is_bound_then_runs_then_stays() {
        let bound = json!({"spec": {"nodeName": "n"}});
        assert_eq!(step(&pod("puppet/ready", json!({}))), Some(Act::Bind(NODE.to_owned())));
        assert!(matches!(step(&pod("puppet/ready", bound)), Some(Act::Status(_))));
        let runs = json!({"spec": {"nodeName": "n"}, "status": {"phase": "Running"}});
        assert_eq!(step(&pod("puppet/ready", runs.clone())), None);
        assert!(matches!(step(&pod("puppet/succeed", runs)), Some(Act::Status(_))));
    }

    #[test]
    fn a_deleted_pod_ends_once() {
        let deleted = |grace: u64| {
            json!({"metadata": {"deletionTimestamp": "t", "deletionGracePeriodSeconds": grace},
                   "status": {"phase": "Running"}})
        };
        assert!(matches!(step(&pod("puppet/ready", deleted(30))), Some(Act::Finish(_))));
        assert_eq!(step(&pod("puppet/ready", deleted(0))), None);
        assert_eq!(step(&pod("puppet/stuck", deleted(30))), None);
    }
}
