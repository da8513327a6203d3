//! How etcd is set up.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::defaults;

/// How etcd is set up. A change concerns pods that are made after it.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.electionTimeoutMilliseconds >= 5 * self.heartbeatMilliseconds")
    .message("electionTimeoutMilliseconds must be at least five times heartbeatMilliseconds"))]
pub struct Options {
    /// How large the database may become before etcd refuses writes. Default `2Gi`; at most 0.4 of the volume is sound.
    #[serde(default = "defaults::quota")]
    pub quota: Quantity,
    /// What the retention of the history counts. Default `Periodic`.
    #[serde(default)]
    pub auto_compaction_mode: CompactionMode,
    /// How much of the history is kept: a time such as `1h` (the default), or a number of revisions; `0` keeps all.
    #[serde(default = "defaults::retention")]
    #[schemars(regex(pattern = r"^[0-9]+(s|m|h)?$"))]
    pub auto_compaction_retention: String,
    /// After how many writes a snapshot is written to disk. Default 10000.
    #[serde(default = "defaults::snapshot_count")]
    #[schemars(range(min = 100))]
    pub snapshot_count: i32,
    /// How often the leader is heard of. Default 100; about the round trip between members.
    #[serde(default = "defaults::heartbeat")]
    #[schemars(range(min = 10, max = 10000))]
    pub heartbeat_milliseconds: i32,
    /// After which silence another leader is elected. Default 1000; at least five heartbeats.
    #[serde(default = "defaults::election")]
    #[schemars(range(min = 50, max = 50000))]
    pub election_timeout_milliseconds: i32,
}

/// What the retention of the history counts.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CompactionMode {
    /// Time.
    #[default]
    Periodic,
    /// Revisions.
    Revision,
}

impl CompactionMode {
    /// As etcd's command line has it.
    pub fn as_arg(self) -> &'static str {
        match self {
            CompactionMode::Periodic => "periodic",
            CompactionMode::Revision => "revision",
        }
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            quota: defaults::quota(),
            auto_compaction_mode: CompactionMode::default(),
            auto_compaction_retention: defaults::retention(),
            snapshot_count: defaults::snapshot_count(),
            heartbeat_milliseconds: defaults::heartbeat(),
            election_timeout_milliseconds: defaults::election(),
        }
    }
}
