//! `windlass apiserver` or `windlass up` is killed under writes, over and over, and what it had acknowledged is looked for.
//!
//! ```text
//! start ─▶ verify ─▶ writers ──────────────▶ kill -9 ─▶ start ─▶ …
//!            ▲          │ intent, answer        │
//!            └─ ledger ◀┴─ what a watch saw ◀───┘
//! ```
//!
//! # What is verified after every start
//! - A write that was acknowledged is there, with the revision that the answer named.
//! - A write whose answer did not come is there completely or not at all.
//! - Revisions never go back: not below an answer, a list or an event that somebody has seen.
//! - A watch that goes on from the last event it saw leads to what a list shows, or is told that its past is gone.
//! - Of a cluster: no process of a pod outlives it, no pod runs twice at the same time, and when it was asked to end there is
//!   no process and no mount left.

mod campaign;
mod client;
mod ledger;
mod pods;
mod server;

pub use campaign::{Options, Summary, run};
pub use server::Target;
