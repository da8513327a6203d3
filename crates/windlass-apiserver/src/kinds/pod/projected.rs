//! Volumes that show several things in one folder.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::volumes::{downward_file, key_to_path};
use crate::field::{Errors, Path};
use crate::kinds::certificates::signer_name;
use crate::kinds::check::{required, selector};
use crate::kinds::tree::{get, int, list, text};
use crate::kinds::{names, paths};

/// Checks a projected volume.
pub(super) fn validate(volume: &Value, path: &Path<'_>, errors: &mut Errors) {
    paths::mode(int(volume, "defaultMode"), &path.child("defaultMode"), errors);
    let mut taken = BTreeSet::new();
    for (index, source) in list(volume, "sources").iter().enumerate() {
        let sources = path.child("sources");
        one(source, &sources.index(index), path, &mut taken, errors);
    }
}

const KINDS: [&str; 5] = ["secret", "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle"];

fn one<'a>(
    source: &'a Value,
    path: &Path<'_>,
    volume: &Path<'_>,
    taken: &mut BTreeSet<&'a str>,
    errors: &mut Errors,
) {
    let mut take = |file: &'a str, shown: &str, errors: &mut Errors| {
        if !taken.insert(file) {
            errors.invalid(volume, &json!(shown), "conflicting duplicate paths");
        }
    };
    for kind in ["secret", "configMap"] {
        let Some(found) = get(source, kind) else { continue };
        let at = path.child(kind);
        required(found, "name", "", &at, errors);
        for (index, item) in list(found, "items").iter().enumerate() {
            key_to_path(item, &at.child("items").index(index), errors);
            if !text(item, "path").is_empty() {
                take(text(item, "path"), text(found, "name"), errors);
            }
        }
    }
    if let Some(found) = get(source, "downwardAPI") {
        for file in list(found, "items") {
            downward_file(file, &path.child("downwardAPI"), errors);
            if !text(file, "path").is_empty() {
                take(text(file, "path"), text(file, "path"), errors);
            }
        }
    }
    if let Some(token) = get(source, "serviceAccountToken") {
        let at = path.child("serviceAccountToken");
        let seconds = int(token, "expirationSeconds").unwrap_or(0);
        if seconds < 600 {
            let detail = "may not specify a duration less than 10 minutes";
            errors.invalid(&at.child("expirationSeconds"), &json!(seconds), detail);
        }
        if seconds > 1 << 32 {
            let detail = "may not specify a duration larger than 2^32 seconds";
            errors.invalid(&at.child("expirationSeconds"), &json!(seconds), detail);
        }
        // The real server looks for the path in the volume.
        match text(token, "path") {
            "" => errors.required(&volume.child("path"), ""),
            file => paths::free(file, &volume.child("path"), errors),
        }
    }
    if let Some(bundle) = get(source, "clusterTrustBundle") {
        let at = path.child("clusterTrustBundle");
        trust_bundle(bundle, &at, errors);
        take(text(bundle, "path"), text(bundle, "path"), errors);
    }
    if KINDS.iter().filter(|kind| get(source, kind).is_some()).count() > 1 {
        errors.forbidden(path, "may not specify more than 1 volume type per source");
    }
}

fn trust_bundle(bundle: &Value, path: &Path<'_>, errors: &mut Errors) {
    let of = |field: &str| get(bundle, field).and_then(Value::as_str);
    match (of("name"), of("signerName")) {
        (Some(_), Some(_)) => {
            errors.invalid(path, bundle, "only one of name and signerName may be used");
        }
        (Some(name), None) => {
            if name.is_empty() {
                errors.required(&path.child("name"), "must be a valid object name");
            }
            for fault in bundle_name(name) {
                let detail = format!("not a valid clustertrustbundlename: {fault}");
                errors.invalid(&path.child("name"), &json!(name), &detail);
            }
            if let Some(selector) = get(bundle, "labelSelector") {
                let detail = "labelSelector must be unset if name is specified";
                errors.invalid(&path.child("labelSelector"), selector, detail);
            }
        }
        (None, Some(signer)) => {
            if signer.is_empty() {
                errors.required(&path.child("signerName"), "must be a valid signer name");
            }
            signer_name(signer, &path.child("signerName"), errors);
            selector(bundle, "labelSelector", path, errors);
        }
        (None, None) => errors.required(path, "either name or signerName must be specified"),
    }
    required(bundle, "path", "", path, errors);
    paths::free(text(bundle, "path"), &path.child("path"), errors);
}

/// A bundle of a signer is named after it.
fn bundle_name(name: &str) -> Vec<String> {
    names::dns_subdomain(name.rsplit(':').next().unwrap_or(name))
}
