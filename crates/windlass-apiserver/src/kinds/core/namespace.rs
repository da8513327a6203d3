//! Namespaces.

use serde_json::{Value, json};

use crate::field::{Errors, Path};
use crate::kinds::check::by_rule;
use crate::kinds::tree::{fill_zero, list, restore, set, sub, text_at};
use crate::kinds::{Context, Hooks, meta, names};

/// The finalizer that holds a namespace until its content is gone.
const FINALIZER: &str = "kubernetes";

pub(super) const NAMESPACE: Hooks = Hooks {
    rechecks: &[meta::Check::Whole, meta::Check::Update],
    default,
    name: names::dns_label,
    prepare_create,
    prepare_update: |new, old, context| {
        if context.subresource != "finalize" {
            restore(sub(new, "spec"), &old["spec"], "finalizers");
        }
    },
    validate_create: |namespace, _, errors| {
        for name in list(&namespace["spec"], "finalizers").iter().filter_map(Value::as_str) {
            finalizer(name, &Path::Root.child("spec").child("finalizers"), errors);
        }
    },
    validate_update: |new, _, context, errors| {
        if context.subresource == "finalize" {
            validate_finalizers(new, errors);
        }
    },
    validate_status: |new, _, _, errors| {
        let deleting = new.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null());
        let (phase, detail) = match deleting {
            false => ("Active", "may only be 'Active' if `deletionTimestamp` is empty"),
            true => ("Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty"),
        };
        if text_at(new, &["status", "phase"]) != phase {
            // The capital letter is the real server's.
            errors.invalid(&Path::Root.child("status").child("Phase"), &new["status"]["phase"], detail);
        }
    },
    ..Hooks::NONE
};

/// The phase, and the label by which selectors find a namespace of this name.
fn default(namespace: &mut Value) {
    let name = text_at(namespace, &["metadata", "name"]).to_owned();
    if !name.is_empty() {
        set(sub(sub(namespace, "metadata"), "labels"), "kubernetes.io/metadata.name", name);
        if let Some(labels) = namespace.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
            labels.sort_keys();
        }
    }
    fill_zero(sub(namespace, "status"), "phase", "Active");
}

fn prepare_create(namespace: &mut Value, _: &Context<'_>) {
    set(namespace, "status", json!({"phase": "Active"}));
    default(namespace);
    let spec = sub(namespace, "spec");
    let mut finalizers = list(spec, "finalizers").to_vec();
    if !finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
        finalizers.push(json!(FINALIZER));
        set(spec, "finalizers", finalizers);
    }
}

fn validate_finalizers(namespace: &Value, errors: &mut Errors) {
    let path = Path::Root.child("spec");
    let path = path.child("finalizers");
    for (index, name) in list(&namespace["spec"], "finalizers").iter().filter_map(Value::as_str).enumerate() {
        finalizer(name, &path.index(index), errors);
    }
}

fn finalizer(name: &str, path: &Path<'_>, errors: &mut Errors) {
    by_rule(name, names::label_key, path, errors);
    if !name.contains('/') && !["kubernetes", "orphan", "foregroundDeletion"].contains(&name) {
        let detail = "name is neither a standard finalizer name nor is it fully qualified";
        errors.invalid(path, &json!(name), detail);
    }
}
