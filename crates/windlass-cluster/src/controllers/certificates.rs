//! Certificates by which clients and nodes are known: what was approved is signed.

mod subject;

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest as Request, CertificateSigningRequestCondition as Condition,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};
use windlass_core::ObjectKey;

use crate::engine::{Controller, LookUp, Turn, View, Wiring};

/// Signs CertificateSigningRequests of the signers of Kubernetes that were approved. Without a key it does nothing, as
/// kube-controller-manager without `--cluster-signing-key-file`.
#[derive(Clone, Default)]
pub struct Certificates {
    signer: Option<Arc<Sign>>,
}

/// Who makes a certificate of a request in PEM that lives for so many seconds and is for these usages; of what is none, none.
type Sign = dyn Fn(&str, u64, &[String]) -> Option<String> + Send + Sync;

/// A year, which is as long as a certificate lives at most.
const LIFETIME: u64 = 365 * 24 * 3600;
const LIFETIME_MIN: u64 = 600;

impl Certificates {
    /// Certificates are signed so: by the authority that the API server knows its clients by.
    pub fn new(
        sign: impl Fn(&str, u64, &[String]) -> Option<String> + Send + Sync + 'static,
    ) -> Certificates {
        Certificates { signer: Some(Arc::new(sign)) }
    }
}

impl Controller for Certificates {
    fn name(&self) -> &'static str {
        "certificatesigningrequest-signing-controller"
    }

    fn declare(&self, wiring: &mut Wiring) {
        if self.signer.is_some() {
            wiring.keys::<Request>();
        }
    }

    fn sign(&self, asked: &Value) -> Option<String> {
        let (request, lifetime) = (asked["request"].as_str()?, asked["lifetime"].as_u64()?);
        let usages: Vec<String> = serde_json::from_value(asked["usages"].clone()).ok()?;
        // What cannot be signed is answered, too, with nothing: it is not asked again.
        Some((self.signer.as_ref()?)(request, lifetime, &usages).unwrap_or_default())
    }

    fn step(&self, key: &ObjectKey, view: &View<'_>, now: Timestamp) -> Turn {
        let mut turn = Turn::default();
        let Some(request) = view.get::<Request>(key).filter(|request| is_wanted(request)) else {
            return turn;
        };
        let mut request = Request::clone(&request);
        let usages = request.spec.usages.clone().unwrap_or_default();
        let pem = String::from_utf8_lossy(&request.spec.request.0).into_owned();
        let fault = match request.spec.signer_name.as_str() {
            "kubernetes.io/kube-apiserver-client" => usage_fault(&usages),
            "kubernetes.io/kube-apiserver-client-kubelet" => subject::client_fault(&pem, &usages),
            "kubernetes.io/kubelet-serving" => subject::serving_fault(&pem, &usages),
            _ => return turn,
        };
        if let Some(fault) = fault {
            let conditions = request.status.get_or_insert_default().conditions.get_or_insert_default();
            conditions.push(Condition {
                type_: "Failed".into(),
                status: "True".into(),
                reason: Some("SignerValidationFailure".into()),
                message: Some(fault),
                last_update_time: Some(Time(now)),
                ..Condition::default()
            });
            turn.status(&request);
            return turn;
        }
        let asked = request
            .spec
            .expiration_seconds
            .map_or(LIFETIME, |seconds| seconds.try_into().unwrap_or_default());
        let asked = json!({
            "request": pem,
            "lifetime": asked.clamp(LIFETIME_MIN, LIFETIME),
            "usages": usages,
        });
        match view.token(&asked) {
            None => turn.look_up(LookUp::Token(asked)),
            Some("") => tracing::warn!(request = %key, "a certificate was approved and cannot be signed"),
            Some(certificate) => {
                let certificate = ByteString(certificate.as_bytes().to_vec());
                request.status.get_or_insert_default().certificate = Some(certificate);
                turn.status(&request);
            }
        }
        turn
    }
}

/// Whether a request is approved, and waits.
fn is_wanted(request: &Request) -> bool {
    let status = request.status.clone().unwrap_or_default();
    let has = |kind: &str| {
        let conditions = status.conditions.iter().flatten();
        conditions.into_iter().any(|condition| condition.type_ == kind && condition.status == "True")
    };
    let is_signed = status.certificate.as_ref().is_some_and(|certificate| !certificate.0.is_empty());
    has("Approved") && !has("Denied") && !has("Failed") && !is_signed
}

/// What a certificate of a client may not be for, or must be for.
fn usage_fault(usages: &[String]) -> Option<String> {
    let is_known =
        |usage: &&String| matches!(usage.as_str(), "digital signature" | "key encipherment" | "client auth");
    if let Some(usage) = usages.iter().find(|usage| !is_known(usage)) {
        return Some(format!("invalid usage for client certificate: {usage}"));
    }
    let has = usages.iter().any(|usage| usage == "client auth");
    (!has).then(|| "missing required usage for client certificate: client auth".to_owned())
}
