//! Containers of a pod spec.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{probes, resources};
use crate::field::{Errors, Path};
use crate::kinds::check::{by_rule, in_range, not_found, one_of, required, required_by, text_by, within};
use crate::kinds::names;
use crate::kinds::tree::{flag, get, int, is_zero, list, text};

/// Checks all containers; `mounted` are the names of the volumes.
pub(super) fn validate(spec: &Value, mounted: &BTreeSet<&str>, path: &Path<'_>, errors: &mut Errors) {
    let grace = int(spec, "terminationGracePeriodSeconds").unwrap_or(0);
    let regular = list(spec, "containers");
    let at = path.child("containers");
    if regular.is_empty() {
        errors.required(&at, "");
    }
    let mut names = BTreeSet::new();
    for (index, container) in regular.iter().enumerate() {
        let path = at.index(index);
        common(container, mounted, &path, errors);
        unique_name(container, &mut names, &path, errors);
        probes::validate(container, grace, &path, errors);
    }
    host_ports(regular, &at, errors);
    if flag(spec, "hostNetwork") {
        host_network_ports(regular, &at, errors);
    }
    let at = path.child("initContainers");
    for (index, container) in list(spec, "initContainers").iter().enumerate() {
        let path = at.index(index);
        common(container, mounted, &path, errors);
        unique_name(container, &mut names, &path, errors);
        one_of(container, "restartPolicy", &["Always", "Never", "OnFailure"], &path, errors);
        match text(container, "restartPolicy") {
            "Always" => probes::validate(container, grace, &path, errors),
            _ => {
                for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
                    if get(container, field).is_some() {
                        let detail = "may not be set for init containers without restartPolicy=Always";
                        errors.forbidden(&path.child(field), detail);
                    }
                }
            }
        }
    }
    let at = path.child("ephemeralContainers");
    for (index, container) in list(spec, "ephemeralContainers").iter().enumerate() {
        let path = at.index(index);
        common(container, mounted, &path, errors);
        unique_name(container, &mut names, &path, errors);
        let target = text(container, "targetContainerName");
        let others = regular.iter().chain(list(spec, "initContainers"));
        if !target.is_empty() && !others.into_iter().any(|other| text(other, "name") == target) {
            not_found(target, &path.child("targetContainerName"), errors);
        }
        for field in ["ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"] {
            if !is_zero(container.get(field)) {
                errors.forbidden(&path.child(field), "cannot be set for an Ephemeral Container");
            }
        }
    }
}

fn unique_name<'a>(
    container: &'a Value,
    names: &mut BTreeSet<&'a str>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let name = text(container, "name");
    if !name.is_empty() && !names.insert(name) {
        errors.duplicate(&path.child("name"), &json!(name));
    }
}

fn common(container: &Value, mounted: &BTreeSet<&str>, path: &Path<'_>, errors: &mut Errors) {
    required_by(container, "name", names::dns_label, path, errors);
    required(container, "image", "", path, errors);
    one_of(container, "terminationMessagePolicy", &["File", "FallbackToLogsOnError"], path, errors);
    ports(container, path, errors);
    env(container, path, errors);
    mounts(container, mounted, path, errors);
    one_of(container, "imagePullPolicy", &["Always", "IfNotPresent", "Never"], path, errors);
    resources::validate(container, path, errors);
    if let Some(context) = get(container, "securityContext") {
        let path = path.child("securityContext");
        within(context, "runAsUser", 0, i64::from(i32::MAX), &path, errors);
        within(context, "runAsGroup", 0, i64::from(i32::MAX), &path, errors);
        if flag(context, "privileged") && context.get("allowPrivilegeEscalation") == Some(&json!(false)) {
            let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
            errors.invalid(&path, context, detail);
        }
    }
}

fn ports(container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("ports");
    let mut seen = BTreeSet::new();
    for (index, port) in list(container, "ports").iter().enumerate() {
        let path = path.index(index);
        let name = text(port, "name");
        if !name.is_empty() {
            if !names::port_name(name).is_empty() {
                text_by(port, "name", names::port_name, &path, errors);
            } else if !seen.insert(name) {
                errors.duplicate(&path.child("name"), &json!(name));
            }
        }
        match int(port, "containerPort").unwrap_or(0) {
            0 => errors.required(&path.child("containerPort"), ""),
            number => in_range(number, 1, 65_535, &path.child("containerPort"), errors),
        }
        if let Some(number) = int(port, "hostPort").filter(|number| *number != 0) {
            in_range(number, 1, 65_535, &path.child("hostPort"), errors);
        }
        one_of(port, "protocol", &["SCTP", "TCP", "UDP"], &path, errors);
    }
}

/// On the network of the host, a container's port is the host's.
fn host_network_ports(containers: &[Value], path: &Path<'_>, errors: &mut Errors) {
    for (index, container) in containers.iter().enumerate() {
        for (port_index, port) in list(container, "ports").iter().enumerate() {
            if int(port, "hostPort").unwrap_or(0) != int(port, "containerPort").unwrap_or(0) {
                let path = path.index(index);
                let path = path.child("ports");
                let detail = "must match `containerPort` when `hostNetwork` is true";
                errors.invalid(&path.index(port_index).child("hostPort"), &port["hostPort"], detail);
            }
        }
    }
}

fn host_ports(containers: &[Value], path: &Path<'_>, errors: &mut Errors) {
    let mut taken = BTreeSet::new();
    for (index, container) in containers.iter().enumerate() {
        for (port_index, port) in list(container, "ports").iter().enumerate() {
            let Some(number) = int(port, "hostPort").filter(|number| *number != 0) else { continue };
            let claim = format!("{}/{}/{number}", text(port, "protocol"), text(port, "hostIP"));
            if taken.contains(&claim) {
                let path = path.index(index);
                errors.duplicate(&path.child("ports").index(port_index).child("hostPort"), &json!(claim));
            }
            taken.insert(claim);
        }
    }
}

/// The fields of a pod that an environment variable can show.
const ENV_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

fn env(container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let at = path.child("env");
    for (index, variable) in list(container, "env").iter().enumerate() {
        let path = at.index(index);
        required_by(variable, "name", names::env_name, &path, errors);
        let Some(source) = get(variable, "valueFrom") else { continue };
        let at = path.child("valueFrom");
        if let Some(field) = get(source, "fieldRef") {
            field_ref(field, &[], &at.child("fieldRef"), errors);
        }
        if let Some(field) = get(source, "resourceFieldRef") {
            resource_ref(field, &at.child("resourceFieldRef"), errors);
        }
        for reference in ["configMapKeyRef", "secretKeyRef"] {
            if let Some(key) = get(source, reference) {
                let at = at.child(reference);
                by_rule(text(key, "name"), names::dns_subdomain, &at.child("name"), errors);
                required_by(key, "key", names::config_key, &at, errors);
            }
        }
        let kinds = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];
        let detail = match kinds.iter().filter(|kind| get(source, kind).is_some()).count() {
            0 => {
                "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
            }
            _ if !text(variable, "value").is_empty() => "may not be specified when `value` is not empty",
            1 => continue,
            _ => "may not have more than one field specified at a time",
        };
        errors.invalid(&at, &json!(""), detail);
    }
    let at = path.child("envFrom");
    for (index, source) in list(container, "envFrom").iter().enumerate() {
        let path = at.index(index);
        text_by(source, "prefix", names::env_name, &path, errors);
        let kinds = ["configMapRef", "secretRef"];
        for kind in kinds {
            if let Some(reference) = get(source, kind) {
                let at = path.child(kind);
                required_by(reference, "name", names::dns_subdomain, &at, errors);
            }
        }
        match kinds.iter().filter(|kind| get(source, kind).is_some()).count() {
            0 => errors.invalid(&at, &json!(""), "must specify one of: `configMapRef` or `secretRef`"),
            1 => {}
            _ => errors.invalid(&at, &json!(""), "may not have more than one field specified at a time"),
        }
    }
}

/// The resources of a container that it can read.
const RESOURCE_FIELDS: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

fn resource_ref(field: &Value, path: &Path<'_>, errors: &mut Errors) {
    let name = text(field, "resource");
    let huge = ["limits.hugepages-", "requests.hugepages-"].iter().any(|head| name.starts_with(head));
    if required(field, "resource", "", path, errors) && !huge && !RESOURCE_FIELDS.contains(&name) {
        errors.not_supported(&path.child("resource"), &json!(name), &RESOURCE_FIELDS);
    }
}

/// Checks a reference to a field of the pod itself; `more` are fields that only a volume can show.
pub(super) fn field_ref(field: &Value, more: &[&str], path: &Path<'_>, errors: &mut Errors) {
    required(field, "apiVersion", "", path, errors);
    if !required(field, "fieldPath", "", path, errors) {
        return;
    }
    let name = text(field, "fieldPath");
    let keyed = ["metadata.labels['", "metadata.annotations['"].iter().any(|head| name.starts_with(head));
    if !keyed && !ENV_FIELDS.contains(&name) && !more.contains(&name) {
        let detail = format!("error converting fieldPath: field label not supported: {name}");
        errors.invalid(&path.child("fieldPath"), &json!(name), &detail);
    }
}

fn mounts(container: &Value, mounted: &BTreeSet<&str>, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("volumeMounts");
    let mut points = BTreeSet::new();
    for (index, mount) in list(container, "volumeMounts").iter().enumerate() {
        let path = path.index(index);
        required(mount, "name", "", &path, errors);
        if !mounted.contains(text(mount, "name")) {
            not_found(text(mount, "name"), &path.child("name"), errors);
        }
        required(mount, "mountPath", "", &path, errors);
        if !points.insert(text(mount, "mountPath")) {
            errors.invalid(&path.child("mountPath"), &mount["mountPath"], "must be unique");
        }
        if !text(mount, "subPath").is_empty() && !text(mount, "subPathExpr").is_empty() {
            let detail = "subPathExpr and subPath are mutually exclusive";
            errors.invalid(&path.child("subPathExpr"), &mount["subPathExpr"], detail);
        }
    }
}
