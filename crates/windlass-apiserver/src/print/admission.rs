//! Webhook configurations and admission policies.

use serde_json::{Value, json};

use super::Printer;
use super::object::{Object, list, text, texts};

pub(super) fn printer(kind: &str) -> Option<Printer> {
    Some(match kind {
        "MutatingAdmissionPolicy" => mutating_policy,
        "MutatingAdmissionPolicyBinding" | "ValidatingAdmissionPolicyBinding" => binding,
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => webhooks,
        "ValidatingAdmissionPolicy" => validating_policy,
        _ => return None,
    })
}

fn webhooks(object: &Object<'_>) -> Vec<Value> {
    vec![json!(object.name()), json!(object.count(&["webhooks"])), json!(object.age())]
}

fn validating_policy(object: &Object<'_>) -> Vec<Value> {
    policy(object, object.count(&["spec", "validations"]))
}

fn mutating_policy(object: &Object<'_>) -> Vec<Value> {
    policy(object, object.count(&["spec", "mutations"]))
}

fn policy(object: &Object<'_>, rules: usize) -> Vec<Value> {
    let parameter = object.get(&["spec", "paramKind"]);
    let parameter =
        parameter.map(|kind| format!("{}/{}", text(kind, &["apiVersion"]), text(kind, &["kind"])));
    let parameter = parameter.unwrap_or_else(|| "<unset>".to_owned());
    vec![json!(object.name()), json!(rules), json!(parameter), json!(object.age())]
}

fn binding(object: &Object<'_>) -> Vec<Value> {
    let reference = object.get(&["spec", "paramRef"]);
    let parameter = reference.map(|reference| {
        let namespace = text(reference, &["namespace"]);
        match (text(reference, &["name"]), reference.get("selector")) {
            ("", Some(selector)) if !selector.is_null() => selector_struct(selector),
            ("", _) => "<unset>".to_owned(),
            (name, _) if namespace.is_empty() => format!("*/{name}"),
            (name, _) => format!("{namespace}/{name}"),
        }
    });
    vec![
        json!(object.name()),
        json!(object.text(&["spec", "policyName"])),
        json!(parameter.unwrap_or_else(|| "<unset>".to_owned())),
        json!(object.age()),
    ]
}

/// A label selector as Go's generated `String` method writes the structure.
fn selector_struct(selector: &Value) -> String {
    let labels = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let mut labels =
        labels.map(|(k, v)| format!("{k}: {},", v.as_str().unwrap_or_default())).collect::<Vec<_>>();
    labels.sort_unstable();
    let expression = |expression: &Value| {
        format!(
            "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{}],}},",
            text(expression, &["key"]),
            text(expression, &["operator"]),
            texts(expression, &["values"]).join(" ")
        )
    };
    let expressions = list(selector, &["matchExpressions"]).iter().map(expression).collect::<String>();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{}}},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}",
        labels.concat()
    )
}
