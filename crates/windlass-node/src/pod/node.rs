//! What all pods of a node share.

use std::path::PathBuf;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use sha2::{Digest as _, Sha256};
use windlass::Env;
use windlass::events::{Event, Recorder};

use super::board::Board;
use super::downward::Capacity;
use super::library::Library;
use super::life::Told;
use super::member::{Member, Role};
use super::runtime::{Network, Runtime};
use crate::image::Images;

/// What all pods of a node share.
pub(crate) struct Node {
    pub env: Env,
    pub client: kube::Client,
    pub name: String,
    pub host_ips: Vec<String>,
    pub capacity: Capacity,
    /// The folder of all pods.
    pub folder: PathBuf,
    pub cluster_domain: String,
    pub images: Images,
    pub runtime: Arc<dyn Runtime>,
    pub network: Arc<dyn Network>,
    pub library: Arc<dyn Library>,
    pub recorder: Recorder,
    pub board: Board,
}

impl Node {
    /// Tells people of something.
    pub fn tell(&self, pod: &Pod, members: &[Member], told: Told) {
        let member = told.container.as_ref().and_then(|name| members.iter().find(|one| one.name() == name));
        let list = |role: Role| match role {
            Role::Init | Role::Sidecar => "initContainers",
            Role::Main => "containers",
            Role::Ephemeral => "ephemeralContainers",
        };
        let regarding = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            namespace: pod.metadata.namespace.clone(),
            name: pod.metadata.name.clone(),
            uid: pod.metadata.uid.clone(),
            resource_version: pod.metadata.resource_version.clone(),
            field_path: member.map(|member| format!("spec.{}{{{}}}", list(member.role), member.name())),
        };
        let event =
            Event { kind: told.kind, reason: told.reason.to_owned(), action: String::new(), note: told.note };
        self.recorder.publish(&regarding, event);
    }
}

/// How ids of containers begin.
const SCHEME: &str = "windlass://";

/// The id of one run of a container: the same whoever asks, so that a log is found after a restart.
pub(crate) fn container_id(uid: &str, container: &str, attempt: i32) -> String {
    let digest = Sha256::digest(format!("{uid}/{container}/{attempt}"));
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{SCHEME}{hex}")
}

/// The id below of a container that has this id in statuses.
pub(crate) fn bare(id: &str) -> &str {
    id.strip_prefix(SCHEME).unwrap_or(id)
}
