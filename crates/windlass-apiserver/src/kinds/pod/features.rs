//! Fields of pods that belong to features which are off: they are dropped, unless they were there before.

use serde_json::Value;

use crate::kinds::tree::{each, existing, get, list, remove};

/// Where an object of a kind holds the spec of a pod.
fn place(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "Pod" => "/spec",
        "PodTemplate" => "/template/spec",
        "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" | "ReplicationController" | "Job" => {
            "/spec/template/spec"
        }
        "CronJob" => "/spec/jobTemplate/spec/template/spec",
        _ => return None,
    })
}

/// The spec of the pods of an object.
pub(crate) fn spec_of<'a>(kind: &str, object: &'a Value) -> Option<&'a Value> {
    object.pointer(place(kind)?)
}

/// Drops what no feature that is on knows.
pub(crate) fn forget(kind: &str, object: &mut Value, old: Option<&Value>) {
    let Some(place) = place(kind) else { return };
    let old = old.and_then(|old| spec_of(kind, old));
    let Some(spec) = object.pointer_mut(place) else { return };
    for field in ["clusterTrustBundle", "podCertificate"] {
        if old.is_some_and(|old| projects(old, field)) {
            continue;
        }
        each(spec, "volumes", |volume| {
            if let Some(projected) = existing(volume, "projected") {
                each(projected, "sources", |source| {
                    remove(source, field);
                });
            }
        });
    }
    if !old.is_some_and(stops_by_signal) {
        for field in CONTAINERS {
            each(spec, field, |container| {
                if let Some(lifecycle) = existing(container, "lifecycle") {
                    remove(lifecycle, "stopSignal");
                }
            });
        }
    }
    if old.is_none_or(|old| get(old, "schedulingGroup").is_none()) {
        remove(spec, "schedulingGroup");
    }
}

const CONTAINERS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

fn projects(spec: &Value, field: &str) -> bool {
    list(spec, "volumes")
        .iter()
        .any(|volume| list(&volume["projected"], "sources").iter().any(|source| get(source, field).is_some()))
}

fn stops_by_signal(spec: &Value) -> bool {
    let mut containers = CONTAINERS.iter().flat_map(|field| list(spec, field));
    containers.any(|container| get(&container["lifecycle"], "stopSignal").is_some())
}
