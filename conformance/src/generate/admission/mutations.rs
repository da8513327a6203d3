//! MutatingAdmissionPolicies: objects that are changed on their way in, and policies that are wrong.

use serde_json::{Value, json};

use super::{API, CONFIG_MAPS, here};
use crate::rng::Rng;
use crate::sequence::{Step, Until};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/{ns}/deployments";

/// Objects to be laid over ConfigMaps.
const LAID: [&str; 15] = [
    "Object{metadata: Object.metadata{labels: {'a': 'b'}}}",
    "Object{metadata: Object.metadata{labels: {'size': string(size(object.metadata.name))}}}",
    "Object{metadata: Object.metadata{annotations: {'who': request.operation}}}",
    "Object{metadata: Object.metadata{finalizers: ['example.com/x']}}",
    "Object{metadata: Object.metadata{labels: variables.labels}}",
    "Object{metadata: Object.metadata{labels: {'c': string(int(object.metadata.labels['c']) + 1)}}}",
    "Object{metadata: Object.metadata{labels: {'c': has(object.metadata.labels) && has(object.metadata.labels.c) ? string(int(object.metadata.labels.c) + 1) : '1'}}}",
    "Object{data: {'made': 'here'}}",
    "Object{data: object.data}",
    "Object{data: {'n': 5}}",
    "Object{nothing: 1}",
    "Object{}",
    "Object{metadata: Object.spec{labels: {'a': 'b'}}}",
    "Object{?metadata: has(object.data) ? optional.of(Object.metadata{labels: {'x': 'y'}}) : optional.none()}",
    "object.nothing == 1 ? Object{} : Object{data: {'x': 'y'}}",
];

/// Patches of ConfigMaps.
const PATCHES: [&str; 17] = [
    "[JSONPatch{op: 'add', path: '/metadata/labels', value: {'p': 'q'}}]",
    "[JSONPatch{op: 'test', path: '/data/k', value: 'v'}, JSONPatch{op: 'replace', path: '/data/k', value: 'changed'}]",
    "[JSONPatch{op: 'add', path: '/metadata/annotations', value: {}}, JSONPatch{op: 'add', path: '/metadata/annotations/' + jsonpatch.escapeKey('a/b'), value: 'x'}]",
    "[JSONPatch{op: 'remove', path: '/data/k'}]",
    "[JSONPatch{op: 'remove', path: '/nothing'}]",
    "[JSONPatch{op: 'copy', from: '/data/k', path: '/data/k2'}]",
    "[JSONPatch{op: 'move', from: '/data/k', path: '/data/moved'}]",
    "[JSONPatch{op: 'add', path: '/nosuch', value: 5}]",
    "[JSONPatch{op: 'add', path: '/data', value: {'k': 5}}]",
    "[JSONPatch{op: 'add', path: '/metadata/annotations', value: Object.metadata.annotations{a: 'b'}}]",
    "object.data.map(k, JSONPatch{op: 'replace', path: '/data/' + k, value: object.data[k] + '!'})",
    "has(object.data) ? [JSONPatch{op: 'add', path: '/data/z', value: 'z'}] : [JSONPatch{op: 'add', path: '/data', value: {}}]",
    "[JSONPatch{op: 'jump', path: '/data'}]",
    "[JSONPatch{op: 'remove', path: '/kind'}, JSONPatch{op: 'remove', path: '/apiVersion'}]",
    "[JSONPatch{op: 'replace', path: '/kind', value: 'Other'}]",
    "[JSONPatch{op: 'replace', path: '/kind', value: 'Secret'}]",
    "[JSONPatch{op: 'replace', path: '/apiVersion', value: 'apps/v1'}]",
];

/// Objects to be laid over Deployments.
const LAID_OVER_DEPLOYMENTS: [&str; 5] = [
    "Object{spec: Object.spec{replicas: object.spec.replicas + 2}}",
    "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: [Object.spec.template.spec.containers{name: 'side', image: 'x'}]}}}}",
    "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: object.spec.template.spec.containers.map(c, Object.spec.template.spec.containers{name: c.name, imagePullPolicy: 'Never'})}}}}",
    "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: [Object.spec.template.spec.containers{name: 'c', args: ['x']}]}}}}",
    "Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {'a': 'c'}}}}",
];

pub(super) fn policy(name: &str, spec: Value) -> Step {
    let body = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": format!("{{id}}-{name}")}, "spec": spec,
    });
    Step::with("POST", format!("{API}/mutatingadmissionpolicies"), body)
}

pub(super) fn binding(name: &str, mut spec: Value) -> Step {
    spec["policyName"] = json!(format!("{{id}}-{name}"));
    let body = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": format!("{{id}}-{name}")}, "spec": spec,
    });
    Step::with("POST", format!("{API}/mutatingadmissionpolicybindings"), body)
}

pub(super) fn laid(source: &str) -> Value {
    json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": source}})
}

fn constraints(group: &str, resource: &str) -> Value {
    let rule = json!({
        "apiGroups": [group], "apiVersions": ["v1"], "resources": [resource], "operations": ["CREATE", "UPDATE"],
    });
    json!({"namespaceSelector": here(), "resourceRules": [rule]})
}

/// Waits until the policies so far are known.
pub(super) fn known(steps: &mut Vec<Step>) {
    let mut matched = constraints("", "configmaps");
    matched["resourceRules"][0]["resourceNames"] = json!(["mark"]);
    let spec = json!({
        "matchConstraints": matched, "reinvocationPolicy": "Never",
        "mutations": [laid("Object{metadata: Object.metadata{labels: {'mark': 'yes'}}}")],
    });
    steps.push(policy("mark", spec).quiet());
    steps.push(binding("mark", json!({})).quiet());
    let mark = Step::with("POST", format!("{CONFIG_MAPS}?dryRun=All"), json!({"metadata": {"name": "mark"}}));
    let until = Until { status: 201, at: "/metadata/labels/mark".into(), is: json!("yes") };
    steps.push(Step { until: Some(until), ..mark.quiet() });
}

pub(super) fn forgotten(steps: &mut Vec<Step>, names: &[&str]) {
    for name in names.iter().chain(&["mark"]) {
        for kind in ["mutatingadmissionpolicies", "mutatingadmissionpolicybindings"] {
            steps.push(Step::new("DELETE", format!("{API}/{kind}/{{id}}-{name}")).quiet());
        }
    }
}

fn writes(rng: &mut Rng) -> Vec<Step> {
    let mut steps = Vec::new();
    for _ in 0..3 {
        let name = rng.pick(&["a", "b"]);
        let mut body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        if rng.chance(70) {
            body["data"] = json!({"k": "v"});
        }
        if rng.chance(30) {
            body["metadata"]["labels"] = json!({"c": "7"});
        }
        let one = format!("{CONFIG_MAPS}/{name}");
        steps.push(match rng.below(6) {
            0..=2 => Step::with("POST", format!("{CONFIG_MAPS}{}", rng.pick(&["", "?dryRun=All"])), body),
            3 => Step::with("PUT", one, body),
            4 => Step::patch("merge", one, json!({"data": {"k": rng.pick(&["v", "w"])}})),
            _ => Step::patch("apply", format!("{one}?fieldManager=me"), body),
        });
    }
    steps
}

fn mutation(rng: &mut Rng) -> Value {
    match rng.chance(55) {
        true => laid(rng.pick(&LAID)),
        false => json!({"patchType": "JSONPatch", "jsonPatch": {"expression": rng.pick(&PATCHES)}}),
    }
}

/// A policy changes objects. Of several nobody knows which comes first.
pub fn changed(rng: &mut Rng) -> Vec<Step> {
    let over_deployments = rng.chance(25);
    let mut spec = json!({"reinvocationPolicy": rng.pick(&["Never", "IfNeeded"])});
    if over_deployments {
        spec["matchConstraints"] = constraints("apps", "deployments");
        spec["mutations"] = json!([laid(rng.pick(&LAID_OVER_DEPLOYMENTS))]);
    } else {
        spec["matchConstraints"] = constraints("", "configmaps");
        spec["mutations"] = (0..=rng.below(2)).map(|_| mutation(rng)).collect();
        spec["variables"] = json!([{"name": "labels", "expression": "{'v': object.metadata.name}"}]);
    }
    if rng.chance(25) {
        spec["failurePolicy"] = json!("Ignore");
    }
    if rng.chance(30) {
        let condition = rng.pick(&["object.metadata.name == 'a'", "has(object.data)", "object.nothing == 1"]);
        spec["matchConditions"] = json!([{"name": "c", "expression": condition}]);
    }
    let mut steps = vec![policy("p", spec), binding("p", json!({}))];
    known(&mut steps);
    if over_deployments {
        let containers = json!([{"name": "c", "image": "i", "args": ["y"]}]);
        let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": containers}});
        let body = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template},
        });
        steps.push(Step::with("POST", DEPLOYMENTS, body));
        steps.push(Step::patch("merge", format!("{DEPLOYMENTS}/a"), json!({"spec": {"replicas": 3}})));
    } else {
        steps.extend(writes(rng));
    }
    forgotten(&mut steps, &["p"]);
    steps
}

/// Policies that are wrong. Nothing is stored.
pub fn refused(rng: &mut Rng) -> Vec<Step> {
    const WRONG: [&str; 12] = [
        r#"{"patchType":"ApplyConfiguration"}"#,
        r#"{"applyConfiguration":{"expression":"Object{}"}}"#,
        r#"{"patchType":"Merge","jsonPatch":{"expression":"[]"}}"#,
        r#"{"patchType":"JSONPatch","jsonPatch":{"expression":"  "}}"#,
        r#"{"patchType":"JSONPatch","jsonPatch":{"expression":"[JSONPatch{op: 1}]"}}"#,
        r#"{"patchType":"JSONPatch","jsonPatch":{"expression":"Object{}"}}"#,
        r#"{"patchType":"JSONPatch","applyConfiguration":{"expression":"Object{}"}}"#,
        r#"{"patchType":"ApplyConfiguration","applyConfiguration":{"expression":"Invalid{}"}}"#,
        r#"{"patchType":"ApplyConfiguration","applyConfiguration":{"expression":"Object.spec{}"}}"#,
        r#"{"patchType":"ApplyConfiguration","applyConfiguration":{"expression":"{'a': 'b'}"}}"#,
        r#"{"patchType":"ApplyConfiguration","applyConfiguration":{"expression":"Object{a: jsonpatch.escapeKey(1)}"}}"#,
        r#"{"patchType":"ApplyConfiguration","applyConfiguration":{"expression":"variables.x"},"jsonPatch":{"expression":"[]"}}"#,
    ];
    let mut steps = Vec::new();
    for _ in 0..4 {
        let wrong: Value = serde_json::from_str(rng.pick(&WRONG)).expect("JSON");
        let mut spec = json!({
            "matchConstraints": constraints("", "configmaps"), "mutations": [wrong], "reinvocationPolicy": "Never",
        });
        match rng.below(8) {
            0 => spec["matchConstraints"]["resourceRules"][0]["operations"] = json!(["DELETE"]),
            1 => spec["reinvocationPolicy"] = json!("Always"),
            2 => spec["mutations"] = json!([]),
            3 => spec["matchConditions"] = json!([{"name": "x", "expression": "Object{} == Object{}"}]),
            4 => drop(spec.as_object_mut().and_then(|spec| spec.remove("reinvocationPolicy"))),
            _ => {}
        }
        let mut step = policy("p", spec);
        step.path.push_str("?dryRun=All");
        steps.push(step);
    }
    steps
}
