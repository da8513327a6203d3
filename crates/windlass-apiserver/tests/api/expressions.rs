//! Expressions of policies, each with what a real kube-apiserver said of it: when the policy was written, or when a
//! ConfigMap was.

use crate::world::World;
use serde_json::{Value, json};

const API: &str = "/apis/admissionregistration.k8s.io/v1";

/// What is said of an expression: nothing if it holds, `false` if it does not, and why if that cannot be told.
fn said(mut world: World, expression: &str) -> Value {
    let rule = json!({
        "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"],
    });
    let spec = json!({
        "matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": expression}],
    });
    let policy = json!({"metadata": {"name": "p"}, "spec": spec});
    let answer = world.post(&format!("{API}/validatingadmissionpolicies"), &policy);
    if answer.code != 201 {
        return json!({"refused": answer.expect(422)["details"]["causes"][0]["message"]});
    }
    let spec = json!({"policyName": "p", "validationActions": ["Warn"]});
    let binding = json!({"metadata": {"name": "p"}, "spec": spec});
    world.post(&format!("{API}/validatingadmissionpolicybindings"), &binding).expect(201);
    let map = json!({"metadata": {"name": "e"}, "data": {"k": "v"}});
    let answer = world.post("/api/v1/namespaces/default/configmaps", &map);
    answer.expect(201);
    let Some(warning) = answer.warnings().pop() else { return Value::Null };
    let text: String = serde_json::from_str(warning.strip_prefix("299 - ").unwrap()).unwrap();
    let (_, text) = text.split_once("with binding 'p': ").unwrap();
    let text = text.replace(&format!("failed expression: {expression}"), "false");
    json!(text.replace(&format!("expression '{expression}' resulted in error: "), ""))
}

#[test]
fn expressions_are_judged_as_by_the_real_server() {
    let path = format!("{}/tests/data/crd/expressions.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let recorded: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{path}: {e}"));
    let all = recorded["expressions"].as_array().unwrap();
    assert!(all.len() > 200, "{} expressions", all.len());
    let world = World::new();
    let mut differ = Vec::new();
    for case in all {
        let (expression, theirs) = (case[0].as_str().unwrap(), &case[1]);
        let ours = said(world.fork(), expression);
        if ours != *theirs {
            differ.push(format!("{expression}\n  ours   {ours}\n  theirs {theirs}"));
        }
    }
    assert!(differ.is_empty(), "{} of {} differ:\n{}", differ.len(), all.len(), differ.join("\n"));
}
