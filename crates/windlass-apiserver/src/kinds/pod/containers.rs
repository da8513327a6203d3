//! Containers of a pod spec.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Scene, env, mounts, probes, resources, security};
use crate::field::{Errors, Path};
use crate::kinds::check::{in_range, not_found, one_of, required, required_by, text_by};
use crate::kinds::names;
use crate::kinds::tree::{get, int, is_zero, list, text};

/// Volumes of the pod, by name.
type Volumes<'a> = BTreeMap<&'a str, &'a Value>;

/// Checks all containers.
pub(super) fn validate(
    spec: &Value,
    volumes: &Volumes<'_>,
    scene: &Scene<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let regular = list(spec, "containers");
    let at = path.child("containers");
    if regular.is_empty() {
        errors.required(&at, "");
    }
    let mut names = BTreeSet::new();
    for (index, container) in regular.iter().enumerate() {
        let path = at.index(index);
        common(container, volumes, scene, &path, errors);
        if !names.insert(text(container, "name")) {
            errors.duplicate(&path.child("name"), &container["name"]);
        }
        probes::validate(container, scene, &path, errors);
        restart_policy(container, &path, errors);
    }
    host_ports(regular, &at, errors);
    initial(spec, volumes, scene, &mut names, path, errors);
    ephemeral(spec, volumes, scene, path, errors);
}

fn initial<'a>(
    spec: &'a Value,
    volumes: &Volumes<'_>,
    scene: &Scene<'_>,
    names: &mut BTreeSet<&'a str>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let at = path.child("initContainers");
    for (index, container) in list(spec, "initContainers").iter().enumerate() {
        let path = at.index(index);
        common(container, volumes, scene, &path, errors);
        // Without a policy nobody looks at the rules of an init container.
        if get(container, "restartPolicy").is_some() {
            restart_policy(container, &path, errors);
        } else if !list(container, "restartPolicyRules").is_empty() {
            errors.required(&path.child("restartPolicy"), RULES_NEED_POLICY);
        }
        let name = text(container, "name");
        if names.contains(name) {
            errors.duplicate(&path.child("name"), &json!(name));
        } else if !name.is_empty() {
            names.insert(name);
        }
        // The real server counts the ports of each by itself, and calls it the first.
        host_ports(std::slice::from_ref(container), &at, errors);
        let sidecar = text(container, "restartPolicy") == "Always";
        if sidecar {
            probes::validate(container, scene, &path, errors);
            continue;
        }
        for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if get(container, field).is_some() {
                let detail = "may not be set for init containers without restartPolicy=Always";
                errors.forbidden(&path.child(field), detail);
            }
        }
        for (index, policy) in list(container, "resizePolicy").iter().enumerate() {
            if text(policy, "restartPolicy") == "RestartContainer" {
                let at = path.child("resizePolicy");
                let at = at.index(index);
                let detail = "must not be set to 'RestartContainer' for non-sidecar initContainers";
                errors.invalid(&at.child("restartPolicy"), &policy["restartPolicy"], detail);
            }
        }
    }
}

fn ephemeral(spec: &Value, volumes: &Volumes<'_>, scene: &Scene<'_>, path: &Path<'_>, errors: &mut Errors) {
    const NOT_HERE: &str = "cannot be set for an Ephemeral Container";
    let others: BTreeSet<&str> = list(spec, "containers")
        .iter()
        .chain(list(spec, "initContainers"))
        .map(|container| text(container, "name"))
        .collect();
    let mut names = others.clone();
    let at = path.child("ephemeralContainers");
    for (index, container) in list(spec, "ephemeralContainers").iter().enumerate() {
        let path = at.index(index);
        common(container, volumes, scene, &path, errors);
        trimmed_image(container, &path, errors);
        if !names.insert(text(container, "name")) {
            errors.duplicate(&path.child("name"), &container["name"]);
        }
        let target = text(container, "targetContainerName");
        if !target.is_empty() && !others.contains(target) {
            not_found(target, &path.child("targetContainerName"), errors);
        }
        for field in [
            "ports",
            "resources",
            "resizePolicy",
            "restartPolicy",
            "restartPolicyRules",
            "livenessProbe",
            "readinessProbe",
            "startupProbe",
            "lifecycle",
        ] {
            let empty = match container.get(field) {
                Some(Value::Object(map)) if field == "resources" => map.is_empty(),
                value => is_zero(value),
            };
            if !empty {
                errors.forbidden(&path.child(field), NOT_HERE);
            }
        }
        for (index, mount) in list(container, "volumeMounts").iter().enumerate() {
            for field in ["subPath", "subPathExpr"] {
                if !text(mount, field).is_empty() {
                    let mounts = path.child("volumeMounts");
                    errors.forbidden(&mounts.index(index).child(field), NOT_HERE);
                }
            }
        }
    }
}

/// A pod's image is not padded; that of a template may be.
pub(super) fn trimmed_image(container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let image = text(container, "image");
    if image.trim() != image {
        let detail = "must not have leading or trailing whitespace";
        errors.invalid(&path.child("image"), &json!(image), detail);
    }
}

fn common(container: &Value, volumes: &Volumes<'_>, scene: &Scene<'_>, path: &Path<'_>, errors: &mut Errors) {
    required_by(container, "name", names::dns_label, path, errors);
    required(container, "image", "", path, errors);
    one_of(container, "terminationMessagePolicy", &["File", "FallbackToLogsOnError"], path, errors);
    ports(container, path, errors);
    env::validate(container, path, errors);
    mounts::validate(container, volumes, path, errors);
    one_of(container, "imagePullPolicy", &["Always", "IfNotPresent", "Never"], path, errors);
    resources::of_container(container, scene, path, errors);
    resize_policy(container, scene, path, errors);
    if let Some(context) = get(container, "securityContext") {
        security::container(context, scene.host_users, &path.child("securityContext"), errors);
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
pub(super) fn host_network_ports(spec: &Value, is_pod: bool, path: &Path<'_>, errors: &mut Errors) {
    for (index, container) in list(spec, "containers").iter().enumerate() {
        for (port_index, port) in list(container, "ports").iter().enumerate() {
            let number = int(port, "hostPort").unwrap_or(0);
            if (is_pod || number != 0) && number != int(port, "containerPort").unwrap_or(0) {
                let path = path.child("containers");
                let path = path.index(index);
                let path = path.child("ports");
                let detail = "must match `containerPort` when `hostNetwork` is true";
                errors.invalid(&path.index(port_index).child("hostPort"), &json!(number), detail);
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

const RULES_NEED_POLICY: &str = "must specify restartPolicy when restart rules are used";

fn restart_policy(container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let rules = list(container, "restartPolicyRules");
    if get(container, "restartPolicy").is_none() {
        if rules.is_empty() {
            return;
        }
        errors.required(&path.child("restartPolicy"), RULES_NEED_POLICY);
    }
    one_of(container, "restartPolicy", &["Always", "Never", "OnFailure"], path, errors);
    let path = path.child("restartPolicyRules");
    if rules.len() > 20 {
        errors.too_many(&path, rules.len(), 20);
    }
    for (index, rule) in rules.iter().enumerate() {
        let path = path.index(index);
        let action = json!(text(rule, "action"));
        if !["Restart", "RestartAllContainers"].iter().any(|known| action == *known) {
            errors.not_supported(&path.child("action"), &action, &["Restart", "RestartAllContainers"]);
        }
        let at = path.child("exitCodes");
        match get(rule, "exitCodes") {
            None => errors.required(&at, "must be specified"),
            Some(codes) => {
                let operator = json!(text(codes, "operator"));
                if operator != "In" && operator != "NotIn" {
                    errors.not_supported(&at.child("operator"), &operator, &["In", "NotIn"]);
                }
                if list(codes, "values").len() > 255 {
                    errors.too_many(&at.child("values"), list(codes, "values").len(), 255);
                }
            }
        }
    }
}

fn resize_policy(container: &Value, scene: &Scene<'_>, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("resizePolicy");
    let mut seen = BTreeSet::new();
    for (index, policy) in list(container, "resizePolicy").iter().enumerate() {
        let (name, restart) = (text(policy, "resourceName"), text(policy, "restartPolicy"));
        if !seen.insert(name) {
            errors.duplicate(&path.index(index), &json!(name));
        }
        match name {
            "cpu" | "memory" => {}
            "" => errors.required(&path, ""),
            _ => errors.not_supported(&path, &json!(name), &["cpu", "memory"]),
        }
        match restart {
            "NotRequired" | "RestartContainer" => {}
            "" => errors.required(&path, ""),
            _ => errors.not_supported(&path, &json!(restart), &["NotRequired", "RestartContainer"]),
        }
        if scene.restart_policy == "Never" && restart != "NotRequired" {
            let detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.invalid(&path, &json!(restart), detail);
        }
    }
}
