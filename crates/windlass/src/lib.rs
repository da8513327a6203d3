//! Build Kubernetes operators in Rust.

pub mod cache;
pub mod client;
pub mod election;
pub mod env;
pub mod events;
pub mod executor;
pub mod health;
pub mod http;
pub mod log;
pub mod metrics;
mod rules;
pub mod source;
pub mod write;

pub use cache::Cache;
pub use env::Env;
pub use rules::Rules;
pub use windlass_core as core;
