//! Pods: what kubelet does with them, with processes of this machine in place of containers of a runtime.

pub mod backoff;
pub mod life;
pub mod member;
pub mod probe;
mod status;
