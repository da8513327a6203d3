//! Whether an object is ready, and why a pod is not. Pure.

use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;

/// How it is with an object.
#[derive(Debug, PartialEq, Eq)]
pub enum Readiness {
    /// Ready, and how.
    Ready(String),
    /// Not yet, and how far it is.
    Waits(String),
}

/// How it is with a workload, by its pods, or with something that an operator sees to, by its conditions.
pub fn readiness(object: &Value) -> Readiness {
    let status = &object["status"];
    let count = |field: &str| status[field].as_i64().unwrap_or(0);
    let wanted = object["spec"]["replicas"].as_i64().unwrap_or(1);
    let (ready, wanted, new) = match object["kind"].as_str() {
        Some("Deployment") => (count("readyReplicas"), wanted, count("updatedReplicas") >= wanted),
        Some("StatefulSet") => (count("readyReplicas"), wanted, true),
        Some("DaemonSet") => (count("numberReady"), count("desiredNumberScheduled"), true),
        _ => return by_conditions(object),
    };
    let text = format!("{ready} of {wanted} ready");
    match is_seen(object) && new && ready >= wanted {
        true => Readiness::Ready(text),
        false => Readiness::Waits(text),
    }
}

/// Whether its controller has seen its last version.
fn is_seen(object: &Value) -> bool {
    object["status"]["observedGeneration"].as_i64() >= object["metadata"]["generation"].as_i64()
}

fn by_conditions(object: &Value) -> Readiness {
    let conditions = object["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let condition = |kind: &str| conditions.iter().find(|condition| condition["type"] == kind);
    let is_true = |condition: &Value| condition["status"] == "True";
    let Some(main) = condition("Ready").or_else(|| condition("Available")) else {
        return Readiness::Waits("its operator has not said anything of it".to_owned());
    };
    let text = |condition: &Value, field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    // An operator that is still at work says so: it may be available long before it is complete.
    let busy = condition("Progressing").filter(|progressing| is_true(progressing));
    match busy {
        Some(busy) => Readiness::Waits(text(busy, "message")),
        None if is_true(main) && is_seen(object) => Readiness::Ready(text(main, "message")),
        None => Readiness::Waits(text(main, "message")),
    }
}

/// What keeps a pod from being ready, where that is more than time.
pub fn trouble(pod: &Pod) -> Option<String> {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let status = pod.status.as_ref()?;
    let containers = status.init_container_statuses.iter().chain(&status.container_statuses).flatten();
    let waiting = containers.into_iter().find_map(|container| {
        let waiting = container.state.as_ref()?.waiting.as_ref()?;
        let reason = waiting.reason.as_deref()?;
        let says = match waiting.message.as_deref() {
            Some(message) => format!("{reason}: {message}"),
            None => reason.to_owned(),
        };
        (!matches!(reason, "ContainerCreating" | "PodInitializing")).then_some(says)
    });
    let unscheduled = || {
        let conditions = status.conditions.iter().flatten();
        let mut refused = conditions.filter(|one| one.type_ == "PodScheduled" && one.status == "False");
        refused.next()?.message.clone()
    };
    waiting.or_else(unscheduled).map(|why| format!("pod {name}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_deployment_is_ready_when_its_last_version_is() {
        let deployment = |observed: i64, updated: i64, ready: i64| {
            json!({
                "kind": "Deployment", "metadata": {"generation": 2}, "spec": {"replicas": 2},
                "status": {"observedGeneration": observed, "updatedReplicas": updated, "readyReplicas": ready},
            })
        };
        let waits = |ready: i64| Readiness::Waits(format!("{ready} of 2 ready"));
        assert_eq!(readiness(&deployment(2, 2, 2)), Readiness::Ready("2 of 2 ready".to_owned()));
        assert_eq!(readiness(&deployment(1, 2, 2)), waits(2));
        assert_eq!(readiness(&deployment(2, 1, 2)), waits(2));
        assert_eq!(readiness(&deployment(2, 2, 1)), waits(1));
    }

    #[test]
    fn an_operator_says_what_is_ready() {
        let cluster = |available: &str, progressing: &str| {
            json!({
                "kind": "EtcdCluster", "metadata": {"generation": 1},
                "status": {"observedGeneration": 1, "conditions": [
                    {"type": "Available", "status": available, "message": "3 of 3 members"},
                    {"type": "Progressing", "status": progressing, "message": "adding a member"},
                ]},
            })
        };
        assert_eq!(readiness(&cluster("True", "False")), Readiness::Ready("3 of 3 members".to_owned()));
        assert_eq!(readiness(&cluster("True", "True")), Readiness::Waits("adding a member".to_owned()));
        assert_eq!(readiness(&cluster("False", "False")), Readiness::Waits("3 of 3 members".to_owned()));
        assert!(matches!(readiness(&json!({"kind": "EtcdCluster"})), Readiness::Waits(_)));
    }

    #[test]
    fn a_pod_tells_what_keeps_it() {
        let pod = |status: Value| {
            serde_json::from_value::<Pod>(json!({"metadata": {"name": "web"}, "status": status})).unwrap()
        };
        let waiting = |reason: &str| {
            let state = json!({"waiting": {"reason": reason, "message": "no such image"}});
            pod(json!({"containerStatuses": [
                {"name": "c", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state},
            ]}))
        };
        let expected = "pod web: ImagePullBackOff: no such image";
        assert_eq!(trouble(&waiting("ImagePullBackOff")).as_deref(), Some(expected));
        assert_eq!(trouble(&waiting("ContainerCreating")), None);
        let unscheduled = json!({"conditions": [
            {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"},
        ]});
        assert_eq!(trouble(&pod(unscheduled)).as_deref(), Some("pod web: 0/1 nodes are available"));
    }
}
