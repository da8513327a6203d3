//! Requests for certificates on a server in this process.

use k8s_openapi::api::certificates::v1::CertificateSigningRequest as Request;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;
use windlass::Env;
use windlass_cluster::Controllers;
use windlass_cluster::controllers::Certificates;
use windlass_testing::TestCluster;

use crate::world::eventually;

/// `-----BEGIN CERTIFICATE REQUEST-----` is what the server looks for; whether it is one, the signer says.
const REQUEST: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0=";

#[tokio::test]
async fn what_was_approved_is_signed_and_nothing_else() {
    let cluster = TestCluster::new().await;
    let certificates = Certificates::new(|request, seconds| {
        Some(format!("-----BEGIN CERTIFICATE-----\n{seconds} {request}"))
    });
    let running = Controllers::none().with(certificates).start(cluster.client(), &Env::system());
    let requests: Api<Request> = Api::all(cluster.client());
    for (name, usages, verdict) in [
        ("good", json!(["client auth"]), "Approved"),
        ("denied", json!(["client auth"]), "Denied"),
        ("server", json!(["client auth", "server auth"]), "Approved"),
        ("no-usage", json!(["digital signature"]), "Approved"),
    ] {
        let request = json!({
            "metadata": {"name": name},
            "spec": {"request": REQUEST, "usages": usages, "expirationSeconds": 3600,
                "signerName": "kubernetes.io/kube-apiserver-client"},
        });
        let request = serde_json::from_value(request).unwrap();
        requests.create(&PostParams::default(), &request).await.unwrap();
        let verdict =
            json!({"status": {"conditions": [{"type": verdict, "status": "True", "reason": "Test"}]}});
        let verdict = Patch::Merge(verdict);
        requests.patch_subresource("approval", name, &PatchParams::default(), &verdict).await.unwrap();
    }
    let status = |name: &str| {
        let status = cluster.world().get::<Request>("", name).unwrap().status.unwrap_or_default();
        let certificate = status.certificate.map(|bytes| String::from_utf8(bytes.0).unwrap());
        let failed = status.conditions.into_iter().flatten().find(|condition| condition.type_ == "Failed");
        (certificate, failed.and_then(|failed| failed.message))
    };
    let signed = Some("-----BEGIN CERTIFICATE-----\n3600 -----BEGIN CERTIFICATE REQUEST-----".to_owned());
    eventually(&cluster, "signed", || status("good").0 == signed).await;
    let fault = |name: &str| status(name).1;
    let invalid = Some("invalid usage for client certificate: server auth".to_owned());
    eventually(&cluster, "refused", || fault("server") == invalid).await;
    let missing = Some("missing required usage for client certificate: client auth".to_owned());
    eventually(&cluster, "refused, too", || fault("no-usage") == missing).await;
    assert_eq!(status("denied"), (None, None));
    running.stop().await;
}
