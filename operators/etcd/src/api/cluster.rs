//! EtcdCluster: what a user asks for.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{EtcdClusterStatus, Options, PodTemplate, Storage, defaults};

/// An etcd cluster: its members, their volumes, and the Services by which clients and members find each other.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "etcd.cloud.io",
    version = "v1",
    kind = "EtcdCluster",
    plural = "etcdclusters",
    shortname = "etcd",
    namespaced,
    status = "EtcdClusterStatus",
    derive = "PartialEq",
    doc = "An etcd cluster: its members, their volumes, and the Services by which clients and members find each other.",
    validation = Rule::new("self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') && self.metadata.name.size() <= 52")
        .message("the name becomes part of host names: lower-case letters, digits and hyphens, a letter first, at most 52 characters"),
    scale(
        spec_replicas_path = ".spec.size",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(name = "Size", type_ = "integer", json_path = ".spec.size"),
    printcolumn(name = "Healthy", type_ = "string", json_path = ".status.summary"),
    printcolumn(name = "Version", type_ = "string", json_path = ".spec.version"),
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Available')].status"
    ),
    printcolumn(name = "Next", type_ = "string", json_path = ".status.nextAction"),
    printcolumn(name = "Blocked", type_ = "string", json_path = ".status.blockedReason"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.storage.medium != 'Memory' || self.healing.quorumLoss != 'FromSurvivor'")
    .message("healing.quorumLoss FromSurvivor needs volumes that survive their pods: with medium Memory it would end the last copy"))]
pub struct EtcdClusterSpec {
    /// How many members vote: 1, 3, 5 or 7. It may be changed at any moment, also while an earlier change is on its way;
    /// even numbers are passed on the way and cannot be asked for, since they tolerate no more failures than one less.
    #[serde(default = "defaults::size")]
    #[schemars(range(min = 1, max = 7))]
    #[x_kube(validation = Rule::new("self % 2 == 1")
        .message("size must be odd: an even number of members tolerates no more failures than one less"))]
    pub size: i32,
    /// The version of etcd that new members run, such as `3.7.3`. Members that run are not restarted by a change.
    #[serde(default = "defaults::version")]
    #[schemars(regex(pattern = r"^3\.(4|5|6|7)\.[0-9]+$"))]
    pub version: String,
    /// The image: a repository, to which `:v` and the version are added, or a whole reference with a tag or a digest.
    #[serde(default = "defaults::image")]
    #[schemars(length(min = 1, max = 500))]
    pub image: String,
    /// Where members keep their data.
    #[serde(default)]
    pub storage: Storage,
    /// How etcd is set up.
    #[serde(default)]
    pub options: Options,
    /// Further arguments of etcd, each as `--name=value`. Those that the operator sets itself are refused.
    #[serde(default)]
    #[schemars(length(max = 64), inner(length(max = 1024)))]
    #[x_kube(validation = Rule::new("self.all(a, a.matches('^--[a-z0-9][a-z0-9-]*(=.*)?$'))")
        .message("each argument must look like --name=value"))]
    #[x_kube(validation = Rule::new("self.all(a, !a.matches('^--(name|data-dir|wal-dir|config-file|initial-.*|listen-.*|advertise-.*|force-new-cluster.*|discovery.*|strict-reconfig-check|.*cert-file|.*key-file|.*trusted-ca-file|.*auto-tls|quota-backend-bytes|auto-compaction-.*|snapshot-count|heartbeat-interval|election-timeout|enable-v2|proxy.*|max-learners|experimental-max-learners|help|version)(=.*)?$'))")
        .message("an argument that the operator sets itself: use the typed field, where there is one"))]
    pub extra_args: Vec<String>,
    /// What pods have beside etcd itself.
    #[serde(default)]
    pub pod_template: PodTemplate,
    /// The PodDisruptionBudget, which keeps a quorum of voters running while nodes are drained.
    #[serde(default)]
    pub pdb: Pdb,
    /// When and how members that fail are replaced.
    #[serde(default)]
    pub healing: Healing,
    /// Leaves members, pods and volumes alone, whatever happens, until it is `false` again. A pod that ends meanwhile is not
    /// made again.
    #[serde(default)]
    pub paused: bool,
}

/// The PodDisruptionBudget.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Pdb {
    /// Whether there is one. Its `minAvailable` is the quorum of the larger of the voters that there are and `size`.
    #[serde(default = "defaults::yes")]
    pub enabled: bool,
}

/// When and how members that fail are replaced.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.failedAfterSeconds >= self.suspectAfterSeconds")
    .message("failedAfterSeconds must not be less than suspectAfterSeconds"))]
pub struct Healing {
    /// After how many seconds without health a member is suspect, and its pod is restarted once on the same volume.
    /// Default 300: a reboot or a drain of its node is no failure.
    #[serde(default = "defaults::suspect_after")]
    #[schemars(range(min = 1))]
    pub suspect_after_seconds: i32,
    /// After how many seconds without health a member has failed, and is replaced by a new one. Default 600. A member
    /// whose volume is lost, whose process crashes over and over, or whose data is corrupt, has failed at once.
    #[serde(default = "defaults::failed_after")]
    #[schemars(range(min = 1))]
    pub failed_after_seconds: i32,
    /// How many restarts of its container make a member that is not healthy a failed one. Default 5. Restarts for lack of
    /// memory do not count: another member would need as much.
    #[serde(default = "defaults::crash_loop_restarts")]
    #[schemars(range(min = 1))]
    pub crash_loop_restarts: i32,
    /// After how many seconds a new member that did not catch up is given up, and another one is tried. Default 600.
    #[serde(default = "defaults::learner_deadline")]
    #[schemars(range(min = 1))]
    pub learner_deadline_seconds: i32,
    /// After how many seconds a loss of quorum that cannot mend itself is acted on, as `quorumLoss` says. Default 300.
    #[serde(default = "defaults::quorum_loss_grace")]
    #[schemars(range(min = 1))]
    pub quorum_loss_grace_seconds: i32,
    /// How many members may be replaced within an hour. Default 3. Beyond that something else is wrong, and the operator
    /// stops and says so.
    #[serde(default = "defaults::replacements")]
    #[schemars(range(min = 0, max = 100))]
    pub max_replacements_per_hour: i32,
    /// What to do when most volumes are gone for good. Default `Manual`.
    #[serde(default)]
    pub quorum_loss: QuorumLoss,
}

/// What to do when so many volumes are gone that the rest can never have a quorum again.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QuorumLoss {
    /// Nothing: a condition, an event, and what to do in a message. Writes that only the lost members had are lost either
    /// way, and a person should know of it first.
    #[default]
    Manual,
    /// The member that knows most goes on alone, and the others are built up anew from it. Their volumes are kept. Not for
    /// `medium: Memory`, where what a member knows goes with its pod.
    FromSurvivor,
}

impl Default for Pdb {
    fn default() -> Pdb {
        Pdb { enabled: defaults::yes() }
    }
}

impl Default for Healing {
    fn default() -> Healing {
        Healing {
            suspect_after_seconds: defaults::suspect_after(),
            failed_after_seconds: defaults::failed_after(),
            crash_loop_restarts: defaults::crash_loop_restarts(),
            learner_deadline_seconds: defaults::learner_deadline(),
            quorum_loss_grace_seconds: defaults::quorum_loss_grace(),
            max_replacements_per_hour: defaults::replacements(),
            quorum_loss: QuorumLoss::default(),
        }
    }
}

impl Default for EtcdClusterSpec {
    fn default() -> EtcdClusterSpec {
        EtcdClusterSpec {
            size: defaults::size(),
            version: defaults::version(),
            image: defaults::image(),
            storage: Storage::default(),
            options: Options::default(),
            extra_args: Vec::new(),
            pod_template: PodTemplate::default(),
            pdb: Pdb::default(),
            healing: Healing::default(),
            paused: false,
        }
    }
}

impl EtcdClusterSpec {
    /// The image that a new pod runs.
    pub fn image_reference(&self) -> String {
        let last = self.image.rsplit('/').next().unwrap_or_default();
        match last.contains([':', '@']) {
            true => self.image.clone(),
            false => format!("{}:v{}", self.image, self.version),
        }
    }
}
