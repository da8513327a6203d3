//! The fronts: where the server meets sockets, clocks and files.
//!
//! ```text
//! kube::Client ──── service ─┐                                    ┌─ clock, random
//!                            ├─ running: one server, in turns ────┼─ durable: the data folder
//! kubectl ── https ─ identity┘      └─ body: answers on their way └─ (the sans-IO server of `api`)
//! ```
//!
//! What somebody else answers (`relay`) is sent there, and comes back piece by piece or as a pipe of bytes.
//!
//! [`ApiServer`] is the server at work: it gives [`api::Server`](crate::api::Server) the time and its ids, waits for
//! what a request waits for, and streams lists and watches. A panic in one request is that request's answer, and
//! nobody else's.

mod apply;
mod body;
mod clock;
pub mod credentials;
pub mod durable;
mod elsewhere;
pub mod https;
mod identity;
mod kubeconfig;
mod metrics;
mod random;
pub mod relay;
mod rewound;
mod running;
mod service;
mod signal;
mod signing;
#[cfg(test)]
mod tests;
mod trust;
mod turns;
mod webhook;

pub use apply::{ApplyError, objects};
pub use body::{Aborted, Body};
pub use clock::Clock;
pub use identity::Identity;
pub use kubeconfig::{kubeconfig, write_private};
pub use random::Random;
pub use relay::{Connection, Dialer, Dialing, Relaying};
pub use running::{ApiServer, Options};
pub use service::Service;
pub use trust::Error as TrustError;
