//! Limit ranges and resource quotas.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::codec::Quantity;
use crate::field::{Errors, Path};
use crate::kinds::check::{by_rule, quantity};
use crate::kinds::meta::{Check, IMMUTABLE_FIELD};
use crate::kinds::names;
use crate::kinds::pod::{container_resource_name, overcommits, resource_name, value_of};
use crate::kinds::tree::{at, each, entries, fill, fill_zero, get, is_zero, list, sub, text, text_at};
use crate::kinds::{Hooks, inner};

pub(super) const LIMIT_RANGE: Hooks = Hooks {
    default: |object| each(sub(object, "spec"), "limits", default_limit),
    // A limit range without a name gets one that nobody else has.
    prepare_create: |object, _| {
        let uid = text_at(object, &["metadata", "uid"]).to_owned();
        fill_zero(sub(object, "metadata"), "name", uid);
    },
    validate_create: |object, _, errors| validate_limits(object, errors),
    rechecks: &[Check::Whole],
    validate_update: |new, _, _, errors| validate_limits(new, errors),
    ..Hooks::NONE
};

pub(super) const RESOURCE_QUOTA: Hooks = Hooks {
    warnings: |quota, old| if old.is_none() { warnings(quota) } else { Vec::new() },
    validate_create: |object, _, errors| validate_quota(object, errors),
    validate_update: |new, old, _, errors| {
        validate_quota(new, errors);
        let scopes = |object: &Value| {
            let all = list(&object["spec"], "scopes").iter();
            all.filter_map(Value::as_str).map(str::to_owned).collect::<BTreeSet<_>>()
        };
        if scopes(new) != scopes(old) {
            let path = Path::Root.child("spec");
            let shown = new["spec"].get("scopes").cloned().unwrap_or(Value::Null);
            errors.invalid(&path.child("scopes"), &shown, IMMUTABLE_FIELD);
        }
    },
    validate_status: |new, _, _, errors| validate_quota_status(new, errors),
    ..Hooks::NONE
};

/// Containers get `default` from `max`, and `defaultRequest` from `default`, else from `min`.
fn default_limit(limit: &mut Value) {
    if text(limit, "type") != "Container" {
        return;
    }
    for (to, from) in [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")] {
        let Some(source) = get(limit, from).and_then(Value::as_object).cloned() else { continue };
        for (name, amount) in source {
            fill(sub(limit, to), &name, amount);
        }
    }
}

fn validate_limits(object: &Value, errors: &mut Errors) {
    let path = Path::Root.child("spec");
    let path = path.child("limits");
    let mut seen = BTreeSet::new();
    for (index, limit) in list(&object["spec"], "limits").iter().enumerate() {
        let path = path.index(index);
        let kind = text(limit, "type");
        by_rule(kind, names::label_key, &path.child("type"), errors);
        let standard = ["Pod", "Container", "PersistentVolumeClaim"];
        if !kind.contains('/') && !standard.contains(&kind) && names::label_key(kind).is_empty() {
            let detail = "must be a standard limit type or fully qualified";
            errors.invalid(&path.child("type"), &json!(kind), detail);
        }
        if !seen.insert(kind) {
            errors.duplicate(&path.child("type"), &json!(kind));
        }
        resource_names(limit, kind, &["max", "min"], &path, errors);
        if kind == "Pod" {
            for field in ["default", "defaultRequest"] {
                if !is_zero(limit.get(field)) {
                    errors.forbidden(&path.child(field), "may not be specified when `type` is 'Pod'");
                }
            }
        } else {
            resource_names(limit, kind, &["default", "defaultRequest"], &path, errors);
        }
        let bounded =
            ["min", "max"].iter().any(|field| limit.pointer(&format!("/{field}/storage")).is_some());
        if kind == "PersistentVolumeClaim" && !bounded {
            let detail = "either minimum or maximum storage value is required, but neither was provided";
            errors.required(&path.child("limits"), detail);
        }
        resource_names(limit, kind, &["maxLimitRequestRatio"], &path, errors);
        bounds(limit, kind == "Pod", &path, errors);
    }
}

fn resource_names(limit: &Value, kind: &str, fields: &[&str], path: &Path<'_>, errors: &mut Errors) {
    for field in fields {
        let path = path.child(field);
        for (name, _) in entries(limit, field) {
            match kind {
                "Pod" | "Container" => container_resource_name(name, &path.key(name), errors),
                _ => resource_name(name, &path.key(name), errors),
            }
        }
    }
}

/// Of each resource, min ≤ defaultRequest ≤ default ≤ max.
fn bounds(limit: &Value, of_pod: bool, path: &Path<'_>, errors: &mut Errors) {
    let fields: &[&str] = if of_pod { &["min", "max"] } else { &["min", "max", "default", "defaultRequest"] };
    let ratios = ["maxLimitRequestRatio"];
    let names = fields.iter().chain(&ratios).flat_map(|field| entries(limit, field)).map(|(name, _)| name);
    for name in names.collect::<BTreeSet<_>>() {
        let amount = |field: &str| fields.contains(&field).then(|| get(limit, field)?.get(name))?;
        for (low, high, at, value, words) in [
            ("min", "max", "min", "min", "min value {} is greater than max value {}"),
            (
                "min",
                "defaultRequest",
                "defaultRequest",
                "defaultRequest",
                "min value {} is greater than default request value {}",
            ),
            (
                "defaultRequest",
                "max",
                "defaultRequest",
                "defaultRequest",
                "default request value {} is greater than max value {}",
            ),
            (
                "defaultRequest",
                "default",
                "defaultRequest",
                "defaultRequest",
                "default request value {} is greater than default limit value {}",
            ),
            ("min", "default", "default", "min", "min value {} is greater than default value {}"),
            ("default", "max", "default", "max", "default value {} is greater than max value {}"),
        ] {
            let (Some(a), Some(b)) = (amount(low).and_then(quantity), amount(high).and_then(quantity)) else {
                continue;
            };
            if a > b {
                let detail = words.replacen("{}", &a.to_string(), 1).replacen("{}", &b.to_string(), 1);
                let value = amount(value).unwrap_or(&Value::Null);
                errors.invalid(&path.child(at).key(name), value, &detail);
            }
        }
        ratio(limit, name, path, errors);
        let (default, request) = (amount("default"), amount("defaultRequest"));
        if let (Some(default), Some(request)) = (default.and_then(quantity), request.and_then(quantity))
            && !overcommits(name)
            && default != request
        {
            let detail =
                format!("default value {default} must equal to defaultRequest value {request} in {name}");
            let value = amount("defaultRequest").unwrap_or(&Value::Null);
            errors.invalid(&path.child("defaultRequest").key(name), value, &detail);
        }
    }
}

/// A ratio of limit to request is at least 1, and no more than the bounds leave room for.
fn ratio(limit: &Value, name: &str, path: &Path<'_>, errors: &mut Errors) {
    let amount = |field: &str| get(limit, field).and_then(|amounts| get(amounts, name));
    let Some((shown, most)) =
        amount("maxLimitRequestRatio").and_then(|ratio| Some((ratio, quantity(ratio)?)))
    else {
        return;
    };
    let path = path.child("maxLimitRequestRatio");
    if most < Quantity::from_i64(1) {
        errors.invalid(&path.key(name), shown, &format!("ratio {most} is less than 1"));
    }
    if let (Some(min), Some(max)) = (amount("min").and_then(quantity), amount("max").and_then(quantity)) {
        // As exact as Go reckons: in thousandths, unless one of them has too many.
        let thousandths = [&most, &min, &max].map(Quantity::as_milli);
        let (most_of, room) = match thousandths {
            [Some(most), Some(min), Some(max)] => (most as f64 / 1000.0, max as f64 / min as f64),
            _ => {
                let whole = |amount: &Quantity| amount.as_i64().unwrap_or(i64::MAX) as f64;
                (whole(&most), whole(&max) / whole(&min))
            }
        };
        if most_of > room {
            let detail = format!("ratio {most} is greater than max/min = {room:.6}");
            errors.invalid(&path.key(name), shown, &detail);
        }
    }
}

fn validate_quota(quota: &Value, errors: &mut Errors) {
    let (spec, path) = (&quota["spec"], Path::Root.child("spec"));
    for (name, amount) in entries(spec, "hard") {
        let hard = path.child("hard");
        let at = hard.key(name);
        quota_name(name, &at, errors);
        value_of(name, amount, &at, errors);
    }
    scopes(spec, &path, errors);
    scope_selector(spec, &path, errors);
}

fn quota_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    resource_name(name, path, errors);
    if !name.contains('/') && !QUOTA_RESOURCES.contains(&name) && !is_huge(name) {
        errors.invalid(path, &json!(name), "must be a standard resource for quota");
    }
}

fn validate_quota_status(quota: &Value, errors: &mut Errors) {
    let status = Path::Root.child("status");
    for field in ["hard", "used"] {
        for (name, amount) in entries(&quota["status"], field) {
            let amounts = status.child(field);
            let at = amounts.key(name);
            quota_name(name, &at, errors);
            value_of(name, amount, &at, errors);
        }
    }
}

fn is_huge(name: &str) -> bool {
    ["hugepages-", "requests.hugepages-"].iter().any(|head| name.starts_with(head))
}

const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
];

/// Whether objects of a scope use a resource.
fn fits(scope: &str, resource: &str) -> bool {
    let compute = || {
        let bare =
            resource.strip_prefix("requests.").or(resource.strip_prefix("limits.")).unwrap_or(resource);
        resource == "pods" || ["cpu", "memory"].contains(&bare)
    };
    match scope {
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => ["persistentvolumeclaims", "requests.storage"].contains(&resource),
        _ => !SCOPES.contains(&scope) || compute(),
    }
}

/// Requests that are never reached, since the limits come first.
fn warnings(quota: &Value) -> Vec<String> {
    let hard = |name: &str| at(quota, &["spec", "hard", name]).and_then(quantity);
    let of = |name: &&str| {
        let requests = format!("requests.{name}");
        let bare = (*name != "ephemeral-storage").then_some(*name);
        let names = [Some(requests.as_str()), bare].into_iter().flatten();
        let (request, amount) = names.filter_map(|name| Some((name.to_owned(), hard(name)?))).next()?;
        let limit = hard(&format!("limits.{name}")).filter(|limit| amount > *limit)?;
        Some(format!("ResourceQuota {request} ({amount}) should be less than limits.{name} ({limit})"))
    };
    ["cpu", "memory", "ephemeral-storage"].iter().filter_map(of).collect()
}

/// How often a scope is applied to a resource that its objects do not use.
fn misfits(spec: &Value, scope: &str) -> usize {
    let limited = entries(spec, "hard").map(|(name, _)| name.as_str());
    let unqualified = |name: &&str| QUOTA_RESOURCES.contains(name) || is_huge(name);
    limited.filter(unqualified).filter(|name| !fits(scope, name)).count()
}

fn conflicts(scopes: &[&str]) -> usize {
    let pairs = [("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating")];
    pairs.iter().filter(|(one, other)| scopes.contains(one) && scopes.contains(other)).count()
}

fn scopes(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("scopes");
    let scopes = list(spec, "scopes").iter().filter_map(Value::as_str).collect::<Vec<_>>();
    for scope in &scopes {
        if !SCOPES.contains(scope) {
            errors.invalid(&path, &spec["scopes"], "unsupported scope");
        }
        for _ in 0..misfits(spec, scope) {
            errors.invalid(&path, &spec["scopes"], "unsupported scope applied to resource");
        }
    }
    for _ in 0..conflicts(&scopes) {
        errors.invalid(&path, &spec["scopes"], "conflicting scopes");
    }
}

fn scope_selector(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(selector) = get(spec, "scopeSelector") else { return };
    let path = path.child("scopeSelector");
    let path = path.child("matchExpressions");
    let expressions = list(selector, "matchExpressions");
    for expression in expressions {
        let (scope, operator) = (text(expression, "scopeName"), text(expression, "operator"));
        if !SCOPES.contains(&scope) {
            errors.invalid(&path.child("scopeName"), &json!(scope), "unsupported scope");
        }
        for _ in 0..misfits(spec, scope) {
            let shown = inner::shown("io.k8s.api.core.v1.ScopeSelector", selector);
            errors.invalid(&path, &shown, "unsupported scope applied to resource");
        }
        let at = path.child("operator");
        let valued = ["PriorityClass", "VolumeAttributesClass"].contains(&scope);
        if SCOPES.contains(&scope) && !valued && operator != "Exists" {
            let detail = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
                          ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, \
                          ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
            errors.invalid(&at, &json!(operator), detail);
        }
        let values = list(expression, "values");
        match operator {
            "In" | "NotIn" if values.is_empty() => {
                let detail =
                    "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                errors.required(&path.child("values"), detail);
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let detail =
                    "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                errors.invalid(&path.child("values"), &expression["values"], detail);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => errors.invalid(&at, &json!(operator), "not a valid selector operator"),
        }
    }
    let names = expressions.iter().map(|expression| text(expression, "scopeName")).collect::<Vec<_>>();
    for _ in 0..conflicts(&names) {
        errors.invalid(&path, spec.get("scopes").unwrap_or(&Value::Null), "conflicting scopes");
    }
}

/// Resources that a quota may limit without a qualified name.
const QUOTA_RESOURCES: [&str; 19] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "persistentvolumeclaims",
    "configmaps",
    "services.nodeports",
    "services.loadbalancers",
];
