//! Certificate signing requests.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::check::required;
use super::tree::{each, fill, get, int, list, remove, restore, seconds, set, sub, text};
use super::{Context, Hooks, names};
use crate::field::{Errors, Path};
use crate::x509;

/// The hooks of a certificates kind.
pub(super) fn hooks(kind: &str) -> Option<&'static Hooks> {
    (kind == "CertificateSigningRequest").then_some(&SIGNING_REQUEST)
}

const SIGNING_REQUEST: Hooks = Hooks {
    name: names::path_segment,
    prepare_create: |object, context| {
        // Who asks is for the server to say.
        let spec = sub(object, "spec");
        for field in ["username", "uid", "groups", "extra"] {
            remove(spec, field);
        }
        set(spec, "username", context.user);
        if !context.groups.is_empty() {
            set(spec, "groups", context.groups.to_vec());
        }
        if !context.uid.is_empty() {
            set(spec, "uid", context.uid);
        }
        if !context.extra.is_empty() {
            set(spec, "extra", json!(context.extra));
        }
    },
    prepare_update: |new, old, context| {
        restore(new, old, "spec");
        match context.subresource {
            "approval" => time_conditions(new, old, context),
            _ => restore(new, old, "status"),
        }
    },
    prepare_status: |new, old, context| {
        keep_verdicts(new, old);
        time_conditions(new, old, context);
    },
    validate_create: |object, _, errors| validate(object, errors),
    validate_update: |new, old, _, errors| {
        validate_conditions(new, errors);
        no_lost_verdicts(new, old, errors);
    },
    validate_status: |new, old, _, errors| {
        validate_conditions(new, errors);
        no_lost_verdicts(new, old, errors);
        no_new_verdicts(new, old, errors);
        validate_certificate(new, old, errors);
    },
    ..Hooks::NONE
};

/// Conditions that come without times get them.
fn time_conditions(new: &mut Value, old: &Value, context: &Context<'_>) {
    let now = seconds(context.now);
    let before = list(&old["status"], "conditions").to_vec();
    each(sub(new, "status"), "conditions", |condition| {
        fill(condition, "lastUpdateTime", now.as_str());
        let same = |other: &&Value| ["type", "status"].iter().all(|f| text(other, f) == text(condition, f));
        let since = before.iter().find(same).and_then(|other| get(other, "lastTransitionTime")).cloned();
        fill(condition, "lastTransitionTime", since.unwrap_or(json!(now)));
    });
}

fn of_type<'a>(object: &'a Value, verdict: &str) -> Vec<&'a Value> {
    list(&object["status"], "conditions")
        .iter()
        .filter(|condition| text(condition, "type") == verdict)
        .collect()
}

/// Who writes the status does not decide on the request: approvals and denials stay as they are.
fn keep_verdicts(new: &mut Value, old: &Value) {
    for verdict in ["Approved", "Denied"] {
        let before = of_type(old, verdict);
        if before.len() != of_type(new, verdict).len() {
            continue;
        }
        let mut before = before.into_iter();
        each(sub(new, "status"), "conditions", |condition| {
            if text(condition, "type") == verdict
                && let Some(kept) = before.next()
            {
                *condition = kept.clone();
            }
        });
    }
}

const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

fn validate(object: &Value, errors: &mut Errors) {
    let (spec, path) = (&object["spec"], Path::Root.child("spec"));
    let request = STANDARD.decode(text(spec, "request")).unwrap_or_default();
    if let Some(fault) = x509::request::fault(&request) {
        errors.invalid(&path.child("request"), &spec["request"], &fault);
    }
    required(spec, "usages", "", &path, errors);
    for (index, usage) in list(spec, "usages").iter().enumerate() {
        let at = path.child("usages");
        if !USAGES.iter().any(|known| usage == known) {
            errors.not_supported(&at.index(index), usage, &USAGES);
        }
        if list(spec, "usages")[..index].contains(usage) {
            errors.duplicate(&at.index(index), usage);
        }
    }
    match text(spec, "signerName") {
        name @ "kubernetes.io/legacy-unknown" => {
            let detail = "the legacy signerName is not allowed via this API version";
            errors.invalid(&path.child("signerName"), &json!(name), detail);
        }
        name => signer_name(name, &path.child("signerName"), errors),
    }
    if let Some(seconds) = int(spec, "expirationSeconds").filter(|seconds| *seconds < 600) {
        let detail = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.invalid(&path.child("expirationSeconds"), &json!(seconds), detail);
    }
}

/// The name of a signer: a domain and a path in it.
pub(crate) fn signer_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    if name.is_empty() {
        errors.required(path, "");
        return;
    }
    let Some((domain, rest)) = name.split_once('/').filter(|(_, rest)| !rest.contains('/')) else {
        let detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        errors.invalid(path, &json!(name), detail);
        return;
    };
    if domain.len() > 253 {
        errors.too_long(path, 253);
    }
    first_fault(domain, names::dns_label, path, errors);
    if !domain.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        errors.invalid(path, &json!(domain), detail);
    }
    first_fault(rest, names::dns_subdomain, path, errors);
    if name.len() > 571 {
        errors.too_long(path, 571);
    }
}

/// Of the parts between dots, only the first that breaks the rule is told.
fn first_fault(text: &str, rule: names::Rule, path: &Path<'_>, errors: &mut Errors) {
    if let Some(part) = text.split('.').find(|part| !rule(part).is_empty()) {
        for fault in rule(part) {
            errors.invalid(path, &json!(text), &format!("validating label {part:?}: {fault}"));
        }
    }
}

fn validate_conditions(object: &Value, errors: &mut Errors) {
    let path = Path::Root.child("status");
    let path = path.child("conditions");
    for (index, condition) in list(&object["status"], "conditions").iter().enumerate() {
        let at = path.index(index);
        required(condition, "type", "", &at, errors);
        match (text(condition, "type"), text(condition, "status")) {
            (_, "") => errors.required(&at.child("status"), ""),
            ("Approved" | "Denied" | "Failed", status) if status != "True" => {
                errors.not_supported(&at.child("status"), &json!(status), &["True"]);
            }
            _ => {}
        }
    }
    if !of_type(object, "Approved").is_empty() && !of_type(object, "Denied").is_empty() {
        let detail = "Approved and Denied conditions are mutually exclusive";
        errors.invalid(&path, &json!("Denied"), detail);
    }
}

/// How often a verdict stands there, before and now.
fn counts(new: &Value, old: &Value, verdict: &str) -> (usize, usize) {
    (of_type(old, verdict).len(), of_type(new, verdict).len())
}

fn no_lost_verdicts(new: &Value, old: &Value, errors: &mut Errors) {
    for verdict in ["Approved", "Denied", "Failed"] {
        let (before, now) = counts(new, old, verdict);
        if now < before {
            let detail = format!("updates may not remove a condition of type {verdict:?}");
            errors.forbidden(&Path::Root.child("status").child("conditions"), &detail);
        }
    }
}

fn no_new_verdicts(new: &Value, old: &Value, errors: &mut Errors) {
    for verdict in ["Approved", "Denied"] {
        let (before, now) = counts(new, old, verdict);
        if now > before {
            let detail = format!("updates may not add a condition of type {verdict:?}");
            errors.forbidden(&Path::Root.child("status").child("conditions"), &detail);
        }
    }
}

/// What was signed is not signed again.
fn validate_certificate(new: &Value, old: &Value, errors: &mut Errors) {
    let (now, before) = (text(&new["status"], "certificate"), text(&old["status"], "certificate"));
    if now == before {
        return;
    }
    let path = Path::Root.child("status");
    let path = path.child("certificate");
    let certificate = STANDARD.decode(now).unwrap_or_default();
    if !now.is_empty() && !certificate.windows(27).any(|window| window == b"-----BEGIN CERTIFICATE-----") {
        let detail = "must contain at least one CERTIFICATE PEM block";
        errors.invalid(&path, &json!("<certificate data>"), detail);
    }
    if !before.is_empty() {
        errors.forbidden(&path, "updates may not modify existing certificate content");
    }
}
