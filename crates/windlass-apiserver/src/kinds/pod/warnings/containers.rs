//! Warnings for the containers of a pod.

use serde_json::Value;

use crate::field::Path;
use crate::kinds::pod::annotations::{APP_ARMOR, APP_ARMOR_OLD, app_armor_field};
use crate::kinds::tree::{at, get, int, list, text};
use crate::kinds::warn;

/// Calls `visit` with each container of a spec, of any sort.
fn visit<'a>(spec: &'a Value, path: &Path<'_>, mut visit: impl FnMut(&'a Value, &Path<'_>)) {
    for field in ["initContainers", "containers", "ephemeralContainers"] {
        let path = path.child(field);
        for (index, container) in list(spec, field).iter().enumerate() {
            visit(container, &path.index(index));
        }
    }
}

/// What is to be said of each container by itself.
pub(super) fn each(pod: &Value, root: &Path<'_>, out: &mut Vec<String>) {
    const POD_SECCOMP: &str = "seccomp.security.alpha.kubernetes.io/pod";
    let annotation = |key: &str| at(pod, &["metadata", "annotations", key]);
    let metadata = root.child("metadata");
    let annotations = metadata.child("annotations");
    let spec = &pod["spec"];
    let no_seccomp = |holder: &Value| at(holder, &["securityContext", "seccompProfile"]).is_none();
    let useless = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
    if no_seccomp(spec) && annotation(POD_SECCOMP).is_some() {
        out.push(format!("{}: {useless}", annotations.key(POD_SECCOMP)));
    }
    visit(spec, &root.child("spec"), |container, path| {
        let name = text(container, "name");
        let key = format!("container.seccomp.security.alpha.kubernetes.io/{name}");
        if no_seccomp(container) && annotation(&key).is_some() {
            out.push(format!("{}: {useless}", annotations.key(&key)));
        }
        let key = format!("{APP_ARMOR}{name}");
        // Of pods themselves their preparation takes care.
        if !matches!(root, Path::Root)
            && at(container, &["securityContext", "appArmorProfile"]).is_none()
            && let Some(profile) = annotation(&key).and_then(Value::as_str)
        {
            let of_pod = at(spec, &["securityContext", "appArmorProfile"]);
            if of_pod.is_none() || of_pod != app_armor_field(profile).as_ref() {
                out.push(format!("{}: {APP_ARMOR_OLD}", annotations.key(&key)));
            }
        }
        let resources = path.child("resources");
        for name in ["memory", "ephemeral-storage"] {
            for field in ["limits", "requests"] {
                let amounts = at(container, &["resources", field]);
                warn::fractional(amounts, name, &resources.child(field), out);
            }
        }
        hidden_variables(container, path, out);
    });
}

/// A variable that is set twice, and not in terms of its first value.
fn hidden_variables(container: &Value, path: &Path<'_>, out: &mut Vec<String>) {
    let variables = list(container, "env");
    let path = path.child("env");
    for (index, variable) in variables.iter().enumerate() {
        let name = text(variable, "name");
        if !variables[..index].iter().any(|other| text(other, "name") == name) {
            continue;
        }
        let (value, reference) = (text(variable, "value"), format!("$({name})"));
        if get(variable, "valueFrom").is_some() || value == reference || !value.contains(&reference) {
            let path = path.index(index);
            out.push(format!(
                "{path}: hides previous definition of {name:?}, which may be dropped when using apply"
            ));
        }
    }
}

/// Ports of a pod that several of its containers claim, or that one claims twice.
pub(super) fn ports(spec: &Value, path: &Path<'_>, out: &mut Vec<String>) {
    let mut seen: Vec<(String, &Value)> = Vec::new();
    visit(spec, path, |container, path| {
        for (index, port) in list(container, "ports").iter().enumerate() {
            let place = path.child("ports").index(index).to_string();
            let host = int(port, "hostPort").unwrap_or(0);
            if !text(port, "hostIP").is_empty() && host == 0 {
                out.push(format!(
                    "{place}: hostIP set without hostPort: {{Name:{} HostPort:{host} ContainerPort:{} Protocol:{} \
                     HostIP:{}}}",
                    text(port, "name"),
                    int(port, "containerPort").unwrap_or(0),
                    text(port, "protocol"),
                    text(port, "hostIP"),
                ));
            }
            for (other_place, other) in &seen {
                if let Some(word) = clash(port, other) {
                    out.push(format!("{place}: {word} port definition with {other_place}"));
                }
            }
            seen.push((place, port));
        }
    });
}

/// How two definitions of ports get in each other's way, if they do.
fn clash(port: &Value, other: &Value) -> Option<&'static str> {
    let number = |port: &Value, key: &str| int(port, key).unwrap_or(0);
    let same = number(port, "containerPort") == number(other, "containerPort")
        && text(port, "protocol") == text(other, "protocol");
    if !same {
        return None;
    }
    let (host, other_host) = (number(port, "hostPort"), number(other, "hostPort"));
    let (ip, other_ip) = (text(port, "hostIP"), text(other, "hostIP"));
    match () {
        () if host == other_host && ip == other_ip => Some("duplicate"),
        () if host == 0 || other_host == 0 => Some("overlapping"),
        () if host == other_host && ip.is_empty() != other_ip.is_empty() => Some("dangerously ambiguous"),
        () => None,
    }
}

/// Names of ports that stand twice in a pod.
pub(super) fn port_names(spec: &Value, path: &Path<'_>, out: &mut Vec<String>) {
    let mut seen: Vec<(&str, String)> = Vec::new();
    visit(spec, path, |container, path| {
        for (index, port) in list(container, "ports").iter().enumerate() {
            let (name, place) = (text(port, "name"), path.child("ports").index(index).to_string());
            if name.is_empty() {
                continue;
            }
            match seen.iter().find(|(other, _)| *other == name) {
                Some((_, other)) => out.push(format!(
                    "{place}: duplicate port name {name:?} with {other}, services and probes that select ports by \
                     name will use {other}"
                )),
                None => seen.push((name, place)),
            }
        }
    });
}
