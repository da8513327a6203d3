//! Events, in the core group and in their own.

use serde_json::{Value, json};

use super::check::{by_rule, required};
use super::tree::{get, int, is_zero, same, text, text_at};
use super::{Context, Hooks, meta, names};
use crate::field::{Errors, Path};

/// The hooks of an events kind.
pub(super) fn hooks(kind: &str) -> Option<&'static Hooks> {
    (kind == "Event").then_some(&EVENT)
}

/// Events of the core group, of whose finalizers less is asked.
pub(super) const CORE_EVENT: Hooks = Hooks { rechecks: &[], qualifies: false, ..EVENT };

/// Events of both groups; the new group is stricter.
const EVENT: Hooks = Hooks {
    name: |_| Vec::new(),
    validate_create: |event, context, errors| {
        validate(event, context, errors);
        if !context.group.is_empty() {
            validate_new(event, errors);
        }
    },
    validate_update: |new, old, context, errors| {
        validate(new, context, errors);
        if !context.group.is_empty() {
            if !same(new.get("series"), old.get("series")) {
                validate_series(new, errors);
            }
            for (field, told) in KEPT {
                if !same(new.get(field), old.get(field)) {
                    let value = new.get(field).unwrap_or(&Value::Null);
                    errors.invalid(&Path::Root.child(told), value, meta::IMMUTABLE_FIELD);
                }
            }
        }
    },
    ..Hooks::NONE
};

/// What may not change in the new group, and what it is called in refusals. The reason is looked at twice.
const KEPT: [(&str, &str); 14] = [
    ("regarding", "involvedObject"),
    ("reason", "reason"),
    ("note", "message"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
    ("reason", "reason"),
    ("type", "type"),
    ("eventTime", "eventTime"),
    ("action", "action"),
    ("related", "related"),
    ("reportingController", "reportingController"),
    ("reportingInstance", "reportingInstance"),
];

fn validate(event: &Value, context: &Context<'_>, errors: &mut Errors) {
    let root = Path::Root;
    let (about, controller) = match context.group {
        "" => ("involvedObject", "reportingComponent"),
        _ => ("regarding", "reportingController"),
    };
    let namespace = text_at(event, &["metadata", "namespace"]);
    let other = text_at(event, &[about, "namespace"]);
    let timed = get(event, "eventTime").is_some();
    let agrees = match (timed, other) {
        (false, "") => matches!(namespace, "" | "default"),
        (false, other) => other == namespace,
        (true, "") => matches!(namespace, "default" | "kube-system"),
        (true, _) => true,
    };
    if !agrees {
        let path = root.child("involvedObject");
        errors.invalid(&path.child("namespace"), &json!(other), "does not match event.namespace");
    }
    if !timed {
        return;
    }
    required(event, controller, "", &root, errors);
    by_rule(text(event, controller), names::label_key, &root.child(controller), errors);
    for (field, max) in [("reportingInstance", 128), ("action", 128), ("reason", 128)] {
        required(event, field, "", &root, errors);
        if text(event, field).len() > max {
            errors.invalid(&root.child(field), &json!(""), &format!("can have at most {max} characters"));
        }
    }
    let note = if context.group.is_empty() { "message" } else { "note" };
    if text(event, note).len() > 1024 {
        errors.invalid(&root.child("message"), &json!(""), "can have at most 1024 characters");
    }
}

fn validate_new(event: &Value, errors: &mut Errors) {
    let root = Path::Root;
    let name = text_at(event, &["metadata", "name"]);
    by_rule(name, names::dns_subdomain, &root.child("metadata").child("name"), errors);
    validate_series(event, errors);
    required(event, "eventTime", "", &root, errors);
    let kind = text(event, "type");
    if !matches!(kind, "Normal" | "Warning") {
        errors.invalid(&root.child("type"), &json!(""), &format!("has invalid value: {kind}"));
    }
    for (field, told) in [
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        ("deprecatedSource", "source"),
    ] {
        if !is_zero(event.get(field)) {
            errors.invalid(&root.child(told), &json!(""), "needs to be unset");
        }
    }
}

fn validate_series(event: &Value, errors: &mut Errors) {
    let Some(series) = get(event, "series") else { return };
    let path = Path::Root.child("series");
    if int(series, "count").unwrap_or(0) < 2 {
        errors.invalid(&path.child("count"), &json!(""), "should be at least 2");
    }
    required(series, "lastObservedTime", "", &path, errors);
}
