//! Defaults of volume sources, in pods and in persistent volumes.

use serde_json::{Map, Value, json};

use crate::kinds::pod::defaults::pull_policy;
use crate::kinds::tree::{each, existing, fill, fill_zero, set, sub, text};

/// Defaults of one volume of a pod.
pub(crate) fn default(volume: &mut Value) {
    let unset = volume.as_object().is_some_and(|map| map.iter().all(|(key, v)| key == "name" || v.is_null()));
    if unset {
        set(volume, "emptyDir", Map::new());
    }
    if let Some(image) = existing(volume, "image") {
        let policy = pull_policy(text(image, "reference"));
        fill_zero(image, "pullPolicy", policy);
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = existing(volume, source) {
            fill(source, "defaultMode", 0o644);
        }
    }
    if let Some(source) = existing(volume, "downwardAPI") {
        each(source, "items", field_ref);
    }
    if let Some(source) = existing(volume, "projected") {
        each(source, "sources", |part| {
            if let Some(token) = existing(part, "serviceAccountToken") {
                fill(token, "expirationSeconds", 3600);
            }
            if let Some(downward) = existing(part, "downwardAPI") {
                each(downward, "items", field_ref);
            }
        });
    }
    if let Some(template) = existing(volume, "ephemeral").and_then(|e| existing(e, "volumeClaimTemplate")) {
        fill(sub(template, "spec"), "volumeMode", "Filesystem");
    }
    plugin(volume);
}

/// Defaults of the sources that volumes and persistent volumes share.
pub(crate) fn plugin(holder: &mut Value) {
    for (source, defaults) in [
        ("hostPath", json!({"type": ""})),
        ("iscsi", json!({"iscsiInterface": "default"})),
        ("rbd", json!({"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"})),
        (
            "azureDisk",
            json!({"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": false, "kind": "Shared"}),
        ),
        ("scaleIO", json!({"storageMode": "ThinProvisioned", "fsType": "xfs"})),
    ] {
        let Some(found) = existing(holder, source) else { continue };
        for (key, value) in defaults.as_object().into_iter().flatten() {
            match source {
                "hostPath" | "azureDisk" => fill(found, key, value.clone()),
                _ => fill_zero(found, key, value.clone()),
            }
        }
    }
}

fn field_ref(item: &mut Value) {
    if let Some(field) = existing(item, "fieldRef") {
        fill_zero(field, "apiVersion", "v1");
    }
}
