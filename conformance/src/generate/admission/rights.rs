//! Policies and bindings with parameters, written by somebody who may read some of these.

use serde_json::{Value, json};

use super::super::access::{self, GROUP, everywhere, here, settled};
use super::{API, mutations};
use crate::rng::Rng;
use crate::sequence::Step;

/// Whoever writes policies. He may do that, and what is drawn.
fn writer(rng: &mut Rng) -> Vec<Step> {
    let mut rules =
        vec![json!({"verbs": ["*"], "apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"]})];
    for _ in 0..rng.below(3) {
        let verbs: [&[&str]; 4] = [&["get"], &["list"], &["get", "list"], &["*"]];
        let groups: [&[&str]; 4] = [&[""], &[""], &["*"], &["example.com"]];
        let resources: [&[&str]; 4] = [&["configmaps"], &["configmaps", "namespaces"], &["*"], &["secrets"]];
        let mut rule = json!({
            "verbs": rng.pick(&verbs), "apiGroups": rng.pick(&groups), "resources": rng.pick(&resources),
        });
        if rng.chance(20) {
            rule["resourceNames"] = json!(rng.pick(&[&["one"][..], &["*"]]));
        }
        rules.push(rule);
    }
    let eve = json!([{"kind": "User", "apiGroup": GROUP, "name": "{id}-eve"}]);
    let all = access::binding("{id}-eve", "ClusterRole", "{id}-eve", eve.clone());
    let mut steps = vec![
        Step::with("POST", everywhere("clusterroles"), access::role("{id}-eve", rules.into())).quiet(),
        Step::with("POST", everywhere("clusterrolebindings"), all).quiet(),
    ];
    if rng.chance(40) {
        let rules = json!([{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["configmaps"]}]);
        steps.push(Step::with("POST", here("roles"), access::role("reader", rules)).quiet());
        let local = access::binding("reader", "Role", "reader", eve);
        steps.push(Step::with("POST", here("rolebindings"), local).quiet());
    }
    steps.extend(settled("one"));
    steps
}

fn param_kind(api_version: &str, kind: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind})
}

fn some_kind(rng: &mut Rng) -> Value {
    match rng.below(4) {
        0 | 1 => param_kind("v1", "ConfigMap"),
        2 => param_kind("v1", "Namespace"),
        _ => param_kind("example.com/v1", "Nothing"),
    }
}

fn spec(mutates: bool, kind: Option<Value>) -> Value {
    let rule = json!({
        "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"],
    });
    let mut spec = json!({"matchConstraints": {"resourceRules": [rule]}});
    match mutates {
        true => {
            spec["reinvocationPolicy"] = json!("Never");
            let expression = json!({"expression": "Object{}"});
            spec["mutations"] =
                json!([{"patchType": "ApplyConfiguration", "applyConfiguration": expression}]);
        }
        false => spec["validations"] = json!([{"expression": "true"}]),
    }
    if let Some(kind) = kind {
        spec["paramKind"] = kind;
    }
    spec
}

fn policy(mutates: bool, name: &str, spec: Value) -> Step {
    if mutates { mutations::policy(name, spec) } else { super::policy(name, spec) }
}

/// What he writes, and what it is refused for.
pub fn written(rng: &mut Rng) -> Vec<Step> {
    let mutates = rng.chance(40);
    let prefix = if mutates { "mutating" } else { "validating" };
    let mut steps = writer(rng);
    // Nobody binds them.
    let unknown = param_kind("example.com/v1", "Nothing");
    let kinds = [("p", Some(param_kind("v1", "ConfigMap"))), ("q", None), ("r", Some(unknown))];
    for (name, kind) in kinds {
        steps.push(policy(mutates, name, spec(mutates, kind)).quiet());
    }
    for _ in 0..6 {
        let mut step = match rng.below(6) {
            0 | 1 => {
                let kind = if rng.chance(85) { Some(some_kind(rng)) } else { None };
                let mut step = policy(mutates, "new", spec(mutates, kind));
                step.path.push_str("?dryRun=All");
                step
            }
            2 => {
                let kind = if rng.chance(50) { param_kind("v1", "ConfigMap") } else { some_kind(rng) };
                let change = json!({"spec": {"paramKind": kind, "failurePolicy": "Ignore"}});
                Step::patch("merge", format!("{API}/{prefix}admissionpolicies/{{id}}-p?dryRun=All"), change)
            }
            _ => {
                let mut reference = json!({"parameterNotFoundAction": "Deny"});
                match rng.chance(65) {
                    true => reference["name"] = json!(rng.pick(&["one", "two"])),
                    false => reference["selector"] = json!({"matchLabels": {"a": "b"}}),
                }
                if rng.chance(50) {
                    reference["namespace"] = json!(rng.pick(&["{ns}", "default"]));
                }
                let mut spec = json!({"paramRef": reference});
                if !mutates {
                    spec["validationActions"] = json!(["Deny"]);
                }
                let name = rng.pick(&["p", "p", "q", "r", "none"]);
                let mut step =
                    if mutates { mutations::binding(name, spec) } else { super::binding(name, spec) };
                step.path.push_str("?dryRun=All");
                step
            }
        };
        step = step.header("impersonate-user", "{id}-eve");
        steps.push(if rng.chance(20) { step.header("impersonate-group", "{id}-team") } else { step });
    }
    for name in ["p", "q", "r"] {
        steps.push(Step::new("DELETE", format!("{API}/{prefix}admissionpolicies/{{id}}-{name}")).quiet());
    }
    steps
}
