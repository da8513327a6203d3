//! Between the versions of one resource: the two views of events, the two versions of autoscalers, and those of
//! [custom kinds](super::conversion).

mod autoscaler;

use serde_json::{Value, json};

use super::conversion;
use super::registry::{Flavor, Resource};
use crate::{codec, schema};

/// A stored tree in the resource's version.
pub(super) fn from_storage(resource: &Resource, tree: Value) -> Value {
    if let Flavor::Custom { definition, known, .. } = &resource.flavor {
        return conversion::read(resource, definition, known, tree);
    }
    let own = resource.api_version();
    let mut tree = tree;
    if tree["apiVersion"] != own.as_str() {
        tree = match (&*resource.group, &*resource.plural) {
            ("events.k8s.io", "events") => event(tree, EVENT, "io.k8s.api.events.v1.Event"),
            ("autoscaling", "horizontalpodautoscalers") => {
                written_as(autoscaler::to_v1(tree), "io.k8s.api.autoscaling.v1.HorizontalPodAutoscaler")
            }
            _ => tree,
        };
        tree["apiVersion"] = json!(own);
    }
    tree
}

/// A tree of one version in another one of the same resource.
pub(super) fn between(from: &Resource, to: &Resource, tree: Value) -> Value {
    from_storage(to, to_storage(from, tree))
}

/// A tree in the version in which it is stored.
pub(super) fn to_storage(resource: &Resource, tree: Value) -> Value {
    if resource.api_version() == resource.storage_api_version {
        return tree;
    }
    if let Flavor::Custom { definition, known, .. } = &resource.flavor {
        return conversion::write(resource, definition, known, tree);
    }
    let mut tree = match (&*resource.group, &*resource.plural) {
        ("events.k8s.io", "events") => {
            event(tree, &EVENT.map(|(core, events)| (events, core)), "io.k8s.api.core.v1.Event")
        }
        ("autoscaling", "horizontalpodautoscalers") => autoscaler::to_v2(tree),
        _ => tree,
    };
    tree["apiVersion"] = json!(resource.storage_api_version);
    tree
}

/// `v1` and `events.k8s.io/v1` say the same of an event in other words.
const EVENT: &[(&str, &str); 7] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// An event in its other words, written as its other type is: the two differ in what they leave out when it is empty,
/// and in the order of their fields.
fn event(tree: Value, names: &[(&str, &str)], name: &str) -> Value {
    written_as(rename(tree, names), name)
}

/// A tree as a type is written.
fn written_as(tree: Value, name: &str) -> Value {
    let types = schema::builtin();
    let id = types.id(name).expect("in the table");
    codec::canonical(types, id, tree.clone(), &mut Vec::new()).unwrap_or(tree)
}

fn rename(tree: Value, names: &[(&str, &str)]) -> Value {
    let Value::Object(map) = tree else { return tree };
    let new_name =
        |key: String| names.iter().find(|(old, _)| *old == key).map_or(key, |(_, new)| (*new).to_owned());
    Value::Object(map.into_iter().map(|(key, value)| (new_name(key), value)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::registry::Registry;

    #[test]
    fn an_event_reads_the_same_in_both_views() {
        let registry = Registry::new();
        let events = registry.find("events.k8s.io", "v1", "events").unwrap();
        let stored = json!({
            "kind": "Event", "apiVersion": "v1", "metadata": {"name": "e"}, "involvedObject": {"name": "p"},
            "message": "m", "reportingComponent": "", "reportingInstance": "",
        });
        let seen = from_storage(&events, stored.clone());
        assert_eq!(seen["apiVersion"], "events.k8s.io/v1");
        assert_eq!((&seen["note"], &seen["regarding"]["name"]), (&json!("m"), &json!("p")));
        assert_eq!(seen.get("reportingController"), None, "this view leaves empty ones out");
        let back = to_storage(&events, seen);
        for (field, value) in stored.as_object().unwrap().iter().filter(|(field, _)| *field != "metadata") {
            assert_eq!(&back[field], value, "{field}");
        }
    }

    #[test]
    fn an_autoscaler_keeps_its_cpu_target() {
        let registry = Registry::new();
        let v1 = registry.find("autoscaling", "v1", "horizontalpodautoscalers").unwrap();
        let tree = json!({
            "kind": "HorizontalPodAutoscaler", "apiVersion": "autoscaling/v1", "metadata": {"name": "a"},
            "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "d"}, "maxReplicas": 3,
                "targetCPUUtilizationPercentage": 80},
            "status": {"currentReplicas": 0, "desiredReplicas": 0},
        });
        let mut stored = to_storage(&v1, tree.clone());
        assert_eq!(stored["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 80);
        // The other version leaves it out where it is zero.
        stored["status"].as_object_mut().unwrap().remove("currentReplicas");
        assert_eq!(from_storage(&v1, stored), tree);
    }
}
