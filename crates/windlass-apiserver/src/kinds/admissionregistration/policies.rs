//! Admission policies and their bindings: what a stored one can be relied upon.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::validate_rule;
use crate::crd::{Environment, NOT_MADE, Returns, is_keyword};
use crate::field::{Errors, Path, Reason};
use crate::kinds::check::{by_rule, one_of, required, selector};
use crate::kinds::tree::{get, list, text};
use crate::kinds::{Context, names};

/// How many annotations a policy may have.
const ANNOTATIONS_MAX: usize = 20;
/// How long the expression of one may be, in bytes.
const ANNOTATION_MAX: usize = 5 << 10;
/// How many conditions a policy or a webhook may have.
const CONDITIONS_MAX: usize = 64;

/// Checks a policy. The conditions of `old` are not looked at again.
pub(super) fn validate_policy(
    policy: &Value,
    old: Option<&Value>,
    context: &Context<'_>,
    errors: &mut Errors,
) {
    let (spec, path) = (&policy["spec"], Path::Root.child("spec"));
    let mutates = context.kind == "MutatingAdmissionPolicy";
    one_of(spec, "failurePolicy", &["Fail", "Ignore"], &path, errors);
    if let Some(kind) = get(spec, "paramKind") {
        param_kind(kind, &path.child("paramKind"), errors);
    }
    if required(spec, "matchConstraints", "", &path, errors) {
        let (constraints, at) = (&spec["matchConstraints"], path.child("matchConstraints"));
        match_resources(constraints, &at, errors);
        required(constraints, "resourceRules", "", &at, errors);
        if mutates {
            let operations =
                list(constraints, "resourceRules").iter().flat_map(|rule| list(rule, "operations"));
            for operation in operations.filter(|operation| *operation == "DELETE") {
                let (at, known) = (at.child("resourceRules"), ["*", "CONNECT", "CREATE", "UPDATE"]);
                errors.not_supported(&at.child("operations"), operation, &known);
            }
        }
    }
    let has_params = get(spec, "paramKind").is_some();
    let same = |field: &str| old.is_some_and(|old| old["spec"].get(field) == spec.get(field));
    if !same("paramKind") || !same("matchConditions") {
        conditions(spec, has_params, &path, errors);
    }
    let mut environment = Environment::new(has_params, mutates || !list(spec, "variables").is_empty());
    for (index, variable) in list(spec, "variables").iter().enumerate() {
        let at = path.child("variables");
        self::variable(&mut environment, variable, &at.index(index), errors);
    }
    match mutates {
        true => mutations(spec, &environment, &path, errors),
        false => validations(policy, &environment, errors),
    }
}

fn mutations(spec: &Value, environment: &Environment, path: &Path<'_>, errors: &mut Errors) {
    let all = list(spec, "mutations");
    if all.is_empty() {
        errors.required(&path.child("mutations"), "mutations must contain at least one item");
    }
    for (index, mutation) in all.iter().enumerate() {
        let at = path.child("mutations");
        let at = at.index(index);
        let (own, other, returns) = match text(mutation, "patchType") {
            "" => {
                errors.required(&at.child("patchType"), "");
                continue;
            }
            "JSONPatch" => ("jsonPatch", "applyConfiguration", Returns::Patches),
            "ApplyConfiguration" => ("applyConfiguration", "jsonPatch", Returns::Object),
            unknown => {
                let known = ["ApplyConfiguration", "JSONPatch"];
                errors.not_supported(&at.child("patchType"), &json!(unknown), &known);
                continue;
            }
        };
        let patch_type = text(mutation, "patchType");
        match get(mutation, own) {
            None => {
                errors.required(&at.child(own), &format!("must be specified when patchType is {patch_type}"))
            }
            Some(patch) => {
                let at = at.child(own);
                match text(patch, "expression").trim() {
                    "" => errors.required(&at.child("expression"), ""),
                    source => {
                        expression(environment, source, (returns, true), &at.child("expression"), errors)
                    }
                }
            }
        }
        if get(mutation, other).is_some() {
            let detail = format!("must not be specified when patchType is {patch_type}");
            errors.invalid(&at.child(other), &json!(format!("{{{other}}}")), &detail);
        }
    }
    if required(spec, "reinvocationPolicy", "", path, errors) {
        one_of(spec, "reinvocationPolicy", &["IfNeeded", "Never"], path, errors);
    }
}

fn validations(policy: &Value, environment: &Environment, errors: &mut Errors) {
    let (spec, path) = (&policy["spec"], Path::Root.child("spec"));
    if list(spec, "validations").is_empty() && list(spec, "auditAnnotations").is_empty() {
        let detail = "validations or auditAnnotations must contain at least one item";
        errors.required(&path.child("validations"), detail);
        errors.required(&path.child("auditAnnotations"), detail);
        return;
    }
    for (index, validation) in list(spec, "validations").iter().enumerate() {
        let at = path.child("validations");
        self::validation(environment, validation, &at.index(index), errors);
    }
    let annotations = list(spec, "auditAnnotations");
    let path = path.child("auditAnnotations");
    if annotations.len() > ANNOTATIONS_MAX {
        let detail = format!("must not have more than {ANNOTATIONS_MAX} auditAnnotations");
        let shown = annotations
            .iter()
            .map(|one| json!({"Key": one["key"], "ValueExpression": one["valueExpression"]}));
        errors.invalid(&path, &shown.collect(), &detail);
    }
    let mut keys = BTreeSet::new();
    for (index, annotation) in annotations.iter().enumerate() {
        let (at, key) = (path.index(index), text(annotation, "key"));
        match text(&policy["metadata"], "name") {
            "" => errors.invalid(&at.child("key"), &json!(key), "requires metadata.name be non-empty"),
            name => by_rule(&format!("{name}/{key}"), names::label_key, &at.child("key"), errors),
        }
        let (source, at_value) = (text(annotation, "valueExpression"), at.child("valueExpression"));
        match source.trim() {
            "" => errors.required(&at_value, "valueExpression is not specified"),
            trimmed if trimmed.len() > ANNOTATION_MAX => {
                errors.required(&at_value, &format!("must not exceed {ANNOTATION_MAX} bytes in length"));
            }
            trimmed => {
                if let Err(why) = environment.compile(trimmed, Returns::TextOrNull, true) {
                    refuse(source, &why, &at_value, errors);
                }
            }
        }
        if !keys.insert(key) {
            errors.duplicate(&at.child("key"), &json!(key));
        }
    }
}

fn validation(environment: &Environment, validation: &Value, path: &Path<'_>, errors: &mut Errors) {
    let of = |field: &str| text(validation, field);
    match of("expression") {
        source if source.trim().is_empty() => {
            errors.required(&path.child("expression"), "expression is not specified");
        }
        source => expression(environment, source, (Returns::Bool, true), &path.child("expression"), errors),
    }
    let (source, at) = (of("messageExpression"), path.child("messageExpression"));
    if !source.is_empty() && source.trim().is_empty() {
        errors.invalid(&at, &json!(source), "must be non-empty if specified");
    } else if !source.is_empty() {
        expression(environment, source, (Returns::Text, false), &at, errors);
    }
    let (message, at) = (of("message"), path.child("message"));
    if !message.is_empty() && message.trim().is_empty() {
        errors.invalid(&at, &json!(message), "must be non-empty if specified");
    } else if message.trim().contains(['\n', '\r']) {
        errors.invalid(&at, &json!(message), "must not contain line breaks");
    }
    let reasons = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
    one_of(validation, "reason", &reasons, path, errors);
}

fn expression(
    environment: &Environment,
    source: &str,
    (returns, has_authorizer): (Returns, bool),
    path: &Path<'_>,
    errors: &mut Errors,
) {
    if let Err(why) = environment.compile(source, returns, has_authorizer) {
        refuse(source, &why, path, errors);
    }
}

fn refuse(source: &str, why: &str, path: &Path<'_>, errors: &mut Errors) {
    match why.starts_with(NOT_MADE) {
        true => errors.push(Reason::Internal, path, format!("Internal error: {why}")),
        false => errors.invalid(path, &json!(source), why),
    }
}

fn variable(environment: &mut Environment, variable: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (name, source) = (text(variable, "name"), text(variable, "expression"));
    if name.trim().is_empty() {
        errors.required(&path.child("name"), "name is not specified");
    } else if !is_identifier(name) {
        errors.invalid(&path.child("name"), &json!(name), "must be a valid CEL identifier");
    }
    if source.trim().is_empty() {
        errors.required(&path.child("expression"), "expression is not specified");
    } else if let Err(why) = environment.define(name, source) {
        refuse(source, &why, &path.child("expression"), errors);
    }
}

fn is_identifier(name: &str) -> bool {
    let is_letter = |c: char| c == '_' || c.is_ascii_alphabetic();
    name.starts_with(is_letter)
        && name.chars().all(|c| is_letter(c) || c.is_ascii_digit())
        && !is_keyword(name)
}

/// Checks `matchConditions` of a policy or of a webhook.
pub(super) fn conditions(holder: &Value, has_params: bool, path: &Path<'_>, errors: &mut Errors) {
    let (all, path) = (list(holder, "matchConditions"), path.child("matchConditions"));
    if all.len() > CONDITIONS_MAX {
        errors.too_many(&path, all.len(), CONDITIONS_MAX);
    }
    let environment = Environment::new(has_params, false);
    let mut seen = BTreeSet::new();
    for (index, condition) in all.iter().enumerate() {
        let (at, name) = (path.index(index), text(condition, "name"));
        match text(condition, "expression").trim() {
            "" => errors.required(&at.child("expression"), ""),
            source => {
                expression(&environment, source, (Returns::Bool, true), &at.child("expression"), errors)
            }
        }
        if required(condition, "name", "", &at, errors) {
            by_rule(name, names::label_key, &at.child("name"), errors);
            if !seen.insert(name) {
                errors.duplicate(&at.child("name"), &json!(name));
            }
        }
    }
}

fn param_kind(kind: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (version, at) = (text(kind, "apiVersion"), path.child("apiVersion"));
    let joined = |faults: Vec<String>| faults.join(",");
    if required(kind, "apiVersion", "", path, errors) {
        let parts: Vec<&str> = version.split('/').collect();
        match parts[..] {
            [only] => versioned("", only, version, &at, errors),
            ["", ""] => versioned("", "", version, &at, errors),
            [group, name] => versioned(group, name, version, &at, errors),
            _ => {
                let detail = format!("unexpected GroupVersion string: {version}");
                errors.invalid(&at, &json!(version), &detail);
            }
        }
    }
    if required(kind, "kind", "", path, errors) {
        let name = text(kind, "kind");
        let faults = names::dns_1035_label(&name.to_lowercase());
        if !faults.is_empty() {
            let detail = format!("may have mixed case, but should otherwise match: {}", joined(faults));
            errors.invalid(&path.child("kind"), &json!(name), &detail);
        }
    }
}

fn versioned(group: &str, version: &str, whole: &str, path: &Path<'_>, errors: &mut Errors) {
    let faults = if group.is_empty() { Vec::new() } else { names::dns_subdomain(group) };
    if !faults.is_empty() {
        errors.invalid(path, &json!(group), &faults.join(","));
    }
    if version.is_empty() {
        errors.invalid(path, &json!(whole), "version must be specified");
        return;
    }
    let faults = names::dns_1035_label(version);
    if !faults.is_empty() {
        errors.invalid(path, &json!(version), &faults.join(","));
    }
}

fn match_resources(resources: &Value, path: &Path<'_>, errors: &mut Errors) {
    one_of(resources, "matchPolicy", &["Equivalent", "Exact"], path, errors);
    selector(resources, "namespaceSelector", path, errors);
    selector(resources, "objectSelector", path, errors);
    for field in ["resourceRules", "excludeResourceRules"] {
        let at = path.child(field);
        for (index, rule) in list(resources, field).iter().enumerate() {
            let at = at.index(index);
            resource_names(rule, &at.child("resourceNames"), errors);
            validate_rule(rule, &at, errors);
        }
    }
}

fn resource_names(rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for (index, name) in list(rule, "resourceNames").iter().enumerate() {
        let text = name.as_str().unwrap_or_default();
        by_rule(text, names::path_segment, &path.index(index), errors);
        if !seen.insert(text) {
            errors.duplicate(&path.index(index), name);
        }
    }
}

/// Checks a binding.
pub(super) fn validate_binding(binding: &Value, context: &Context<'_>, errors: &mut Errors) {
    let (spec, path) = (&binding["spec"], Path::Root.child("spec"));
    if required(spec, "policyName", "", &path, errors) {
        by_rule(text(spec, "policyName"), names::dns_subdomain, &path.child("policyName"), errors);
    }
    if let Some(reference) = get(spec, "paramRef") {
        param_ref(reference, &path.child("paramRef"), errors);
    }
    if let Some(resources) = get(spec, "matchResources") {
        match_resources(resources, &path.child("matchResources"), errors);
    }
    if context.kind.starts_with("Validating") {
        actions(spec, &path.child("validationActions"), errors);
    }
}

fn actions(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let all = list(spec, "validationActions");
    let known = ["Audit", "Deny", "Warn"];
    for (index, action) in all.iter().enumerate() {
        if !known.iter().any(|known| action == known) {
            errors.not_supported(&path.index(index), action, &known);
        }
        if all[..index].contains(action) {
            errors.duplicate(&path.index(index), action);
        }
    }
    let has = |name: &str| all.iter().any(|action| action == name);
    if has("Deny") && has("Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure information in the API \
                      response and headers serves no purpose)";
        errors.invalid(path, &spec["validationActions"], detail);
    }
    if all.is_empty() {
        errors.required(path, "at least one validation action is required");
    }
}

fn param_ref(reference: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (name, has_selector) = (text(reference, "name"), get(reference, "selector").is_some());
    let both = "name and selector are mutually exclusive";
    if !name.is_empty() {
        by_rule(name, names::path_segment, &path.child("name"), errors);
        if has_selector {
            errors.forbidden(&path.child("name"), both);
        }
    }
    selector(reference, "selector", path, errors);
    match (name, has_selector) {
        ("", false) => errors.required(path, "one of name or selector must be specified"),
        ("", true) | (_, false) => {}
        (_, true) => errors.forbidden(&path.child("selector"), both),
    }
    let at = path.child("parameterNotFoundAction");
    match text(reference, "parameterNotFoundAction") {
        "" => errors.required(&at, ""),
        "Allow" | "Deny" => {}
        other => {
            // It lists them as it has them, not in order.
            let message = format!("Unsupported value: {other:?}: supported values: \"Deny\", \"Allow\"");
            errors.push(Reason::NotSupported, &at, message);
        }
    }
}
