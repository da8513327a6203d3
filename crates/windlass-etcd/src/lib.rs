//! A thin client of etcd: the calls that an operator makes, one client per member, a deadline on every call.
//!
//! ```text
//! Client::new("http://10.0.0.7:2379")   one member, connected when first asked
//!    ├─ kv           range, get, put, delete, txn, compact
//!    ├─ watch        events from a revision on
//!    ├─ cluster      member_list (linearizable or not), member_add, _remove, _update, _promote
//!    ├─ maintenance  status, alarms, defragment, hash_kv, move_leader, downgrade, snapshot
//!    └─ auth         auth_status
//! ```
//!
//! Messages are written by hand with prost's derive, from etcd's `rpc.proto` of 3.7: only what is used, so building needs no
//! `protoc`. Fields that an older etcd does not know are empty in its answers, and their documentation says since when they
//! are there.
//!
//! # Guarantees
//! - A call ends within [`Options::deadline`], and so does each wait for the next part of a stream.
//! - A client talks to the one address that it was made for. It never goes to another member, so the answer of
//!   [`Client::status`] is about the member that was asked.
//! - A refusal of etcd is a value to match on: [`Error`] knows the refusals that decide what is done next.
//! - After a call that was not answered in time the next call has a new connection: a peer that went away without a word does not
//!   hold the client until the kernel gives up.
//!
//! # Caveats
//! - A client is made inside a tokio runtime, which runs its connection.
//! - A write that was not answered may have happened ([`Error::is_definite`]).
//! - There is no login: [`Client::auth_status`] tells whether one would be needed.
//!
//! # Features
//! - `testing`: real etcd processes on loopback (module `testing`), for tests, bench and soak.

mod auth;
mod client;
mod cluster;
pub mod dial;
mod error;
mod kv;
mod maintenance;
mod proto;
mod snapshot;
#[cfg(feature = "testing")]
pub mod testing;
mod watch;

pub use client::{Client, Options};
pub use dial::Dial;
pub use error::Error;
pub use kv::prefix_end;
pub use maintenance::Downgrade;
pub use proto::cluster::{Added, Member, Members};
pub use proto::kv::{
    Compare, Deleted, Event, EventKind, Header, KeyValue, Op, Range, Ranged, Txn, TxnAnswer,
};
pub use proto::maintenance::{Alarm, AlarmKind, DowngradeInfo, HashKv, Status};
pub use snapshot::Snapshot;
pub use watch::{Events, Watch};
