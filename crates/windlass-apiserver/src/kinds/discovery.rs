//! Endpoint slices.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::{Value, json};

use super::check::{by_rule, ip, one_of, required, text_by};
use super::core::endpoint_ip;
use super::generation::Generation;
use super::tree::{each, fill, get, list, remove, same, text};
use super::{Hooks, meta, names, warn};
use crate::field::{Errors, Path};

/// The hooks of a discovery kind.
pub(super) fn hooks(kind: &str) -> Option<&'static Hooks> {
    (kind == "EndpointSlice").then_some(&SLICE)
}

const SLICE: Hooks = Hooks {
    default,
    generation: Generation {
        born: true,
        grows_on: &["/addressType", "/endpoints", "/ports", "/metadata/labels"],
        tells_empty: false,
    },
    rechecks: &[meta::Check::Whole],
    warnings,
    validate_create: |slice, _, errors| {
        validate(slice, errors);
        validate_endpoints(slice, errors);
    },
    prepare_create: |slice, _| drop_topology(slice),
    prepare_update: |new, old, _| {
        if !same(new.get("endpoints"), old.get("endpoints")) {
            drop_topology(new);
        }
    },
    validate_update: |new, old, _, errors| {
        validate(new, errors);
        // What an older server took is left alone.
        if !same(new.get("endpoints"), old.get("endpoints")) {
            validate_endpoints(new, errors);
        }
        meta::immutable(new, old, &Path::Root, "addressType", errors);
    },
    ..Hooks::NONE
};

/// This version does not write what it calls deprecated.
fn drop_topology(slice: &mut Value) {
    each(slice, "endpoints", |endpoint| {
        remove(endpoint, "deprecatedTopology");
    });
}

fn default(slice: &mut Value) {
    each(slice, "ports", |port| {
        fill(port, "name", "");
        fill(port, "protocol", "TCP");
    });
}

fn validate(slice: &Value, errors: &mut Errors) {
    let root = Path::Root;
    if required(slice, "addressType", "", &root, errors) {
        one_of(slice, "addressType", &["FQDN", "IPv4", "IPv6"], &root, errors);
    }
    let ports = list(slice, "ports");
    if ports.len() > PORTS_MAX {
        return errors.too_many(&root.child("ports"), ports.len(), PORTS_MAX);
    }
    let mut seen = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = root.child("ports");
        let path = path.index(index);
        let name = text(port, "name");
        text_by(port, "name", names::dns_label, &path, errors);
        if !seen.insert(name) {
            errors.duplicate(&path.child("name"), &json!(name));
        }
        one_of(port, "protocol", &["SCTP", "TCP", "UDP"], &path, errors);
        if let Some(protocol) = get(port, "appProtocol").and_then(Value::as_str) {
            by_rule(protocol, names::label_key, &path.child("appProtocol"), errors);
        }
    }
}

/// The most ports and endpoints that a slice may have, and addresses and hints of a kind that an endpoint may have.
const PORTS_MAX: usize = 20_000;
const ENDPOINTS_MAX: usize = 1000;
const ADDRESSES_MAX: usize = 100;
const HINTS_MAX: usize = 8;

fn validate_endpoints(slice: &Value, errors: &mut Errors) {
    let (kind, endpoints) = (text(slice, "addressType"), list(slice, "endpoints"));
    let path = Path::Root.child("endpoints");
    if endpoints.len() > ENDPOINTS_MAX {
        return errors.too_many(&path, endpoints.len(), ENDPOINTS_MAX);
    }
    for (index, endpoint) in endpoints.iter().enumerate() {
        let path = path.index(index);
        let at = path.child("addresses");
        let addresses = list(endpoint, "addresses");
        if addresses.is_empty() {
            errors.required(&at, "must contain at least 1 address");
        } else if addresses.len() > ADDRESSES_MAX {
            errors.too_many(&at, addresses.len(), ADDRESSES_MAX);
        }
        for (index, address) in addresses.iter().filter_map(Value::as_str).enumerate() {
            match kind {
                "IPv4" | "IPv6" => address_of(kind, address, &at, index, errors),
                "FQDN" => domain(address, &at.index(index), errors),
                _ => {}
            }
        }
        if let Some(node) = get(endpoint, "nodeName").and_then(Value::as_str) {
            by_rule(node, names::dns_subdomain, &path.child("nodeName"), errors);
        }
        if let Some(name) = get(endpoint, "hostname").and_then(Value::as_str) {
            by_rule(name, names::dns_label, &path.child("hostname"), errors);
        }
        if let Some(hints) = get(endpoint, "hints") {
            validate_hints(hints, &path.child("hints"), errors);
        }
    }
}

/// Zones and nodes whose clients an endpoint is for.
fn validate_hints(hints: &Value, path: &Path<'_>, errors: &mut Errors) {
    let rules: [(_, names::Rule); 2] = [("forZones", names::label_value), ("forNodes", names::dns_subdomain)];
    for (field, rule) in rules {
        let (path, all) = (path.child(field), list(hints, field));
        if all.len() > HINTS_MAX {
            return errors.too_many(&path, all.len(), HINTS_MAX);
        }
        let mut seen = BTreeSet::new();
        for (index, hint) in all.iter().enumerate() {
            let (path, name) = (path.index(index), text(hint, "name"));
            let path = path.child("name");
            if !seen.insert(name) {
                errors.duplicate(&path, &json!(name));
            }
            by_rule(name, rule, &path, errors);
        }
    }
}

fn address_of(kind: &str, address: &str, path: &Path<'_>, index: usize, errors: &mut Errors) {
    let faults = errors.0.len();
    ip(address, &path.index(index), errors);
    let Some(parsed) = address.parse::<IpAddr>().ok().filter(|_| errors.0.len() == faults) else { return };
    if kind == "IPv6" && parsed.to_string() != address {
        let detail = format!("must be in canonical form ({:?})", parsed.to_string());
        errors.invalid(&path.index(index), &json!(address), &detail);
        return;
    }
    if parsed.is_ipv4() != (kind == "IPv4") {
        errors.invalid(path, &json!(address), &format!("must be an {kind} address"));
    }
    endpoint_ip(address, &path.index(index), errors);
}

/// The full name of a host, with or without the dot at its end.
fn domain(name: &str, path: &Path<'_>, errors: &mut Errors) {
    if name.is_empty() {
        errors.required(path, "");
        return;
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    let faults = names::dns_subdomain(name);
    if !faults.is_empty() {
        errors.invalid(path, &json!(name), &faults.join(","));
    } else if !name.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        errors.invalid(path, &json!(name), detail);
    } else if let Some(label) = name.split('.').find(|label| !names::dns_label(label).is_empty()) {
        errors.invalid(path, &json!(label), &names::dns_label(label).join(","));
    }
}

fn warnings(slice: &Value, old: Option<&Value>) -> Vec<String> {
    // Controllers that know better are not told.
    const MAKERS: [&str; 2] = ["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"];
    let mut out = Vec::new();
    if text(slice, "addressType") == "FQDN" && old.is_none() {
        out.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
    }
    let labels = &slice["metadata"]["labels"];
    if MAKERS.contains(&text(labels, "endpointslice.kubernetes.io/managed-by")) {
        return out;
    }
    let path = Path::Root.child("endpoints");
    for (index, endpoint) in list(slice, "endpoints").iter().enumerate() {
        let path = path.index(index);
        let path = path.child("addresses");
        for (index, address) in list(endpoint, "addresses").iter().filter_map(Value::as_str).enumerate() {
            warn::ip(address, &path.index(index), &mut out);
        }
    }
    out
}
