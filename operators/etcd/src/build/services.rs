//! How clients and members find each other, and how many voters must stay.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt as _;
use kube::api::ObjectMeta;

use super::labels;
use crate::api::names::{self, CLIENT_PORT, METRICS_PORT, PEER_PORT};
use crate::api::{CLUSTER_LABEL, EtcdCluster, VOTER_LABEL};
use crate::plan::quorum;

/// The Service of clients: voters that are ready.
pub fn client_service(cluster: &EtcdCluster) -> Service {
    let spec = ServiceSpec {
        selector: Some(voters(cluster)),
        ports: Some(vec![port("client", CLIENT_PORT)]),
        ..ServiceSpec::default()
    };
    service(cluster, names::client_service(&cluster.name_any()), spec)
}

/// The Service of members: all of them, ready or not, since they find each other before they are.
pub fn peer_service(cluster: &EtcdCluster) -> Service {
    let spec = ServiceSpec {
        cluster_ip: Some("None".to_owned()),
        publish_not_ready_addresses: Some(true),
        selector: Some([(CLUSTER_LABEL.to_owned(), cluster.name_any())].into()),
        ports: Some(vec![
            port("peer", PEER_PORT),
            port("client", CLIENT_PORT),
            port("metrics", METRICS_PORT),
        ]),
        ..ServiceSpec::default()
    };
    service(cluster, names::peer_service(&cluster.name_any()), spec)
}

/// The budget: a quorum of voters stays. It is a number, since a share would be taken anew of whatever is left.
pub fn budget(cluster: &EtcdCluster, voters_now: usize) -> PodDisruptionBudget {
    let most = voters_now.max(usize::try_from(cluster.spec.size).unwrap_or(0));
    PodDisruptionBudget {
        metadata: metadata(cluster, cluster.name_any()),
        spec: Some(PodDisruptionBudgetSpec {
            min_available: Some(IntOrString::Int(i32::try_from(quorum(most)).unwrap_or(i32::MAX))),
            selector: Some(LabelSelector { match_labels: Some(voters(cluster)), ..LabelSelector::default() }),
            // A pod that is not ready gives nothing to the quorum: it may go.
            unhealthy_pod_eviction_policy: Some("AlwaysAllow".to_owned()),
            ..PodDisruptionBudgetSpec::default()
        }),
        ..PodDisruptionBudget::default()
    }
}

fn voters(cluster: &EtcdCluster) -> BTreeMap<String, String> {
    [(CLUSTER_LABEL.to_owned(), cluster.name_any()), (VOTER_LABEL.to_owned(), "true".to_owned())].into()
}

fn service(cluster: &EtcdCluster, name: String, spec: ServiceSpec) -> Service {
    Service { metadata: metadata(cluster, name), spec: Some(spec), ..Service::default() }
}

fn metadata(cluster: &EtcdCluster, name: String) -> ObjectMeta {
    ObjectMeta {
        name: Some(name),
        namespace: cluster.namespace(),
        labels: Some(labels(&cluster.name_any())),
        ..ObjectMeta::default()
    }
}

fn port(name: &str, port: i32) -> ServicePort {
    ServicePort {
        name: Some(name.to_owned()),
        port,
        target_port: Some(IntOrString::Int(port)),
        protocol: Some("TCP".to_owned()),
        ..ServicePort::default()
    }
}
