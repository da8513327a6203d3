//! Volumes of a pod spec.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Scene, env, projected};
use crate::field::{Errors, Path};
use crate::kinds::check::{by_rule, one_of, quantity, required, required_by};
use crate::kinds::core::{source, storage};
use crate::kinds::tree::{get, int, is_zero, list, text};
use crate::kinds::{meta, names, paths};

/// The sources of a volume, in the order in which the real server looks for them.
const SOURCES: [&str; 30] = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
];

/// Checks the volumes and returns the good ones by name.
pub(super) fn validate<'a>(
    spec: &'a Value,
    scene: &Scene<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) -> BTreeMap<&'a str, &'a Value> {
    let path = path.child("volumes");
    let mut good = BTreeMap::new();
    let claimed: BTreeSet<String> = list(spec, "volumes")
        .iter()
        .filter(|volume| !scene.name.is_empty() && get(volume, "ephemeral").is_some())
        .map(|volume| format!("{}-{}", scene.name, text(volume, "name")))
        .collect();
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        let path = path.index(index);
        let before = errors.0.len();
        let name = text(volume, "name");
        source(volume, scene, &path, errors);
        required_by(volume, "name", names::dns_label, &path, errors);
        if good.contains_key(name) {
            errors.duplicate(&path.child("name"), &json!(name));
        }
        if errors.0.len() == before {
            good.insert(name, volume);
        }
        let claim = text(&volume["persistentVolumeClaim"], "claimName");
        if claimed.contains(claim) {
            let detail = "must not reference a PVC that gets created for an ephemeral volume";
            errors.invalid(&path.child("persistentVolumeClaim").child("claimName"), &json!(claim), detail);
        }
    }
    good
}

/// A token is for a service account, so that there must be one.
pub(super) fn no_tokens_without_account(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        let Some(projected) = get(volume, "projected") else { continue };
        for (source_index, source) in list(projected, "sources").iter().enumerate() {
            if get(source, "serviceAccountToken").is_some() {
                let volumes = path.child("volumes");
                let volume = volumes.index(index);
                let projected = volume.child("projected");
                let at = projected.child("sources");
                let at = at.index(source_index);
                let detail = "must not be specified when serviceAccountName is not set";
                errors.forbidden(&at.child("serviceAccountToken"), detail);
            }
        }
    }
}

fn source(volume: &Value, scene: &Scene<'_>, path: &Path<'_>, errors: &mut Errors) {
    let mut present = SOURCES.iter().filter(|source| get(volume, source).is_some());
    let Some(first) = present.next() else {
        errors.required(path, "must specify a volume type");
        return;
    };
    one_source(first, volume, scene, path, errors);
    if *first == "iscsi" {
        portal(volume, path, errors);
    }
    for more in present {
        // The real server spells them so.
        let name = match *more {
            "cephfs" => "cephFS",
            "downwardAPI" => "downwarAPI",
            more => more,
        };
        errors.forbidden(&path.child(name), "may not specify more than 1 volume type");
        if *more == "iscsi" {
            portal(volume, path, errors);
        }
    }
}

/// A volume and its portal share a name of limited length with whoever opens it.
fn portal(volume: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (name, source) = (text(volume, "name"), &volume["iscsi"]);
    if get(source, "initiatorName").is_some() && name.len() + 1 + text(source, "targetPortal").len() > 64 {
        errors.invalid(&path.child("name"), &json!(name), storage::LONG_PORTAL);
    }
}

fn one_source(kind: &str, volume: &Value, scene: &Scene<'_>, path: &Path<'_>, errors: &mut Errors) {
    let (source, at) = (&volume[kind], path.child(kind));
    match kind {
        "emptyDir" => {
            if get(source, "sizeLimit").and_then(quantity).is_some_and(|limit| limit.signum() < 0) {
                let detail = "SizeLimit field must be a valid resource quantity";
                errors.forbidden(&at.child("sizeLimit"), detail);
            }
        }
        "secret" => keys(source, "secretName", &at, errors),
        "configMap" => keys(source, "name", &at, errors),
        "downwardAPI" => {
            paths::mode(int(source, "defaultMode"), &at.child("defaultMode"), errors);
            for file in list(source, "items") {
                // The real server does not say which item it is.
                downward_file(file, &at, errors);
            }
        }
        "projected" => projected::validate(source, &at, errors),
        "csi" => {
            source::driver_name(text(source, "driver"), &at.child("driver"), errors);
            if let Some(secret) = get(source, "nodePublishSecretRef") {
                match text(secret, "name") {
                    "" => errors.required(&at.child("nodePublishSecretRef").child("name"), ""),
                    name => by_rule(name, names::dns_subdomain, &at.child("name"), errors),
                }
            }
        }
        "ephemeral" => {
            if required(source, "volumeClaimTemplate", "", &at, errors) {
                claim_template(&source["volumeClaimTemplate"], &at.child("volumeClaimTemplate"), errors);
            }
            let name = text(volume, "name");
            if !scene.name.is_empty() && !name.is_empty() {
                let claim = format!("{}-{name}", scene.name);
                for fault in names::dns_subdomain(&claim) {
                    let detail = format!("PVC name {claim:?}: {fault}");
                    errors.invalid(&path.child("name"), &json!(name), &detail);
                }
            }
        }
        "image" => {
            if scene.is_pod {
                required(source, "reference", "", &at, errors);
            }
            one_of(source, "pullPolicy", &["Always", "IfNotPresent", "Never"], &at, errors);
        }
        "gcePersistentDisk" => source::plugin(kind, source, false, &path.child("persistentDisk"), errors),
        _ => source::plugin(kind, source, false, &at, errors),
    }
}

/// A claim that is made from a template has no metadata but labels and annotations.
fn claim_template(template: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (metadata, at) = (get(template, "metadata").unwrap_or(&Value::Null), path.child("metadata"));
    meta::annotations(metadata, &at, errors);
    meta::labels(metadata, "labels", &at, errors);
    const OTHERS: [(&str, &str); 12] = [
        ("name", "name"),
        ("generateName", "generateName"),
        ("namespace", "namespace"),
        ("selfLink", "selfLink"),
        ("uid", "uID"),
        ("resourceVersion", "resourceVersion"),
        ("generation", "generation"),
        ("creationTimestamp", "creationTimestamp"),
        ("deletionTimestamp", "deletionTimestamp"),
        ("deletionGracePeriodSeconds", "deletionGracePeriodSeconds"),
        ("ownerReferences", "ownerReferences"),
        ("finalizers", "finalizers"),
    ];
    for (field, shown) in OTHERS {
        if !is_zero(metadata.get(field)) {
            errors.forbidden(&at.child(shown), "cannot be set");
        }
    }
    storage::claim_spec(&template["spec"], &path.child("spec"), errors);
}

/// The keys of a secret or config map as files.
fn keys(source: &Value, name: &str, path: &Path<'_>, errors: &mut Errors) {
    required(source, name, "", path, errors);
    paths::mode(int(source, "defaultMode"), &path.child("defaultMode"), errors);
    for (index, item) in list(source, "items").iter().enumerate() {
        key_to_path(item, &path.child("items").index(index), errors);
    }
}

/// One key as a file.
pub(super) fn key_to_path(item: &Value, path: &Path<'_>, errors: &mut Errors) {
    required(item, "key", "", path, errors);
    required(item, "path", "", path, errors);
    paths::free(text(item, "path"), &path.child("path"), errors);
    paths::mode(int(item, "mode"), &path.child("mode"), errors);
}

/// A fact of the pod as a file.
pub(super) fn downward_file(file: &Value, path: &Path<'_>, errors: &mut Errors) {
    const FIELDS: [&str; 5] =
        ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];
    required(file, "path", "", path, errors);
    paths::free(text(file, "path"), &path.child("path"), errors);
    match (get(file, "fieldRef"), get(file, "resourceFieldRef")) {
        (Some(field), resource) => {
            env::field_ref(field, &FIELDS, &path.child("fieldRef"), errors);
            if resource.is_some() {
                let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
                errors.invalid(path, &json!("resource"), detail);
            }
        }
        (None, Some(resource)) => {
            env::resource_ref(resource, true, &path.child("resourceFieldRef"), errors);
        }
        (None, None) => errors.required(path, "one of fieldRef and resourceFieldRef is required"),
    }
    paths::mode(int(file, "mode"), &path.child("mode"), errors);
}
