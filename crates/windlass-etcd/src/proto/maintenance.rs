//! One member's state.

use bytes::Bytes;

use super::kv::Header;

/// What a member says about itself.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Status {
    /// Who answered: its id, its cluster's id, its revision.
    #[prost(message, required, tag = "1")]
    pub header: Header,
    /// The version of its program.
    #[prost(string, tag = "2")]
    pub version: String,
    /// How large its database is on disk, in bytes.
    #[prost(int64, tag = "3")]
    pub db_size: i64,
    /// The id of the leader that it sees; 0: none.
    #[prost(uint64, tag = "4")]
    pub leader: u64,
    /// The last entry of the raft log that is committed.
    #[prost(uint64, tag = "5")]
    pub raft_index: u64,
    /// The term of the leader.
    #[prost(uint64, tag = "6")]
    pub raft_term: u64,
    /// The last entry of the raft log that its database has.
    #[prost(uint64, tag = "7")]
    pub raft_applied_index: u64,
    /// What is wrong with it: alarms, and that it has no leader.
    #[prost(string, repeated, tag = "8")]
    pub errors: Vec<String>,
    /// How much of the database is in use, in bytes: the rest is what a defragmentation gives back.
    #[prost(int64, tag = "9")]
    pub db_size_in_use: i64,
    /// Whether it has no vote yet.
    #[prost(bool, tag = "10")]
    pub is_learner: bool,
    /// The version of its storage. Since 3.6.
    #[prost(string, tag = "11")]
    pub storage_version: String,
    /// How large its database may become, in bytes. Since 3.6.
    #[prost(int64, tag = "12")]
    pub db_size_quota: i64,
    /// Whether a downgrade is allowed. Since 3.6.
    #[prost(message, optional, tag = "13")]
    pub downgrade: Option<DowngradeInfo>,
}

/// Whether a downgrade is allowed.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct DowngradeInfo {
    /// Whether it is.
    #[prost(bool, tag = "1")]
    pub enabled: bool,
    /// To which version.
    #[prost(string, tag = "2")]
    pub target_version: String,
}

/// What an alarm is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum AlarmKind {
    /// Nothing.
    None = 0,
    /// The database is as large as its quota; the cluster takes no writes until it is disarmed.
    NoSpace = 1,
    /// The member's data is not that of the others.
    Corrupt = 2,
}

/// An alarm of a member.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Alarm {
    /// The member.
    #[prost(uint64, tag = "1")]
    pub member_id: u64,
    /// What it is about; [`Alarm::kind`] reads it.
    #[prost(enumeration = "AlarmKind", tag = "2")]
    pub kind: i32,
}

/// The hash of a member's keys.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct HashKv {
    /// Who answered, and when.
    #[prost(message, required, tag = "1")]
    pub header: Header,
    /// The hash.
    #[prost(uint32, tag = "2")]
    pub hash: u32,
    /// What is older is compacted.
    #[prost(int64, tag = "3")]
    pub compact_revision: i64,
    /// The revision of the hash. Since 3.6.
    #[prost(int64, tag = "4")]
    pub hash_revision: i64,
}

/// The requests without a field: `StatusRequest`, `DefragmentRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Empty {}

/// `AlarmRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct AlarmRequest {
    #[prost(int32, tag = "1")]
    pub action: i32,
    #[prost(uint64, tag = "2")]
    pub member_id: u64,
    #[prost(int32, tag = "3")]
    pub alarm: i32,
}

/// `AlarmResponse`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Alarms {
    #[prost(message, repeated, tag = "2")]
    pub alarms: Vec<Alarm>,
}

/// `HashKVRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct HashKvRequest {
    #[prost(int64, tag = "1")]
    pub revision: i64,
}

/// `MoveLeaderRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MoveLeaderRequest {
    #[prost(uint64, tag = "1")]
    pub target_id: u64,
}

/// `DowngradeRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DowngradeRequest {
    #[prost(int32, tag = "1")]
    pub action: i32,
    #[prost(string, tag = "2")]
    pub version: String,
}

/// `DowngradeResponse`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Version {
    #[prost(string, tag = "2")]
    pub version: String,
}

/// `SnapshotRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SnapshotRequest {}

/// `SnapshotResponse`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SnapshotPart {
    #[prost(uint64, tag = "2")]
    pub remaining_bytes: u64,
    #[prost(bytes = "bytes", tag = "3")]
    pub blob: Bytes,
    #[prost(string, tag = "4")]
    pub version: String,
}
