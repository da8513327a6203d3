//! What people do with a cluster, by kubectl, through a real kube-apiserver.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Child;

use anyhow::{Context as _, Result, ensure};

use crate::operators::{Kubectl, http_get};
use crate::servers;

/// Something that has to work.
struct Check {
    name: &'static str,
    run: fn(&Kubectl) -> Result<()>,
}

/// One after the other, each in the namespace `default`; later ones stand on what the first made.
const CHECKS: [Check; 9] = [
    Check { name: "nginx-by-name", run: nginx_by_name },
    Check { name: "port-forward", run: port_forward },
    Check { name: "logs", run: logs },
    Check { name: "exec", run: exec },
    Check { name: "api-from-pod", run: api_from_pod },
    Check { name: "stateful-set", run: stateful_set },
    Check { name: "job", run: job },
    Check { name: "drain", run: drain },
    Check { name: "delete-namespace", run: delete_namespace },
];

/// Whether there is one whose name contains this.
pub fn has(only: &str) -> bool {
    CHECKS.iter().any(|check| check.name.contains(only))
}

/// Runs those whose name contains `only`, and says of each what came of it; whether all went well.
///
/// # Errors
/// When kubectl is missing.
pub fn run(kubeconfig: &Path, home: &Path, only: &str) -> Result<bool> {
    let kubectl = Kubectl::new(kubeconfig, "default", home)?;
    let (mut passed, mut failed) = (0, 0);
    for check in CHECKS.iter().filter(|check| check.name.contains(only)) {
        match (check.run)(&kubectl) {
            Ok(()) => passed += 1,
            Err(error) => {
                failed += 1;
                println!("## {} failed: {error:#}", check.name);
                let pods = kubectl.try_run(&["get", "pods,events", "--all-namespaces"], "")?;
                println!("{}{}", pods.out, pods.err);
            }
        }
    }
    println!("workloads by kubectl: {passed} passed, {failed} failed");
    Ok(failed == 0)
}

/// A line of shell that prints the title of the page that a server shows, as soon as it answers; not every machine has
/// curl.
const ASK: &str = r#"until exec 3<>/dev/tcp/test.default.svc.cluster.local/80; do sleep 0.1; done 2>/dev/null
printf 'GET / HTTP/1.0\r\n\r\n' >&3; grep -o '<h1>.*</h1>' <&3"#;
const WELCOME: &str = "<h1>Welcome to nginx!</h1>";

fn nginx_by_name(kubectl: &Kubectl) -> Result<()> {
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../samples/nginx-deployment.yaml");
    kubectl.run(&["apply", "-f", sample])?;
    kubectl.run(&["expose", "deployment", "test", "--port=80"])?;
    kubectl.run(&["rollout", "status", "deployment/test", "--timeout=60s"])?;
    said(kubectl, &["get", "deployment", "test", "-o", "jsonpath={.status.readyReplicas}"], "2")?;
    kubectl.run(&["run", "asks", "--image=busybox", "--restart=Never", "--", "bash", "-c", ASK])?;
    kubectl.run(&["wait", "pod/asks", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s"])?;
    said(kubectl, &["logs", "asks"], &format!("{WELCOME}\n"))
}

fn port_forward(kubectl: &Kubectl) -> Result<()> {
    let mut forward = Ends(kubectl.start(&["port-forward", "service/test", ":80"])?);
    // What it prints later is not read, but its end of the pipe has to stay open.
    let mut lines = BufReader::new(forward.0.stdout.take().context("it is piped")?);
    let mut line = String::new();
    lines.read_line(&mut line)?;
    let port = line.strip_prefix("Forwarding from 127.0.0.1:").and_then(|rest| rest.split(' ').next());
    let (status, page) = http_get(port.with_context(|| line.clone())?.parse()?, "/")?;
    ensure!(status == 200 && page.contains(WELCOME), "{status} {page}");
    Ok(())
}

fn logs(kubectl: &Kubectl) -> Result<()> {
    let script = "for i in 1 2 3; do echo line $i; sleep 0.2; done; echo oh >&2; exit 3";
    kubectl.run(&["run", "speaks", "--image=busybox", "--restart=Never", "--", "sh", "-c", script])?;
    kubectl.run(&[
        "wait",
        "pod/speaks",
        "--for=jsonpath={.status.containerStatuses[0].containerID}",
        "--timeout=30s",
    ])?;
    // Whether it still runs or has ended: from its first line to its last.
    said(kubectl, &["logs", "-f", "speaks"], "line 1\nline 2\nline 3\noh\n")?;
    said(kubectl, &["logs", "speaks", "--tail=1"], "oh\n")?;
    kubectl.run(&["delete", "pod", "speaks"]).map(drop)
}

fn exec(kubectl: &Kubectl) -> Result<()> {
    kubectl.run(&["run", "stays", "--image=busybox", "--", "sleep", "1000000"])?;
    kubectl.run(&["wait", "pod/stays", "--for=condition=Ready", "--timeout=30s"])?;
    said(kubectl, &["exec", "stays", "--", "hostname"], "stays\n")?;
    let echoed = kubectl.run_with(&["exec", "-i", "stays", "--", "cat"], "hello\n")?;
    ensure!(echoed == "hello\n", "{echoed:?}");
    let error = kubectl.fail(&["exec", "stays", "--", "sh", "-c", "exit 7"], "")?;
    ensure!(error.contains("exit code 7"), "{error}");
    kubectl.run(&["delete", "pod", "stays", "--grace-period=1"]).map(drop)
}

/// kubectl in a pod finds the server and says who it is by what every pod is given.
fn api_from_pod(kubectl: &Kubectl) -> Result<()> {
    let program = servers::program("kube/kubectl")?;
    let folder = program.parent().context("it lies in a folder")?.display();
    kubectl.apply(&format!(
        "apiVersion: v1
kind: Pod
metadata: {{name: client}}
spec:
  restartPolicy: Never
  containers:
  - name: c
    image: busybox
    command: [sh, -c, '/real/kubectl auth whoami -o jsonpath={{.status.userInfo.username}}; echo; ! /real/kubectl get pods']
    volumeMounts: [{{name: real, mountPath: /real}}]
  volumes: [{{name: real, hostPath: {{path: {folder}}}}}]
"
    ))?;
    kubectl.run(&["wait", "pod/client", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s"])?;
    let out = kubectl.run(&["logs", "client"])?;
    let user = "system:serviceaccount:default:default";
    let refused = format!("User {user:?} cannot list resource \"pods\"");
    ensure!(out.starts_with(&format!("{user}\n")) && out.contains(&refused), "{out}");
    Ok(())
}

/// Each of its pods counts on its volume how often it was started, and says so.
fn stateful_set(kubectl: &Kubectl) -> Result<()> {
    let rolled = || kubectl.run(&["rollout", "status", "statefulset/counter", "--timeout=60s"]);
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../samples/counter-statefulset.yaml");
    kubectl.run(&["apply", "-f", sample])?;
    rolled()?;
    said(kubectl, &["get", "pvc", "-o", "jsonpath={.items[*].status.phase}"], "Bound Bound")?;
    said(kubectl, &["logs", "counter-1"], "counter-1 was started 1 times\n")?;
    kubectl.run(&["delete", "pod", "counter-1"])?;
    rolled()?;
    said(kubectl, &["logs", "counter-1"], "counter-1 was started 2 times\n")?;
    let address = kubectl.run(&["get", "pod", "counter-1", "-o", "jsonpath={.status.podIP}"])?;
    let found = kubectl.run(&["exec", "counter-0", "--", "getent", "hosts", "counter-1.counter"])?;
    ensure!(found.starts_with(&address), "{found}, not {address}");
    kubectl.run(&["delete", "-f", sample])?;
    kubectl.run(&["wait", "pod", "--selector=app=counter", "--for=delete", "--timeout=60s"])?;
    kubectl.run(&["delete", "pvc", "--all"])?;
    kubectl.run(&["wait", "pv", "--all", "--for=delete", "--timeout=60s"]).map(drop)
}

fn job(kubectl: &Kubectl) -> Result<()> {
    kubectl.run(&["create", "job", "once", "--image=busybox", "--", "sh", "-c", "echo done"])?;
    kubectl.run(&["wait", "job/once", "--for=condition=Complete", "--timeout=60s"])?;
    said(kubectl, &["logs", "job/once"], "done\n")?;
    // Its pod goes with it.
    kubectl.run(&["delete", "job", "once"])?;
    kubectl
        .run(&[
            "wait",
            "pod",
            "--selector=batch.kubernetes.io/job-name=once",
            "--for=delete",
            "--timeout=60s",
        ])
        .map(drop)
}

fn drain(kubectl: &Kubectl) -> Result<()> {
    let ready = ["get", "deployment", "test", "-o", "jsonpath={.status.readyReplicas}"];
    kubectl.run(&["create", "poddisruptionbudget", "test", "--selector=app=test", "--min-available=2"])?;
    kubectl.run(&["wait", "pdb/test", "--for=jsonpath={.status.currentHealthy}=2", "--timeout=30s"])?;
    let node = kubectl.run(&["get", "nodes", "-o", "jsonpath={.items[0].metadata.name}"])?;
    let drain = |patience| ["drain", node.as_str(), "--force", "--pod-selector=app=test", patience];
    let refused = kubectl.fail(&drain("--timeout=8s"), "")?;
    ensure!(refused.contains("would violate the pod's disruption budget"), "{refused}");
    said(kubectl, &ready, "2")?;
    kubectl.run(&["delete", "pdb", "test"])?;
    kubectl.run(&drain("--timeout=60s"))?;
    kubectl.run(&["wait", "deployment/test", "--for=condition=Available=False", "--timeout=30s"])?;
    kubectl.run(&["uncordon", &node])?;
    kubectl.run(&["rollout", "status", "deployment/test", "--timeout=60s"])?;
    said(kubectl, &ready, "2")
}

fn delete_namespace(kubectl: &Kubectl) -> Result<()> {
    let of_shop = |args: &[&str]| kubectl.run(&[args, &["--namespace=shop"]].concat());
    kubectl.run(&["create", "namespace", "shop"])?;
    of_shop(&["create", "deployment", "web", "--image=nginx", "--replicas=2"])?;
    of_shop(&["create", "configmap", "some", "--from-literal=a=b"])?;
    of_shop(&["rollout", "status", "deployment/web", "--timeout=60s"])?;
    kubectl.run(&["delete", "namespace", "shop", "--timeout=60s"])?;
    let gone = kubectl.fail(&["get", "namespace", "shop"], "")?;
    ensure!(gone.contains("not found"), "{gone}");
    let left = of_shop(&["get", "all,configmaps,secrets", "-o", "name"])?;
    ensure!(left.is_empty(), "{left}");
    Ok(())
}

/// A command prints exactly this.
fn said(kubectl: &Kubectl, args: &[&str], expected: &str) -> Result<()> {
    let out = kubectl.run(args)?;
    ensure!(out == expected, "kubectl {}: {out:?}, not {expected:?}", args.join(" "));
    Ok(())
}

/// A process that ends with this value.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        if self.0.kill().is_ok() {
            let _ = self.0.wait();
        }
    }
}
