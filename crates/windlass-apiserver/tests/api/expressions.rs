//! Expressions of policies, each with what a real kube-apiserver said of it: when the policy was written, or when a
//! ConfigMap was.

use crate::world::World;
use http::header;
use serde_json::{Value, json};

const API: &str = "/apis/admissionregistration.k8s.io/v1";

/// What becomes of a validation: why it is refused, or the warning at a write that it does not let pass.
fn said(mut world: World, validation: &Value) -> Value {
    let rule = json!({
        "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"],
    });
    let spec = json!({"matchConstraints": {"resourceRules": [rule]}, "validations": [validation]});
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
    let Some(warning) = answer.headers.get(header::WARNING) else { return Value::Null };
    let warning = String::from_utf8(warning.as_bytes().to_vec()).unwrap();
    let text: String = serde_json::from_str(warning.strip_prefix("299 - ").unwrap()).unwrap();
    json!(text.split_once("with binding 'p': ").unwrap().1)
}

fn replay(list: &str, said: impl Fn(World, &str) -> Value) {
    let path = format!("{}/tests/data/crd/expressions.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let recorded: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{path}: {e}"));
    let all = recorded[list].as_array().unwrap();
    assert!(all.len() > 150, "{} {list}", all.len());
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

/// Nothing is said if an expression holds, `false` if it does not, and why if that cannot be told.
#[test]
fn expressions_are_judged_as_by_the_real_server() {
    replay("expressions", |world, expression| match said(world, &json!({"expression": expression})) {
        Value::String(text) => {
            let text = text.replace(&format!("failed expression: {expression}"), "false");
            json!(text.replace(&format!("expression '{expression}' resulted in error: "), ""))
        }
        other => other,
    });
}

#[test]
fn values_are_those_of_the_real_server() {
    replay("values", |world, expression| {
        let message = format!("'<' + {expression} + '>'");
        said(world, &json!({"expression": "false", "messageExpression": message}))
    });
}
