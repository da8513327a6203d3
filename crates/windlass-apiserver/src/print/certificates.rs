//! Certificate requests and trust bundles.

use serde_json::{Value, json};

use super::Printer;
use super::object::{Object, text};
use super::workloads::seconds;

pub(super) fn printer(kind: &str) -> Option<Printer> {
    Some(match kind {
        "CertificateSigningRequest" => signing_request,
        "ClusterTrustBundle" => trust_bundle,
        "PodCertificateRequest" => pod_request,
        _ => return None,
    })
}

fn signer<'a>(object: &Object<'a>) -> &'a str {
    match object.text(&["spec", "signerName"]) {
        "" => "<none>",
        signer => signer,
    }
}

fn signing_request(object: &Object<'_>) -> Vec<Value> {
    let duration = object.get(&["spec", "expirationSeconds"]).and_then(Value::as_i64);
    let has = |kind: &str| object.condition(kind).is_some();
    let mut status = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (_, true) => "Approved",
        _ => "Pending",
    }
    .to_owned();
    if has("Failed") {
        status.push_str(",Failed");
    }
    if !object.text(&["status", "certificate"]).is_empty() {
        status.push_str(",Issued");
    }
    vec![
        json!(object.name()),
        json!(object.age()),
        json!(signer(object)),
        json!(object.text(&["spec", "username"])),
        json!(duration.map_or_else(|| "<none>".to_owned(), seconds)),
        json!(status),
    ]
}

fn trust_bundle(object: &Object<'_>) -> Vec<Value> {
    vec![json!(object.name()), json!(signer(object))]
}

fn pod_request(object: &Object<'_>) -> Vec<Value> {
    let mut conditions =
        object.list(&["status", "conditions"]).iter().rev().map(|condition| text(condition, &["type"]));
    let state = conditions.find(|kind| matches!(*kind, "Issued" | "Denied" | "Failed"));
    let spec = |key: &str| json!(object.text(&["spec", key]));
    vec![
        json!(object.name()),
        spec("podName"),
        spec("serviceAccountName"),
        spec("nodeName"),
        spec("signerName"),
        json!(state.unwrap_or("Pending")),
        json!(object.labels(&["spec", "unverifiedUserAnnotations"])),
    ]
}
