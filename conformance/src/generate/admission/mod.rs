//! Gates that users build: admission policies and webhooks.
//!
//! The real server hears of policies, bindings and configurations a little after they are written, of each kind on its own
//! and in order. So what is to be judged begins when a mark is known that was written last.

pub mod builtin;
pub mod connect;
pub mod custom;
pub mod mutations;
pub mod parts;
pub mod policies;
mod pool;
pub mod refused;
pub mod rights;
pub mod versions;
pub mod webhooks;

use serde_json::{Value, json};

use crate::sequence::Step;

const API: &str = "/apis/admissionregistration.k8s.io/v1";
const CONFIG_MAPS: &str = "/api/v1/namespaces/{ns}/configmaps";

/// Only what is in the namespace of the sequence.
fn here() -> Value {
    json!({"matchLabels": {"kubernetes.io/metadata.name": "{ns}"}})
}

/// A policy of a sequence. Its name is its own, since policies are everybody's.
fn policy(name: &str, spec: Value) -> Step {
    let body = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": format!("{{id}}-{name}")}, "spec": spec,
    });
    Step::with("POST", format!("{API}/validatingadmissionpolicies"), body)
}

/// A binding of the policy of the same name.
fn binding(name: &str, mut spec: Value) -> Step {
    spec["policyName"] = json!(format!("{{id}}-{name}"));
    let body = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": format!("{{id}}-{name}")}, "spec": spec,
    });
    Step::with("POST", format!("{API}/validatingadmissionpolicybindings"), body)
}

/// Waits until the policies so far are known.
fn known(steps: &mut Vec<Step>) {
    let rule = json!({
        "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"],
        "resourceNames": ["mark"],
    });
    let constraints = json!({"namespaceSelector": here(), "resourceRules": [rule]});
    let spec = json!({"matchConstraints": constraints, "validations": [{"expression": "false"}]});
    steps.push(policy("mark", spec).quiet());
    steps.push(binding("mark", json!({"validationActions": ["Deny"]})).quiet());
    let mark = json!({"metadata": {"name": "mark"}});
    steps.push(Step::with("POST", format!("{CONFIG_MAPS}?dryRun=All"), mark).until(422).quiet());
}

/// Takes policies away, so that those who come later are not judged by ever more of them.
fn forgotten(steps: &mut Vec<Step>, names: &[&str]) {
    for name in names.iter().chain(&["mark"]) {
        for kind in ["validatingadmissionpolicies", "validatingadmissionpolicybindings"] {
            steps.push(Step::new("DELETE", format!("{API}/{kind}/{{id}}-{name}")).quiet());
        }
    }
}
