//! An operator for etcd clusters: it installs, scales and heals them.
//!
//! ```text
//! EtcdCluster ─┐                         ┌─► Services, budget            (applied)
//! EtcdMembers ─┤                         │
//! pods ────────┼─► observe ─► decide ────┼─► at most one step ─► the rules ─► a fresh look ─► the rules ─► done
//! volumes ─────┤             (pure)      │
//! etcd itself ─┘                         └─► status: members, what is done, why nothing is, what must be remembered
//! ```
//!
//! - [`api`] is what users write and are told, [`build`] what is made of it.
//! - [`observe`] looks, [`plan`] decides, [`goal`] says what must never be done, [`effects`] does one step, [`status`] tells.
//! - There is one planner. Members have no controller of their own that could act at the same time.
//!
//! The choices behind it are in `docs/designs/005-etcd-operator.md`.

pub mod api;
pub mod build;
pub mod effects;
pub mod goal;
pub mod metrics;
#[cfg(test)]
mod model;
mod monitoring;
pub mod observe;
pub mod plan;
mod planner;
pub mod status;

use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Resource;
use windlass::cache::{Declared, Delta, Index};
use windlass::core::ObjectKey;
use windlass::core::select::LabelSelector;
use windlass::{Controller, Object, Operator};

use api::{CLUSTER_LABEL, EtcdCluster, EtcdMember};
use metrics::Meters;
use observe::{Asked, BY_CLUSTER, Etcd, Network};
pub use planner::EtcdPlanner;

/// The one definition: what `run` runs, `manifests` prints and tests start.
pub fn operator() -> Operator {
    operator_with(Arc::new(Network::default()))
}

/// The same, with somebody else to answer for etcd.
pub fn operator_with(etcd: Arc<dyn Etcd>) -> Operator {
    let meters = Meters::default();
    let registered = meters.clone();
    // Steps write members, pods and volumes themselves, since each of them is checked once more before it is done.
    let write = ["create", "patch", "delete"];
    Operator::new("etcd-operator", env!("CARGO_PKG_VERSION"))
        .crd::<EtcdCluster>()
        .crd::<EtcdMember>()
        .state(Asked(etcd))
        .state(meters)
        .metrics(move |registry| registered.register(registry))
        .permits("etcd.cloud.io", "etcdmembers", &write)
        .permits("", "pods", &write)
        .permits("", "persistentvolumeclaims", &write)
        .monitored_by(monitoring::rules)
        .monitored_by(monitoring::pod_monitor)
        .monitored_by(monitoring::dashboard)
        .controller(
            Controller::new(EtcdPlanner)
                .owns::<Service>()
                .owns::<PodDisruptionBudget>()
                .watches_with(of_clusters::<EtcdMember>(), to_cluster)
                .watches_with(of_clusters::<Pod>(), to_cluster)
                .watches_with(of_clusters::<PersistentVolumeClaim>(), to_cluster)
                .concurrency(8),
        )
}

/// Objects of any cluster, found by the one that they are of.
fn of_clusters<K: Object>() -> Declared<K> {
    let labels = LabelSelector::parse(CLUSTER_LABEL).unwrap_or_else(|_| LabelSelector::everything());
    let by_cluster =
        Index::new(BY_CLUSTER, |object: &K| observe::index_value(object.meta()).into_iter().collect());
    Declared::typed().labels(labels).index(by_cluster)
}

fn to_cluster<K: Resource>(delta: &Delta<K>, _: &windlass::cache::Cache) -> Vec<ObjectKey> {
    let both = [&delta.old, &delta.new].into_iter().flatten();
    both.filter_map(|object| observe::cluster_key(object.meta())).collect()
}
