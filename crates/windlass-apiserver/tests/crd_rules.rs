//! Rules in CEL over one schema, each with what a real kube-apiserver said of it when a definition with it was created:
//! types, names, functions, literals, syntax, and costs by estimate, word for word.

use serde_json::{Value, json};
use windlass_apiserver::crd;
use windlass_apiserver::field::Errors;
use windlass_apiserver::kinds::Noted;

/// The place of the schema, which the recording writes short.
const SCHEMA: &str = "spec.validation.openAPIV3Schema";

/// kube-apiserver puts a number behind the name of a type, another one each time.
fn unnumbered(text: &str) -> String {
    let mut parts = text.split("selfType");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "selfType" + part.trim_start_matches(|c: char| c.is_ascii_digit()))
}

fn ours(schema: &Value, rule: &Value) -> Vec<(String, String)> {
    let mut spec = schema.clone();
    spec["x-kubernetes-validations"] = json!([rule]);
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let mut crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.rules.example.com"},
        "spec": {
            "group": "rules.example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    crd::default_definition(&mut crd);
    crd::prepare_create(&mut crd);
    let mut errors = Errors::default();
    crd::validate_create(&crd, Noted::default(), &mut errors);
    let cause = |error: &windlass_apiserver::field::Error| {
        (error.field.replace(SCHEMA, "$"), unnumbered(&error.message))
    };
    let mut causes: Vec<_> = errors.0.iter().map(cause).collect();
    causes.sort();
    causes
}

#[test]
fn rules_are_judged_as_by_the_real_server() {
    let path = format!("{}/tests/data/crd/rules.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let recorded: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{path}: {e}"));
    let rules = recorded["rules"].as_array().expect("rules");
    assert!(rules.len() > 200, "{} rules", rules.len());
    let mut differ = Vec::new();
    for case in rules {
        let causes = case["causes"].as_array().into_iter().flatten();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut theirs: Vec<_> =
            causes.map(|cause| (text(&cause[0]), unnumbered(&text(&cause[1])))).collect();
        theirs.sort();
        let ours = ours(&recorded["schema"], &case["rule"]);
        if ours != theirs {
            differ.push(format!("{}\n  ours   {ours:#?}\n  theirs {theirs:#?}", case["rule"]));
        }
    }
    assert!(differ.is_empty(), "{} of {} differ:\n{}", differ.len(), rules.len(), differ.join("\n"));
}
