//! Defaults of pod specs. Some belong to pods alone, so that a new default does not change stored templates.

use serde_json::{Map, Value, json};
use windlass_core::amounts::{Side, Summed, amounts, is_of_pods, total};

use crate::kinds::core::volume;
use crate::kinds::tree::{at, each, existing, fill, fill_zero, flag, get, int, list, remove, set, sub, text};

/// Defaults of a `Pod`.
pub(crate) fn pod(pod: &mut Value) {
    let spec = sub(pod, "spec");
    for containers in ["containers", "initContainers"] {
        each(spec, containers, requests_from_limits);
    }
    requests_as_a_whole(pod);
    let spec = sub(pod, "spec");
    fill(spec, "enableServiceLinks", true);
    if flag(spec, "hostNetwork") {
        for containers in ["containers", "initContainers"] {
            each(spec, containers, |container| each(container, "ports", host_port));
        }
    }
    if int(spec, "terminationGracePeriodSeconds").is_some_and(|seconds| seconds < 0) {
        set(spec, "terminationGracePeriodSeconds", 1);
    }
    pod_spec(spec);
    if let Some(status) = existing(pod, "status") {
        addresses(status);
    }
}

/// The address of a pod stands in two fields, of which the older one decides.
fn addresses(status: &mut Value) {
    let one = text(status, "podIP").to_owned();
    let first = list(status, "podIPs").first().map(|first| text(first, "ip").to_owned());
    match first {
        Some(first) if one.is_empty() => set(status, "podIP", first),
        first if !one.is_empty() && first.as_ref() != Some(&one) => {
            set(status, "podIPs", json!([{"ip": one}]));
        }
        _ => {}
    }
}

/// Defaults of a `PodTemplateSpec`, found by its field name.
pub(crate) fn template(owner: &mut Value, field: &str) {
    pod_spec(sub(sub(owner, field), "spec"));
}

fn pod_spec(spec: &mut Value) {
    fill_zero(spec, "dnsPolicy", "ClusterFirst");
    fill_zero(spec, "restartPolicy", "Always");
    fill(spec, "securityContext", Map::new());
    fill(spec, "terminationGracePeriodSeconds", 30);
    fill_zero(spec, "schedulerName", "default-scheduler");
    mirror_account(spec);
    each(spec, "volumes", volume::default);
    for containers in ["containers", "initContainers", "ephemeralContainers"] {
        each(spec, containers, container);
    }
}

/// The name of the service account stands under its old name, too.
fn mirror_account(spec: &mut Value) {
    let name = match text(spec, "serviceAccountName") {
        "" => text(spec, "serviceAccount").to_owned(),
        name => name.to_owned(),
    };
    if !name.is_empty() {
        set(spec, "serviceAccountName", name.as_str());
        set(spec, "serviceAccount", name);
    }
}

fn container(container: &mut Value) {
    let policy = pull_policy(text(container, "image"));
    fill_zero(container, "imagePullPolicy", policy);
    fill_zero(container, "terminationMessagePath", "/dev/termination-log");
    fill_zero(container, "terminationMessagePolicy", "File");
    each(container, "ports", |port| fill_zero(port, "protocol", "TCP"));
    each(container, "env", |variable| {
        let Some(source) = existing(variable, "valueFrom") else { return };
        if let Some(field) = existing(source, "fieldRef") {
            fill_zero(field, "apiVersion", "v1");
        }
        if let Some(key) = existing(source, "fileKeyRef") {
            fill(key, "optional", false);
        }
    });
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(found) = existing(container, name) {
            probe(found);
        }
    }
    if let Some(lifecycle) = existing(container, "lifecycle") {
        for name in ["postStart", "preStop"] {
            if let Some(get) = existing(lifecycle, name).and_then(|handler| existing(handler, "httpGet")) {
                http_get(get);
            }
        }
    }
}

fn probe(probe: &mut Value) {
    fill_zero(probe, "timeoutSeconds", 1);
    fill_zero(probe, "periodSeconds", 10);
    fill_zero(probe, "successThreshold", 1);
    fill_zero(probe, "failureThreshold", 3);
    if let Some(get) = existing(probe, "httpGet") {
        http_get(get);
    }
    if let Some(grpc) = existing(probe, "grpc") {
        fill(grpc, "service", "");
    }
}

fn http_get(action: &mut Value) {
    fill_zero(action, "path", "/");
    fill_zero(action, "scheme", "HTTP");
}

fn host_port(port: &mut Value) {
    let inside = int(port, "containerPort").unwrap_or(0);
    fill_zero(port, "hostPort", inside);
}

fn requests_from_limits(container: &mut Value) {
    let Some(resources) = existing(container, "resources") else { return };
    let Some(limits) = get(resources, "limits").cloned() else { return };
    if limits.as_object().is_none_or(Map::is_empty) {
        return;
    }
    let requests = sub(resources, "requests");
    for (name, limit) in limits.as_object().into_iter().flatten() {
        fill(requests, name, limit.clone());
    }
    sort_keys(requests);
}

/// A pod that limits itself as a whole requests what its containers do, or else what it is limited to.
fn requests_as_a_whole(pod: &mut Value) {
    let limits = at(pod, &["spec", "resources"]).map(|resources| amounts(resources, "limits"));
    let Some(limits) = limits.filter(|limits| !limits.is_empty()) else { return };
    let asked = total(pod, Side::Requests, Summed::Asked).into_iter();
    let limits = limits.into_iter().filter(|(name, _)| is_of_pods(name, Summed::Taken));
    let requests = sub(sub(sub(pod, "spec"), "resources"), "requests");
    for (name, amount) in asked.filter(|(name, _)| is_of_pods(name, Summed::Asked)).chain(limits) {
        fill(requests, &name, amount.to_string());
    }
    if requests.as_object().is_some_and(Map::is_empty) {
        remove(&mut pod["spec"]["resources"], "requests");
    } else {
        sort_keys(requests);
    }
}

fn sort_keys(map: &mut Value) {
    if let Some(map) = map.as_object_mut() {
        map.sort_keys();
    }
}

/// `Always` for images whose tag is, or defaults to, `latest`; a digest without a tag counts as pinned.
pub(crate) fn pull_policy(image: &str) -> &'static str {
    let (name, digest) = match image.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (image, None),
    };
    let (path, last) = match name.rsplit_once('/') {
        Some(("", _)) => return "IfNotPresent",
        Some((path, last)) => (path, last),
        None => ("", name),
    };
    let (last, tag) = last.split_once(':').map_or((last, None), |(last, tag)| (last, Some(tag)));
    if !is_repository(path, last) {
        return "IfNotPresent";
    }
    match tag {
        Some("latest") => "Always",
        Some(_) => "IfNotPresent",
        None if digest.is_some() => "IfNotPresent",
        None => "Always",
    }
}

/// Whether an image is named as registries name them; of others the tag is not read at all.
fn is_repository(path: &str, last: &str) -> bool {
    let part = |part: &str| {
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let between = part.split(inner).filter(|between| !between.is_empty());
        part.starts_with(inner)
            && part.ends_with(inner)
            && between
                .into_iter()
                .all(|between| matches!(between, "." | "_" | "__") || between.chars().all(|c| c == '-'))
    };
    let host = |host: &str| {
        let named =
            host.contains(['.', ':']) || host == "localhost" || host.contains(|c: char| c.is_uppercase());
        let (name, port) = host.split_once(':').unwrap_or((host, "0"));
        let is_name = |part: &str| {
            part.starts_with(|c: char| c.is_ascii_alphanumeric())
                && part.ends_with(|c: char| c.is_ascii_alphanumeric())
                && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        };
        named
            && (name.starts_with('[') || name.split('.').all(is_name))
            && !port.is_empty()
            && port.chars().all(|c| c.is_ascii_digit() || c == ':' || c == ']' || name.starts_with('['))
    };
    // A bare digest would be taken for an image's own name.
    if path.is_empty() && last.len() == 64 && last.bytes().all(|b| b.is_ascii_hexdigit()) {
        return false;
    }
    let mut parts = path.split('/').filter(|_| !path.is_empty());
    let first = parts.next();
    // What has no registry is one of the library of the usual one.
    let length = match first {
        None => "library/".len() + last.len(),
        Some(first) if host(first) => path.len() - first.len() + last.len(),
        Some(_) => path.len() + 1 + last.len(),
    };
    length <= 255 && first.is_none_or(|first| host(first) || part(first)) && parts.all(part) && part(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_tag_decides_the_pull_policy() {
        for (image, policy) in [
            ("nginx", "Always"),
            ("nginx:latest", "Always"),
            ("nginx:1.27", "IfNotPresent"),
            ("localhost:5000/nginx", "Always"),
            ("localhost:5000/nginx:1", "IfNotPresent"),
            ("nginx@sha256:abc", "IfNotPresent"),
            ("", "IfNotPresent"),
            ("A_b!", "IfNotPresent"),
            ("Registry.io/a/b", "Always"),
        ] {
            assert_eq!(pull_policy(image), policy, "{image}");
        }
    }

    #[test]
    fn defaults_are_idempotent() {
        let mut once = json!({"spec": {"hostNetwork": true, "containers": [{
            "name": "a", "image": "a", "ports": [{"containerPort": 80}],
            "resources": {"limits": {"cpu": "1"}},
            "livenessProbe": {"httpGet": {"port": 80}},
        }]}});
        pod(&mut once);
        let mut twice = once.clone();
        pod(&mut twice);
        assert_eq!(once, twice);
        assert_eq!(once.pointer("/spec/containers/0/ports/0/hostPort"), Some(&json!(80)));
    }
}
