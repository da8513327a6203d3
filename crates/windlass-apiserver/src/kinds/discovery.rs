//! Endpoint slices.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::check::{ip, one_of, required, text_by};
use super::generation::Generation;
use super::tree::{each, fill, list, text};
use super::{Context, Hooks, meta, names};
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
    },
    validate_create: validate,
    validate_update: |new, old, context, errors| {
        validate(new, context, errors);
        meta::immutable(new, old, &Path::Root, "addressType", errors);
    },
    ..Hooks::NONE
};

fn default(slice: &mut Value) {
    each(slice, "ports", |port| {
        fill(port, "name", "");
        fill(port, "protocol", "TCP");
    });
}

fn validate(slice: &Value, _: &Context<'_>, errors: &mut Errors) {
    let root = Path::Root;
    if required(slice, "addressType", "", &root, errors) {
        one_of(slice, "addressType", &["FQDN", "IPv4", "IPv6"], &root, errors);
    }
    for (index, endpoint) in list(slice, "endpoints").iter().enumerate() {
        let path = root.child("endpoints");
        let path = path.index(index);
        let addresses = list(endpoint, "addresses");
        if addresses.is_empty() {
            errors.required(&path.child("addresses"), "must contain at least 1 address");
        }
        for (index, address) in addresses.iter().filter_map(Value::as_str).enumerate() {
            if matches!(text(slice, "addressType"), "IPv4" | "IPv6") {
                ip(address, &path.child("addresses").index(index), errors);
            }
        }
        text_by(endpoint, "nodeName", names::dns_subdomain, &path, errors);
    }
    let mut seen = BTreeSet::new();
    for (index, port) in list(slice, "ports").iter().enumerate() {
        let path = root.child("ports");
        let path = path.index(index);
        let name = text(port, "name");
        if !seen.insert(name) {
            errors.duplicate(&path.child("name"), &json!(name));
        }
        text_by(port, "name", names::dns_label, &path, errors);
        one_of(port, "protocol", &["SCTP", "TCP", "UDP"], &path, errors);
    }
}
