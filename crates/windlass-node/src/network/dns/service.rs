//! The Service by which pods find DNS, and who answers for it: this process.

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use super::super::addresses::{DNS_SERVICE, FABRIC};

const NAME: &str = "kube-dns";
const NAMESPACE: &str = "kube-system";
const MANAGER: &str = "windlass";

/// Tells the API server of it.
///
/// # Errors
/// When the server refuses, or cannot be reached.
pub async fn announce(client: &Client) -> Result<(), kube::Error> {
    let metadata = json!({
        "name": NAME, "namespace": NAMESPACE,
        "labels": {
            "k8s-app": "kube-dns", "kubernetes.io/cluster-service": "true", "kubernetes.io/name": "CoreDNS",
        },
    });
    let ports = json!([
        {"name": "dns", "port": 53, "protocol": "UDP"},
        {"name": "dns-tcp", "port": 53, "protocol": "TCP"},
    ]);
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": metadata,
        "spec": {"clusterIP": DNS_SERVICE.to_string(), "clusterIPs": [DNS_SERVICE.to_string()], "ports": ports},
    });
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "name": NAME, "namespace": NAMESPACE,
            "labels": {
                "kubernetes.io/service-name": NAME,
                "endpointslice.kubernetes.io/managed-by": MANAGER,
            },
        },
        "addressType": "IPv4", "ports": ports,
        "endpoints": [{"addresses": [FABRIC.to_string()], "conditions": {"ready": true}}],
    });
    let applied = PatchParams::apply(MANAGER).force();
    let services: Api<Service> = Api::namespaced(client.clone(), NAMESPACE);
    services.patch(NAME, &applied, &Patch::Apply(&service)).await?;
    let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), NAMESPACE);
    slices.patch(NAME, &applied, &Patch::Apply(&slice)).await?;
    Ok(())
}
