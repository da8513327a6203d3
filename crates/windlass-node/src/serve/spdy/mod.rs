//! SPDY/3.1, as much of it as Kubernetes speaks: streams that the client opens, in one connection.
//!
//! ```text
//! bytes ─► frame ─► headers (zlib) ─► connection: streams that were opened, what they carry, answers to pings
//! ```
//!
//! Kubernetes' peers (moby/spdystream) neither wait for window updates nor send any, so there is no flow control here
//! either: what a peer may send ahead is what the connection's own buffers hold. Settings and window updates are read
//! and left.

mod connection;
mod frame;
mod headers;

pub(super) use connection::{Accepted, Accepting, accept};

/// What a client needs of it, for tests.
#[cfg(test)]
pub(super) mod client {
    pub use super::frame::Frame;
    pub use super::headers::{Headers, Writer};
}
