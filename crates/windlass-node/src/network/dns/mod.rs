//! The cluster's DNS: names of Services and of the pods behind them, answered from the watch cache.
//!
//! ```text
//! bytes ─► wire (query) ─► answer (pure, by Directory) ─► wire (reply) ─► bytes
//! ```
//!
//! It answers as CoreDNS does with `kubernetes cluster.local { pods insecure; ttl 5 }`. Pods have no way out of the
//! cluster, so that a name outside of it does not exist.

mod answer;
mod directory;
mod server;
mod service;
mod wire;

pub use answer::{Directory, answer};
pub use directory::Cached;
pub use server::{Listening, serve};
pub use service::announce;
pub use wire::{Code, Data, Kind, Malformed, Query, Record, Reply};
