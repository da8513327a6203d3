//! The command line of etcd.

use kube::ResourceExt as _;

use crate::api::names::{self, CLIENT_PORT, METRICS_PORT, PEER_PORT};
use crate::api::{EtcdCluster, EtcdMember, validate};
use crate::plan::Start;

/// Where the data is, below the mount: a volume's own folder may hold things that are not etcd's.
pub const DATA: &str = "/var/lib/etcd/data";

/// The arguments of a member's etcd.
pub fn args(cluster: &EtcdCluster, member: &EtcdMember, start: Start) -> Vec<String> {
    let (name, namespace) = (member.name_any(), cluster.namespace().unwrap_or_default());
    let own = names::peer_url(&cluster.name_any(), &namespace, &name);
    let host = format!("{name}.{}.{namespace}.svc", names::peer_service(&cluster.name_any()));
    let alone = format!("{name}={own}");
    // A member that has data is told of nobody else: if its volume turns out to be empty, it cannot take a new copy of the
    // data under an ID whose votes the others have counted.
    let initial = match (start, &member.spec.joined) {
        (Start::Existing, Some(joined)) => joined.initial_cluster.clone(),
        _ => alone,
    };
    let state = if start == Start::New { "new" } else { "existing" };
    let options = &cluster.spec.options;
    let mut args = vec![
        format!("--name={name}"),
        format!("--data-dir={DATA}"),
        format!("--listen-client-urls=http://0.0.0.0:{CLIENT_PORT}"),
        format!("--advertise-client-urls=http://{host}:{CLIENT_PORT}"),
        format!("--listen-peer-urls=http://0.0.0.0:{PEER_PORT}"),
        format!("--initial-advertise-peer-urls={own}"),
        format!("--listen-metrics-urls=http://0.0.0.0:{METRICS_PORT}"),
        format!("--initial-cluster={initial}"),
        format!("--initial-cluster-state={state}"),
        format!("--initial-cluster-token={}", member.spec.cluster_token),
        format!("--quota-backend-bytes={}", validate::bytes(&options.quota).unwrap_or(0)),
        format!("--auto-compaction-mode={}", options.auto_compaction_mode.as_arg()),
        format!("--auto-compaction-retention={}", options.auto_compaction_retention),
        format!("--snapshot-count={}", options.snapshot_count),
        format!("--heartbeat-interval={}", options.heartbeat_milliseconds),
        format!("--election-timeout={}", options.election_timeout_milliseconds),
    ];
    if start == Start::Forced {
        args.push("--force-new-cluster".to_owned());
    }
    args.extend(cluster.spec.extra_args.iter().cloned());
    args
}
