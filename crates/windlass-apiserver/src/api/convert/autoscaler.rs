//! The two versions of autoscalers. Version 1 knows one metric, the utilization of the CPU; what else there is stands in
//! annotations there, so that whoever reads and writes it in that version loses nothing.

use serde_json::{Map, Value, json};

use crate::json::{at, object_entry};
use crate::kinds::autoscaling::{ANNOTATIONS, forget};

const METRICS: &str = ANNOTATIONS[0];
const BEHAVIOR: &str = ANNOTATIONS[1];
const CURRENT: &str = ANNOTATIONS[2];
const CONDITIONS: &str = ANNOTATIONS[3];

/// A kind of metric: its type, its field, and what its parts are called in the annotation, with where they are. Those that
/// are told even when they are missing are told as zero.
type Shape = (&'static str, &'static str, &'static [(&'static str, &'static [&'static str], bool)]);

/// Metrics that are wanted.
const WANTED: [Shape; 5] = [
    (
        "Resource",
        "resource",
        &[
            ("name", &["name"], false),
            ("targetAverageUtilization", &["target", "averageUtilization"], false),
            ("targetAverageValue", &["target", "averageValue"], false),
        ],
    ),
    (
        "ContainerResource",
        "containerResource",
        &[
            ("name", &["name"], false),
            ("targetAverageUtilization", &["target", "averageUtilization"], false),
            ("targetAverageValue", &["target", "averageValue"], false),
            ("container", &["container"], false),
        ],
    ),
    (
        "Pods",
        "pods",
        &[
            ("metricName", &["metric", "name"], false),
            ("targetAverageValue", &["target", "averageValue"], true),
            ("selector", &["metric", "selector"], false),
        ],
    ),
    (
        "Object",
        "object",
        &[
            ("target", &["describedObject"], false),
            ("metricName", &["metric", "name"], false),
            ("targetValue", &["target", "value"], true),
            ("selector", &["metric", "selector"], false),
            ("averageValue", &["target", "averageValue"], false),
        ],
    ),
    (
        "External",
        "external",
        &[
            ("metricName", &["metric", "name"], false),
            ("metricSelector", &["metric", "selector"], false),
            ("targetValue", &["target", "value"], false),
            ("targetAverageValue", &["target", "averageValue"], false),
        ],
    ),
];

/// Metrics that were found.
const FOUND: [Shape; 5] = [
    (
        "Resource",
        "resource",
        &[
            ("name", &["name"], false),
            ("currentAverageUtilization", &["current", "averageUtilization"], false),
            ("currentAverageValue", &["current", "averageValue"], true),
        ],
    ),
    (
        "ContainerResource",
        "containerResource",
        &[
            ("name", &["name"], false),
            ("currentAverageUtilization", &["current", "averageUtilization"], false),
            ("currentAverageValue", &["current", "averageValue"], true),
            ("container", &["container"], false),
        ],
    ),
    (
        "Pods",
        "pods",
        &[
            ("metricName", &["metric", "name"], false),
            ("currentAverageValue", &["current", "averageValue"], true),
            ("selector", &["metric", "selector"], false),
        ],
    ),
    (
        "Object",
        "object",
        &[
            ("target", &["describedObject"], false),
            ("metricName", &["metric", "name"], false),
            ("currentValue", &["current", "value"], true),
            ("selector", &["metric", "selector"], false),
            ("averageValue", &["current", "averageValue"], false),
        ],
    ),
    (
        "External",
        "external",
        &[
            ("metricName", &["metric", "name"], false),
            ("metricSelector", &["metric", "selector"], false),
            ("currentValue", &["current", "value"], true),
            ("currentAverageValue", &["current", "averageValue"], false),
        ],
    ),
];

/// Version 1 of what is stored as version 2.
pub(super) fn to_v1(mut tree: Value) -> Value {
    let mut notes = Vec::new();
    if let Some(spec) = tree.get_mut("spec").and_then(Value::as_object_mut) {
        let metrics = list(spec.remove("metrics"));
        let cpu = metrics.iter().find_map(utilization).cloned();
        let others: Vec<Value> =
            metrics.iter().filter(|one| utilization(one).is_none()).map(|one| noted(&WANTED, one)).collect();
        if let Some(cpu) = cpu {
            spec.insert("targetCPUUtilizationPercentage".into(), cpu);
        }
        if !others.is_empty() {
            notes.push((METRICS, json!(others)));
        }
        if let Some(behavior) = spec.remove("behavior").filter(Value::is_object) {
            notes.push((BEHAVIOR, capital(&behavior)));
        }
    }
    if let Some(status) = tree.get_mut("status").and_then(Value::as_object_mut) {
        let current = list(status.remove("currentMetrics"));
        let is_cpu = |one: &&Value| at(one, &["resource", "name"]).is_some_and(|name| name == "cpu");
        let cpu = current.iter().find(is_cpu);
        if let Some(cpu) = cpu.and_then(|one| at(one, &["resource", "current", "averageUtilization"])) {
            status.insert("currentCPUUtilizationPercentage".into(), cpu.clone());
        }
        if !current.is_empty() {
            let current: Vec<Value> = current.iter().map(|one| noted(&FOUND, one)).collect();
            notes.push((CURRENT, json!(current)));
        }
        let conditions = list(status.remove("conditions"));
        if !conditions.is_empty() {
            let keys = ["type", "status", "lastTransitionTime", "reason", "message"];
            let ordered = |one: &Value| keyed(&keys, |key| one.get(key).cloned());
            notes.push((CONDITIONS, conditions.iter().map(ordered).collect()));
        }
    }
    if !notes.is_empty() {
        let root = tree.as_object_mut().expect("objects are JSON objects");
        let annotations = object_entry(object_entry(root, "metadata"), "annotations");
        annotations.extend(notes.into_iter().map(|(key, value)| (key.to_owned(), json!(value.to_string()))));
        annotations.sort_keys();
    }
    tree
}

/// Version 2 of what was written as version 1. Annotations that cannot be read count for nothing.
pub(super) fn to_v2(mut tree: Value) -> Value {
    let note = |key: &str| -> Option<Value> {
        serde_json::from_str(at(&tree, &["metadata", "annotations", key])?.as_str()?).ok()
    };
    let [metrics, behavior, current, conditions] = ANNOTATIONS.map(note);
    forget(&mut tree);
    if let Some(spec) = tree.get_mut("spec").and_then(Value::as_object_mut) {
        let mut all: Vec<Value> = list(metrics).iter().map(|one| read(&WANTED, one)).collect();
        if let Some(target) = spec.remove("targetCPUUtilizationPercentage") {
            let target = json!({"type": "Utilization", "averageUtilization": target});
            all.push(json!({"type": "Resource", "resource": {"name": "cpu", "target": target}}));
        }
        if !all.is_empty() {
            spec.insert("metrics".into(), json!(all));
        }
        if let Some(behavior) = behavior.filter(Value::is_object) {
            spec.insert("behavior".into(), small(&behavior));
        }
    }
    if let Some(status) = tree.get_mut("status").and_then(Value::as_object_mut) {
        let cpu = status.remove("currentCPUUtilizationPercentage").map(|current| {
            let current = json!({"averageUtilization": current, "averageValue": "0"});
            json!([{"type": "Resource", "resource": {"name": "cpu", "current": current}}])
        });
        // What is noted says more.
        let noted = current.map(|current| list(Some(current)).iter().map(|one| read(&FOUND, one)).collect());
        if let Some(current) = noted.or(cpu) {
            status.insert("currentMetrics".into(), current);
        }
        if let Some(conditions) = conditions.filter(Value::is_array) {
            status.insert("conditions".into(), conditions);
        }
    }
    tree
}

fn list(value: Option<Value>) -> Vec<Value> {
    match value {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    }
}

/// The utilization that a metric wants of the CPU, which is what version 1 knows.
fn utilization(metric: &Value) -> Option<&Value> {
    at(metric, &["resource", "name"]).filter(|name| *name == "cpu")?;
    at(metric, &["resource", "target", "averageUtilization"])
}

fn keyed(keys: &[&str], value: impl Fn(&str) -> Option<Value>) -> Value {
    keys.iter().filter_map(|key| Some(((*key).to_owned(), value(key)?))).collect::<Map<_, _>>().into()
}

/// A metric as an annotation has it.
fn noted(shapes: &[Shape], metric: &Value) -> Value {
    let mut out = Map::new();
    out.insert("type".into(), metric["type"].clone());
    if let Some((_, field, parts)) = shapes.iter().find(|(kind, ..)| metric["type"] == *kind) {
        let own = &metric[*field];
        let part = |(name, path, zero): &(&str, &[&str], bool)| {
            let value = at(own, path).filter(|value| !value.is_null()).cloned();
            Some(((*name).to_owned(), value.or_else(|| zero.then(|| json!("0")))?))
        };
        out.insert((*field).into(), parts.iter().filter_map(part).collect::<Map<_, _>>().into());
    }
    out.into()
}

/// A metric from an annotation.
fn read(shapes: &[Shape], noted: &Value) -> Value {
    let mut out = json!({"type": noted["type"]});
    let Some((_, field, parts)) = shapes.iter().find(|(kind, ..)| noted["type"] == *kind) else { return out };
    let own = &noted[*field];
    let average = ["averageValue", "targetAverageValue", "currentAverageValue"];
    let has_average = average.iter().any(|key| own.get(*key).is_some());
    for (name, path, zero) in *parts {
        let Some(value) = own.get(*name) else { continue };
        // Zero stands for a value that is not there.
        if *zero && path.last() == Some(&"value") && has_average && value == "0" {
            continue;
        }
        let place = path.iter().fold(&mut out[*field], |place, key| &mut place[*key]);
        *place = value.clone();
    }
    if let Some(target) = out[*field].get_mut("target").and_then(Value::as_object_mut) {
        let kind = match () {
            () if target.contains_key("averageUtilization") => "Utilization",
            () if target.contains_key("averageValue") => "AverageValue",
            () => "Value",
        };
        target.insert("type".into(), json!(kind));
    }
    out
}

/// Behaviour is noted by the names that its fields have in Go.
const DIRECTIONS: [(&str, &str); 2] = [("ScaleUp", "scaleUp"), ("ScaleDown", "scaleDown")];
const RULES: [(&str, &str); 4] = [
    ("StabilizationWindowSeconds", "stabilizationWindowSeconds"),
    ("SelectPolicy", "selectPolicy"),
    ("Policies", "policies"),
    ("Tolerance", "tolerance"),
];
const POLICY: [(&str, &str); 3] = [("Type", "type"), ("Value", "value"), ("PeriodSeconds", "periodSeconds")];

fn capital(behavior: &Value) -> Value {
    let fields = |names: &[(&str, &str)], of: &Value| {
        let field =
            |(go, json): &(&str, &str)| ((*go).to_owned(), of.get(*json).cloned().unwrap_or_default());
        names.iter().map(field).collect::<Map<_, _>>()
    };
    let mut out = fields(&DIRECTIONS, behavior);
    for (go, _) in DIRECTIONS {
        if out[go].is_object() {
            let mut rules = fields(&RULES, &out[go]);
            if let Some(policies) = rules["Policies"].as_array_mut() {
                policies.iter_mut().for_each(|one| *one = fields(&POLICY, one).into());
            }
            out[go] = rules.into();
        }
    }
    out.into()
}

fn small(behavior: &Value) -> Value {
    let fields = |names: &[(&str, &str)], of: &Value| {
        let field = |(go, json): &(&str, &str)| {
            Some(((*json).to_owned(), of.get(*go).filter(|value| !value.is_null())?.clone()))
        };
        names.iter().filter_map(field).collect::<Map<_, _>>()
    };
    let mut out = fields(&DIRECTIONS, behavior);
    for rules in out.values_mut() {
        let mut own = fields(&RULES, rules);
        if let Some(policies) = own.get_mut("policies").and_then(Value::as_array_mut) {
            policies.iter_mut().for_each(|one| *one = fields(&POLICY, one).into());
        }
        *rules = own.into();
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The annotations are those of kube-apiserver 1.36, which was given the same.
    #[test]
    fn what_version_1_does_not_know_is_noted_and_comes_back() {
        let metrics = json!([
            {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}},
            {"type": "Object", "object": {
                "describedObject": {"kind": "Service", "name": "s", "apiVersion": "v1"},
                "metric": {"name": "om", "selector": {"matchLabels": {"x": "y"}}},
                "target": {"type": "AverageValue", "averageValue": "9"},
            }},
            {"type": "External", "external": {"metric": {"name": "em"}, "target": {"type": "Value", "value": "3"}}},
        ]);
        let up = json!({"stabilizationWindowSeconds": 5, "selectPolicy": "Min", "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}]});
        let condition = json!({"type": "AbleToScale", "status": "True", "lastTransitionTime": "2024-01-01T00:00:00Z", "reason": "r", "message": "m"});
        let current = json!([{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 40, "averageValue": "3"}}}]);
        let tree = json!({
            "apiVersion": "autoscaling/v2", "metadata": {"name": "h", "annotations": {"own": "x"}},
            "spec": {"maxReplicas": 3, "metrics": metrics, "behavior": {"scaleUp": up}},
            "status": {"currentMetrics": current, "conditions": [condition]},
        });
        let seen = to_v1(tree.clone());
        assert_eq!(seen["spec"], json!({"maxReplicas": 3, "targetCPUUtilizationPercentage": 50}));
        assert_eq!(seen["status"], json!({"currentCPUUtilizationPercentage": 40}));
        assert_eq!(
            seen["metadata"]["annotations"],
            json!({
                "autoscaling.alpha.kubernetes.io/behavior": r#"{"ScaleUp":{"StabilizationWindowSeconds":5,"SelectPolicy":"Min","Policies":[{"Type":"Pods","Value":4,"PeriodSeconds":15}],"Tolerance":null},"ScaleDown":null}"#,
                "autoscaling.alpha.kubernetes.io/conditions": r#"[{"type":"AbleToScale","status":"True","lastTransitionTime":"2024-01-01T00:00:00Z","reason":"r","message":"m"}]"#,
                "autoscaling.alpha.kubernetes.io/current-metrics": r#"[{"type":"Resource","resource":{"name":"cpu","currentAverageUtilization":40,"currentAverageValue":"3"}}]"#,
                "autoscaling.alpha.kubernetes.io/metrics": r#"[{"type":"Object","object":{"target":{"kind":"Service","name":"s","apiVersion":"v1"},"metricName":"om","targetValue":"0","selector":{"matchLabels":{"x":"y"}},"averageValue":"9"}},{"type":"External","external":{"metricName":"em","targetValue":"3"}}]"#,
                "own": "x",
            })
        );
        let mut back = to_v2(seen);
        // The metric of the CPU comes last.
        back["spec"]["metrics"].as_array_mut().unwrap().rotate_right(1);
        for field in ["metadata", "spec", "status"] {
            assert_eq!(back[field], tree[field], "{field}");
        }
    }

    #[test]
    fn notes_that_cannot_be_read_count_for_nothing() {
        let annotations: Map<String, Value> =
            ANNOTATIONS.iter().map(|key| ((*key).to_owned(), json!("{nonsense"))).collect();
        let tree =
            json!({"metadata": {"annotations": annotations}, "spec": {"maxReplicas": 1}, "status": {}});
        assert_eq!(to_v2(tree), json!({"metadata": {}, "spec": {"maxReplicas": 1}, "status": {}}));
    }
}
