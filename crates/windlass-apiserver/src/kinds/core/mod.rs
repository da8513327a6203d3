//! The core group.

mod allocate;
mod config;
mod limits;
mod namespace;
mod node;
pub(crate) mod service;
mod service_rules;
pub(crate) mod source;
pub(crate) mod storage;
pub(crate) mod volume;
mod workload;

use super::Hooks;
pub(crate) use service_rules::endpoint_ip;

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
        "ConfigMap" => &config::CONFIG_MAP,
        "LimitRange" => &limits::LIMIT_RANGE,
        "ResourceQuota" => &limits::RESOURCE_QUOTA,
        "ServiceAccount" => &config::SERVICE_ACCOUNT,
        "Event" => &super::events::CORE_EVENT,
        "Node" => &node::NODE,
        "PersistentVolume" => &storage::VOLUME,
        "PersistentVolumeClaim" => &storage::CLAIM,
        _ => return None,
    })
}
