//! What users are told of a cluster, and what the operator has to remember of it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The types of conditions.
pub mod conditions {
    /// Clients can read and write.
    pub const AVAILABLE: &str = "Available";
    /// The cluster is on its way to what the spec asks for.
    pub const PROGRESSING: &str = "Progressing";
    /// A member is not well, or something keeps the operator from acting.
    pub const DEGRADED: &str = "Degraded";
    /// One more failure takes the quorum away, or it is gone.
    pub const QUORUM_AT_RISK: &str = "QuorumAtRisk";
}

/// What came of it. Decisions are made from what etcd says, not from this, except where a field says that it is kept.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct EtcdClusterStatus {
    /// The generation of the spec that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How many members vote, for the scale subresource.
    #[serde(default)]
    pub replicas: i32,
    /// The pods of the cluster, for the scale subresource.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub selector: String,
    /// Healthy voters of all voters, in short: `3/3`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// Kept: the ID that etcd gave the cluster, in hexadecimal. Once it is there, no member is ever started as new.
    #[serde(default, rename = "clusterID", skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// Kept: the highest serial that was given to a member. It is written before it is used.
    #[serde(default)]
    pub member_serial: i64,
    /// Kept: whether that serial is reserved for a member that was not seen yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub serial_reserved: bool,
    /// The members, as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub members: Vec<MemberStatus>,
    /// Who votes, and who of them is well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quorum: Option<Quorum>,
    /// Kept: members that were replaced within the last hour.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub replacements: Vec<Replacement>,
    /// Kept: since when there is no quorum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quorum_lost_since: Option<Time>,
    /// Kept: the recovery from a lost quorum that is on its way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    /// What was done last to members, pods or volumes. Kept, while it is the next action, too: since when that is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_action: Option<LastAction>,
    /// What will be done next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_action: Option<String>,
    /// Why nothing is done, where something should be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_reason: Option<String>,
    /// `Available`, `Progressing`, `Degraded`, `QuorumAtRisk`.
    #[serde(default)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

/// One member.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct MemberStatus {
    /// Its name, which is that of its EtcdMember and its pod.
    pub name: String,
    /// Its ID in etcd, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What it is to the others.
    pub role: MemberRole,
    /// The version that it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Whether it answers, follows a leader and is up to date.
    pub healthy: bool,
    /// Kept: since when it is so.
    pub since: Time,
    /// How many writes it is behind the leader, where that is more than what is always on its way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag: Option<i64>,
    /// The size of its database in bytes, rounded up to whole MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub db_size: Option<i64>,
    /// Its volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pvc: Option<String>,
    /// The node that it runs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// What a member is to the others.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberRole {
    /// etcd does not know it yet.
    Pending,
    /// It receives the data and has no vote.
    Learner,
    /// It votes.
    Voter,
    /// It votes, and the others follow it.
    Leader,
    /// etcd knows it no more; its pod and volume are on their way out.
    Removed,
    /// There is no quorum that could tell.
    Unknown,
}

/// Who votes, and who of them is well.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Quorum {
    /// How many members vote.
    pub voters: i32,
    /// How many of them are healthy.
    pub healthy: i32,
    /// How many more may fail before writes stop; negative where they have.
    pub margin: i32,
}

/// A member that was replaced.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Replacement {
    /// Which one.
    pub member: String,
    /// When that was decided.
    pub at: Time,
}

/// A recovery from a lost quorum that is on its way.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Recovery {
    /// The member that goes on.
    pub survivor: String,
    /// When that was decided.
    pub at: Time,
    /// Whether it has gone on alone: what is left is to start it again without the force.
    #[serde(default)]
    pub forced: bool,
}

/// Something that was done.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct LastAction {
    /// What.
    pub action: String,
    /// When.
    pub at: Time,
}
