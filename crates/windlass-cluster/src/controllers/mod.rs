//! The built-in controllers, one room each, and what several of them share.

mod claim;
mod deployment;
mod hash;
mod pods;
mod replicaset;
mod share;

use std::sync::Arc;

use crate::engine::Controller;

/// What is made under a name.
type New = fn() -> Arc<dyn Controller>;

/// All of them, under the names by which they are chosen.
pub(crate) const TABLE: &[(&str, New)] = &[
    ("deployment", || Arc::new(deployment::Deployments)),
    ("replicaset", || Arc::new(replicaset::ReplicaSets)),
];
