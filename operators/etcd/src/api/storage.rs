//! Where members keep their data.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::defaults;

/// Where members keep their data.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.medium == oldSelf.medium").message("medium cannot be changed"))]
#[x_kube(validation = Rule::new("has(self.class) == has(oldSelf.class) && (!has(self.class) || self.class == oldSelf.class)")
    .message("class cannot be changed"))]
#[x_kube(validation = Rule::new("quantity(self.size).compareTo(quantity(oldSelf.size)) >= 0")
    .message("size cannot be made smaller: volumes do not shrink"))]
pub struct Storage {
    /// The size of each member's volume. It may grow, where the class allows it. Default `8Gi`.
    #[serde(default = "defaults::storage_size")]
    pub size: Quantity,
    /// The StorageClass; the cluster's default where none is named. It cannot be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// What the volumes are. It cannot be changed.
    #[serde(default)]
    pub medium: Medium,
    /// What becomes of the volume of a member that has left, and of all volumes when the EtcdCluster is deleted.
    #[serde(default)]
    pub reclaim_policy: ReclaimPolicy,
}

/// What volumes are.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Medium {
    /// A PersistentVolumeClaim for each member: it survives its pod.
    #[default]
    Disk,
    /// Memory of the pod: it goes with the pod or its process, and the member is then replaced by a new one.
    Memory,
}

/// What becomes of volumes that are needed no more.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReclaimPolicy {
    /// They are deleted, after etcd knows the member no more and its pod has ended.
    #[default]
    Delete,
    /// They stay, with the label `etcd.cloud.io/retained`, until somebody deletes them.
    Retain,
}

impl Default for Storage {
    fn default() -> Storage {
        Storage {
            size: defaults::storage_size(),
            class: None,
            medium: Medium::default(),
            reclaim_policy: ReclaimPolicy::default(),
        }
    }
}
