//! Build Kubernetes operators in Rust.

pub mod client;
pub mod env;
pub mod events;
pub mod metrics;
mod rules;

pub use env::Env;
pub use rules::Rules;
pub use windlass_core as core;
