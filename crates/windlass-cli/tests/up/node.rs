//! `windlass up` with a node, as people use it: kubectl, pods that are processes, volumes that stay, and nothing left behind.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use windlass_testing::up::{Cluster, kubectl};

use crate::support::{Folder, windlass};
use crate::{until_within, up};

/// A pod whose program can be told from all others of this machine, and from which others are asked.
fn client(mark: &str) -> String {
    format!(
        "
apiVersion: v1
kind: Pod
metadata: {{name: client}}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{{name: c, image: busybox, command: [sleep, '{mark}']}}]
---
apiVersion: v1
kind: Service
metadata: {{name: web}}
spec: {{selector: {{app: test}}, ports: [{{port: 80}}]}}
"
    )
}

/// Whether a program with this argument runs on this machine.
fn runs(mark: &str) -> bool {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries.into_iter().any(|entry| {
        // Processes come and go while we look.
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == mark.as_bytes())
    })
}

fn until(what: &str, is: impl FnMut() -> bool) {
    until_within(Duration::from_secs(30), what, is);
}

#[test]
fn pods_run_answer_keep_their_data_and_leave_nothing() {
    let folder = Folder::new("node");
    // No other program sleeps for so long.
    let mark = format!("98765{:06}", std::process::id());
    std::fs::write(folder.path().join("client.yaml"), client(&mark)).unwrap();
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples");
    let [nginx, counter] = ["nginx-deployment.yaml", "counter-statefulset.yaml"]
        .map(|name| samples.join(name).display().to_string());
    let cluster = up(&["--apply", &nginx, &counter, "client.yaml"], folder.path());
    for ready in ["deployment/test: 2 of 2 ready", "statefulset/counter: 2 of 2 ready"] {
        assert!(cluster.said.contains(ready), "{}", cluster.said);
    }
    cluster.kubectl("wait pod/client --for=condition=Ready --timeout=60s");
    assert!(runs(&mark));
    services_and_names(&cluster);
    rollouts(&cluster);
    streams(&cluster, folder.path());

    cluster.kubectl("delete pod counter-0");
    cluster.kubectl("wait pod/counter-0 --for=condition=Ready --timeout=60s");
    assert_eq!(cluster.kubectl("logs counter-0"), "counter-0 was started 2 times\n");

    assert_eq!(cluster.end("-KILL").code(), None);
    until("a cluster that is killed takes its pods along", || !runs(&mark));

    let cluster = up(&[], folder.path());
    cluster.kubectl("wait pod/client pod/counter-0 --for=condition=Ready --timeout=60s");
    until("the program runs again", || runs(&mark));
    until("the volume is the same", || {
        cluster.kubectl("logs counter-0").contains("counter-0 was started 3 times")
    });
    let status = windlass(&["status", "--data-dir", "data"], folder.path()).output().unwrap();
    let status = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(status.contains("Nodes       1 of 1 ready"), "{status}");

    cluster.kubectl("delete statefulset counter");
    cluster.kubectl("delete pvc --all --timeout=60s");
    let volumes = folder.path().join("data/volumes");
    until("the folders of volumes go", || std::fs::read_dir(&volumes).unwrap().next().is_none());

    let ended = windlass(&["down", "--data-dir", "data"], folder.path()).status().unwrap();
    assert!(ended.success());
    assert!(!runs(&mark), "`windlass down` leaves nothing running");
}

fn services_and_names(cluster: &Cluster) {
    let get = |host: &str| {
        format!(
            "exec client -- bash -c 'exec 3<>/dev/tcp/{host}/80; printf \"GET / HTTP/1.0\\r\\n\\r\\n\" >&3; cat <&3'"
        )
    };
    for host in ["web", "web.default.svc.cluster.local"] {
        assert!(cluster.kubectl(&get(host)).contains("Welcome to nginx!"), "{host}");
    }
    let pod = cluster.kubectl("get pod counter-1 -o jsonpath='{.status.podIP}'");
    let found = cluster.kubectl("exec client -- getent hosts counter-1.counter");
    assert!(found.starts_with(&pod), "{found} is {pod}");
    let (found, said) = cluster.try_kubectl("exec client -- getent hosts no-such-service");
    assert!(!found, "{said}");
    let (out, said) = cluster.try_kubectl("exec client -- bash -c 'exec 3<>/dev/tcp/192.0.2.1/80'");
    assert!(!out && said.contains("Network is unreachable"), "pods have no way out: {said}");
}

fn rollouts(cluster: &Cluster) {
    cluster.kubectl("scale deployment/test --replicas 3");
    cluster.kubectl("rollout status deployment/test --timeout=60s");
    cluster.kubectl("rollout restart deployment/test");
    cluster.kubectl("rollout status deployment/test --timeout=60s");
    cluster.kubectl("rollout undo deployment/test");
    cluster.kubectl("rollout status deployment/test --timeout=60s");
    let ready = cluster.kubectl("get deployment test -o jsonpath='{.status.readyReplicas}'");
    assert_eq!(ready, "3");
}

fn streams(cluster: &Cluster, folder: &Path) {
    let (typed, said) = cluster.try_kubectl("exec -i client -- sh -c 'cat; exit 3' <<< hello");
    assert!(!typed && said.starts_with("hello\n") && said.contains("exit code 3"), "{said}");
    cluster.kubectl("exec client -- sh -c 'echo inside > /tmp/note'");
    cluster.kubectl("cp client:/tmp/note note");
    assert_eq!(std::fs::read_to_string(folder.join("note")).unwrap(), "inside\n");

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let forward = format!("exec {} port-forward service/web {port}:80 > /dev/null", kubectl().display());
    let mut forward = cluster.command(&forward).spawn().unwrap();
    until("the port is forwarded", || {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return false };
        let mut said = String::new();
        let asked =
            stream.write_all(b"GET / HTTP/1.0\r\n\r\n").and_then(|()| stream.read_to_string(&mut said));
        asked.is_ok() && said.contains("Welcome to nginx!")
    });
    forward.kill().unwrap();
    forward.wait().unwrap();
}
