//! The core group.

mod allocate;
mod config;
mod namespace;
mod node;
pub(crate) mod service;
pub(crate) mod storage;
pub(crate) mod volume;
mod workload;

use super::Hooks;

/// The hooks of a core kind.
pub(super) fn hooks(kind: &str) -> Option<&'static Hooks> {
    Some(match kind {
        "Pod" => &workload::POD,
        "PodTemplate" => &workload::POD_TEMPLATE,
        "ReplicationController" => &workload::REPLICATION_CONTROLLER,
        "Service" => &service::SERVICE,
        "Endpoints" => &service::ENDPOINTS,
        "Namespace" => &namespace::NAMESPACE,
        "Secret" => &config::SECRET,
        "LimitRange" => &config::LIMIT_RANGE,
        "ServiceAccount" => &config::SERVICE_ACCOUNT,
        "Node" => &node::NODE,
        "PersistentVolume" => &storage::VOLUME,
        "PersistentVolumeClaim" => &storage::CLAIM,
        _ => return None,
    })
}
