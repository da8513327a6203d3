//! Roles and their bindings.

use serde_json::{Value, json};

use super::check::{self, required, required_by};
use super::tree::{each, fill_zero, is_zero, list, same, sub, text};
use super::{Context, Hooks, inner, meta, names};
use crate::field::{Errors, Path};

const GROUP: &str = "rbac.authorization.k8s.io";

/// The hooks of an RBAC kind.
pub(super) fn hooks(kind: &str) -> Option<&'static Hooks> {
    Some(match kind {
        "Role" | "ClusterRole" => &ROLE,
        "RoleBinding" | "ClusterRoleBinding" => &BINDING,
        _ => return None,
    })
}

const ROLE: Hooks = Hooks {
    rechecks: &[meta::Check::Whole, meta::Check::Update],
    name: names::path_segment,
    validate_create: validate_role,
    validate_update: |new, _, context, errors| validate_role(new, context, errors),
    ..Hooks::NONE
};

const BINDING: Hooks = Hooks {
    rechecks: &[meta::Check::Whole, meta::Check::Update],
    default: default_binding,
    name: names::path_segment,
    validate_create: validate_binding,
    validate_update: |new, old, context, errors| {
        validate_binding(new, context, errors);
        if !same(new.get("roleRef"), old.get("roleRef")) {
            let shown = inner::shown("io.k8s.api.rbac.v1.RoleRef", &new["roleRef"]);
            errors.invalid(&Path::Root.child("roleRef"), &shown, "cannot change roleRef");
        }
    },
    ..Hooks::NONE
};

fn default_binding(binding: &mut Value) {
    fill_zero(sub(binding, "roleRef"), "apiGroup", GROUP);
    each(binding, "subjects", |subject| {
        if matches!(text(subject, "kind"), "User" | "Group") {
            fill_zero(subject, "apiGroup", GROUP);
        }
    });
}

fn validate_role(role: &Value, context: &Context<'_>, errors: &mut Errors) {
    for (index, rule) in list(role, "rules").iter().enumerate() {
        let path = Path::Root.child("rules");
        let path = path.index(index);
        required(rule, "verbs", "verbs must contain at least one value", &path, errors);
        if !is_zero(rule.get("nonResourceURLs")) {
            let urls = &rule["nonResourceURLs"];
            if context.namespaced {
                let detail = "namespaced rules cannot apply to non-resource URLs";
                errors.invalid(&path.child("nonResourceURLs"), urls, detail);
            }
            if ["apiGroups", "resources", "resourceNames"].iter().any(|field| !is_zero(rule.get(field))) {
                let detail = "rules cannot apply to both regular resources and non-resource URLs";
                errors.invalid(&path.child("nonResourceURLs"), urls, detail);
            }
            continue;
        }
        required(rule, "apiGroups", "resource rules must supply at least one api group", &path, errors);
        required(rule, "resources", "resource rules must supply at least one resource", &path, errors);
    }
    if let Some(rule) = role.get("aggregationRule").filter(|rule| !rule.is_null()) {
        let path = Path::Root.child("aggregationRule");
        let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        required(rule, "clusterRoleSelectors", detail, &path, errors);
        let path = path.child("clusterRoleSelectors");
        for (index, selector) in list(rule, "clusterRoleSelectors").iter().enumerate() {
            let at = path.index(index);
            check::selector_at(selector, &at, errors);
            if !check::is_valid_selector(selector) {
                errors.invalid(&at, &Value::Null, "invalid label selector.");
            }
        }
    }
}

fn validate_binding(binding: &Value, context: &Context<'_>, errors: &mut Errors) {
    let (role, path) = (&binding["roleRef"], Path::Root.child("roleRef"));
    if text(role, "apiGroup") != GROUP {
        errors.not_supported(&path.child("apiGroup"), &role["apiGroup"], &[GROUP]);
    }
    let kinds: &[&str] = if context.namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    if !kinds.contains(&text(role, "kind")) {
        errors.not_supported(&path.child("kind"), &json!(text(role, "kind")), kinds);
    }
    required_by(role, "name", names::path_segment, &path, errors);
    for (index, subject) in list(binding, "subjects").iter().enumerate() {
        let path = Path::Root.child("subjects");
        validate_subject(subject, context, &path.index(index), errors);
    }
}

fn validate_subject(subject: &Value, context: &Context<'_>, path: &Path<'_>, errors: &mut Errors) {
    let kind = text(subject, "kind");
    required(subject, "name", "", path, errors);
    let group = match kind {
        "ServiceAccount" => "",
        "User" | "Group" => GROUP,
        _ => {
            errors.not_supported(&path.child("kind"), &json!(kind), &["ServiceAccount", "User", "Group"]);
            return;
        }
    };
    if kind == "ServiceAccount" {
        super::check::text_by(subject, "name", names::dns_subdomain, path, errors);
        if !context.namespaced && text(subject, "namespace").is_empty() {
            errors.required(&path.child("namespace"), "");
        }
    }
    if text(subject, "apiGroup") != group {
        errors.not_supported(&path.child("apiGroup"), &json!(text(subject, "apiGroup")), &[group]);
    }
}
