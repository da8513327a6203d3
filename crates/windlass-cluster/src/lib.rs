//! The controllers that Kubernetes ships with, each a pure keyed step.
//!
//! ```text
//! API server ─► cache ─► change ─► Wiring (which keys?) ─► queue ─► step(key, view, now) ─► Turn (writes, wake_at)
//!      ▲                                                                                        │
//!      └───────────────────────────────────── writes, one after the other ◄─────────────────────┘
//! ```
//!
//! A step reads no clock, draws no random number and writes nothing: the same view at the same time gives the same
//! [`Turn`](engine::Turn). What a change costs follows from what it concerns, not from how much there is. They speak to the server as
//! clients do, so they run on ours in the same process, and on a real kube-apiserver in place of
//! kube-controller-manager, which is how we know that they behave like it.
//!
//! ```
//! use windlass::Env;
//! use windlass_cluster::Controllers;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let cluster = windlass_testing::TestCluster::new().await;
//! let controllers = Controllers::named(["replicaset"]).unwrap();
//! let running = controllers.start(cluster.client(), &Env::system());
//! // A ReplicaSet that is created now has its pods soon.
//! running.stop().await;
//! # }
//! ```

pub mod controllers;
pub mod engine;
mod set;

pub use set::{Controllers, Running, Unknown};
