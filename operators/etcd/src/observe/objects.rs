//! The objects of a cluster, from the cache.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ContainerState, PersistentVolumeClaim, Pod};
use kube::ResourceExt as _;
use kube::api::ObjectMeta;
use windlass::core::{ObjectKey, owner};
use windlass::jiff::Timestamp;
use windlass::{Context, Error};

use super::view::{Member, Name, Object, Volume};
use crate::api::{
    CLUSTER_LABEL, EtcdCluster, EtcdMember, MEMBER_LABEL, Medium, Origin, RETAINED_LABEL, START_ANNOTATION,
    UID_LABEL, VOTER_LABEL,
};
use crate::plan::Start;

/// The index of objects by the cluster that their label names.
pub const BY_CLUSTER: &str = "etcd-cluster";

/// The objects of a cluster, by the member's name.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    /// Members.
    pub members: BTreeMap<Name, Arc<EtcdMember>>,
    /// Pods.
    pub pods: BTreeMap<Name, Arc<Pod>>,
    /// Volumes, without those that stay on purpose.
    pub volumes: BTreeMap<Name, Arc<PersistentVolumeClaim>>,
}

/// What an object is found by: the namespace and the name of its cluster.
pub fn index_value(metadata: &ObjectMeta) -> Option<String> {
    let cluster = metadata.labels.as_ref()?.get(CLUSTER_LABEL)?;
    Some(format!("{}/{cluster}", metadata.namespace.as_deref().unwrap_or_default()))
}

/// The cluster that an object is of, by its label.
pub fn cluster_key(metadata: &ObjectMeta) -> Option<ObjectKey> {
    let cluster = metadata.labels.as_ref()?.get(CLUSTER_LABEL)?;
    Some(ObjectKey::new(metadata.namespace.as_deref(), cluster))
}

impl Objects {
    /// Reads them. Those of an earlier cluster of the same name are not among them.
    ///
    /// # Errors
    /// When the cache has not heard from the server yet.
    pub fn read(ctx: &Context, cluster: &EtcdCluster) -> Result<Objects, Error> {
        let uid = cluster.uid().unwrap_or_default();
        let value = format!("{}/{}", cluster.namespace().unwrap_or_default(), cluster.name_any());
        let members = ctx.by_index::<EtcdMember>(BY_CLUSTER, &value)?;
        let pods = ctx.by_index::<Pod>(BY_CLUSTER, &value)?;
        let volumes = ctx.by_index::<PersistentVolumeClaim>(BY_CLUSTER, &value)?;
        let is_ours = |metadata: &ObjectMeta| owner::is_controlled_by(metadata, &uid);
        let stays = |claim: &Arc<PersistentVolumeClaim>| {
            claim.labels().contains_key(RETAINED_LABEL) || claim.labels().get(UID_LABEL) != Some(&uid)
        };
        Ok(Objects {
            members: members
                .into_iter()
                .filter(|member| is_ours(&member.metadata))
                .map(|member| (member.name_any().into(), member))
                .collect(),
            pods: pods
                .into_iter()
                .filter(|pod| is_ours(&pod.metadata))
                .map(|pod| (pod.name_any().into(), pod))
                .collect(),
            volumes: volumes
                .into_iter()
                .filter(|claim| !stays(claim))
                .filter_map(|claim| Some((claim.labels().get(MEMBER_LABEL)?.as_str().into(), claim)))
                .collect(),
        })
    }

    /// What decisions need of them.
    pub fn members(&self, cluster: &EtcdCluster) -> Vec<Member> {
        let names: BTreeSet<&Name> =
            self.members.keys().chain(self.pods.keys()).chain(self.volumes.keys()).collect();
        let on_disk = cluster.spec.storage.medium == Medium::Disk;
        let member = |name: &Name| {
            let pod = self.pods.get(name).map(|pod| pod_view(pod));
            let volume = match self.volumes.get(name) {
                Some(claim) => volume_view(claim),
                // What was in memory is gone with the process that could not be started again.
                None if !on_disk && pod.as_ref().is_some_and(|pod| !pod.ended) => Volume::Present,
                None => Volume::Absent,
            };
            let object = self.members.get(name).map(|member| object_view(member));
            Member { name: name.clone(), object, pod, volume, report: None }
        };
        names.into_iter().map(member).collect()
    }
}

fn object_view(member: &EtcdMember) -> Object {
    let joined = member.spec.joined.as_ref().and_then(|joined| u64::from_str_radix(&joined.id, 16).ok());
    Object {
        serial: u64::try_from(member.spec.serial).unwrap_or(0),
        seed: member.spec.origin == Origin::Seed,
        joined,
        deleting: member.metadata.deletion_timestamp.is_some(),
        created: created(&member.metadata),
    }
}

fn pod_view(pod: &Pod) -> super::view::Pod {
    let status = pod.status.as_ref();
    let etcd = status
        .and_then(|status| status.container_statuses.as_ref())
        .and_then(|all| all.iter().find(|one| one.name == "etcd"));
    let killed_for_memory = |state: Option<&ContainerState>| {
        let ended = state.and_then(|state| state.terminated.as_ref());
        ended.is_some_and(|ended| ended.reason.as_deref() == Some("OOMKilled"))
    };
    let phase = status.and_then(|status| status.phase.as_deref());
    let ended = matches!(phase, Some("Failed" | "Succeeded"));
    let start = pod.annotations().get(START_ANNOTATION);
    super::view::Pod {
        uid: pod.uid().unwrap_or_default().into(),
        created: created(&pod.metadata),
        deleting: pod.metadata.deletion_timestamp.is_some(),
        ended,
        forced: start.is_some_and(|start| *start == Start::Forced.to_string()),
        restarts: etcd.and_then(|one| u32::try_from(one.restart_count).ok()).unwrap_or(0),
        out_of_memory: etcd.is_some_and(|one| {
            killed_for_memory(one.state.as_ref()) || killed_for_memory(one.last_state.as_ref())
        }),
        voter: pod.labels().get(VOTER_LABEL).map(|voter| voter == "true"),
        node: pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).map(Into::into),
        address: status
            .and_then(|status| status.pod_ip.as_deref())
            .filter(|ip| !ip.is_empty() && !ended)
            .map(Into::into),
    }
}

fn volume_view(claim: &PersistentVolumeClaim) -> Volume {
    let is_lost = claim.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Lost"));
    match (is_lost, &claim.metadata.deletion_timestamp) {
        (true, _) => Volume::Lost,
        (_, Some(_)) => Volume::Going,
        _ => Volume::Present,
    }
}

fn created(metadata: &ObjectMeta) -> Timestamp {
    metadata.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0)
}
