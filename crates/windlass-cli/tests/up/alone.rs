//! `windlass up`, `down` and `status` without nodes, which work on any machine.

use std::io::{BufRead as _, BufReader};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Folder, windlass};
use crate::{until_within, up};

fn run(arguments: &[&str], folder: &Folder) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = windlass(arguments, folder.path()).output().unwrap();
    (status.code(), format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr)))
}

#[test]
fn a_cluster_comes_up_applies_manifests_and_is_there_again() {
    let folder = Folder::new("up");
    std::fs::create_dir(folder.path().join("manifests")).unwrap();
    let thing = "{apiVersion: example.com/v1, kind: Thing, metadata: {name: one, namespace: there}}\n";
    std::fs::write(folder.path().join("manifests/1.yaml"), thing).unwrap();
    let others = "
apiVersion: v1
kind: Namespace
metadata: {name: there}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: things, kind: Thing}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: nginx}]}
";
    std::fs::write(folder.path().join("manifests/2.yaml"), others).unwrap();
    let cluster = up(&["--nodes", "0", "--apply", "manifests"], folder.path());
    assert!(cluster.said.contains(" API at https://127.0.0.1:"), "{}", cluster.said);
    assert!(cluster.said.contains("thing/one"), "{}", cluster.said);
    let made = cluster.kubectl("get thing one -n there -o jsonpath='{.metadata.uid}'");
    cluster.kubectl("wait rs/web --for=jsonpath='{.status.replicas}'=2 --timeout=30s");

    let (code, said) = run(&["up", "--nodes", "0", "--port", "0", "--data-dir", "data"], &folder);
    assert_eq!(code, Some(6), "{said}");
    assert!(said.contains("a cluster runs on") && said.contains("`windlass down` stops it"), "{said}");
    let (code, said) = run(&["status", "--data-dir", "data"], &folder);
    assert_eq!(code, Some(1), "pods wait for a node: {said}");
    assert!(said.contains("Pods        0 ready, 0 completed, 2 not ready"), "{said}");
    assert_eq!(cluster.end("-INT").code(), Some(0));
    assert_eq!(run(&["status", "--data-dir", "data"], &folder).0, Some(3));

    let cluster = up(&["--nodes", "0"], folder.path());
    assert_eq!(cluster.kubectl("get thing one -n there -o jsonpath='{.metadata.uid}'"), made);
    assert_eq!(cluster.end("-KILL").code(), None);

    let cluster = up(&["--nodes", "0", "--fresh"], folder.path());
    assert!(cluster.try_kubectl("get ns there").1.contains("not found"));
    assert_eq!(cluster.end("-TERM").code(), Some(0));
}

#[test]
fn a_quota_holds_and_gives_back() {
    let folder = Folder::new("quota");
    let cluster = up(&["--nodes", "0"], folder.path());
    cluster.kubectl("create quota few --hard=pods=1,requests.cpu=1,count/deployments.apps=3");
    cluster.kubectl("wait quota/few --for=jsonpath='{.status.used.pods}'=0 --timeout=30s");
    let run = |name: &str| {
        let limits = "{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"busybox\",\"resources\":{\"requests\":{\"cpu\":\"250m\"}}}]}}";
        cluster.try_kubectl(&format!("run {name} --image=busybox --overrides='{limits}'"))
    };
    until_within(Duration::from_secs(30), "pods get an account", || run("a").0);
    let (good, said) = run("b");
    assert!(
        !good && said.contains("exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1"),
        "{said}"
    );
    let described = cluster.kubectl("describe quota few");
    let lines: Vec<Vec<&str>> = described.lines().map(|line| line.split_whitespace().collect()).collect();
    for line in [["count/deployments.apps", "0", "3"], ["pods", "1", "1"], ["requests.cpu", "250m", "1"]] {
        assert!(lines.iter().any(|words| *words == line), "{described}");
    }
    cluster.kubectl("delete pod a");
    cluster.kubectl("wait quota/few --for=jsonpath='{.status.used.pods}'=0 --timeout=30s");
    let (good, said) = run("b");
    assert!(good, "{said}");
    assert_eq!(cluster.end("-INT").code(), Some(0));
}

#[test]
fn a_cluster_ends_with_whoever_started_it() {
    let folder = Folder::new("orphan");
    let up = ["up", "--with-parent", "--nodes", "0", "--port", "0", "--data-dir", "data"];
    let mut child =
        windlass(&up, folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let parent = child.stdin.take();
    let said = BufReader::new(child.stdout.take().unwrap()).lines();
    let ready = said.map(Result::unwrap).any(|line| line == "Ctrl-C ends it.");
    assert!(ready && child.try_wait().unwrap().is_none());
    drop(parent);
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn a_detached_cluster_runs_until_it_is_told_to_stop() {
    let folder = Folder::new("detached");
    let up = ["up", "--detach", "--nodes", "0", "--port", "0", "--data-dir", "data"];
    let (code, said) = run(&up, &folder);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("`windlass down --data-dir data` ends it."), "{said}");
    let (code, said) = run(&["status", "--data-dir", "data"], &folder);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = run(&up, &folder);
    assert_eq!(code, Some(6), "{said}");
    assert!(said.contains("a cluster runs on"), "{said}");

    let (code, said) = run(&["down", "--data-dir", "data"], &folder);
    assert_eq!((code, said.contains("has stopped")), (Some(0), true), "{said}");
    let (code, said) = run(&["down", "--data-dir", "data"], &folder);
    assert_eq!((code, said.contains("No cluster runs")), (Some(0), true), "{said}");
}

#[test]
fn each_way_of_not_starting_has_its_exit_code() {
    let folder = Folder::new("not-up");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let up = |arguments: &[&str]| {
        let all = [&["up", "--nodes", "0", "--data-dir", "data"], arguments].concat();
        run(&all, &folder)
    };
    let (code, said) = up(&["--port", &port]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("(--port 0 takes any port that is free)"), "{said}");
    let (code, said) = up(&["--port", "0", "--kubeconfig", "no/such/folder/kc"]);
    assert_eq!(code, Some(4), "{said}");
    let (code, said) = up(&["--port", "0", "--apply", "missing.yaml"]);
    assert_eq!(code, Some(8), "{said}");
    assert!(said.contains("cannot read missing.yaml"), "{said}");
    std::fs::write(folder.path().join("bad.yaml"), "{apiVersion: v1, kind: Nope, metadata: {name: x}}")
        .unwrap();
    let (code, said) = up(&["--port", "0", "--apply", "bad.yaml"]);
    assert_eq!(code, Some(8), "{said}");
    assert!(said.contains("cannot apply nope/x from bad.yaml: document 1: the server has no kind"), "{said}");
    let (code, said) = up(&["--port", "0", "--operators", "nosuch"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("there is no operator nosuch"), "{said}");
    let (code, _) = up(&["--nodes", "1000"]);
    assert_eq!(code, Some(2));
    std::fs::write(folder.path().join("file"), "").unwrap();
    let (code, said) = run(&["up", "--nodes", "0", "--port", "0", "--data-dir", "file"], &folder);
    assert_eq!(code, Some(5), "{said}");
}

#[test]
fn the_first_line_is_there_at_once_and_the_api_soon() {
    let folder = Folder::new("soon");
    let started = Instant::now();
    let cluster = up(&["--nodes", "0"], folder.path());
    let line = cluster.said.lines().find(|line| line.contains(" API at ")).unwrap();
    let ready: u64 =
        line.rsplit_once('(').and_then(|(_, rest)| rest.strip_suffix(" ms)")?.parse().ok()).unwrap();
    // The figure is for a release build on a machine at rest; this only notices when something else is waited for.
    assert!(ready < 5000, "{line}");
    assert!(started.elapsed().as_secs() < 20);
}
