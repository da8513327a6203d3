//! Volumes of a pod spec.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::containers::field_ref;
use crate::field::{Errors, Path};
use crate::kinds::check::{required, required_by, text_by};
use crate::kinds::core::storage;
use crate::kinds::names;
use crate::kinds::tree::{get, list, text};

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

/// Checks the volumes and returns the names of the good ones.
pub(super) fn validate<'a>(spec: &'a Value, path: &Path<'_>, errors: &mut Errors) -> BTreeSet<&'a str> {
    let path = path.child("volumes");
    let mut good = BTreeSet::new();
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        let path = path.index(index);
        let before = errors.0.len();
        source(volume, &path, errors);
        required_by(volume, "name", names::dns_label, &path, errors);
        let name = text(volume, "name");
        if good.contains(name) {
            errors.duplicate(&path.child("name"), &json!(name));
        }
        if errors.0.len() == before {
            good.insert(name);
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

fn source(volume: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut present = SOURCES.iter().filter(|source| get(volume, source).is_some());
    let Some(first) = present.next() else {
        errors.required(path, "must specify a volume type");
        return;
    };
    let (source, at) = (&volume[*first], path.child(first));
    let needed: &[&str] = match *first {
        "hostPath" => &["path"],
        "secret" => &["secretName"],
        "configMap" => &["name"],
        "persistentVolumeClaim" => &["claimName"],
        "nfs" => &["server", "path"],
        "csi" => &["driver"],
        "image" => &["reference"],
        "iscsi" => &["targetPortal", "iqn"],
        "rbd" => &["monitors", "image"],
        "azureDisk" => &["diskName", "diskURI"],
        _ => &[],
    };
    for field in needed {
        required(source, field, "", &at, errors);
    }
    match *first {
        "csi" => {
            text_by(source, "driver", names::dns_subdomain, &at, errors);
            if text(source, "driver").len() > 63 {
                errors.too_long(&at.child("driver"), 63);
            }
        }
        "nfs" if !text(source, "path").starts_with('/') => {
            errors.invalid(&at.child("path"), &json!(text(source, "path")), "must be an absolute path");
        }
        "ephemeral" if required(source, "volumeClaimTemplate", "", &at, errors) => {
            let template = at.child("volumeClaimTemplate");
            storage::claim_spec(&source["volumeClaimTemplate"]["spec"], &template.child("spec"), errors);
        }
        _ => {}
    }
    for (index, item) in list(source, "items").iter().enumerate() {
        let items = at.child("items");
        if matches!(*first, "secret" | "configMap") {
            required(item, "key", "", &items.index(index), errors);
        }
        if *first == "downwardAPI" {
            // The real server does not say which item it is.
            required(item, "path", "", &at, errors);
            if let Some(field) = get(item, "fieldRef") {
                let more = ["metadata.labels", "metadata.annotations"];
                field_ref(field, &more, &at.child("fieldRef"), errors);
            }
        } else {
            required(item, "path", "", &items.index(index), errors);
        }
    }
    for more in present {
        errors.forbidden(&path.child(more), "may not specify more than 1 volume type");
    }
}
