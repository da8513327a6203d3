//! The objects that a cluster stands for. Pure.

mod args;
mod pod;
mod services;

pub use args::args;
pub use pod::pod;
pub use services::{budget, client_service, peer_service};

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimSpec, VolumeResourceRequirements,
};
use kube::ResourceExt as _;
use kube::api::ObjectMeta;
use windlass::core::owner;

use crate::api::{
    CLUSTER_LABEL, EtcdCluster, EtcdMember, EtcdMemberSpec, Joined, MEMBER_FINALIZER, MEMBER_LABEL, Origin,
    UID_LABEL, names,
};

/// The labels of everything that belongs to a cluster.
pub fn labels(cluster: &str) -> BTreeMap<String, String> {
    let labels = [
        (CLUSTER_LABEL, cluster),
        ("app.kubernetes.io/name", "etcd"),
        ("app.kubernetes.io/instance", cluster),
        ("app.kubernetes.io/managed-by", "etcd-operator"),
    ];
    labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

/// The labels of everything that belongs to one member.
pub fn member_labels(cluster: &str, member: &str) -> BTreeMap<String, String> {
    let mut labels = labels(cluster);
    labels.insert(MEMBER_LABEL.to_owned(), member.to_owned());
    labels
}

/// A member.
pub fn member(cluster: &EtcdCluster, serial: u64, seed: bool) -> EtcdMember {
    let (name, uid) = (cluster.name_any(), cluster.uid().unwrap_or_default());
    let member = names::member(&name, &uid, serial);
    let mut object = EtcdMember::new(
        &member,
        EtcdMemberSpec {
            cluster: name.clone(),
            serial: i64::try_from(serial).unwrap_or(i64::MAX),
            origin: if seed { Origin::Seed } else { Origin::Joiner },
            version: cluster.spec.version.clone(),
            cluster_token: names::token(cluster),
            joined: None,
        },
    );
    object.metadata = ObjectMeta {
        labels: Some(member_labels(&name, &member)),
        finalizers: Some(vec![MEMBER_FINALIZER.to_owned()]),
        ..owned(cluster, &member)
    };
    object
}

/// The same member, of which etcd has said who it is.
pub fn joined(cluster: &EtcdCluster, member: &EtcdMember, joined: Joined) -> EtcdMember {
    let spec = EtcdMemberSpec { joined: Some(joined), ..member.spec.clone() };
    let mut object = EtcdMember::new(&member.name_any(), spec);
    object.metadata = ObjectMeta {
        labels: Some(member_labels(&cluster.name_any(), &member.name_any())),
        finalizers: Some(vec![MEMBER_FINALIZER.to_owned()]),
        ..owned(cluster, &member.name_any())
    };
    object
}

/// The volume of a member. Nobody owns it: no garbage collector ever deletes data, only a step with its reason does.
pub fn volume(cluster: &EtcdCluster, member: &str) -> PersistentVolumeClaim {
    let storage = &cluster.spec.storage;
    let mut labels = member_labels(&cluster.name_any(), member);
    labels.insert(UID_LABEL.to_owned(), cluster.uid().unwrap_or_default());
    PersistentVolumeClaim {
        metadata: ObjectMeta {
            name: Some(names::volume(member)),
            namespace: cluster.namespace(),
            labels: Some(labels),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(vec!["ReadWriteOnce".to_owned()]),
            storage_class_name: storage.class.clone(),
            resources: Some(VolumeResourceRequirements {
                requests: Some([("storage".to_owned(), storage.size.clone())].into()),
                ..VolumeResourceRequirements::default()
            }),
            ..PersistentVolumeClaimSpec::default()
        }),
        ..PersistentVolumeClaim::default()
    }
}

/// Metadata of an object that the cluster owns.
fn owned(cluster: &EtcdCluster, name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: cluster.namespace(),
        labels: Some(labels(&cluster.name_any())),
        owner_references: owner::reference_to(cluster).map(|reference| vec![reference]),
        ..ObjectMeta::default()
    }
}
