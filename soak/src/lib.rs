//! `windlass apiserver` is killed under writes, a thousand times, and what it had acknowledged is looked for.
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

mod campaign;
mod client;
mod ledger;
mod server;

pub use campaign::{Options, Summary, run};
