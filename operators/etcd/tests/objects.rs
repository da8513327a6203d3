//! The objects that a cluster stands for, as they are sent.

use etcd_operator::api::{EtcdCluster, EtcdClusterSpec, Joined, Medium};
use etcd_operator::build;
use etcd_operator::plan::Start;
use serde_json::json;

fn cluster(change: impl FnOnce(&mut EtcdClusterSpec)) -> EtcdCluster {
    let mut spec = EtcdClusterSpec::default();
    change(&mut spec);
    let mut cluster = EtcdCluster::new("db", spec);
    cluster.metadata.namespace = Some("team-a".into());
    cluster.metadata.uid = Some("6e4c1f04-6c21-4b8e-9d5a-0a7d5f1c2b3a".into());
    cluster
}

#[test]
fn objects() {
    let cluster = cluster(|_| {});
    let seed = build::member(&cluster, 1, true);
    insta::assert_json_snapshot!("member", seed);
    insta::assert_json_snapshot!("volume", build::volume(&cluster, "db-00abc"));
    insta::assert_json_snapshot!("pod_of_the_seed", build::pod(&cluster, &seed, Start::New));
    insta::assert_json_snapshot!("client_service", build::client_service(&cluster));
    insta::assert_json_snapshot!("peer_service", build::peer_service(&cluster));
    insta::assert_json_snapshot!("budget", build::budget(&cluster, 4));
}

/// What differs from the pod of the seed.
#[test]
fn pods_are_started_as_their_member_needs_it() {
    let cluster = cluster(|_| {});
    let joiner = build::member(&cluster, 2, false);
    let joined = Joined { id: "2a".into(), initial_cluster: "a=http://a:2380,b=http://b:2380".into() };
    let joiner = build::joined(&cluster, &joiner, joined);
    let initial = |start| -> Vec<String> {
        let args = build::args(&cluster, &joiner, start);
        args.into_iter()
            .filter(|arg| arg.starts_with("--initial-cluster") || arg.starts_with("--force"))
            .collect()
    };
    insta::assert_json_snapshot!(
        "initial_cluster",
        json!({
            "existing": initial(Start::Existing),
            "rejoin": initial(Start::Rejoin),
            "forced": initial(Start::Forced),
        })
    );
}

#[test]
fn memory_is_a_volume_of_the_pod() {
    let cluster = cluster(|spec| spec.storage.medium = Medium::Memory);
    let pod = build::pod(&cluster, &build::member(&cluster, 1, true), Start::New);
    let volumes = serde_json::to_value(pod.spec.unwrap().volumes).unwrap();
    assert_eq!(volumes, json!([{"name": "data", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}}]));
}

#[test]
fn an_image_is_a_repository_or_a_whole_reference() {
    let reference = |image: &str| cluster(|spec| spec.image = image.into()).spec.image_reference();
    assert_eq!(reference("quay.io/coreos/etcd"), "quay.io/coreos/etcd:v3.7.3");
    assert_eq!(reference("registry:5000/etcd"), "registry:5000/etcd:v3.7.3");
    assert_eq!(reference("registry:5000/etcd:mine"), "registry:5000/etcd:mine");
    assert_eq!(reference("etcd@sha256:abc"), "etcd@sha256:abc");
}

/// Versions before 3.5.11 have no /livez.
#[test]
fn probes_ask_what_a_version_answers() {
    let path = |version: &str| {
        let cluster = cluster(|spec| spec.version = version.into());
        let pod = build::pod(&cluster, &build::member(&cluster, 1, true), Start::New);
        let probe = pod.spec.unwrap().containers[0].liveness_probe.clone().unwrap();
        probe.http_get.unwrap().path.unwrap()
    };
    assert_eq!(["3.7.3", "3.6.0", "3.5.11", "3.4.29"].map(path), ["/livez"; 4].map(String::from));
    assert!(["3.5.10", "3.4.28"].map(path).iter().all(|path| path.starts_with("/health?serializable=true")));
}
