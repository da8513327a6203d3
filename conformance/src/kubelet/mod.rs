//! What a node makes of pods, beside a real kubelet: the same manifests, and the statuses and events compared.
//!
//! ```text
//! kubelet/*.yaml ─▶ play ─┬▶ a real node (tools/real-node) ─▶ picture ─▶ kubelet/recorded/*.json ┐
//!                         └▶ `windlass up` ────────────────▶ picture ───────────────────────────┼▶ diff
//! ```
//!
//! `record-kubelet` writes down what a cluster with a real kubelet has at the named moments; `kubelet` plays the same to
//! another cluster and compares. Phases, conditions, reasons, exit codes, restart counts and the reasons of events have to
//! be the same; where only words differ it is told, and no more.

mod picture;
mod run;

pub use picture::picture;
pub use run::{Choice, compare, has, record};
