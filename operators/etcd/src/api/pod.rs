//! What pods have beside etcd itself.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Affinity, ResourceRequirements, Toleration, TopologySpreadConstraint};
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// What pods have beside etcd itself. A change concerns pods that are made after it.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PodTemplate {
    /// What etcd may use of CPU and memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
    /// Where pods may run. Without it, members keep away from each other's nodes where they can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
    /// How pods are spread over nodes and zones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub topology_spread_constraints: Vec<TopologySpreadConstraint>,
    /// Which taints of nodes they tolerate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// Labels of the nodes that they may run on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// How important they are to the scheduler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_class_name: Option<String>,
    /// Further labels. Those of the operator, `etcd.cloud.io/…`, cannot be set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    #[x_kube(validation = Rule::new("self.all(k, !k.startsWith('etcd.cloud.io/'))").message("labels of etcd.cloud.io are the operator's own"))]
    pub labels: BTreeMap<String, String>,
    /// Further annotations. Those of the operator, `etcd.cloud.io/…`, cannot be set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    #[x_kube(validation = Rule::new("self.all(k, !k.startsWith('etcd.cloud.io/'))").message("annotations of etcd.cloud.io are the operator's own"))]
    pub annotations: BTreeMap<String, String>,
}
