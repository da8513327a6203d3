//! The pod of a member.

use k8s_openapi::api::core::v1::{
    Affinity, Capabilities, Container, ContainerPort, EmptyDirVolumeSource, HTTPGetAction,
    PersistentVolumeClaimVolumeSource, Pod, PodAffinityTerm, PodAntiAffinity, PodSecurityContext, PodSpec,
    Probe, SeccompProfile, SecurityContext, Volume, VolumeMount, WeightedPodAffinityTerm,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt as _;
use kube::api::ObjectMeta;

use super::{args, member_labels, owned};
use crate::api::names::{self, CLIENT_PORT, METRICS_PORT, PEER_PORT};
use crate::api::{CLUSTER_LABEL, EtcdCluster, EtcdMember, Medium, START_ANNOTATION, VOTER_LABEL};
use crate::plan::Start;

/// Who etcd runs as: nobody that an image or a node knows.
const USER: i64 = 65532;
/// Where the volume is.
const MOUNT: &str = "/var/lib/etcd";

/// The pod of a member. It is made once: whatever of it changes later concerns the next one.
pub fn pod(cluster: &EtcdCluster, member: &EtcdMember, start: Start) -> Pod {
    let name = member.name_any();
    let template = &cluster.spec.pod_template;
    let mut labels = template.labels.clone();
    labels.extend(member_labels(&cluster.name_any(), &name));
    labels.insert(VOTER_LABEL.to_owned(), "false".to_owned());
    let mut annotations = template.annotations.clone();
    annotations.insert(START_ANNOTATION.to_owned(), start.to_string());
    Pod {
        metadata: ObjectMeta {
            labels: Some(labels),
            annotations: Some(annotations),
            ..owned(cluster, &name)
        },
        spec: Some(PodSpec {
            hostname: Some(name.clone()),
            subdomain: Some(names::peer_service(&cluster.name_any())),
            restart_policy: Some(if start.restarts_in_place() { "Always" } else { "Never" }.to_owned()),
            // etcd hands over the lead before it ends.
            termination_grace_period_seconds: Some(30),
            automount_service_account_token: Some(false),
            enable_service_links: Some(false),
            affinity: Some(template.affinity.clone().unwrap_or_else(|| apart(&cluster.name_any()))),
            topology_spread_constraints: some(&template.topology_spread_constraints),
            tolerations: some(&template.tolerations),
            node_selector: Some(template.node_selector.clone()).filter(|selector| !selector.is_empty()),
            priority_class_name: template.priority_class_name.clone(),
            security_context: Some(PodSecurityContext {
                run_as_non_root: Some(true),
                run_as_user: Some(USER),
                run_as_group: Some(USER),
                fs_group: Some(USER),
                fs_group_change_policy: Some("OnRootMismatch".to_owned()),
                seccomp_profile: Some(SeccompProfile {
                    type_: "RuntimeDefault".to_owned(),
                    ..Default::default()
                }),
                ..PodSecurityContext::default()
            }),
            containers: vec![container(cluster, member, start)],
            volumes: Some(vec![volume(cluster, &name)]),
            ..PodSpec::default()
        }),
        ..Pod::default()
    }
}

fn container(cluster: &EtcdCluster, member: &EtcdMember, start: Start) -> Container {
    let port = |name: &str, port| ContainerPort {
        name: Some(name.to_owned()),
        container_port: port,
        protocol: Some("TCP".to_owned()),
        ..ContainerPort::default()
    };
    let health = Health::of(&cluster.spec.version);
    Container {
        name: "etcd".to_owned(),
        image: Some(cluster.spec.image_reference()),
        command: Some(vec!["/usr/local/bin/etcd".to_owned()]),
        args: Some(args(cluster, member, start)),
        ports: Some(vec![
            port("client", CLIENT_PORT),
            port("peer", PEER_PORT),
            port("metrics", METRICS_PORT),
        ]),
        resources: cluster.spec.pod_template.resources.clone(),
        // A large database takes its time: half an hour until it is given up.
        startup_probe: Some(probe(health.live, 1, 1800)),
        // Ten tries of ten seconds: a leader that is lost or a database that is full is nothing that a restart mends.
        liveness_probe: Some(probe(health.live, 10, 10)),
        readiness_probe: Some(probe(health.ready, 2, 3)),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            read_only_root_filesystem: Some(true),
            run_as_non_root: Some(true),
            capabilities: Some(Capabilities {
                drop: Some(vec!["ALL".to_owned()]),
                ..Capabilities::default()
            }),
            ..SecurityContext::default()
        }),
        volume_mounts: Some(vec![VolumeMount {
            name: "data".to_owned(),
            mount_path: MOUNT.to_owned(),
            ..VolumeMount::default()
        }]),
        ..Container::default()
    }
}

/// Where a version says how it is. None of them fails because a database is full or there is no leader, but readiness.
struct Health {
    live: &'static str,
    ready: &'static str,
}

impl Health {
    fn of(version: &str) -> Health {
        let mut parts = version.split('.').skip(1).map(|part| part.parse::<u32>().unwrap_or(0));
        let (minor, patch) = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
        match (minor, patch) {
            (6.., _) | (5, 11..) | (4, 29..) => Health { live: "/livez", ready: "/readyz" },
            _ => Health {
                live: "/health?serializable=true&exclude=NOSPACE&exclude=CORRUPT",
                ready: "/health?exclude=NOSPACE",
            },
        }
    }
}

fn probe(path: &str, period: i32, failures: i32) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.to_owned()),
            port: IntOrString::Int(METRICS_PORT),
            ..HTTPGetAction::default()
        }),
        period_seconds: Some(period),
        timeout_seconds: Some(if period == 1 { 1 } else { 5 }),
        failure_threshold: Some(failures),
        ..Probe::default()
    }
}

fn volume(cluster: &EtcdCluster, member: &str) -> Volume {
    let storage = &cluster.spec.storage;
    match storage.medium {
        Medium::Disk => Volume {
            name: "data".to_owned(),
            persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                claim_name: names::volume(member),
                ..PersistentVolumeClaimVolumeSource::default()
            }),
            ..Volume::default()
        },
        Medium::Memory => Volume {
            name: "data".to_owned(),
            empty_dir: Some(EmptyDirVolumeSource {
                medium: Some("Memory".to_owned()),
                size_limit: Some(storage.size.clone()),
            }),
            ..Volume::default()
        },
    }
}

/// Members keep away from each other's nodes, where they can.
fn apart(cluster: &str) -> Affinity {
    let term = PodAffinityTerm {
        topology_key: "kubernetes.io/hostname".to_owned(),
        label_selector: Some(LabelSelector {
            match_labels: Some([(CLUSTER_LABEL.to_owned(), cluster.to_owned())].into()),
            ..LabelSelector::default()
        }),
        ..PodAffinityTerm::default()
    };
    Affinity {
        pod_anti_affinity: Some(PodAntiAffinity {
            preferred_during_scheduling_ignored_during_execution: Some(vec![WeightedPodAffinityTerm {
                weight: 100,
                pod_affinity_term: term,
            }]),
            ..PodAntiAffinity::default()
        }),
        ..Affinity::default()
    }
}

fn some<T: Clone>(list: &[T]) -> Option<Vec<T>> {
    (!list.is_empty()).then(|| list.to_vec())
}
