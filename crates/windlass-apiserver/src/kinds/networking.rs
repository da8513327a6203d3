//! Ingresses, ingress classes, network policies.

use serde_json::{Value, json};

use super::check::{
    by_rule, cidr, domain_path, in_range, one_of, port_or_name, required, required_by, selector, sloppy_ip,
    text_by,
};
use super::generation::Generation;
use super::tree::{each, existing, fill, get, has_empty, int, is_zero, list, set, sub, text};
use super::{Context, Hooks, inner, meta, names, warn};
use crate::field::{Errors, Path};

/// The hooks of a networking kind.
pub(super) fn hooks(kind: &str) -> Option<&'static Hooks> {
    Some(match kind {
        "Ingress" => &INGRESS,
        "IngressClass" => &INGRESS_CLASS,
        "NetworkPolicy" => &NETWORK_POLICY,
        "ServiceCIDR" => &SERVICE_CIDR,
        "IPAddress" => &IP_ADDRESS,
        _ => return None,
    })
}

const INGRESS: Hooks = Hooks {
    rechecks: &[meta::Check::Update, meta::Check::Whole],
    warnings: |ingress, old| {
        let set = ingress["metadata"]["annotations"].get(CLASS_ANNOTATION).is_some();
        match set && old.is_none() && get(&ingress["spec"], "ingressClassName").is_none() {
            true => vec![format!(
                "annotation {CLASS_ANNOTATION:?} is deprecated, please use 'spec.ingressClassName' instead"
            )],
            false => Vec::new(),
        }
    },
    generation: Generation::SPEC,
    validate_create: |object, _, errors| validate_ingress(object, None, errors),
    validate_update: |new, old, _, errors| validate_ingress(new, Some(old), errors),
    ..Hooks::NONE
};

const INGRESS_CLASS: Hooks = Hooks {
    rechecks: &[meta::Check::Update, meta::Check::Whole],
    default: |object| {
        if let Some(parameters) = existing(sub(object, "spec"), "parameters") {
            fill(parameters, "scope", "Cluster");
        }
    },
    generation: Generation::SPEC,
    validate_create: validate_class,
    validate_update: |new, old, context, errors| {
        let of = |class: &Value| text(&class["spec"], "controller").to_owned();
        if of(new) != of(old) {
            let path = Path::Root.child("spec");
            errors.invalid(&path.child("controller"), &json!(of(new)), meta::IMMUTABLE_FIELD);
        }
        validate_class(new, context, errors);
    },
    ..Hooks::NONE
};

const NETWORK_POLICY: Hooks = Hooks {
    default: default_policy,
    generation: Generation { tells_empty: true, ..Generation::SPEC },
    warnings: |policy, _| policy_warnings(&policy["spec"]),
    notes: |policy| has_empty(&policy["spec"]),
    validate_create: validate_policy,
    validate_update: |new, _, context, errors| validate_policy(new, context, errors),
    ..Hooks::NONE
};

/// Ranges of addresses that are written in unusual ways.
fn policy_warnings(spec: &Value) -> Vec<String> {
    let mut out = Vec::new();
    let path = Path::Root.child("spec");
    for (rules, peers) in [("ingress", "from"), ("egress", "to")] {
        let at = path.child(rules);
        for (index, rule) in list(spec, rules).iter().enumerate() {
            let at = at.index(index);
            let at = at.child(peers);
            for (index, peer) in list(rule, peers).iter().enumerate() {
                let Some(block) = get(peer, "ipBlock") else { continue };
                let at = at.index(index);
                let at = at.child("ipBlock");
                warn::cidr(text(block, "cidr"), &at.child("cidr"), &mut out);
                let except = at.child("except");
                for (index, range) in list(block, "except").iter().filter_map(Value::as_str).enumerate() {
                    warn::cidr(range, &except.index(index), &mut out);
                }
            }
        }
    }
    out
}

const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

const SERVICE_CIDR: Hooks = Hooks {
    validate_create: |object, _, errors| validate_blocks(&object["spec"], errors),
    validate_update: |new, old, _, errors| {
        let (after, before) = (list(&new["spec"], "cidrs"), list(&old["spec"], "cidrs"));
        let path = Path::Root.child("spec");
        let path = path.child("cidrs");
        match (before.len(), after.len()) {
            (one, other) if one == other => {
                for (index, (before, after)) in before.iter().zip(after).enumerate() {
                    if before != after {
                        errors.invalid(&path.index(index), after, meta::IMMUTABLE_FIELD);
                    }
                }
            }
            (1, 2) => {
                if before[0] != after[0] {
                    errors.invalid(&path.index(0), &after[0], meta::IMMUTABLE_FIELD);
                }
                validate_blocks(&new["spec"], errors);
            }
            _ => {
                let shown = match new["spec"].get("cidrs") {
                    Some(blocks) => blocks.clone(),
                    None => Value::Null,
                };
                errors.invalid(&path, &shown, meta::IMMUTABLE_FIELD);
            }
        }
    },
    ..Hooks::NONE
};

fn validate_blocks(spec: &Value, errors: &mut Errors) {
    let path = Path::Root.child("spec");
    let at = path.child("cidrs");
    let blocks = list(spec, "cidrs");
    if blocks.is_empty() {
        errors.required(&at, "at least one CIDR required");
        return;
    }
    if blocks.len() > 2 {
        let shown = inner::shown("io.k8s.api.networking.v1.ServiceCIDRSpec", spec);
        errors.invalid(&at, &shown, "may only hold up to 2 values");
        return;
    }
    let widths = blocks
        .iter()
        .filter_map(Value::as_str)
        .enumerate()
        .map(|(index, block)| cidr(block, &at.index(index), errors).map(|block| block.width))
        .collect::<Vec<_>>();
    if let [Some(one), Some(other)] = widths[..]
        && one == other
    {
        let detail =
            "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        errors.invalid(&at, &spec["cidrs"], detail);
    }
}

const IP_ADDRESS: Hooks = Hooks {
    rechecks: &[meta::Check::Whole, meta::Check::Update],
    name: |name| match name.parse::<std::net::IpAddr>() {
        Ok(_) => Vec::new(),
        Err(_) => vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()],
    },
    validate_create: |object, _, errors| {
        let path = Path::Root.child("spec");
        if required(&object["spec"], "parentRef", "", &path, errors) {
            let (parent, at) = (&object["spec"]["parentRef"], path.child("parentRef"));
            text_by(parent, "group", names::dns_subdomain, &at, errors);
            required_by(parent, "resource", names::path_segment, &at, errors);
            required_by(parent, "name", names::path_segment, &at, errors);
            text_by(parent, "namespace", names::path_segment, &at, errors);
        }
    },
    validate_update: |new, old, _, errors| {
        let (new, old, path) = (&new["spec"], &old["spec"], Path::Root.child("spec"));
        let kind = "io.k8s.api.networking.v1.ParentReference";
        meta::immutable_of(kind, new, old, &path, "parentRef", errors);
    },
    ..Hooks::NONE
};

fn validate_ingress(ingress: &Value, old: Option<&Value>, errors: &mut Errors) {
    let (spec, path) = (&ingress["spec"], Path::Root.child("spec"));
    if is_zero(spec.get("rules")) && get(spec, "defaultBackend").is_none() {
        errors.invalid(&path, &Value::Null, "either `defaultBackend` or `rules` must be specified");
    }
    if let Some(backend) = get(spec, "defaultBackend") {
        validate_backend(backend, &path.child("defaultBackend"), errors);
    }
    for (index, rule) in list(spec, "rules").iter().enumerate() {
        let rules = path.child("rules");
        validate_rule(rule, &rules.index(index), errors);
    }
    for (index, tls) in list(spec, "tls").iter().enumerate() {
        for (host_index, host) in list(tls, "hosts").iter().filter_map(Value::as_str).enumerate() {
            let tls = path.child("tls");
            let tls = tls.index(index);
            validate_host(host, &tls.child("hosts").index(host_index), errors);
        }
        let all = path.child("tls");
        text_by(tls, "secretName", names::dns_subdomain, &all.index(index), errors);
    }
    if let Some(class) = get(spec, "ingressClassName").and_then(Value::as_str) {
        by_rule(class, names::dns_subdomain, &path.child("ingressClassName"), errors);
        let annotated = ingress["metadata"]["annotations"].get(CLASS_ANNOTATION);
        if let Some(other) = annotated.filter(|other| old.is_none() && *other != class) {
            let at = Path::Root.child("annotations");
            let detail = "must match `ingressClassName` when both are specified";
            errors.invalid(&at.child(CLASS_ANNOTATION), other, detail);
        }
    }
}

fn validate_host(host: &str, path: &Path<'_>, errors: &mut Errors) {
    let rule = if host.contains('*') { names::wildcard_subdomain } else { names::dns_subdomain };
    by_rule(host, rule, path, errors);
}

fn validate_rule(rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    let host = text(rule, "host");
    if sloppy_ip(host).is_some() {
        errors.invalid(&path.child("host"), &json!(host), "must be a DNS name, not an IP address");
    }
    if !host.is_empty() {
        validate_host(host, &path.child("host"), errors);
    }
    let Some(http) = get(rule, "http") else { return };
    let path = path.child("http");
    let path = path.child("paths");
    if list(http, "paths").is_empty() {
        errors.required(&path, "");
    }
    for (index, one) in list(http, "paths").iter().enumerate() {
        validate_path(one, &path.index(index), errors);
    }
}

fn validate_path(one: &Value, path: &Path<'_>, errors: &mut Errors) {
    let value = text(one, "path");
    let at = path.child("path");
    match text(one, "pathType") {
        "" if get(one, "pathType").is_none() => {
            errors.required(&path.child("pathType"), "pathType must be specified");
            return;
        }
        "Exact" | "Prefix" => {
            if !value.starts_with('/') {
                errors.invalid(&at, &json!(value), "must be an absolute path");
            }
            for sequence in ["//", "/./", "/../", "%2f", "%2F"] {
                if value.contains(sequence) {
                    errors.invalid(&at, &json!(value), &format!("must not contain '{sequence}'"));
                }
            }
            for end in ["/..", "/."] {
                if value.ends_with(end) {
                    errors.invalid(&at, &json!(value), &format!("cannot end with '{end}'"));
                }
            }
        }
        "ImplementationSpecific" => {
            if !value.is_empty() && !value.starts_with('/') {
                errors.invalid(&at, &json!(value), "must be an absolute path");
            }
        }
        _ => one_of(one, "pathType", &["Exact", "ImplementationSpecific", "Prefix"], path, errors),
    }
    validate_backend(&one["backend"], &path.child("backend"), errors);
}

fn validate_backend(backend: &Value, path: &Path<'_>, errors: &mut Errors) {
    match (get(backend, "resource"), get(backend, "service")) {
        (Some(_), Some(_)) => {
            errors.invalid(path, &json!(""), "cannot set both resource and service backends")
        }
        (Some(resource), None) => typed_reference(resource, &path.child("resource"), errors),
        (None, Some(service)) => {
            required_by(service, "name", names::dns_label, &path.child("service"), errors);
            let port = &service["port"];
            match (text(port, "name"), int(port, "number").unwrap_or(0)) {
                ("", 0) => errors.required(path, "port name or number is required"),
                ("", number) => {
                    in_range(number, 1, 65_535, &path.child("service").child("port").child("number"), errors);
                }
                (name, 0) => {
                    by_rule(
                        name,
                        names::port_name,
                        &path.child("service").child("port").child("name"),
                        errors,
                    );
                }
                _ => errors.invalid(path, &json!(""), "cannot set both port name & port number"),
            }
        }
        (None, None) => errors.invalid(path, &json!(""), "resource or service backend is required"),
    }
}

/// A reference to an object of any group.
fn typed_reference(reference: &Value, path: &Path<'_>, errors: &mut Errors) {
    if let Some(group) = get(reference, "apiGroup").and_then(Value::as_str) {
        by_rule(group, names::dns_subdomain, &path.child("apiGroup"), errors);
    }
    for field in ["kind", "name"] {
        required_by(reference, field, names::path_segment, path, errors);
    }
}

fn validate_class(class: &Value, _: &Context<'_>, errors: &mut Errors) {
    let (spec, path) = (&class["spec"], Path::Root.child("spec"));
    if text(spec, "controller").len() > 250 {
        errors.too_long(&path.child("controller"), 250);
    }
    domain_path(spec, "controller", &path, errors);
    if let Some(parameters) = get(spec, "parameters") {
        let path = path.child("parameters");
        typed_reference(parameters, &path, errors);
        one_of(parameters, "scope", &["Cluster", "Namespace"], &path, errors);
        match text(parameters, "scope") {
            "Namespace" => match get(parameters, "namespace").and_then(Value::as_str) {
                Some(name) => by_rule(name, names::dns_label, &path.child("namespace"), errors),
                None => {
                    let detail = "`parameters.scope` is set to 'Namespace'";
                    errors.required(&path.child("namespace"), detail);
                }
            },
            "Cluster" if get(parameters, "namespace").is_some() => {
                errors.forbidden(&path.child("namespace"), "`parameters.scope` is set to 'Cluster'");
            }
            _ => {}
        }
    }
}

fn default_policy(policy: &mut Value) {
    let spec = sub(policy, "spec");
    for direction in ["ingress", "egress"] {
        each(spec, direction, |rule| each(rule, "ports", |port| fill(port, "protocol", "TCP")));
    }
    if is_zero(spec.get("policyTypes")) {
        let types =
            if is_zero(spec.get("egress")) { json!(["Ingress"]) } else { json!(["Ingress", "Egress"]) };
        set(spec, "policyTypes", types);
    }
}

fn validate_policy(policy: &Value, _: &Context<'_>, errors: &mut Errors) {
    let (spec, path) = (&policy["spec"], Path::Root.child("spec"));
    selector(spec, "podSelector", &path, errors);
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        let path = path.child(direction);
        for (index, rule) in list(spec, direction).iter().enumerate() {
            let path = path.index(index);
            for (index, port) in list(rule, "ports").iter().enumerate() {
                let ports = path.child("ports");
                validate_policy_port(port, &ports.index(index), errors);
            }
            for (index, peer) in list(rule, peers).iter().enumerate() {
                let peers = path.child(peers);
                validate_peer(peer, &peers.index(index), errors);
            }
        }
    }
    let types = list(spec, "policyTypes");
    let at = path.child("policyTypes");
    if types.len() > 2 {
        errors.invalid(&at, &spec["policyTypes"], "may not specify more than two policyTypes");
        return;
    }
    for (index, kind) in types.iter().enumerate() {
        if kind != "Ingress" && kind != "Egress" {
            errors.not_supported(&at.index(index), kind, &["Ingress", "Egress"]);
        }
    }
}

fn validate_policy_port(port: &Value, path: &Path<'_>, errors: &mut Errors) {
    one_of(port, "protocol", &["TCP", "UDP", "SCTP"], path, errors);
    let end = int(port, "endPort");
    match (get(port, "port"), end) {
        (None, None) => {}
        (None, Some(end)) => {
            let detail = "may not be specified when `port` is not specified";
            errors.invalid(&path.child("endPort"), &json!(end), detail);
        }
        (Some(start), end) => {
            port_or_name(Some(start), &path.child("port"), errors);
            match (start.as_i64(), end) {
                (Some(start), Some(end)) => {
                    if end < start {
                        let detail = "must be greater than or equal to `port`";
                        errors.invalid(&path.child("endPort"), &json!(start), detail);
                    }
                    in_range(end, 1, 65_535, &path.child("endPort"), errors);
                }
                (None, Some(end)) => {
                    let detail = "may not be specified when `port` is non-numeric";
                    errors.invalid(&path.child("endPort"), &json!(end), detail);
                }
                _ => {}
            }
        }
    }
}

fn validate_peer(peer: &Value, path: &Path<'_>, errors: &mut Errors) {
    selector(peer, "podSelector", path, errors);
    selector(peer, "namespaceSelector", path, errors);
    let selects = ["podSelector", "namespaceSelector"].iter().any(|field| get(peer, field).is_some());
    let Some(block) = get(peer, "ipBlock") else {
        if !selects {
            errors.required(path, "must specify a peer");
        }
        return;
    };
    let at = path.child("ipBlock");
    if required(block, "cidr", "", &at, errors) {
        let whole = cidr(text(block, "cidr"), &at.child("cidr"), errors);
        for (index, part) in list(block, "except").iter().filter_map(Value::as_str).enumerate() {
            let except = at.child("except");
            let except = except.index(index);
            let (Some(whole), Some(inner)) = (whole, cidr(part, &except, errors)) else { continue };
            if !whole.strictly_contains(&inner) {
                errors.invalid(&except, &json!(part), "must be a strict subset of `cidr`");
            }
        }
    }
    if selects {
        errors.forbidden(path, "may not specify both ipBlock and another peer");
    }
}
