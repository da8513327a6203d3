//! What a pod spec must look like.

use serde_json::{Value, json};

use super::{Scene, affinity, annotations, containers, each_container, env, resources, security, volumes};
use crate::field::{Errors, Path};
use crate::kinds::check::{self, by_rule, one_of, text_by, within};
use crate::kinds::tree::{flag, get, list, text};
use crate::kinds::{Context, inner, meta, names};

/// Checks a new pod.
pub(crate) fn create(pod: &Value, context: &Context<'_>, errors: &mut Errors) {
    pod_spec_of(pod, context, errors);
    let (spec, path) = (&pod["spec"], Path::Root.child("spec"));
    if !list(spec, "ephemeralContainers").is_empty() {
        errors.forbidden(&path.child("ephemeralContainers"), "cannot be set on create");
    }
    if !text(spec, "nodeName").is_empty() && !list(spec, "schedulingGates").is_empty() {
        let detail = "cannot be set until all schedulingGates have been cleared";
        errors.forbidden(&path.child("nodeName"), detail);
    }
    annotations::agree(&pod["metadata"], spec, &path, errors);
}

/// Checks annotations and spec of a pod, at its create and at each update.
pub(super) fn pod_spec_of(pod: &Value, context: &Context<'_>, errors: &mut Errors) {
    let (pod_spec, path) = (&pod["spec"], Path::Root.child("spec"));
    let metadata = Path::Root.child("metadata");
    annotations::validate(&pod["metadata"], pod_spec, &metadata.child("annotations"), errors);
    spec(pod_spec, &Scene::of_pod(pod, context), &path, errors);
    for field in ["containers", "initContainers"] {
        for (index, container) in list(pod_spec, field).iter().enumerate() {
            containers::trimmed_image(container, &path.child(field).index(index), errors);
        }
    }
    if text(pod_spec, "serviceAccountName").is_empty() {
        volumes::no_tokens_without_account(pod_spec, &path, errors);
    }
}

/// Checks the pod template of a workload.
pub(crate) fn template(template: &Value, context: &Context<'_>, path: &Path<'_>, errors: &mut Errors) {
    let metadata = get(template, "metadata").unwrap_or(&Value::Null);
    let (pod_spec, at) = (&template["spec"], path.child("spec"));
    meta::labels(metadata, "labels", path, errors);
    meta::annotations(metadata, path, errors);
    annotations::validate(metadata, pod_spec, &path.child("annotations"), errors);
    spec(pod_spec, &Scene::of_template(pod_spec, context), &at, errors);
    annotations::agree(metadata, pod_spec, &at, errors);
    if !list(pod_spec, "ephemeralContainers").is_empty() {
        let detail = "ephemeral containers not allowed in pod template";
        errors.forbidden(&at.child("ephemeralContainers"), detail);
    }
}

/// Whether an object has a template with labels that are there, but empty.
pub(crate) fn has_empty_labels(object: &Value) -> bool {
    object
        .pointer("/spec/template/metadata/labels")
        .and_then(Value::as_object)
        .is_some_and(|labels| labels.is_empty())
}

/// The labels of a template as a refusal shows them, which tells empty ones from none ([`has_empty_labels`]).
pub(crate) fn shown_labels(labels: Option<&Value>, context: &Context<'_>) -> Value {
    match labels {
        Some(labels) => labels.clone(),
        None if context.noted.own => json!({}),
        None => Value::Null,
    }
}

fn dns_config(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("dnsConfig");
    let config = get(spec, "dnsConfig");
    let servers = config.map_or(&[][..], |config| list(config, "nameservers"));
    if text(spec, "dnsPolicy") == "None" && servers.is_empty() {
        match config {
            None => errors.required(&path, "must provide `dnsConfig` when `dnsPolicy` is None"),
            Some(_) => {
                let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
                errors.required(&path.child("nameservers"), detail);
            }
        }
        return;
    }
    let Some(config) = config else { return };
    if servers.len() > 3 {
        let detail = "must not have more than 3 nameservers";
        errors.invalid(&path.child("nameservers"), &config["nameservers"], detail);
    }
    for (index, server) in servers.iter().filter_map(Value::as_str).enumerate() {
        check::ip(server, &path.child("nameservers").index(index), errors);
    }
    if list(config, "searches").len() > 32 {
        let detail = "must not have more than 32 search paths";
        errors.invalid(&path.child("searches"), &config["searches"], detail);
    }
    let searches = list(config, "searches").iter().filter_map(Value::as_str).collect::<Vec<_>>();
    if searches.join(" ").len() > 2048 {
        let detail = "must not have more than 2048 characters (including spaces) in the search list";
        errors.invalid(&path.child("searches"), &config["searches"], detail);
    }
    for (index, search) in searches.into_iter().enumerate().filter(|(_, search)| *search != ".") {
        let domain = search.strip_suffix('.').unwrap_or(search);
        by_rule(domain, names::search_domain, &path.child("searches").index(index), errors);
    }
    for (index, option) in list(config, "options").iter().enumerate() {
        if text(option, "name").is_empty() {
            errors.required(&path.child("options").index(index), "must not be empty");
        }
    }
}

fn spec(spec: &Value, scene: &Scene<'_>, path: &Path<'_>, errors: &mut Errors) {
    let mounted = volumes::validate(spec, scene, path, errors);
    resource_claims(spec, scene, &path.child("resourceClaims"), errors);
    containers::validate(spec, &mounted, scene, path, errors);
    resources::of_pod(spec, scene, path, errors);
    if flag(spec, "hostNetwork") {
        containers::host_network_ports(spec, scene.is_pod, path, errors);
    }
    one_of(spec, "restartPolicy", &["Always", "OnFailure", "Never"], path, errors);
    one_of(spec, "dnsPolicy", &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"], path, errors);
    meta::labels(spec, "nodeSelector", path, errors);
    security::pod(spec, scene, path, errors);
    affinity::validate(spec, path, errors);
    dns_config(spec, path, errors);
    gates(spec, path, errors);
    affinity::spread(spec, path, errors);
    security::host_process(spec, path, errors);
    security::host_users(spec, path, errors);
    host_name(spec, path, errors);
    text_by(spec, "serviceAccountName", names::dns_subdomain, path, errors);
    text_by(spec, "nodeName", names::dns_subdomain, path, errors);
    within(spec, "activeDeadlineSeconds", 1, i64::from(i32::MAX), path, errors);
    text_by(spec, "hostname", names::dns_label, path, errors);
    text_by(spec, "subdomain", names::dns_label, path, errors);
    affinity::tolerations(spec, path, errors);
    for (index, alias) in list(spec, "hostAliases").iter().enumerate() {
        let aliases = path.child("hostAliases");
        let aliases = aliases.index(index);
        check::ip(text(alias, "ip"), &aliases.child("ip"), errors);
        for (index, host) in list(alias, "hostnames").iter().filter_map(Value::as_str).enumerate() {
            by_rule(host, names::dns_subdomain, &aliases.child("hostnames").index(index), errors);
        }
    }
    text_by(spec, "priorityClassName", names::dns_subdomain, path, errors);
    if let Some(class) = get(spec, "runtimeClassName").and_then(Value::as_str) {
        by_rule(class, names::dns_subdomain, &path.child("runtimeClassName"), errors);
    }
    match text(spec, "preemptionPolicy") {
        "" if get(spec, "preemptionPolicy").is_some() => errors.required(&path.child("preemptionPolicy"), ""),
        _ => one_of(spec, "preemptionPolicy", &["PreemptLowerPriority", "Never"], path, errors),
    }
    resources::overhead(spec, "overhead", path, errors);
    security::operating_system(spec, scene, path, errors);
    each_container(spec, path, |container, at| {
        env::file_volumes(container, list(spec, "volumes"), at, errors);
    });
}

/// A name for the host that stands for the one that follows from other fields.
fn host_name(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(name) = get(spec, "hostnameOverride").and_then(Value::as_str) else { return };
    let at = path.child("hostnameOverride");
    if flag(spec, "setHostnameAsFQDN") {
        errors.forbidden(&at, "may not be specified when setHostnameAsFQDN is true");
    }
    if flag(spec, "hostNetwork") {
        errors.forbidden(&at, "may not be specified when hostNetwork is true");
    }
    if name.len() > 64 {
        errors.too_long(&at, 64);
    }
    by_rule(name, names::dns_subdomain, &at, errors);
}

fn resource_claims(spec: &Value, scene: &Scene<'_>, path: &Path<'_>, errors: &mut Errors) {
    let all = list(spec, "resourceClaims");
    for (index, claim) in all.iter().enumerate() {
        if scene.is_mirror {
            errors.forbidden(&Path::Root.child(""), "static pods do not support resource claims");
            continue;
        }
        let path = path.index(index);
        let name = text(claim, "name");
        if name.is_empty() {
            errors.required(&path.child("name"), "");
        } else if all[..index].iter().any(|other| text(other, "name") == name) {
            errors.duplicate(&path.child("name"), &json!(name));
        } else {
            by_rule(name, names::dns_label, &path.child("name"), errors);
        }
        let of = |field: &str| get(claim, field).and_then(Value::as_str);
        let detail = match (of("resourceClaimName"), of("resourceClaimTemplateName")) {
            (Some(_), Some(_)) => {
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            }
            (None, None) => "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
            _ => "",
        };
        if !detail.is_empty() {
            errors.invalid(&path, &inner::shown("io.k8s.api.core.v1.PodResourceClaim", claim), detail);
        }
        for field in ["resourceClaimName", "resourceClaimTemplateName"] {
            if let Some(name) = of(field) {
                by_rule(name, names::dns_subdomain, &path.child(field), errors);
            }
        }
    }
}

fn gates(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    for (index, gate) in list(spec, "readinessGates").iter().enumerate() {
        let gates = path.child("readinessGates");
        let gates = gates.index(index);
        by_rule(text(gate, "conditionType"), names::label_key, &gates.child("conditionType"), errors);
    }
    let all = list(spec, "schedulingGates");
    for (index, gate) in all.iter().enumerate() {
        let gates = path.child("schedulingGates");
        let (name, at) = (text(gate, "name"), gates.index(index));
        by_rule(name, names::label_key, &at, errors);
        if all[..index].iter().any(|other| text(other, "name") == name) {
            errors.duplicate(&at, &json!(name));
        }
    }
}
