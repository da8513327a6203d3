//! Pods, and the pod templates inside other kinds.

pub(crate) mod admit;
pub(crate) mod defaults;
pub(crate) mod qos;
