//! Requests for certificates on a server in this process.

use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest as Request;
use kube::api::{Api, Patch, PatchParams, PostParams};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::json;
use windlass::Env;
use windlass_cluster::Controllers;
use windlass_cluster::controllers::Certificates;
use windlass_testing::TestCluster;

use crate::world::eventually;

/// A request for a certificate of this user, for these hosts, in PEM.
fn request(user: &str, group: &str, hosts: &[&str]) -> String {
    let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    let mut params = CertificateParams::new(hosts).unwrap();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, group);
    params.distinguished_name.push(DnType::CommonName, user);
    params.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap()
}

#[tokio::test]
async fn what_was_approved_is_signed_and_nothing_else() {
    let cluster = TestCluster::new().await;
    let certificates = Certificates::new(|_, seconds, usages| {
        Some(format!("-----BEGIN CERTIFICATE-----\n{seconds} {}", usages.join(", ")))
    });
    let running = Controllers::none().with(certificates).start(cluster.client(), &Env::system());
    let requests: Api<Request> = Api::all(cluster.client());
    let amy = request("amy", "team", &[]);
    let node = request("system:node:n", "system:nodes", &[]);
    let served = request("system:node:n", "system:nodes", &["n", "10.0.0.1"]);
    let (client, kubelet, serving) =
        ("kube-apiserver-client", "kube-apiserver-client-kubelet", "kubelet-serving");
    for (name, signer, request, usages, verdict) in [
        ("good", client, &amy, json!(["client auth"]), "Approved"),
        ("denied", client, &amy, json!(["client auth"]), "Denied"),
        ("server", client, &amy, json!(["client auth", "server auth"]), "Approved"),
        ("no-usage", client, &amy, json!(["digital signature"]), "Approved"),
        ("node", kubelet, &node, json!(["digital signature", "client auth"]), "Approved"),
        ("node-hosts", kubelet, &served, json!(["digital signature", "client auth"]), "Approved"),
        ("node-usage", kubelet, &node, json!(["client auth"]), "Approved"),
        ("no-node", kubelet, &amy, json!(["digital signature", "client auth"]), "Approved"),
        ("serves", serving, &served, json!(["digital signature", "server auth"]), "Approved"),
        ("no-hosts", serving, &node, json!(["digital signature", "server auth"]), "Approved"),
        ("other", "other", &amy, json!(["client auth"]), "Approved"),
    ] {
        let request = json!({
            "metadata": {"name": name},
            "spec": {"request": ByteString(request.clone().into_bytes()), "usages": usages, "expirationSeconds": 3600,
                "signerName": format!("kubernetes.io/{signer}")},
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
    for (name, usages) in [
        ("good", "client auth"),
        ("node", "digital signature, client auth"),
        ("serves", "digital signature, server auth"),
    ] {
        let signed = (Some(format!("-----BEGIN CERTIFICATE-----\n3600 {usages}")), None);
        eventually(&cluster, name, || status(name) == signed).await;
    }
    for (name, why) in [
        ("server", "invalid usage for client certificate: server auth"),
        ("no-usage", "missing required usage for client certificate: client auth"),
        ("node-hosts", "DNS subjectAltNames are not allowed"),
        ("node-usage", "usages did not match [client auth digital signature key encipherment]"),
        ("no-node", "subject organization is not system:nodes"),
        ("no-hosts", "DNS or IP subjectAltName is required"),
    ] {
        eventually(&cluster, name, || status(name) == (None, Some(why.to_owned()))).await;
    }
    assert_eq!(status("other"), (None, None));
    assert_eq!(status("denied"), (None, None));
    running.stop().await;
}
