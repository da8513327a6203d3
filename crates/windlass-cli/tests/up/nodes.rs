//! Three nodes: one is cut off, its pods are replaced, it heals; one loses its power, and starts again.

use std::path::Path;
use std::time::Duration;

use windlass_testing::up::Cluster;

use crate::support::{Folder, windlass};
use crate::{until_within, up};

/// A pod on each node that lets others in, and one more that may go elsewhere when its node is gone.
const PODS: &str = "
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: each}
spec:
  selector: {matchLabels: {app: each}}
  template:
    metadata: {labels: {app: each}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: c, image: nginx}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: mobile}
spec:
  selector: {matchLabels: {app: mobile}}
  template:
    metadata: {labels: {app: mobile}}
    spec:
      terminationGracePeriodSeconds: 1
      affinity:
        nodeAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
          - weight: 100
            preference:
              matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [windlass-2]}]
      tolerations:
      - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 3}
      - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 3}
      containers: [{name: c, image: busybox, command: [sleep, '100000']}]
";

/// A node is given up after fifty seconds of silence, as on Kubernetes.
const SILENCE: Duration = Duration::from_secs(120);
const SOON: Duration = Duration::from_secs(30);

fn node(command: &str, name: &str, folder: &Path) {
    let done = windlass(&["node", command, name, "--data-dir", "data"], folder).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

fn ready(cluster: &Cluster, node: &str) -> String {
    cluster.kubectl(&format!(
        "get node {node} -o jsonpath='{{.status.conditions[?(@.type==\"Ready\")].status}}'"
    ))
}

/// The pod of an app on a node.
fn pod(cluster: &Cluster, app: &str, node: &str, field: &str) -> String {
    cluster.kubectl(&format!(
        "get pods -l app={app} --field-selector spec.nodeName={node} -o jsonpath='{{.items[*].{field}}}'"
    ))
}

/// Whether the pod of one node reaches that of another.
fn reaches(cluster: &Cluster, from: &str, to: &str) -> bool {
    let (from, to) = (pod(cluster, "each", from, "metadata.name"), pod(cluster, "each", to, "status.podIP"));
    cluster.try_kubectl(&format!("exec {from} -- timeout 2 bash -c 'exec 3<>/dev/tcp/{to}/80'")).0
}

#[test]
fn a_node_is_cut_off_and_another_loses_its_power() {
    let folder = Folder::new("nodes");
    std::fs::write(folder.path().join("pods.yaml"), PODS).unwrap();
    let cluster = up(&["--nodes", "3", "--apply", "pods.yaml"], folder.path());
    assert!(cluster.said.contains("daemonset/each: 3 of 3 ready"), "{}", cluster.said);
    let on = |node: &str| pod(&cluster, "mobile", node, "metadata.name");
    let old = on("windlass-2");
    assert!(!old.is_empty(), "{}", cluster.kubectl("get pods -o wide"));
    assert!(reaches(&cluster, "windlass-1", "windlass-2") && reaches(&cluster, "windlass-1", "windlass-3"));

    node("cut", "windlass-2", folder.path());
    node("stop", "windlass-3", folder.path());
    until_within(SOON, "nobody reaches a node that is cut off", || {
        !reaches(&cluster, "windlass-1", "windlass-2") && !reaches(&cluster, "windlass-1", "windlass-3")
    });
    let (logs, said) = cluster.try_kubectl(&format!("logs {old}"));
    assert!(!logs, "nor does the API server: {said}");
    for name in ["windlass-2", "windlass-3"] {
        until_within(SILENCE, "its silence is noticed", || ready(&cluster, name) == "Unknown");
    }
    until_within(SILENCE, "its pod is replaced elsewhere", || {
        pod(&cluster, "mobile", "windlass-1", "status.containerStatuses[0].ready") == "true"
    });
    assert_eq!(on("windlass-2"), old, "nobody can tell whether it has ended");
    assert_eq!(ready(&cluster, "windlass-1"), "True");

    node("start", "windlass-2", folder.path());
    node("start", "windlass-3", folder.path());
    for name in ["windlass-2", "windlass-3"] {
        until_within(SOON, "it is ready again", || ready(&cluster, name) == "True");
        until_within(SOON, "its pod answers", || reaches(&cluster, "windlass-1", name));
    }
    until_within(SOON, "the pod that was replaced ends", || on("windlass-2").is_empty());
    let restarts = |node: &str| pod(&cluster, "each", node, "status.containerStatuses[0].restartCount");
    assert_eq!(restarts("windlass-2"), "0", "it ran on while it was cut off");
    until_within(SOON, "what had no power was started again", || restarts("windlass-3") == "1");
    assert_eq!(cluster.end("-TERM").code(), Some(0));
}
