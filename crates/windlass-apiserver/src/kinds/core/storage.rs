//! Persistent volumes and claims.

use serde_json::{Value, json};

use super::volume;
use crate::kinds::tree::{fill, fill_zero, get, list, set, sub, text_at};
use crate::kinds::{Context, Hooks};
use crate::status::Status;

pub(super) const VOLUME: Hooks =
    Hooks { default: default_volume, admit: admit_volume, prepare_create: prepare_volume, ..Hooks::NONE };

pub(super) const CLAIM: Hooks =
    Hooks { default: default_claim, admit: admit_claim, prepare_create: prepare_claim, ..Hooks::NONE };

fn default_volume(object: &mut Value) {
    fill_zero(sub(object, "status"), "phase", "Pending");
    let spec = sub(object, "spec");
    fill_zero(spec, "persistentVolumeReclaimPolicy", "Retain");
    fill(spec, "volumeMode", "Filesystem");
    volume::plugin(spec);
}

/// Defaults of a claim, also of those in the templates of stateful sets.
pub(crate) fn default_claim(object: &mut Value) {
    fill_zero(sub(object, "status"), "phase", "Pending");
    fill(sub(object, "spec"), "volumeMode", "Filesystem");
}

fn prepare_volume(object: &mut Value, context: &Context<'_>) {
    let now = crate::kinds::tree::seconds(context.now);
    set(object, "status", json!({"phase": "Pending", "lastPhaseTransitionTime": now}));
}

fn prepare_claim(object: &mut Value, _: &Context<'_>) {
    set(object, "status", json!({"phase": "Pending"}));
    mirror_data_source(sub(object, "spec"));
}

/// `dataSource` and `dataSourceRef` mirror each other where the old field can express it.
fn mirror_data_source(spec: &mut Value) {
    match (get(spec, "dataSource").cloned(), get(spec, "dataSourceRef").cloned()) {
        (Some(source), None) => set(spec, "dataSourceRef", source),
        (None, Some(reference)) if get(&reference, "namespace").is_none() => {
            set(spec, "dataSource", reference)
        }
        _ => {}
    }
}

/// StorageObjectInUseProtection.
fn protect(object: &mut Value, finalizer: &str) {
    let metadata = sub(object, "metadata");
    let mut finalizers = list(metadata, "finalizers").to_vec();
    if !finalizers.iter().any(|present| present == finalizer) {
        finalizers.push(json!(finalizer));
        set(metadata, "finalizers", finalizers);
    }
}

fn admit_volume(object: &mut Value, old: Option<&Value>, _: &Context<'_>) -> Result<(), Status> {
    if old.is_none() {
        protect(object, "kubernetes.io/pv-protection");
    }
    Ok(())
}

fn admit_claim(object: &mut Value, old: Option<&Value>, context: &Context<'_>) -> Result<(), Status> {
    if old.is_some() {
        return Ok(());
    }
    protect(object, "kubernetes.io/pvc-protection");
    let annotated = text_at(object, &["metadata", "annotations", "volume.beta.kubernetes.io/storage-class"]);
    let named = object.pointer("/spec/storageClassName").is_some_and(|name| !name.is_null());
    if annotated.is_empty()
        && !named
        && let Some(class) = default_class(context)
    {
        set(sub(object, "spec"), "storageClassName", class);
    }
    Ok(())
}

/// DefaultStorageClass: the newest class that is marked as default.
fn default_class(context: &Context<'_>) -> Option<String> {
    let marked = |class: &Value| {
        ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"]
            .iter()
            .any(|key| text_at(class, &["metadata", "annotations", key]) == "true")
    };
    let mut classes = context.world.list("storage.k8s.io", "StorageClass", "");
    classes.retain(marked);
    // Newest first; of the same second the first name.
    classes.sort_by(|a, b| {
        let of = |class: &Value, field: &str| text_at(class, &["metadata", field]).to_owned();
        of(b, "creationTimestamp").cmp(&of(a, "creationTimestamp")).then(of(a, "name").cmp(&of(b, "name")))
    });
    classes.first().map(|class| text_at(class, &["metadata", "name"]).to_owned())
}
