//! Policies and bindings that are wrong, and what the server says of them.

use serde_json::{Value, json};

use super::{API, pool};
use crate::rng::Rng;
use crate::sequence::Step;

/// Expressions that do not compile, or give the wrong thing.
const WRONG: [&str; 16] = [
    "object.a +",
    "nothing == 1",
    "object.data",
    "1 + 'a' == 2",
    "request.nothing == 'x'",
    "request.name == 1",
    "namespaceObject.metadata.managedFields.size() == 1",
    "params.a == 1",
    "variables.nothing == 1",
    "authorizer.check('x')",
    "authorizer.group('').resource(1).check('get').allowed()",
    "object.data.n.startsWith(1)",
    "has(object)",
    "'text'",
    "object.all(x, y)",
    "request.userInfo.extra.size() == 'x'",
];

/// The path to something, and values that may be wrong there.
const CHANGES: [(&str, &str); 41] = [
    ("/spec/failurePolicy", r#""Never""#),
    ("/spec/paramKind", r#"{"apiVersion":"v1"}"#),
    ("/spec/paramKind", r#"{"kind":"ConfigMap"}"#),
    ("/spec/paramKind", r#"{"apiVersion":"a/b/c","kind":"X"}"#),
    ("/spec/paramKind", r#"{"apiVersion":"A/v1","kind":"X Y"}"#),
    ("/spec/paramKind", r#"{"apiVersion":"a/","kind":"X"}"#),
    ("/spec/paramKind", r#"{"apiVersion":"a/V1","kind":"x"}"#),
    ("/spec/matchConstraints", "null"),
    ("/spec/matchConstraints/resourceRules", "[]"),
    ("/spec/matchConstraints/matchPolicy", r#""Nearly""#),
    ("/spec/matchConstraints/namespaceSelector", r#"{"matchLabels":{"a b":"c"}}"#),
    ("/spec/matchConstraints/objectSelector", r#"{"matchExpressions":[{"key":"a","operator":"Is"}]}"#),
    ("/spec/matchConstraints/resourceRules/0/resourceNames", r#"["a","a","b/c"]"#),
    ("/spec/matchConstraints/resourceRules/0/operations", r#"["*","CREATE"]"#),
    ("/spec/matchConstraints/resourceRules/0/operations", r#"["READ"]"#),
    ("/spec/matchConstraints/resourceRules/0/apiGroups", "[]"),
    ("/spec/matchConstraints/resourceRules/0/apiVersions", r#"[""]"#),
    ("/spec/matchConstraints/resourceRules/0/resources", "[]"),
    ("/spec/matchConstraints/resourceRules/0/scope", r#""Global""#),
    ("/spec/matchConstraints/excludeResourceRules", "[{}]"),
    ("/spec/matchConditions", r#"[{"name":"a","expression":"true"},{"name":"a","expression":"true"}]"#),
    ("/spec/matchConditions", r#"[{"name":"a b","expression":""}]"#),
    ("/spec/matchConditions", r#"[{"expression":"variables.x == 1"}]"#),
    ("/spec/matchConditions", r#"[{"name":"x","expression":"1"}]"#),
    ("/spec/variables", r#"[{"name":"a b","expression":"1"}]"#),
    ("/spec/variables", r#"[{"name":"","expression":" "}]"#),
    ("/spec/variables", r#"[{"name":"namespace","expression":"object.a"}]"#),
    ("/spec/variables", r#"[{"name":"a","expression":"variables.b"},{"name":"b","expression":"1"}]"#),
    ("/spec/variables", r#"[{"name":"a","expression":"1 +"},{"name":"b","expression":"variables.a + 1"}]"#),
    ("/spec/validations", "[]"),
    ("/spec/validations/0/expression", r#""  ""#),
    ("/spec/validations/0/message", r#""a\nb""#),
    ("/spec/validations/0/message", r#""  ""#),
    ("/spec/validations/0/messageExpression", r#""  ""#),
    ("/spec/validations/0/messageExpression", r#""1""#),
    ("/spec/validations/0/messageExpression", r#""authorizer.path('/x').check('get').reason()""#),
    ("/spec/validations/0/reason", r#""Sorry""#),
    ("/spec/auditAnnotations", r#"[{"key":"a","valueExpression":"1"},{"key":"a","valueExpression":"'x'"}]"#),
    ("/spec/auditAnnotations", r#"[{"key":"a/b","valueExpression":""}]"#),
    ("/spec/auditAnnotations", r#"[{"key":"","valueExpression":"null"}]"#),
    ("/metadata/name", r#""Not A Name""#),
];

/// The same of bindings.
const BINDING_CHANGES: [(&str, &str); 17] = [
    ("/spec/policyName", r#""""#),
    ("/spec/policyName", r#""A B""#),
    ("/spec/validationActions", "[]"),
    ("/spec/validationActions", r#"["Deny","Warn"]"#),
    ("/spec/validationActions", r#"["Deny","Deny"]"#),
    ("/spec/validationActions", r#"["Shout","Audit"]"#),
    ("/spec/paramRef", "{}"),
    ("/spec/paramRef", r#"{"name":"a","parameterNotFoundAction":"Perhaps"}"#),
    ("/spec/paramRef", r#"{"name":"a/b","parameterNotFoundAction":"Deny"}"#),
    ("/spec/paramRef", r#"{"name":"a","selector":{},"parameterNotFoundAction":"Allow"}"#),
    ("/spec/paramRef", r#"{"selector":{"matchLabels":{"a":"b c"}},"parameterNotFoundAction":"Allow"}"#),
    ("/spec/paramRef", r#"{"name":"a"}"#),
    ("/spec/matchResources", r#"{"matchPolicy":"Nearly"}"#),
    ("/spec/matchResources", r#"{"resourceRules":[{"apiGroups":[""]}]}"#),
    ("/spec/matchResources", r#"{"objectSelector":{"matchLabels":{"a":"-"}}}"#),
    ("/spec/matchResources", r#"{"excludeResourceRules":[{"resourceNames":["."]}]}"#),
    ("/metadata/name", r#""Not A Name""#),
];

fn change(object: &mut Value, changes: &[(&str, &str)], rng: &mut Rng) {
    let (path, value) = changes[rng.below(changes.len())];
    let (parent, key) = path.rsplit_once('/').expect("a pointer");
    let value: Value = serde_json::from_str(value).expect("JSON");
    if let Some(map) = object.pointer_mut(parent).and_then(Value::as_object_mut) {
        map.insert(key.to_owned(), value);
    }
}

/// Policies with something wrong, or with several things. Nothing is stored.
pub fn policies(rng: &mut Rng) -> Vec<Step> {
    let mut steps = Vec::new();
    for _ in 0..4 {
        let rule = json!({
            "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"],
        });
        let mut body = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": "{id}-p"},
            "spec": {
                "matchConstraints": {"resourceRules": [rule]},
                "validations": [{"expression": pool::truth(rng, false, 1)}],
            },
        });
        if rng.chance(40) {
            body["spec"]["validations"][0]["expression"] = json!(rng.pick(&WRONG));
        }
        for _ in 0..rng.below(3) {
            change(&mut body, &CHANGES, rng);
        }
        steps.push(Step::with("POST", format!("{API}/validatingadmissionpolicies?dryRun=All"), body));
    }
    steps
}

/// The same of bindings.
pub fn bindings(rng: &mut Rng) -> Vec<Step> {
    let mut steps = Vec::new();
    for _ in 0..4 {
        let mut body = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": "{id}-b"}, "spec": {"policyName": "p", "validationActions": ["Deny"]},
        });
        for _ in 0..1 + rng.below(3) {
            change(&mut body, &BINDING_CHANGES, rng);
        }
        steps.push(Step::with("POST", format!("{API}/validatingadmissionpolicybindings?dryRun=All"), body));
    }
    steps
}
