//! What the sources of volumes must look like, in pods and in persistent volumes.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};

use crate::field::{Errors, Path};
use crate::kinds::check::{by_rule, in_range, one_of, required, required_by, text_by};
use crate::kinds::tree::{entries, flag, get, int, list, text, text_at};
use crate::kinds::{names, paths};

/// Fields that a source must have, whatever else it is.
const NEEDED: [(&str, &[&str]); 16] = [
    ("gcePersistentDisk", &["pdName"]),
    ("awsElasticBlockStore", &["volumeID"]),
    ("persistentVolumeClaim", &["claimName"]),
    ("gitRepo", &["repository"]),
    ("nfs", &["server", "path"]),
    ("rbd", &["monitors", "image"]),
    ("cinder", &["volumeID"]),
    ("cephfs", &["monitors"]),
    ("glusterfs", &["endpoints", "path"]),
    ("flexVolume", &["driver"]),
    ("azureFile", &["secretName", "shareName"]),
    ("vsphereVolume", &["volumePath"]),
    ("photonPersistentDisk", &["pdID"]),
    ("portworxVolume", &["volumeID"]),
    ("azureDisk", &["diskName", "diskURI"]),
    ("scaleIO", &["gateway", "system", "volumeName"]),
];

/// Checks a source that pods and persistent volumes both know; `persistent` tells which of them it is.
pub(crate) fn plugin(kind: &str, source: &Value, persistent: bool, path: &Path<'_>, errors: &mut Errors) {
    for field in NEEDED.iter().find(|(name, _)| *name == kind).map_or(&[][..], |(_, fields)| fields) {
        required(source, field, "", path, errors);
    }
    match kind {
        "hostPath" => host_path(source, path, errors),
        "gitRepo" => paths::descending(text(source, "directory"), &path.child("directory"), errors),
        "gcePersistentDisk" | "awsElasticBlockStore" => {
            let partition = int(source, "partition").unwrap_or(0);
            if !(0..=255).contains(&partition) {
                let detail = "must be between 1 and 255, inclusive";
                errors.invalid(&path.child("partition"), &json!(partition), detail);
            }
        }
        "nfs" if !text(source, "path").starts_with('/') => {
            errors.invalid(&path.child("path"), &json!(text(source, "path")), "must be an absolute path");
        }
        "iscsi" => iscsi(source, persistent, path, errors),
        "fc" => fibre_channel(source, path, errors),
        "quobyte" => quobyte(source, path, errors),
        "flocker" => flocker(source, path, errors),
        "flexVolume" => options(source, path, errors),
        "azureDisk" => azure_disk(source, path, errors),
        "storageos" => {
            required_by(source, "volumeName", names::dns_label, path, errors);
            text_by(source, "volumeNamespace", names::dns_label, path, errors);
        }
        "local" if required(source, "path", "", path, errors) => {
            paths::no_backsteps(text(source, "path"), &path.child("path"), errors);
        }
        _ => {}
    }
    if matches!(kind, "cinder" | "storageos")
        && let Some(secret) = get(source, "secretRef")
    {
        required(secret, "name", "", &path.child("secretRef"), errors);
        if persistent {
            required(secret, "namespace", "", &path.child("secretRef"), errors);
        }
    }
    if persistent {
        persistent_only(kind, source, path, errors);
    }
}

fn persistent_only(kind: &str, source: &Value, path: &Path<'_>, errors: &mut Errors) {
    match kind {
        "glusterfs" => {
            if let Some(namespace) = get(source, "endpointsNamespace").and_then(Value::as_str) {
                let at = path.child("endpointsNamespace");
                match namespace {
                    "" => {
                        let detail = "if the endpointnamespace is set, it must be a valid namespace name";
                        errors.invalid(&at, &json!(""), detail);
                    }
                    _ => by_rule(namespace, names::dns_label, &at, errors),
                }
            }
        }
        "azureFile" if get(source, "secretNamespace").is_some() => {
            required(source, "secretNamespace", "", path, errors);
        }
        "csi" => {
            driver_name(text(source, "driver"), &path.child("driver"), errors);
            required(source, "volumeHandle", "", path, errors);
            for field in [
                "controllerPublishSecretRef",
                "controllerExpandSecretRef",
                "nodePublishSecretRef",
                "nodeExpandSecretRef",
            ] {
                if let Some(secret) = get(source, field) {
                    let at = path.child(field);
                    required_by(secret, "name", names::dns_subdomain, &at, errors);
                    required_by(secret, "namespace", names::dns_label, &at, errors);
                }
            }
        }
        _ => {}
    }
}

/// The name of a driver: a domain, in letters of any case.
pub(crate) fn driver_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    if name.is_empty() {
        errors.required(path, "");
        return;
    }
    if name.len() > 63 {
        errors.too_long(path, 63);
    }
    for fault in names::dns_subdomain(&name.to_lowercase()) {
        errors.invalid(path, &json!(name), &fault);
    }
}

fn host_path(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    if !required(source, "path", "", path, errors) {
        return;
    }
    paths::no_backsteps(text(source, "path"), &path.child("path"), errors);
    const TYPES: [&str; 8] =
        ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
    one_of(source, "type", &TYPES, path, errors);
}

fn iscsi(source: &Value, persistent: bool, path: &Path<'_>, errors: &mut Errors) {
    required(source, "targetPortal", "", path, errors);
    if required(source, "iqn", "", path, errors) {
        qualified(text(source, "iqn"), persistent, &path.child("iqn"), errors);
    }
    in_range(int(source, "lun").unwrap_or(0), 0, 255, &path.child("lun"), errors);
    let authenticates = flag(source, "chapAuthDiscovery") || flag(source, "chapAuthSession");
    match get(source, "secretRef") {
        None if authenticates => errors.required(&path.child("secretRef"), ""),
        Some(secret) if persistent => {
            required(secret, "name", "", &path.child("secretRef"), errors);
        }
        _ => {}
    }
    if let Some(name) = get(source, "initiatorName").and_then(Value::as_str) {
        qualified(name, persistent, &path.child("initiatorname"), errors);
    }
}

/// A qualified name of iSCSI.
fn qualified(name: &str, persistent: bool, path: &Path<'_>, errors: &mut Errors) {
    static FORMS: LazyLock<[(&str, Regex); 3]> = LazyLock::new(|| {
        let form = |pattern| Regex::new(pattern).expect("a pattern of ours");
        [
            ("iqn", form(r"iqn\.\d{4}-\d{2}\.([[:alnum:]-.]+)(:[^,;*&$|\s]+)$")),
            ("eui", form(r"^eui.[[:alnum:]]{16}$")),
            ("naa", form(r"^naa.[[:alnum:]]{32}$")),
        ]
    });
    let detail = match FORMS.iter().find(|(head, _)| name.starts_with(head)) {
        None if persistent => "must be valid format",
        None => "must be valid format starting with iqn, eui, or naa",
        Some((_, form)) if !form.is_match(name) => "must be valid format",
        Some(_) => return,
    };
    errors.invalid(path, &json!(name), detail);
}

fn fibre_channel(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (names, wwids) = (list(source, "targetWWNs"), list(source, "wwids"));
    let at = path.child("targetWWNs");
    if names.is_empty() && wwids.is_empty() {
        errors.required(&at, "must specify either targetWWNs or wwids, but not both");
    }
    if !names.is_empty() && !wwids.is_empty() {
        let detail = "targetWWNs and wwids can not be specified simultaneously";
        errors.invalid(&at, &source["targetWWNs"], detail);
    }
    if !names.is_empty() {
        match int(source, "lun") {
            None => errors.required(&path.child("lun"), "lun is required if targetWWNs is specified"),
            Some(lun) => in_range(lun, 0, 255, &path.child("lun"), errors),
        }
    }
}

fn quobyte(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    const PAIRS: &str = "must be a host:port pair or multiple pairs separated by commas";
    let (registry, at) = (text(source, "registry"), path.child("registry"));
    if registry.is_empty() {
        errors.required(&at, PAIRS);
    } else if text(source, "tenant").len() >= 65 {
        let detail = "must be a UUID and may not exceed a length of 64 characters";
        errors.required(&path.child("tenant"), detail);
    } else {
        for pair in registry.split(',') {
            if !is_host_port(pair) {
                errors.invalid(&at, &json!(registry), PAIRS);
            }
        }
    }
    required(source, "volume", "", path, errors);
}

/// Whether Go can split a text into host and port.
fn is_host_port(text: &str) -> bool {
    let Some((host, _)) = text.rsplit_once(':') else { return false };
    match host.strip_prefix('[') {
        Some(inner) => inner.strip_suffix(']').is_some_and(|inner| !inner.contains(['[', ']'])),
        None => !host.contains([':', '[', ']']),
    }
}

fn flocker(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (name, uuid) = (text(source, "datasetName"), text(source, "datasetUUID"));
    if name.is_empty() && uuid.is_empty() {
        errors.required(path, "one of datasetName and datasetUUID is required");
    }
    if !name.is_empty() && !uuid.is_empty() {
        let detail = "datasetName and datasetUUID can not be specified simultaneously";
        errors.invalid(path, &json!("resource"), detail);
    }
    if name.contains('/') {
        errors.invalid(&path.child("datasetName"), &json!(name), "must not contain '/'");
    }
}

fn options(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    for (key, _) in entries(source, "options") {
        let domain = format!(".{}", key.split('/').next().unwrap_or(key).to_lowercase());
        if domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io") {
            let detail = "kubernetes.io and k8s.io namespaces are reserved";
            errors.invalid(&path.child("options").key(key), &json!(key), detail);
        }
    }
}

fn azure_disk(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    one_of(source, "cachingMode", &["None", "ReadOnly", "ReadWrite"], path, errors);
    one_of(source, "kind", &["Dedicated", "Managed", "Shared"], path, errors);
    let (uri, at) = (text_at(source, &["diskURI"]), path.child("diskURI"));
    match get(source, "kind").and_then(Value::as_str) {
        Some("Managed") if !uri.starts_with("/subscriptions/") => {
            let form = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
            errors.not_supported(&at, &json!(uri), &[form]);
        }
        Some("Managed") | None => {}
        Some(_) if !uri.starts_with("https://") => {
            let form = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
            errors.not_supported(&at, &json!(uri), &[form]);
        }
        Some(_) => {}
    }
}
