//! Build Kubernetes operators in Rust.

pub mod env;
mod rules;

pub use env::Env;
pub use rules::Rules;
pub use windlass_core as core;
