//! A constant load of writes on etcd, and the proof that none of those that etcd acknowledged is lost or reordered.
//!
//! ```text
//! Load::start ── 200 puts/s ──▶ etcd           each put has a number of its own and is sent once
//!      │ stop                     │
//!      ▼                          ▼ read::history: a watch from revision 1
//!   Ledger ──────── check ──── History
//!                     │
//!                     ▼
//!                  Verdict: what etcd broke, each with its numbers
//! ```
//!
//! # Guarantees
//! [`check`] is a function of the two: no network, no clock. It finds
//! - an acknowledged write that is not in the history at the revision of its acknowledgement, or twice;
//! - a write that is at a lower revision than one that was acknowledged before it was sent, be it of the same key or of another;
//! - a write that etcd refused and that is there all the same;
//! - a change of a key that nobody in the ledger made, and a history of a key that is not whole;
//! - a final state that is not the end of the history.
//!
//! A write without an answer may be there or not, but once, and not before what was acknowledged before it was sent.
//!
//! # Assumptions
//! Nobody compacts the keys between the start of the load and the check: without the whole history nothing can be said, and
//! nothing is.

mod check;
mod endpoints;
mod ledger;
mod load;
pub mod read;
mod report;

pub use check::{Verdict, Violation, check};
pub use ledger::{Change, History, Key, Ledger, Outcome, Write};
pub use load::{Ended, Load, Options, Progress};
pub use report::Report;

use std::sync::atomic::{AtomicU64, Ordering};

/// The order in which things happened in this process: what was acknowledged before another was sent has the lower tick.
#[derive(Debug, Default)]
struct Ticks(AtomicU64);

impl Ticks {
    fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }
}
