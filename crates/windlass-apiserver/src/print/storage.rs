//! Volumes, their classes and drivers; versions in storage.

use serde_json::{Value, json};

use super::Printer;
use super::object::{Object, list_with_more, text, texts};

pub(super) fn printer(kind: &str) -> Option<Printer> {
    Some(match kind {
        "CSIDriver" => csi_driver,
        "CSINode" => csi_node,
        "StorageClass" => storage_class,
        "VolumeAttachment" => volume_attachment,
        "VolumeAttributesClass" => volume_attributes_class,
        _ => return None,
    })
}

pub(super) fn version_printer(kind: &str) -> Option<Printer> {
    Some(match kind {
        "StorageVersion" => storage_version,
        "StorageVersionMigration" => storage_version_migration,
        _ => return None,
    })
}

pub(super) fn volume(object: &Object<'_>) -> Vec<Value> {
    let claim = object.get(&["spec", "claimRef"]);
    let claim = claim.map(|claim| format!("{}/{}", text(claim, &["namespace"]), text(claim, &["name"])));
    vec![
        json!(object.name()),
        json!(object.quantity(&["spec", "capacity", "storage"])),
        json!(access_modes(object, &["spec", "accessModes"])),
        json!(object.text(&["spec", "persistentVolumeReclaimPolicy"])),
        json!(phase(object)),
        json!(claim.unwrap_or_default()),
        json!(class(object)),
        json!(object.text_or(&["spec", "volumeAttributesClassName"], "<unset>")),
        json!(object.text(&["status", "reason"])),
        json!(object.age()),
        json!(object.text_or(&["spec", "volumeMode"], "<unset>")),
    ]
}

pub(super) fn claim(object: &Object<'_>) -> Vec<Value> {
    let volume = object.text(&["spec", "volumeName"]);
    let (capacity, modes) = if volume.is_empty() {
        (String::new(), String::new())
    } else {
        (
            object.quantity(&["status", "capacity", "storage"]),
            access_modes(object, &["status", "accessModes"]),
        )
    };
    vec![
        json!(object.name()),
        json!(phase(object)),
        json!(volume),
        json!(capacity),
        json!(modes),
        json!(class(object)),
        json!(object.text_or(&["spec", "volumeAttributesClassName"], "<unset>")),
        json!(object.age()),
        json!(object.text_or(&["spec", "volumeMode"], "<unset>")),
    ]
}

fn phase<'a>(object: &Object<'a>) -> &'a str {
    if object.is_being_deleted() { "Terminating" } else { object.text(&["status", "phase"]) }
}

fn class<'a>(object: &Object<'a>) -> &'a str {
    let annotation = object.annotation("volume.beta.kubernetes.io/storage-class");
    annotation.unwrap_or_else(|| object.text(&["spec", "storageClassName"]))
}

fn access_modes(object: &Object<'_>, path: &[&str]) -> String {
    let modes = texts(object.value, path);
    let short = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let short = short.iter().filter(|(mode, _)| modes.contains(mode)).map(|(_, short)| *short);
    short.collect::<Vec<_>>().join(",")
}

fn csi_driver(object: &Object<'_>) -> Vec<Value> {
    let flag = |key: &str, absent: bool| json!(object.bool_or(&["spec", key], absent));
    let modes = texts(object.value, &["spec", "volumeLifecycleModes"]).join(",");
    let tokens = object.get(&["spec", "tokenRequests"]).map(|_| {
        let requests = object.list(&["spec", "tokenRequests"]).iter();
        requests.map(|request| text(request, &["audience"])).collect::<Vec<_>>().join(",")
    });
    vec![
        json!(object.name()),
        flag("attachRequired", true),
        flag("podInfoOnMount", false),
        flag("storageCapacity", false),
        json!(tokens.unwrap_or_else(|| "<unset>".to_owned())),
        flag("requiresRepublish", false),
        json!(if modes.is_empty() { "<none>".to_owned() } else { modes }),
        json!(object.age()),
    ]
}

fn csi_node(object: &Object<'_>) -> Vec<Value> {
    vec![json!(object.name()), json!(object.count(&["spec", "drivers"])), json!(object.age())]
}

fn storage_class(object: &Object<'_>) -> Vec<Value> {
    let marks =
        ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
    let default = marks.iter().any(|mark| object.annotation(mark) == Some("true"));
    vec![
        json!(format!("{}{}", object.name(), if default { " (default)" } else { "" })),
        json!(object.text(&["provisioner"])),
        json!(object.text_or(&["reclaimPolicy"], "Delete")),
        json!(object.text_or(&["volumeBindingMode"], "Immediate")),
        json!(object.bool_or(&["allowVolumeExpansion"], false)),
        json!(object.age()),
    ]
}

fn volume_attachment(object: &Object<'_>) -> Vec<Value> {
    vec![
        json!(object.name()),
        json!(object.text(&["spec", "attacher"])),
        json!(object.text(&["spec", "source", "persistentVolumeName"])),
        json!(object.text(&["spec", "nodeName"])),
        json!(object.bool_or(&["status", "attached"], false)),
        json!(object.age()),
    ]
}

fn volume_attributes_class(object: &Object<'_>) -> Vec<Value> {
    vec![json!(object.name()), json!(object.text(&["driverName"])), json!(object.age())]
}

fn storage_version(object: &Object<'_>) -> Vec<Value> {
    let version = |version: &Value| {
        format!("{}={}", text(version, &["apiServerID"]), text(version, &["encodingVersion"]))
    };
    let versions = object.list(&["status", "storageVersions"]).iter().map(version).collect::<Vec<_>>();
    vec![
        json!(object.name()),
        json!(object.text_or(&["status", "commonEncodingVersion"], "<unset>")),
        json!(list_with_more(&versions, 3)),
        json!(object.age()),
    ]
}

fn storage_version_migration(object: &Object<'_>) -> Vec<Value> {
    let resource = match object.text(&["spec", "resource", "group"]) {
        "" => object.text(&["spec", "resource", "resource"]).to_owned(),
        group => format!("{}.{group}", object.text(&["spec", "resource", "resource"])),
    };
    let conditions = object.list(&["status", "conditions"]).iter().rev();
    let holds = conditions.filter(|condition| text(condition, &["status"]) == "True");
    let state = holds.map(|condition| text(condition, &["type"]));
    let state = { state }.find(|kind| matches!(*kind, "Running" | "Failed" | "Succeeded"));
    vec![json!(object.name()), json!(resource), json!(state.unwrap_or("Unknown"))]
}
