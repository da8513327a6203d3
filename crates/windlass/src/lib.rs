//! Build Kubernetes operators in Rust.

pub mod env;

pub use env::Env;
pub use windlass_core as core;
