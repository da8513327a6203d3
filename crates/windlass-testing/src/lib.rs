//! A Kubernetes API server in your test process, and what tests need around it.
//!
//! ```text
//! TestCluster ─┬─ client()      kube::Client, no socket
//!              ├─ apply_yaml()  manifests in
//!              ├─ wait_for()    until the world is as expected, or say what it is instead
//!              ├─ world()       the world now or at an earlier revision: objects, dump
//!              ├─ requests()    what was asked of the server
//!              └─ fork()        another world that starts here
//! ```
//!
//! ```
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use windlass_testing::TestCluster;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let cluster = TestCluster::new().await;
//! cluster
//!     .apply_yaml("{apiVersion: v1, kind: ConfigMap, metadata: {name: colours}, data: {sky: blue}}")
//!     .await
//!     .unwrap();
//! let is_blue = |map: &ConfigMap| map.data.as_ref().is_some_and(|data| data["sky"] == "blue");
//! cluster.wait_for("default", "colours", "the sky is blue", is_blue).await.unwrap();
//! # }
//! ```
//!
//! The server has no controllers beside it: what a test does not write, nobody writes. With the feature `controllers`,
//! `TestCluster::run` starts some of those that Kubernetes ships with. Where pods are to run, [`up`] starts a whole cluster.

mod apply;
pub mod check;
mod cluster;
mod mortal;
pub mod up;
mod wait;
mod world;

pub use cluster::{Builder, TestCluster};
pub use mortal::Mortal;
pub use wait::TimedOut;
pub use windlass_apiserver::api::User;
pub use world::World;

#[cfg(feature = "controllers")]
pub use windlass_cluster::Controllers;

pub use windlass_apiserver::api::audit::Record;
pub use windlass_apiserver::front::{ApiServer, ApplyError, Clock, Random};
