//! The built-in controllers, one room each, and what several of them share.

mod aggregation;
mod authority;
mod certificates;
mod claim;
mod cronjob;
mod daemonset;
mod deployment;
mod disruption;
mod endpoints;
mod garbagecollector;
mod hash;
mod history;
mod job;
mod labelled;
mod namespace;
mod node;
mod nodes;
mod pods;
mod quantity;
mod replicaset;
mod resourcequota;
mod root_ca;
mod scheduler;
mod serviceaccount;
mod share;
mod statefulset;
mod tokens;
mod ttl;
mod volumes;

pub use certificates::Certificates;
pub use root_ca::RootCa;
pub use tokens::Tokens;

use std::sync::Arc;

use crate::engine::Controller;

/// What is made under a name.
type New = fn() -> Arc<dyn Controller>;

/// All of them, under the names by which they are chosen.
pub(crate) const TABLE: &[(&str, New)] = &[
    ("certificatesigningrequest-signing", || Arc::new(Certificates::default())),
    ("clusterrole-aggregation", || Arc::new(aggregation::ClusterRoleAggregation)),
    ("daemonset", || Arc::new(daemonset::DaemonSets::default())),
    ("cronjob", || Arc::new(cronjob::CronJobs)),
    ("deployment", || Arc::new(deployment::Deployments)),
    ("disruption", || Arc::new(disruption::Disruption)),
    ("endpoints", || Arc::new(endpoints::LegacyEndpoints)),
    ("endpointslicemirroring", || Arc::new(endpoints::EndpointSliceMirroring)),
    ("endpointslice", || Arc::new(endpoints::EndpointSlices)),
    ("garbagecollector", || Arc::new(garbagecollector::GarbageCollector::default())),
    ("job", || Arc::new(job::Jobs::default())),
    ("namespace", || Arc::new(namespace::Namespaces)),
    ("nodelifecycle", || Arc::new(node::NodeLifecycle::default())),
    ("persistentvolume-binder", || Arc::new(volumes::Binder)),
    ("podgc", || Arc::new(node::PodGc::default())),
    ("pv-protection", || Arc::new(volumes::VolumeProtection)),
    ("pvc-protection", || Arc::new(volumes::ClaimProtection)),
    ("replicaset", || Arc::new(replicaset::ReplicaSets)),
    ("resourcequota", || Arc::new(resourcequota::ResourceQuotas::default())),
    ("scheduler", || Arc::new(scheduler::Scheduler::default())),
    ("statefulset", || Arc::new(statefulset::StatefulSets)),
    ("root-ca-certificate-publisher", || Arc::new(RootCa::default())),
    ("serviceaccount", || Arc::new(serviceaccount::ServiceAccounts)),
    ("serviceaccount-token", || Arc::new(Tokens::default())),
    ("taint-eviction", || Arc::new(node::TaintEviction::default())),
    ("ttl-after-finished", || Arc::new(ttl::TtlAfterFinished)),
];
