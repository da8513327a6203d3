//! EtcdMember: one member of a cluster, as the operator keeps it.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One member of an EtcdCluster: its identity, which is never used again. It stands for one pod and one volume.
///
/// The operator makes and removes it. To delete one is to ask for its replacement: it stays until etcd has let the member
/// go, which is done when the others are well.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "etcd.cloud.io",
    version = "v1",
    kind = "EtcdMember",
    plural = "etcdmembers",
    namespaced,
    derive = "PartialEq",
    doc = "One member of an EtcdCluster: its identity, which is never used again. The operator makes and removes it; to delete one is to ask for its replacement."
)]
#[kube(printcolumn = r#"{"name": "Cluster", "type": "string", "jsonPath": ".spec.cluster"}"#)]
#[kube(printcolumn = r#"{"name": "Origin", "type": "string", "jsonPath": ".spec.origin"}"#)]
#[kube(printcolumn = r#"{"name": "ID", "type": "string", "jsonPath": ".spec.joined.id"}"#)]
#[kube(printcolumn = r#"{"name": "Version", "type": "string", "jsonPath": ".spec.version"}"#)]
#[kube(printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#)]
#[serde(rename_all = "camelCase")]
pub struct EtcdMemberSpec {
    /// The EtcdCluster that it is of.
    pub cluster: String,
    /// Which one it is, counted over the life of the cluster. Its name is made of this and of the cluster's UID.
    pub serial: i64,
    /// Whether the cluster began with it or it came later.
    pub origin: Origin,
    /// The version of etcd that it was made for.
    pub version: String,
    /// What etcd calls the cluster, so that members of two never mix.
    pub cluster_token: String,
    /// What etcd said of it when it was first seen in the list of members. From then on it is never started as new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined: Option<Joined>,
}

/// How a member came to be.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The cluster began with it.
    Seed,
    /// It was added to a cluster that there was.
    Joiner,
}

/// What etcd said of a member when it was first seen in the list of members.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Joined {
    /// Its ID, in hexadecimal as etcd prints it.
    pub id: String,
    /// The members of that moment, as `--initial-cluster` has them.
    pub initial_cluster: String,
}
