//! Webhooks that change objects of built-in kinds in ways that their types do not foresee.

use serde_json::{Value, json};

use super::webhooks::{Kind, configured, hook, released};
use crate::rng::Rng;
use crate::sequence::Step;

const CHANGES: [&str; 20] = [
    "/bare",
    "/bare",
    "/bare",
    "/spec-gone",
    "/spec-wrong",
    "/spec-unknown",
    "/unknown-field",
    "/metadata-unknown",
    "/metadata-wrong",
    "/metadata-gone",
    "/metadata-text",
    "/metadata-odd",
    "/nosuch-version",
    "/no-version",
    "/no-kind-left",
    "/other-kind",
    "/other-group",
    "/status",
    "/label",
    "/label",
];

/// A resource, and an object of it that has many defaults.
fn some_kind(rng: &mut Rng) -> (&'static str, &'static str, Value) {
    let labels = json!({"app": "a"});
    let containers = json!([{"name": "c", "image": "i"}]);
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": containers}});
    match rng.below(4) {
        0 => (
            "apps",
            "deployments",
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"selector": {"matchLabels": labels}, "template": template}}),
        ),
        1 => (
            "batch",
            "cronjobs",
            json!({"apiVersion": "batch/v1", "kind": "CronJob", "spec": {"schedule": "@daily",
                "jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": containers}}}}}}),
        ),
        2 => (
            "",
            "persistentvolumeclaims",
            json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": {"accessModes": ["ReadWriteOnce"],
                "storageClassName": "none", "resources": {"requests": {"storage": "1Gi"}}}}),
        ),
        _ => (
            "networking.k8s.io",
            "networkpolicies",
            json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "spec": {"podSelector": {}, "ingress": [{"ports": [{"port": 80}]}]}}),
        ),
    }
}

fn writes(rng: &mut Rng, all: &str, body: &Value) -> Vec<Step> {
    let mut steps = Vec::new();
    for _ in 0..4 {
        let name = rng.pick(&["a", "b"]);
        let one = format!("{all}/{name}");
        let query = rng.pick(&["", "", "?dryRun=All", "?fieldValidation=Strict"]);
        let mut body = body.clone();
        body["metadata"] = json!({"name": name});
        let annotations = json!({"metadata": {"annotations": {"note": rng.pick(&["x", "y"])}}});
        steps.push(match rng.below(8) {
            0..=3 => Step::with("POST", format!("{all}{query}"), body),
            4 => Step::with("PUT", format!("{one}{query}"), body),
            5 => Step::patch("merge", format!("{one}{query}"), annotations),
            6 => Step::patch("apply", format!("{one}?fieldManager=me"), body),
            _ => Step::new("GET", one),
        });
    }
    steps
}

/// Hooks one after the other, of which the last tells what it sees, and perhaps one that only looks.
pub fn changed(rng: &mut Rng) -> Vec<Step> {
    let (group, resource, body) = some_kind(rng);
    let prefix = if group.is_empty() { "/api/v1".to_owned() } else { format!("/apis/{group}/v1") };
    let all = format!("{prefix}/namespaces/{{ns}}/{resource}");
    let rules = json!([{
        "apiGroups": [group], "apiVersions": ["v1"], "resources": [resource], "operations": ["CREATE", "UPDATE"],
    }]);
    let mut paths: Vec<&str> = (0..=rng.below(2)).map(|_| rng.pick(&CHANGES)).collect();
    paths.push("/warn-told");
    let hooks = paths.iter().enumerate().map(|(index, path)| {
        let mut hook = hook(&format!("h{index}"), path);
        hook["rules"] = rules.clone();
        if rng.chance(40) {
            hook["reinvocationPolicy"] = json!("IfNeeded");
        }
        hook
    });
    let hooks = hooks.collect();
    let mut steps = configured(Kind::Mutating, "m", hooks);
    let is_told = rng.chance(50);
    if is_told {
        let mut told = hook("told", "/warn-told");
        told["rules"] = rules;
        steps.extend(configured(Kind::Validating, "v", vec![told]));
    }
    steps.extend(writes(rng, &all, &body));
    steps.push(released(Kind::Mutating, "m"));
    steps.extend(is_told.then(|| released(Kind::Validating, "v")));
    steps
}
