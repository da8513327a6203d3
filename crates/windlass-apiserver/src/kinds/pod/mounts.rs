//! Volumes and block devices in a container.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::field::{Errors, Path};
use crate::kinds::check::{not_found, required};
use crate::kinds::paths;
use crate::kinds::tree::{flag, get, list, text};

/// Checks the mounts and devices of a container; `volumes` are those of the pod.
pub(super) fn validate(
    container: &Value,
    volumes: &BTreeMap<&str, &Value>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let mounts = list(container, "volumeMounts");
    let devices = list(container, "volumeDevices");
    let at = path.child("volumeMounts");
    let mut points = BTreeSet::new();
    for (index, found) in mounts.iter().enumerate() {
        let path = at.index(index);
        required(found, "name", "", &path, errors);
        let (name, point) = (text(found, "name"), text(found, "mountPath"));
        if !volumes.contains_key(name) {
            not_found(name, &path.child("name"), errors);
        }
        required(found, "mountPath", "", &path, errors);
        if !points.insert(point) {
            errors.invalid(&path.child("mountPath"), &json!(point), "must be unique");
        }
        if devices.iter().any(|device| text(device, "name") == name) {
            errors.invalid(&path.child("name"), &json!(name), "must not already exist in volumeDevices");
        }
        if devices.iter().any(|device| text(device, "devicePath") == point) {
            let detail = "must not already exist as a path in volumeDevices";
            errors.invalid(&path.child("mountPath"), &json!(point), detail);
        }
        mount(found, container, &at, &path, errors);
    }
    self::devices(devices, mounts, volumes, &path.child("volumeDevices"), errors);
}

/// What is said of all mounts at once: the real server does not tell which one it is.
fn mount(found: &Value, container: &Value, all: &Path<'_>, path: &Path<'_>, errors: &mut Errors) {
    let (sub, expression) = (text(found, "subPath"), text(found, "subPathExpr"));
    if !sub.is_empty() {
        paths::descending(sub, &all.child("subPath"), errors);
    }
    if !expression.is_empty() {
        if !sub.is_empty() {
            let detail = "subPathExpr and subPath are mutually exclusive";
            errors.invalid(&path.child("subPathExpr"), &json!(expression), detail);
        }
        paths::descending(expression, &all.child("subPathExpr"), errors);
    }
    let propagation = get(found, "mountPropagation");
    if let Some(mode) = propagation {
        let at = all.child("mountPropagation");
        const MODES: [&str; 3] = ["Bidirectional", "HostToContainer", "None"];
        if !MODES.iter().any(|known| mode == known) {
            errors.not_supported(&at, mode, &MODES);
        }
        if mode == "Bidirectional" && !flag(&container["securityContext"], "privileged") {
            let detail = "Bidirectional mount propagation is available only to privileged containers";
            errors.forbidden(&at, detail);
        }
    }
    if let Some(mode) = get(found, "recursiveReadOnly") {
        let at = all.child("recursiveReadOnly");
        match mode.as_str().unwrap_or("") {
            "Disabled" => {}
            "Enabled" | "IfPossible" => {
                if !flag(found, "readOnly") {
                    errors.forbidden(&at, "may only be specified when readOnly is true");
                }
                if propagation.is_some_and(|mode| mode != "None") {
                    let detail = "may only be specified when mountPropagation is None or not specified";
                    errors.forbidden(&at, detail);
                }
            }
            _ => errors.not_supported(&at, mode, &["Disabled", "Enabled", "IfPossible"]),
        }
    }
}

fn devices(
    devices: &[Value],
    mounts: &[Value],
    volumes: &BTreeMap<&str, &Value>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let (mut names, mut points) = (BTreeSet::new(), BTreeSet::new());
    for (index, device) in devices.iter().enumerate() {
        let path = path.index(index);
        let (name, point) = (text(device, "name"), text(device, "devicePath"));
        let (name_at, point_at) = (path.child("name"), path.child("devicePath"));
        required(device, "name", "", &path, errors);
        if names.contains(name) {
            errors.invalid(&name_at, &json!(name), "must be unique");
        }
        match volumes.get(name) {
            Some(volume) => {
                if ["persistentVolumeClaim", "ephemeral"].iter().all(|kind| get(volume, kind).is_none()) {
                    let detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                    errors.invalid(&name_at, &json!(name), detail);
                }
            }
            None => not_found(name, &name_at, errors),
        }
        required(device, "devicePath", "", &path, errors);
        if points.contains(point) {
            errors.invalid(&point_at, &json!(point), "must be unique");
        }
        if paths::has_backsteps(point) {
            errors.invalid(&point_at, &json!(point), "can not contain backsteps ('..')");
        } else {
            points.insert(point);
        }
        if mounts.iter().any(|mount| text(mount, "name") == name) {
            errors.invalid(&name_at, &json!(name), "must not already exist in volumeMounts");
        }
        if mounts.iter().any(|mount| text(mount, "mountPath") == point) {
            errors.invalid(&point_at, &json!(point), "must not already exist as a path in volumeMounts");
        }
        if !name.is_empty() {
            names.insert(name);
        }
    }
}
