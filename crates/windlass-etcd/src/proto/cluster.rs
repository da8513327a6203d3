//! Members.

use super::kv::Header;

/// A member of the cluster.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Member {
    /// Its id.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// Its name; empty as long as it has not started.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Where the other members reach it.
    #[prost(string, repeated, tag = "3")]
    pub peer_urls: Vec<String>,
    /// Where clients reach it; empty as long as it has not started.
    #[prost(string, repeated, tag = "4")]
    pub client_urls: Vec<String>,
    /// Whether it has no vote yet.
    #[prost(bool, tag = "5")]
    pub is_learner: bool,
}

/// The members, as a list or a change answers with them.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Members {
    /// Who answered, and when.
    #[prost(message, required, tag = "1")]
    pub header: Header,
    /// All members.
    #[prost(message, repeated, tag = "2")]
    pub members: Vec<Member>,
}

/// A member that was added.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Added {
    /// Who answered, and when.
    #[prost(message, required, tag = "1")]
    pub header: Header,
    /// The new member.
    #[prost(message, required, tag = "2")]
    pub member: Member,
    /// All members, the new one included.
    #[prost(message, repeated, tag = "3")]
    pub members: Vec<Member>,
}

/// `MemberAddRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MemberAddRequest {
    #[prost(string, repeated, tag = "1")]
    pub peer_urls: Vec<String>,
    #[prost(bool, tag = "2")]
    pub is_learner: bool,
}

/// `MemberRemoveRequest` and `MemberPromoteRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct IdRequest {
    #[prost(uint64, tag = "1")]
    pub id: u64,
}

/// `MemberUpdateRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MemberUpdateRequest {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(string, repeated, tag = "2")]
    pub peer_urls: Vec<String>,
}

/// `MemberListRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MemberListRequest {
    #[prost(bool, tag = "1")]
    pub linearizable: bool,
}
