//! What installs the operator, and what watches it.

use etcd_operator::operator;
use serde_json::Value;

/// Its rights, one line each: no more than what it declares.
#[test]
fn rights() {
    let rules = serde_json::to_value(operator().rules().policy_rules()).unwrap();
    let words = |value: &Value| -> String {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>().join(",")
    };
    let line = |rule: &Value| {
        format!("{} {}: {}", words(&rule["apiGroups"]), words(&rule["resources"]), words(&rule["verbs"]))
    };
    let lines: Vec<String> = rules.as_array().unwrap().iter().map(line).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

/// The definitions of its kinds, as they are installed.
#[test]
fn kinds() {
    let documents = operator().manifests("etcd-system", false, "etcd-operator:test", 1);
    let kinds: Vec<&Value> =
        documents.iter().filter(|one| one["kind"] == "CustomResourceDefinition").collect();
    assert_eq!(kinds.len(), 2);
    let member = &kinds[1]["spec"]["versions"][0];
    insta::assert_json_snapshot!("member", member);
    let mut cluster = kinds[0]["spec"].clone();
    // What Kubernetes' own types say of affinities and resources is not ours.
    let spec = "/versions/0/schema/openAPIV3Schema/properties/spec/properties/podTemplate/properties";
    for foreign in ["affinity", "resources", "tolerations", "topologySpreadConstraints"] {
        *cluster.pointer_mut(&format!("{spec}/{foreign}")).unwrap() = "as Kubernetes has it".into();
    }
    insta::assert_json_snapshot!("cluster", cluster);
}

/// A rule that looks at each part of a list or map needs to know how many there can be, and how long each: kube-apiserver
/// counts what a rule may cost, and refuses a kind whose rules cost too much.
#[test]
fn what_rules_look_at_is_bounded() {
    fn unbounded(path: &str, schema: &Value, found: &mut Vec<String>) {
        let rules = schema["x-kubernetes-validations"].as_array().into_iter().flatten();
        let is_bounded = match schema["type"].as_str() {
            Some("array") => schema["maxItems"].is_u64() && schema["items"]["maxLength"].is_u64(),
            _ => schema["maxProperties"].is_u64(),
        };
        let each = rules.filter_map(|rule| rule["rule"].as_str()).any(|rule| rule.contains("self.all("));
        if each && !is_bounded {
            found.push(path.to_owned());
        }
        for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
            unbounded(&format!("{path}.{name}"), inner, found);
        }
    }
    let mut found = Vec::new();
    for document in operator().manifests("etcd-system", false, "etcd-operator:test", 1) {
        for version in document["spec"]["versions"].as_array().into_iter().flatten() {
            unbounded("", &version["schema"]["openAPIV3Schema"], &mut found);
        }
    }
    assert_eq!(found, Vec::<String>::new());
}
