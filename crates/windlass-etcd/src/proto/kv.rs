//! Keys, values, and their events.

/// Who answered, and when.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Header {
    /// The id of the cluster.
    #[prost(uint64, tag = "1")]
    pub cluster_id: u64,
    /// The id of the member that answered.
    #[prost(uint64, tag = "2")]
    pub member_id: u64,
    /// The revision of the keys at the answer; of a write: the revision that it made.
    #[prost(int64, tag = "3")]
    pub revision: i64,
    /// The term of the leader.
    #[prost(uint64, tag = "4")]
    pub raft_term: u64,
}

/// A key as it was written.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct KeyValue {
    /// The key.
    #[prost(bytes = "vec", tag = "1")]
    pub key: Vec<u8>,
    /// The revision that created it.
    #[prost(int64, tag = "2")]
    pub create_revision: i64,
    /// The revision that wrote it last.
    #[prost(int64, tag = "3")]
    pub mod_revision: i64,
    /// How often it was written since it was created.
    #[prost(int64, tag = "4")]
    pub version: i64,
    /// The value.
    #[prost(bytes = "vec", tag = "5")]
    pub value: Vec<u8>,
}

/// What is read.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Range {
    /// The first key.
    #[prost(bytes = "vec", tag = "1")]
    pub key: Vec<u8>,
    /// The first key that is not read any more; empty: only `key` is.
    #[prost(bytes = "vec", tag = "2")]
    pub range_end: Vec<u8>,
    /// At most so many; 0: all.
    #[prost(int64, tag = "3")]
    pub limit: i64,
    /// As it was at this revision; 0: now.
    #[prost(int64, tag = "4")]
    pub revision: i64,
    /// What the asked member has, without asking the leader.
    #[prost(bool, tag = "7")]
    pub serializable: bool,
    /// Without the values.
    #[prost(bool, tag = "8")]
    pub keys_only: bool,
    /// Only how many there are.
    #[prost(bool, tag = "9")]
    pub count_only: bool,
}

/// What was read.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Ranged {
    /// Who answered, and when.
    #[prost(message, required, tag = "1")]
    pub header: Header,
    /// The keys, in order.
    #[prost(message, repeated, tag = "2")]
    pub kvs: Vec<KeyValue>,
    /// Whether the limit left some out.
    #[prost(bool, tag = "3")]
    pub more: bool,
    /// How many keys are in the range, whatever the limit.
    #[prost(int64, tag = "4")]
    pub count: i64,
}

/// What was deleted.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Deleted {
    /// Who answered; the revision of the deletion.
    #[prost(message, required, tag = "1")]
    pub header: Header,
    /// How many keys there were.
    #[prost(int64, tag = "2")]
    pub deleted: i64,
}

/// Comparisons, and what is done when they hold, or do not.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Txn {
    /// All of these.
    #[prost(message, repeated, tag = "1")]
    pub compare: Vec<Compare>,
    /// When they hold.
    #[prost(message, repeated, tag = "2")]
    pub success: Vec<Op>,
    /// When one does not.
    #[prost(message, repeated, tag = "3")]
    pub failure: Vec<Op>,
}

/// A comparison of a key. [`Compare::mod_revision`] makes one.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Compare {
    #[prost(int32, tag = "1")]
    pub(crate) result: i32,
    #[prost(int32, tag = "2")]
    pub(crate) target: i32,
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) key: Vec<u8>,
    #[prost(int64, tag = "6")]
    pub(crate) mod_revision: i64,
}

/// One operation of a transaction: [`Op::put`], [`Op::delete`].
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Op {
    #[prost(message, optional, tag = "2")]
    put: Option<PutRequest>,
    #[prost(message, optional, tag = "3")]
    delete: Option<DeleteRangeRequest>,
}

impl Op {
    pub(crate) fn from_put(put: PutRequest) -> Self {
        Self { put: Some(put), delete: None }
    }

    pub(crate) fn from_delete(delete: DeleteRangeRequest) -> Self {
        Self { put: None, delete: Some(delete) }
    }
}

/// How a transaction ended.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct TxnAnswer {
    /// Who answered; the revision of what was done.
    #[prost(message, required, tag = "1")]
    pub header: Header,
    /// Whether the comparisons held.
    #[prost(bool, tag = "2")]
    pub succeeded: bool,
}

/// What happened to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum EventKind {
    /// It was written.
    Put = 0,
    /// It was deleted.
    Delete = 1,
}

/// A change of a key.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Event {
    /// What happened; [`Event::kind`] reads it.
    #[prost(enumeration = "EventKind", tag = "1")]
    pub kind: i32,
    /// The key after it; of a deletion only the key and the revision.
    #[prost(message, required, tag = "2")]
    pub kv: KeyValue,
}

/// `PutRequest`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct PutRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

/// `DeleteRangeRequest`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct DeleteRangeRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub range_end: Vec<u8>,
}

/// `CompactionRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CompactionRequest {
    #[prost(int64, tag = "1")]
    pub revision: i64,
    #[prost(bool, tag = "2")]
    pub physical: bool,
}

/// The answers of which only the header is read.
#[derive(Clone, PartialEq, prost::Message)]
pub struct HeaderOnly {
    #[prost(message, required, tag = "1")]
    pub header: Header,
}

/// `WatchRequest`, for one watch.
#[derive(Clone, PartialEq, prost::Message)]
pub struct WatchRequest {
    #[prost(message, optional, tag = "1")]
    pub create: Option<WatchCreateRequest>,
}

/// `WatchCreateRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct WatchCreateRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub range_end: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub start_revision: i64,
}

/// `WatchResponse`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct WatchAnswer {
    #[prost(bool, tag = "4")]
    pub canceled: bool,
    #[prost(int64, tag = "5")]
    pub compact_revision: i64,
    #[prost(string, tag = "6")]
    pub cancel_reason: String,
    #[prost(message, repeated, tag = "11")]
    pub events: Vec<Event>,
}
