//! The fronts: where the server meets sockets, clocks and files.
//!
//! ```text
//! kube::Client ──── service ─┐                                    ┌─ clock, random
//!                            ├─ running: one server, in turns ────┼─ durable: the data folder
//! kubectl ── https ─ identity┘      └─ body: answers on their way └─ (the sans-IO server of `api`)
//! ```
//!
//! [`ApiServer`] is the server at work: it gives [`api::Server`](crate::api::Server) the time and its ids, waits for
//! what a request waits for, and streams lists and watches. A panic in one request is that request's answer, and
//! nobody else's.

mod apply;
mod body;
mod clock;
pub mod credentials;
pub mod durable;
pub mod https;
mod identity;
mod kubeconfig;
mod random;
mod running;
mod service;
mod signing;
mod subject;
#[cfg(test)]
mod tests;
mod turns;

pub use apply::ApplyError;
pub use body::{Aborted, Body};
pub use clock::Clock;
pub use identity::Identity;
pub use kubeconfig::{kubeconfig, write_private};
pub use random::Random;
pub use running::{ApiServer, Options};
pub use service::Service;
