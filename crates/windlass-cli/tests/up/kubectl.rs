//! What people do with a cluster, by kubectl, on one that runs pods.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use windlass_testing::up::Cluster;

use crate::support::Folder;
use crate::up;

/// One cluster, one thing after the other: a cluster of its own for each would take longer than all of them.
#[test]
fn a_day_with_kubectl() {
    let folder = Folder::new("kubectl");
    let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples/nginx-deployment.yaml");
    let cluster = up(&["--apply", samples], folder.path());
    assert!(cluster.said.contains("deployment/test: 2 of 2 ready"), "{}", cluster.said);
    every_minute_begins(&cluster);
    who_may_what(&cluster);
    nginx_answers(&cluster);
    rollouts(&cluster);
    logs_exec_and_cp(&cluster, &folder);
    stateful_set_keeps_its_data(&cluster);
    job_completes(&cluster);
    drain_respects_the_budget(&cluster);
    namespace_empties(&cluster);
    every_minute_ends(&cluster);
    assert_eq!(cluster.end("-INT").code(), Some(0));
}

/// Waits until a line of shell after kubectl prints what is expected.
fn until(cluster: &Cluster, arguments: &str, expected: &str) {
    cluster.until(arguments, Duration::from_secs(90), |said| said.contains(expected));
}

/// Starts kubectl, for as long as the caller wants. What it prints can be read.
fn start(cluster: &Cluster, arguments: &str) -> Child {
    let mut command = cluster.command(&format!("exec \"$KUBECTL\" {arguments}"));
    command.stdout(Stdio::piped()).spawn().expect("bash runs")
}

/// Runs a line of shell, which has to succeed.
fn shell(cluster: &Cluster, line: &str) -> String {
    let output = cluster.command(line).stdin(Stdio::null()).output().expect("bash runs");
    assert!(output.status.success(), "{line}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn apply(cluster: &Cluster, text: &str) {
    cluster.kubectl(&format!("apply -f - <<'END'\n{text}\nEND"));
}

/// A line of bash that counts the titles of the page that a server shows; not every machine has curl.
fn page(host: &str, port: &str) -> String {
    let ask = format!("exec 3<>/dev/tcp/{host}/{port} && printf \"GET / HTTP/1.0\\r\\n\\r\\n\" >&3");
    format!("({ask} && timeout 5 cat <&3 | grep -c \"<h1>Welcome to nginx\")")
}

/// Whoever is not the administrator may what roles say, and nothing else.
fn who_may_what(cluster: &Cluster) {
    cluster.kubectl("create serviceaccount reader");
    cluster.kubectl("create rolebinding reader --clusterrole=view --serviceaccount=default:reader");
    let token = cluster.kubectl("create token reader");
    // The administrator's certificate would speak for everybody who uses his context.
    let reader = format!("--context=windlass-token --token={token}");
    // The rules of `view` are gathered from other roles by a controller.
    until(cluster, &format!("{reader} get pods -o name"), "pod/");
    let refused = shell(cluster, &format!("\"$KUBECTL\" {reader} delete deployment test 2>&1 || true"));
    let who = "User \"system:serviceaccount:default:reader\" cannot delete resource \"deployments\"";
    assert!(refused.contains(who), "{refused}");
    let bob = shell(cluster, "\"$KUBECTL\" --as=bob get secrets 2>&1 || true");
    assert!(bob.contains("User \"bob\" cannot list resource \"secrets\""), "{bob}");
}

fn nginx_answers(cluster: &Cluster) {
    cluster.kubectl("rollout status deployment/test --timeout=90s");
    assert_eq!(cluster.kubectl("get deployment test -o jsonpath='{.status.readyReplicas}'"), "2");
    cluster.kubectl("expose deployment test --port=80");
    // Both pods, each by its own address and both by the Service's name.
    let ask = format!("for ip in $IPS test; do {}; done", page("$ip", "80"));
    let ips = cluster.kubectl("get pods -l app=test -o jsonpath='{.items[*].status.podIP}'");
    assert_eq!(ips.split_whitespace().count(), 2, "{ips}");
    until(
        cluster,
        "get endpointslices -l kubernetes.io/service-name=test -o jsonpath='{.items[*].endpoints[*].conditions.ready}'",
        "true true",
    );
    cluster
        .kubectl(&format!("run asks --image=busybox --restart=Never --env='IPS={ips}' -- bash -c '{ask}'"));
    cluster.kubectl("wait pod/asks --for=jsonpath='{.status.phase}'=Succeeded --timeout=60s");
    assert_eq!(cluster.kubectl("logs asks"), "1\n1\n1\n");

    let mut forward = start(cluster, "port-forward service/test :80");
    let mut lines = BufReader::new(forward.stdout.take().expect("it is piped")).lines();
    let line = lines.next().expect("it says where").expect("it is text");
    let port =
        line.split_once("127.0.0.1:").and_then(|(_, rest)| rest.split(' ').next()).expect(&line).to_owned();
    assert_eq!(shell(cluster, &page("127.0.0.1", &port)), "1\n");
    forward.kill().expect("it runs");
    forward.wait().expect("it is our child");
}

fn rollouts(cluster: &Cluster) {
    cluster.kubectl("rollout restart deployment/test");
    cluster.kubectl("rollout status deployment/test --timeout=90s");
    cluster.kubectl("set image deployment/test nginx=nginx:missing-digest@sha256:0000000000000000000000000000000000000000000000000000000000000000");
    until(cluster, "get pods -l app=test", "ImagePull");
    cluster.kubectl("rollout undo deployment/test");
    cluster.kubectl("rollout status deployment/test --timeout=90s");
    assert_eq!(cluster.kubectl("get deployment test -o jsonpath='{..containers[0].image}'"), "nginx:1.7.9");
    cluster.kubectl("scale deployment/test --replicas=4");
    cluster.kubectl("wait deployment/test --for=jsonpath='{.status.readyReplicas}'=4 --timeout=60s");
    cluster.kubectl("scale deployment/test --replicas=1");
    cluster.kubectl("wait deployment/test --for=jsonpath='{.status.replicas}'=1 --timeout=60s");
}

fn logs_exec_and_cp(cluster: &Cluster, folder: &Folder) {
    cluster.kubectl(
        "run ticks --image=busybox -- sh -c 'i=0; until [ -f /tmp/stop ]; do echo tick $i; i=$((i+1)); sleep 0.1; done'",
    );
    cluster.kubectl("wait pod/ticks --for=condition=Ready --timeout=60s");
    let mut follow = start(cluster, "logs -f ticks");
    let mut lines = BufReader::new(follow.stdout.take().expect("it is piped")).lines();
    for number in 0..10 {
        assert_eq!(lines.next().expect("there is more").expect("it is text"), format!("tick {number}"));
    }
    follow.kill().expect("it runs");
    follow.wait().expect("it is our child");
    assert_eq!(cluster.kubectl("logs ticks --tail=2").lines().count(), 2);

    assert_eq!(cluster.kubectl("exec ticks -- sh -c 'echo $HOSTNAME; hostname'"), "ticks\nticks\n");
    let (done, said) = cluster.try_kubectl("exec ticks -- sh -c 'exit 7'");
    assert!(!done && said.contains("exit code 7"), "{said}");
    // `script` gives kubectl a terminal, as a person has one.
    let said = shell(
        cluster,
        "script -qec \"$KUBECTL exec -it ticks -- sh -c 'tty; stty size; echo done'\" /dev/null",
    );
    assert!(said.contains("/dev/pts/") && said.contains("done"), "{said}");
    assert_eq!(cluster.kubectl("exec -i ticks -- cat <<< hello"), "hello\n");

    std::fs::write(folder.path().join("there"), "and back\n").expect("the folder is ours");
    cluster.kubectl("cp there ticks:/tmp/there");
    cluster.kubectl("cp ticks:/tmp/there back");
    assert_eq!(std::fs::read_to_string(folder.path().join("back")).expect("it came back"), "and back\n");

    // A program that ends is started again, and what it said before can still be read.
    cluster.kubectl("exec ticks -- touch /tmp/stop");
    until(cluster, "get pod ticks -o jsonpath='{.status.containerStatuses[0].restartCount}'", "1");
    assert!(cluster.kubectl("logs ticks --previous").starts_with("tick 0\n"));
    cluster.kubectl("delete pod ticks --grace-period=1");
}

const STATEFUL: &str = "
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {clusterIP: None, selector: {app: db}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 3
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: c
        image: busybox
        command: [sh, -c, '[ -f /data/born ] || hostname >/data/born; exec sleep 1000000']
        volumeMounts: [{name: data, mountPath: /data}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
";

fn stateful_set_keeps_its_data(cluster: &Cluster) {
    apply(cluster, STATEFUL);
    cluster.kubectl("rollout status statefulset/db --timeout=90s");
    assert_eq!(cluster.kubectl("get pvc -o jsonpath='{.items[*].status.phase}'"), "Bound Bound Bound");
    cluster.kubectl("exec db-1 -- sh -c 'echo kept >/data/note'");
    let before = cluster.kubectl("get pod db-1 -o jsonpath='{.metadata.uid}'");
    cluster.kubectl("delete pod db-1");
    cluster.kubectl("rollout status statefulset/db --timeout=90s");
    assert_ne!(cluster.kubectl("get pod db-1 -o jsonpath='{.metadata.uid}'"), before);
    assert_eq!(cluster.kubectl("exec db-1 -- cat /data/note /data/born"), "kept\ndb-1\n");
    // Each by its own name.
    let address = cluster.kubectl("get pod db-2 -o jsonpath='{.status.podIP}'");
    let found = cluster.kubectl("exec db-0 -- getent hosts db-2.db");
    assert!(found.starts_with(&address), "{found}, not {address}");
    cluster.kubectl("scale statefulset/db --replicas=1");
    cluster.kubectl("wait pod/db-2 pod/db-1 --for=delete --timeout=60s");
    assert_eq!(cluster.kubectl("get pvc -o name").lines().count(), 3);
}

fn job_completes(cluster: &Cluster) {
    cluster.kubectl("create job once --image=busybox -- sh -c 'echo done'");
    cluster.kubectl("wait job/once --for=condition=Complete --timeout=60s");
    assert_eq!(cluster.kubectl("logs job/once"), "done\n");
}

fn every_minute_begins(cluster: &Cluster) {
    cluster.kubectl("create cronjob minutely --image=busybox --schedule='* * * * *' -- sh -c 'echo tock'");
}

fn every_minute_ends(cluster: &Cluster) {
    until(cluster, "get cronjob minutely -o jsonpath='{.status.lastSuccessfulTime}'", "20");
    let jobs = cluster.kubectl("get jobs -o name");
    assert!(jobs.contains("job.batch/minutely-"), "{jobs}");
}

fn drain_respects_the_budget(cluster: &Cluster) {
    cluster.kubectl("scale deployment/test --replicas=2");
    cluster.kubectl("rollout status deployment/test --timeout=60s");
    cluster.kubectl("create poddisruptionbudget test --selector=app=test --min-available=2");
    cluster.kubectl("wait pdb/test --for=jsonpath='{.status.currentHealthy}'=2 --timeout=30s");
    let node = cluster.kubectl("get nodes -o jsonpath='{.items[0].metadata.name}'");
    let drain = format!(
        "drain {node} --ignore-daemonsets --delete-emptydir-data --force --pod-selector=app=test --timeout=8s"
    );
    let (done, said) = cluster.try_kubectl(&drain);
    assert!(!done && said.contains("would violate the pod's disruption budget"), "{said}");
    assert_eq!(cluster.kubectl("get deployment test -o jsonpath='{.status.readyReplicas}'"), "2");
    cluster.kubectl("delete pdb test");
    cluster.kubectl(&drain.replace("8s", "60s"));
    until(cluster, "get pods -l app=test", "Pending");
    cluster.kubectl(&format!("uncordon {node}"));
    cluster.kubectl("rollout status deployment/test --timeout=60s");
}

fn namespace_empties(cluster: &Cluster) {
    cluster.kubectl("create namespace shop");
    cluster.kubectl("-n shop create deployment web --image=nginx --replicas=2");
    cluster.kubectl("-n shop create configmap some --from-literal=a=b");
    cluster.kubectl("-n shop rollout status deployment/web --timeout=60s");
    cluster.kubectl("delete namespace shop --timeout=60s");
    assert!(cluster.try_kubectl("get namespace shop").1.contains("not found"));
    assert!(cluster.kubectl("-n shop get all,configmaps").contains("No resources found"));
}
