//! What users write, and what they are told: data only, and what follows from it alone.

mod cluster;
mod defaults;
mod member;
pub mod names;
mod options;
mod pod;
mod status;
mod storage;
pub mod validate;

pub use cluster::{EtcdCluster, EtcdClusterSpec, Healing, Pdb, QuorumLoss};
pub use defaults::{IMAGE, VERSION};
pub use member::{EtcdMember, EtcdMemberSpec, Joined, Origin};
pub use options::{CompactionMode, Options};
pub use pod::PodTemplate;
pub use status::{
    EtcdClusterStatus, LastAction, MemberRole, MemberStatus, Quorum, Recovery, Replacement, conditions,
};
pub use storage::{Medium, ReclaimPolicy, Storage};

/// The label of everything that belongs to an EtcdCluster: its name.
pub const CLUSTER_LABEL: &str = "etcd.cloud.io/cluster";
/// The label of everything that belongs to one member: the member's name.
pub const MEMBER_LABEL: &str = "etcd.cloud.io/member";
/// The label of volumes that says which cluster of that name: a later one must not take them for its own.
pub const UID_LABEL: &str = "etcd.cloud.io/cluster-uid";
/// The label of pods whose member votes: `true` or `false`. The client Service and the PodDisruptionBudget select by it.
pub const VOTER_LABEL: &str = "etcd.cloud.io/voter";
/// The label of a volume that outlives its member on purpose. The operator never touches it again.
pub const RETAINED_LABEL: &str = "etcd.cloud.io/retained";
/// The annotation of a pod that says how its etcd was started: `new`, `existing`, `rejoin` or `forced`.
pub const START_ANNOTATION: &str = "etcd.cloud.io/start";
/// What keeps an EtcdCluster until its pods have ended and its volumes are dealt with.
pub const CLUSTER_FINALIZER: &str = "etcd.cloud.io/cluster";
/// What keeps an EtcdMember until etcd knows it no more.
pub const MEMBER_FINALIZER: &str = "etcd.cloud.io/member";
