//! Who may approve and sign certificates: a permission of its own for each signer, which admission asks for. Nobody asks for a
//! certificate of those who may do everything.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::MASTERS;
use super::attributes::Attributes;
use crate::api::object::meta_str;
use crate::api::registry::Resource;
use crate::api::server::{Call, Server};
use crate::api::user::User;
use crate::json::str_at;
use crate::status::{Result, Status};
use crate::x509;

const GROUP: &str = "certificates.k8s.io";
const REQUESTS: &str = "certificatesigningrequests";

/// Who signs certificates by which clients are known.
const CLIENTS: &str = "kubernetes.io/kube-apiserver-client";

/// What the admission plugin CertificateSubjectRestriction says to a request for a certificate.
pub(in crate::api) fn admit_subject(resource: &Resource, tree: &Value) -> Result<()> {
    let is_request = resource.group == GROUP && resource.plural == REQUESTS;
    if !is_request || str_at(tree, &["spec", "signerName"]) != CLIENTS {
        return Ok(());
    }
    let refused = |why: &str| Status::forbidden(GROUP, REQUESTS, meta_str(tree, "name"), why);
    // What is no request at all is refused by those who look at the object.
    let Some(subject) = decoded(str_at(tree, &["spec", "request"])).and_then(|der| x509::of_request(&der))
    else {
        return Ok(());
    };
    match subject.organizations.iter().any(|group| group == MASTERS) {
        true => Err(refused(&format!("use of {CLIENTS} signer with system:masters group is not allowed"))),
        false => Ok(()),
    }
}

/// The DER in a PEM in base64.
fn decoded(request: &str) -> Option<Vec<u8>> {
    let pem = String::from_utf8(STANDARD.decode(request).ok()?).ok()?;
    let (_, after) = pem.split_once("-----BEGIN CERTIFICATE REQUEST-----")?;
    let (body, _) = after.split_once("-----END")?;
    STANDARD.decode(body.split_ascii_whitespace().collect::<String>()).ok()
}

impl Server {
    /// What the admission plugins CertificateApproval and CertificateSigning say to a change of a signing request.
    pub(in crate::api) fn admit_signer(
        &self,
        call: &Call<'_>,
        resource: &Resource,
        old: &Value,
        tree: &Value,
    ) -> Result<()> {
        if resource.group != GROUP || resource.plural != REQUESTS {
            return Ok(());
        }
        let status = |object: &Value, field: &str| object["status"].get(field).cloned().unwrap_or_default();
        let changed = |field: &str| status(old, field) != status(tree, field);
        let verb = match call.target.subresource.as_str() {
            "approval" => "approve",
            "status" if changed("certificate") || changed("conditions") => "sign",
            _ => return Ok(()),
        };
        let signer = str_at(old, &["spec", "signerName"]);
        if self.may_for_signer(&call.request.user, verb, signer) {
            return Ok(());
        }
        let why = format!("user not permitted to {verb} requests with signerName {signer:?}");
        Err(Status::forbidden(GROUP, REQUESTS, meta_str(tree, "name"), &why))
    }

    /// For this signer, or for all of its domain.
    fn may_for_signer(&self, user: &User, verb: &str, signer: &str) -> bool {
        let all = format!("{}/*", signer.split('/').next().unwrap_or_default());
        let may = |name: &str| {
            self.decide(user, &Attributes::resource(verb, GROUP, "signers").named(name)).is_allowed()
        };
        may(signer) || may(&all)
    }
}
