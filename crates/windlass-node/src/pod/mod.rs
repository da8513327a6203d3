//! Pods: what kubelet does with them, with processes of this machine in place of containers of a runtime.
//!
//! ```text
//! API ─► Pods ─► one task per pod: Life (pure) ─► actions ─► Runtime, Network, volumes, probes, hooks
//!  ▲                  │    ▲                                     │
//!  └── status, events ┘    └──────────── reports ────────────────┘
//! ```

mod ask;
pub mod backoff;
mod board;
mod containers;
pub mod downward;
pub mod env;
mod expand;
#[cfg(test)]
mod fake;
mod hosts;
mod launch;
pub mod library;
pub mod life;
pub mod member;
mod node;
mod output;
mod pods;
pub mod probe;
pub mod quantity;
pub mod runtime;
#[cfg(target_os = "linux")]
mod sandbox;
mod security;
mod status;
#[cfg(test)]
mod tests;
mod volume;
mod work;

pub use pods::{Ground, Options, Pods};
