//! CertificateApproval, CertificateSigning and CertificateSubjectRestriction: who may approve and sign certificates is a
//! permission of its own for each signer. Nobody asks for a certificate of those who may do everything.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::Admission;
use crate::api::authorize::{Attributes, MASTERS};
use crate::json::str_at;
use crate::status::Result;
use crate::x509;

const GROUP: &str = "certificates.k8s.io";
const REQUESTS: &str = "certificatesigningrequests";

/// Who signs certificates by which clients are known.
const CLIENTS: &str = "kubernetes.io/kube-apiserver-client";

/// Whoever approves may do so for the signer.
pub(super) fn approval(request: &Value, admission: &mut Admission<'_>) -> Result<()> {
    match admission.is_in(GROUP, REQUESTS) && admission.context.subresource == "approval" {
        true => for_signer(request, "approve", admission),
        false => Ok(()),
    }
}

/// Whoever signs may do so for the signer.
pub(super) fn signing(request: &Value, admission: &mut Admission<'_>) -> Result<()> {
    let Some(old) = admission.old.filter(|_| admission.is_in(GROUP, REQUESTS)) else { return Ok(()) };
    let status = |object: &Value, field: &str| object["status"].get(field).cloned().unwrap_or_default();
    let changed = |field: &str| status(old, field) != status(request, field);
    match admission.context.subresource == "status" && (changed("certificate") || changed("conditions")) {
        true => for_signer(request, "sign", admission),
        false => Ok(()),
    }
}

/// For this signer, or for all of its domain.
fn for_signer(request: &Value, verb: &str, admission: &Admission<'_>) -> Result<()> {
    let signer = admission.old.map_or("", |old| str_at(old, &["spec", "signerName"]));
    let all = format!("{}/*", signer.split('/').next().unwrap_or_default());
    let may =
        |name: &str| admission.judge.may(&Attributes::resource(verb, GROUP, "signers").named(name)).is_ok();
    if may(signer) || may(&all) {
        return Ok(());
    }
    let why = format!("user not permitted to {verb} requests with signerName {signer:?}");
    Err(admission.refuse(request, &why))
}

/// Nobody becomes one of those who may do everything by a certificate.
pub(super) fn subject(request: &Value, admission: &mut Admission<'_>) -> Result<()> {
    if !admission.is_of(GROUP, REQUESTS) || str_at(request, &["spec", "signerName"]) != CLIENTS {
        return Ok(());
    }
    // What is no request at all is refused by those who look at the object.
    let pem = STANDARD.decode(str_at(request, &["spec", "request"])).unwrap_or_default();
    let found = x509::request::der(&pem).and_then(|der| x509::of_request(&der));
    match found.is_some_and(|subject| subject.organizations.iter().any(|group| group == MASTERS)) {
        true => {
            let why = format!("use of {CLIENTS} signer with system:masters group is not allowed");
            Err(admission.refuse(request, &why))
        }
        false => Ok(()),
    }
}
