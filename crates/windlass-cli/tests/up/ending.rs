//! How a cluster ends: pods have their grace, nobody is told that they failed, and they run again.

use std::time::{Duration, Instant};

use crate::support::{Folder, windlass};
use crate::up;

/// One that writes down how it was ended, one that has a hook, and one that hears nothing and has little time.
const PODS: &str = "
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: notes}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: writer}
spec:
  terminationGracePeriodSeconds: 60
  containers:
  - name: c
    image: busybox
    command: [sh, -c, 'trap \"sleep 1; echo asked >> /notes/writer; exit\" TERM; while true; do sleep 0.1; done']
    volumeMounts: [{name: notes, mountPath: /notes}]
  volumes: [{name: notes, persistentVolumeClaim: {claimName: notes}}]
---
apiVersion: v1
kind: Pod
metadata: {name: hooked}
spec:
  terminationGracePeriodSeconds: 60
  containers:
  - name: c
    image: busybox
    command: [sh, -c, 'trap exit TERM; while true; do sleep 0.1; done']
    lifecycle: {preStop: {exec: {command: [sh, -c, 'echo hook >> /notes/hooked']}}}
    volumeMounts: [{name: notes, mountPath: /notes}]
  volumes: [{name: notes, persistentVolumeClaim: {claimName: notes}}]
---
apiVersion: v1
kind: Pod
metadata: {name: deaf}
spec:
  terminationGracePeriodSeconds: 2
  containers: [{name: c, image: busybox, command: [sleep, '100000']}]
";

const ALL: &str = "wait pod/writer pod/hooked pod/deaf --for=condition=Ready --timeout=60s";

#[test]
fn pods_have_their_grace_and_run_again() {
    let folder = Folder::new("ending");
    std::fs::write(folder.path().join("pods.yaml"), PODS).unwrap();
    let cluster = up(&["--apply", "pods.yaml"], folder.path());
    cluster.kubectl(ALL);
    let started = Instant::now();
    let down = windlass(&["down", "--data-dir", "data"], folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&down.stdout).into_owned();
    assert!(down.status.success(), "{said}");
    assert!(said.starts_with("waiting for 3 pods to end, at most 60 s: default/"), "{said}");
    assert!(started.elapsed() < Duration::from_secs(30), "nobody waits for those who have ended");

    let cluster = up(&[], folder.path());
    cluster.kubectl(ALL);
    let notes = cluster.kubectl("exec writer -- sh -c 'cat /notes/hooked /notes/writer'");
    assert_eq!(notes, "hook\nasked\n", "each was asked once, and had the time to write");
    for pod in ["writer", "hooked", "deaf"] {
        let of = |field: &str| cluster.kubectl(&format!("get pod {pod} -o jsonpath='{{.status.{field}}}'"));
        let container = "containerStatuses[0]";
        assert_eq!(of(&format!("{container}.restartCount")), "1", "{pod}");
        assert_eq!(of(&format!("{container}.lastState.terminated.exitCode")), "255", "{pod}");
        assert_eq!(of("phase"), "Running", "{pod}");
    }
    let events = cluster.kubectl("get events -o jsonpath='{.items[*].reason}'");
    assert!(!events.contains("Killing"), "nobody was told of it: {events}");
    let said = cluster.end_saying("-INT");
    assert!(said.contains("3 pods to end, at most 60 s") && said.contains("Ctrl-C again"), "{said}");
}

#[test]
fn a_second_ctrl_c_waits_for_nobody() {
    let folder = Folder::new("hurry");
    let pod = "
apiVersion: v1
kind: Pod
metadata: {name: deaf}
spec:
  terminationGracePeriodSeconds: 600
  containers: [{name: c, image: busybox, command: [sleep, '100000']}]
";
    std::fs::write(folder.path().join("pod.yaml"), pod).unwrap();
    let cluster = up(&["--apply", "pod.yaml"], folder.path());
    cluster.kubectl("wait pod/deaf --for=condition=Ready --timeout=60s");
    cluster.signal("-INT");
    // Two signals within half a second are one Ctrl-C that came twice.
    std::thread::sleep(Duration::from_secs(1));
    let started = Instant::now();
    assert_eq!(cluster.end("-INT").code(), Some(0));
    assert!(started.elapsed() < Duration::from_secs(20));
    let cluster = up(&[], folder.path());
    cluster.kubectl(
        "wait pod/deaf --for=jsonpath='{.status.containerStatuses[0].restartCount}'=1 --timeout=60s",
    );
    assert_eq!(cluster.end("-KILL").code(), None);
}
