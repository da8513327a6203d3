//! Namespaces.

use serde_json::{Value, json};

use crate::kinds::tree::{fill_zero, list, restore, set, sub, text_at};
use crate::kinds::{Context, Hooks, names};

/// The finalizer that holds a namespace until its content is gone.
const FINALIZER: &str = "kubernetes";

pub(super) const NAMESPACE: Hooks = Hooks {
    default,
    name: names::dns_label,
    prepare_create,
    prepare_update: |new, old, _| match old.get("spec") {
        Some(spec) => restore(sub(new, "spec"), spec, "finalizers"),
        None => set(new, "spec", json!({})),
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
