//! Webhook configurations and admission policies.

mod policies;

use serde_json::{Map, Value, json};

use super::check::{by_rule, one_of, required, selector, unique};
use super::generation::Generation;
use super::tree::{each, existing, fill, get, has_empty, int, list, sub, text};
use super::{Context, Hooks, meta, names};
use crate::field::{Errors, Path};

/// The hooks of an admission kind.
pub(super) fn hooks(kind: &str) -> Option<&'static Hooks> {
    Some(match kind {
        "ValidatingWebhookConfiguration" => &VALIDATING,
        "MutatingWebhookConfiguration" => &MUTATING,
        "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy" => &POLICY,
        "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding" => &BINDING,
        _ => return None,
    })
}

const VALIDATING: Hooks = Hooks {
    qualifies: false,
    rechecks: &[meta::Check::Whole],
    default: |object| each(object, "webhooks", default_webhook),
    generation: Generation { born: true, grows_on: &["/webhooks"], tells_empty: true },
    notes: |object| has_empty(&object["webhooks"]),
    validate_create: validate_webhooks,
    validate_update: |new, _, context, errors| validate_webhooks(new, context, errors),
    ..Hooks::NONE
};

const MUTATING: Hooks = Hooks {
    default: |object| {
        each(object, "webhooks", |hook| {
            default_webhook(hook);
            fill(hook, "reinvocationPolicy", "Never");
        });
    },
    ..VALIDATING
};

const POLICY: Hooks = Hooks {
    default: |object| {
        let spec = sub(object, "spec");
        fill(spec, "failurePolicy", "Fail");
        default_match(spec, "matchConstraints");
    },
    generation: Generation::SPEC,
    validate_create: |new, context, errors| policies::validate_policy(new, None, context, errors),
    validate_update: |new, old, context, errors| policies::validate_policy(new, Some(old), context, errors),
    ..Hooks::NONE
};

const BINDING: Hooks = Hooks {
    default: |object| default_match(sub(object, "spec"), "matchResources"),
    generation: Generation::SPEC,
    validate_create: policies::validate_binding,
    validate_update: |new, _, context, errors| policies::validate_binding(new, context, errors),
    ..Hooks::NONE
};

fn default_webhook(hook: &mut Value) {
    fill(hook, "failurePolicy", "Fail");
    fill(hook, "matchPolicy", "Equivalent");
    fill(hook, "namespaceSelector", Map::new());
    fill(hook, "objectSelector", Map::new());
    fill(hook, "timeoutSeconds", 10);
    if let Some(service) = existing(sub(hook, "clientConfig"), "service") {
        fill(service, "port", 443);
    }
    each(hook, "rules", |rule| fill(rule, "scope", "*"));
}

fn default_match(spec: &mut Value, field: &str) {
    let Some(resources) = existing(spec, field) else { return };
    fill(resources, "matchPolicy", "Equivalent");
    fill(resources, "namespaceSelector", Map::new());
    fill(resources, "objectSelector", Map::new());
    for rules in ["resourceRules", "excludeResourceRules"] {
        each(resources, rules, |rule| fill(rule, "scope", "*"));
    }
}

fn validate_webhooks(object: &Value, context: &Context<'_>, errors: &mut Errors) {
    let path = Path::Root.child("webhooks");
    for (index, hook) in list(object, "webhooks").iter().enumerate() {
        let path = path.index(index);
        validate_webhook(hook, &path, errors);
        if context.kind.starts_with("Mutating") {
            one_of(hook, "reinvocationPolicy", &["IfNeeded", "Never"], &path, errors);
        }
    }
    unique(list(object, "webhooks"), "name", &path, errors);
}

fn validate_webhook(hook: &Value, path: &Path<'_>, errors: &mut Errors) {
    let name = text(hook, "name");
    if required(hook, "name", "", path, errors) {
        let faults = names::dns_subdomain(name);
        if !faults.is_empty() {
            errors.invalid(&path.child("name"), &json!(name), &faults.join(","));
        } else if name.split('.').count() < 3 {
            let detail = "should be a domain with at least three segments separated by dots";
            errors.invalid(&path.child("name"), &json!(name), detail);
        }
    }
    for (index, rule) in list(hook, "rules").iter().enumerate() {
        validate_rule(rule, &path.child("rules").index(index), errors);
    }
    one_of(hook, "failurePolicy", &["Fail", "Ignore"], path, errors);
    one_of(hook, "matchPolicy", &["Equivalent", "Exact"], path, errors);
    if get(hook, "sideEffects").is_none() {
        errors.required(&path.child("sideEffects"), "must specify one of None, NoneOnDryRun");
    }
    one_of(hook, "sideEffects", &["None", "NoneOnDryRun"], path, errors);
    if let Some(seconds) = int(hook, "timeoutSeconds").filter(|seconds| !(1..=30).contains(seconds)) {
        let detail = "the timeout value must be between 1 and 30 seconds";
        errors.invalid(&path.child("timeoutSeconds"), &json!(seconds), detail);
    }
    selector(hook, "namespaceSelector", path, errors);
    selector(hook, "objectSelector", path, errors);
    validate_client(&hook["clientConfig"], &path.child("clientConfig"), errors);
    policies::conditions(hook, false, path, errors);
    review_versions(hook, path, errors);
}

fn review_versions(hook: &Value, path: &Path<'_>, errors: &mut Errors) {
    const VERSIONS: [&str; 2] = ["v1", "v1beta1"];
    let versions = list(hook, "admissionReviewVersions");
    if versions.is_empty() {
        errors.required(&path.child("admissionReviewVersions"), "must specify one of v1, v1beta1");
    }
    let at = path.child("admissionReviewVersions");
    for (index, version) in versions.iter().enumerate() {
        if versions[..index].contains(version) {
            errors.invalid(&at.index(index), version, "duplicate version");
        } else {
            by_rule(version.as_str().unwrap_or(""), names::dns_1035_label, &at.index(index), errors);
        }
    }
    if !versions.is_empty() && !versions.iter().any(|version| VERSIONS.iter().any(|known| version == known)) {
        let detail = "must include at least one of v1, v1beta1";
        errors.invalid(&path.child("admissionReviewVersions"), &hook["admissionReviewVersions"], detail);
    }
}

fn validate_client(client: &Value, path: &Path<'_>, errors: &mut Errors) {
    match (get(client, "url"), get(client, "service")) {
        (Some(_), Some(_)) | (None, None) => {
            errors.required(path, "exactly one of url or service is required");
        }
        (Some(url), None) => {
            const FORM: &str = "; desired format: https://host[/path]";
            let at = path.child("url");
            let (scheme, rest) = url.as_str().unwrap_or("").split_once("://").unwrap_or(("", ""));
            if scheme != "https" {
                errors.invalid(&at, &json!(scheme), &format!("'https' is the only allowed URL scheme{FORM}"));
            }
            if rest.split('/').next().unwrap_or("").is_empty() {
                errors.invalid(&at, &json!(""), &format!("host must be specified{FORM}"));
            }
            let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
            let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
            let user =
                rest.split('/').next().and_then(|host| host.split_once('@')).map_or("", |(user, _)| user);
            if !user.is_empty() {
                errors.invalid(&at, &json!(user), "user information is not permitted in the URL");
            }
            if !fragment.is_empty() {
                errors.invalid(&at, &json!(fragment), "fragments are not permitted in the URL");
            }
            if !query.is_empty() {
                errors.invalid(&at, &json!(query), "query parameters are not permitted in the URL");
            }
        }
        (None, Some(service)) => {
            let at = path.child("service");
            // The real server confuses the two.
            for (missing, told) in [("namespace", "name"), ("name", "namespace")] {
                if text(service, missing).is_empty() {
                    errors.required(&at.child(told), "");
                }
            }
            if let Some(port) = int(service, "port").filter(|port| !(1..=65_535).contains(port)) {
                let detail = "port is not valid: must be between 1 and 65535, inclusive";
                errors.invalid(&at.child("port"), &json!(port), detail);
            }
        }
    }
}

fn validate_rule(rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    required(rule, "operations", "", path, errors);
    let operations = list(rule, "operations");
    if operations.len() > 1 && operations.iter().any(|operation| operation == "*") {
        let detail = "if '*' is present, must not specify other operations";
        errors.invalid(&path.child("operations"), &rule["operations"], detail);
    }
    let known = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
    for (index, operation) in operations.iter().enumerate() {
        if !known.iter().any(|known| operation == known) {
            errors.not_supported(&path.child("operations").index(index), operation, &known);
        }
    }
    for (field, what) in [("apiGroups", "groups"), ("apiVersions", "versions")] {
        required(rule, field, "", path, errors);
        let values = list(rule, field);
        if values.len() > 1 && values.iter().any(|value| value == "*") {
            let detail = format!("if '*' is present, must not specify other API {what}");
            errors.invalid(&path.child(field), &rule[field], &detail);
        }
        for (index, _) in values.iter().enumerate().filter(|(_, value)| field != "apiGroups" && *value == "")
        {
            errors.required(&path.child(field).index(index), "");
        }
    }
    required(rule, "resources", "", path, errors);
    validate_resources(rule, &path.child("resources"), errors);
    one_of(rule, "scope", &["*", "Cluster", "Namespaced"], path, errors);
}

/// Of resources and their parts, none is named that a pattern before it covers.
fn validate_resources(rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    let all: Vec<&str> = list(rule, "resources").iter().filter_map(Value::as_str).collect();
    let mut last_is_plain = false;
    for (index, name) in all.iter().enumerate() {
        let before = |pattern: String| all[..index].contains(&pattern.as_str());
        match name.split_once('/') {
            None if name.is_empty() => errors.required(&path.index(index), ""),
            // The real server looks at the last one only.
            None => last_is_plain = *name != "*",
            Some((resource, part)) => {
                for pattern in [format!("{resource}/*"), format!("*/{part}")] {
                    if before(pattern.clone()) {
                        let detail = format!("if '{pattern}' is present, must not specify {name}");
                        errors.invalid(&path.index(index), &json!(name), &detail);
                    }
                }
            }
        }
    }
    if all.len() > 1 && all.contains(&"*/*") {
        let detail = "if '*/*' is present, must not specify other resources";
        errors.invalid(path, &rule["resources"], detail);
    }
    if all.contains(&"*") && last_is_plain {
        let detail = "if '*' is present, must not specify other resources without subresources";
        errors.invalid(path, &rule["resources"], detail);
    }
}
