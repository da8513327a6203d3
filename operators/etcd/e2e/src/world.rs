//! A cluster with the operator in it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::RwLock;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use windlass_testing::up::Cluster;

use crate::host::Process;
use crate::kubectl::{Kubectl, name_of, uid_of, until};
use crate::real;

/// Where everything of a test is.
const NAMESPACE: &str = "etcd-e2e";
/// Where operators run.
pub(crate) const OPERATORS: &str = "windlass-system";
/// The operator's program and Deployment.
pub(crate) const OPERATOR: &str = "etcd-operator";
/// What the load's pod runs, where nobody names another.
pub(crate) const LEDGER: &str = concat!("windlass.local/etcd-ledger:", env!("CARGO_PKG_VERSION"));
/// How nodes of `windlass up` call what runs their pods.
const OURS: &str = "windlass://";

/// A cluster with the operator in it.
#[derive(Debug)]
pub struct World {
    /// kubectl, in the namespace of the tests.
    pub kubectl: Kubectl,
    /// The image of the load.
    pub ledger: String,
    /// Held for writing by what concerns all EtcdClusters at once, and for reading by what concerns one.
    pub calm: RwLock<()>,
    /// Ends with the world, if the world began it.
    _cluster: Option<Cluster>,
}

impl World {
    /// A `windlass up` of its own, with three nodes and the operator as a pod.
    ///
    /// # Errors
    /// It cannot be had.
    pub fn up(windlass: &Path, ledger: &Path, folder: &Path) -> Result<World> {
        let mut add = Command::new(windlass);
        add.args(["image", "add", LEDGER, "--program"]).arg(ledger);
        let added = add.output().context("windlass cannot be run")?;
        ensure!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
        let cluster = Cluster::up(windlass, &["--operators", "etcd", "--nodes", "3"], folder);
        let mut world = World::there(&folder.join("data/kubeconfig"), None)?;
        world._cluster = Some(cluster);
        Ok(world)
    }

    /// The real node that this program runs in, with an operator that is put there now, by the programs in a folder.
    ///
    /// # Errors
    /// It cannot be had.
    pub fn real(programs: &Path) -> Result<World> {
        let work = real::folder().context("this program does not run in a real node")?;
        let kubeconfig = work.join("kubeconfig");
        real::install(&work, programs, &Kubectl::new(&kubeconfig, OPERATORS))?;
        World::there(&kubeconfig, None)
    }

    /// A cluster that is there already, with the operator in it.
    ///
    /// # Errors
    /// It does not answer.
    pub fn there(kubeconfig: &Path, ledger: Option<&str>) -> Result<World> {
        let kubectl = Kubectl::new(kubeconfig, NAMESPACE);
        kubectl.apply(&restricted(NAMESPACE))?;
        let ledger = ledger.unwrap_or(LEDGER).to_owned();
        let world = World { kubectl, ledger, calm: RwLock::new(()), _cluster: None };
        world.operator()?;
        Ok(world)
    }

    /// The operator's pod, once it is ready.
    ///
    /// # Errors
    /// There is none.
    pub fn operator(&self) -> Result<Value> {
        let look = || {
            let pods = self.operator_pods()?;
            let ready = pods.into_iter().find(|pod| is_ready(pod) && process_of(pod).is_some());
            Ok(ready.ok_or_else(|| "no pod of the operator is ready".to_owned()))
        };
        until("an operator", Duration::from_secs(90), look).map(|(pod, _)| pod)
    }

    /// The pods of the operator, however they are.
    pub(crate) fn operator_pods(&self) -> Result<Vec<Value>> {
        self.operators().list("pods", &format!("app.kubernetes.io/name={OPERATOR}"))
    }

    /// The operator's process on the host.
    ///
    /// # Errors
    /// There is none.
    pub fn operator_process(&self) -> Result<Process> {
        process_of(&self.operator()?).context("the operator has no process on this machine")
    }

    /// Kills the operator by SIGKILL, and then lets go of its pod: another one comes at once, where the same one would be
    /// started again after a growing wait. Its UID.
    ///
    /// # Errors
    /// There is none to kill.
    pub fn kill_operator(&self) -> Result<String> {
        let pod = self.operator()?;
        let process = process_of(&pod).context("the operator has no process on this machine")?;
        process.signal(Signal::SIGKILL)?;
        self.let_go(&pod)?;
        Ok(uid_of(&pod).to_owned())
    }

    /// Deletes a pod of the operator, whose processes have ended.
    pub(crate) fn let_go(&self, pod: &Value) -> Result<()> {
        let delete = ["delete", "pod", name_of(pod), "--force", "--grace-period=0", "--wait=false"];
        self.operators().run(&delete).map(|_| ())
    }

    /// Gives the operator's lease seconds instead of a quarter of a minute: whoever kills it often need not wait so long.
    ///
    /// # Errors
    /// It does not come back.
    pub fn hurry_election(&self) -> Result<()> {
        let container = "/spec/template/spec/containers/0/args/-";
        let add = |argument: &str| json!({"op": "add", "path": container, "value": argument});
        let patch = json!([
            add("--leader-elect-lease-duration=3s"),
            add("--leader-elect-renew-deadline=2s"),
            add("--leader-elect-retry-period=500ms"),
        ]);
        self.roll_out(&patch)
    }

    /// From now on the operator is killed right after each of its writes. It stands for no election: there is never more
    /// than one of it, and nobody has to wait for the lease of one that is dead.
    ///
    /// # Errors
    /// It does not come back.
    pub fn doom_operator(&self) -> Result<()> {
        let deployment = self.operators().get("deployment", OPERATOR)?.context("there is no operator")?;
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        let list = |field: &str| container[field].as_array().cloned().unwrap_or_default();
        let elects =
            |argument: &Value| argument.as_str().is_some_and(|text| text.starts_with("--leader-elect"));
        let arguments: Vec<Value> = list("args").into_iter().filter(|argument| !elects(argument)).collect();
        let mut variables = list("env");
        variables.push(json!({"name": "WINDLASS_CRASH_AT", "value": "1"}));
        let container = "/spec/template/spec/containers/0";
        self.roll_out(&json!([
            {"op": "add", "path": format!("{container}/args"), "value": arguments},
            {"op": "add", "path": format!("{container}/env"), "value": variables},
            // So that the status of a pod says after which write it died.
            {"op": "add", "path": format!("{container}/terminationMessagePolicy"), "value": "FallbackToLogsOnError"},
        ]))
    }

    fn roll_out(&self, patch: &Value) -> Result<()> {
        let patch = format!("--patch={patch}");
        self.operators().run(&["patch", "deployment", OPERATOR, "--type=json", &patch])?;
        let status = ["rollout", "status", "deployment", OPERATOR, "--timeout=20s"];
        until("rolled out", Duration::from_secs(90), || Ok(Ok(self.operators().run(&status)?)))?;
        self.operator().map(|_| ())
    }

    /// Whether the cluster can cut a node off.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn can_cut(&self) -> Result<bool> {
        let nodes = self.kubectl.json(&["get", "nodes", "-o", "json"])?;
        let nodes = nodes["items"].as_array().cloned().unwrap_or_default();
        let ours = |node: &Value| {
            let runtime = node["status"]["nodeInfo"]["containerRuntimeVersion"].as_str();
            runtime.is_some_and(|runtime| runtime.starts_with(OURS))
        };
        Ok(nodes.len() >= 3 && nodes.iter().all(ours))
    }

    /// What it is: the server, and what runs pods.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn about(&self) -> Result<String> {
        let version = self.kubectl.json(&["version", "-o", "json"])?;
        let server = version["serverVersion"]["gitVersion"].as_str().unwrap_or("of no version").to_owned();
        let nodes = self.kubectl.json(&["get", "nodes", "-o", "json"])?;
        let nodes = nodes["items"].as_array().cloned().unwrap_or_default();
        let info = nodes.first().map(|node| &node["status"]["nodeInfo"]);
        let of = |field: &str| info.and_then(|info| info[field].as_str()).unwrap_or("unknown").to_owned();
        let (kubelet, runtime) = (of("kubeletVersion"), of("containerRuntimeVersion"));
        Ok(format!("Server {server}; {} node(s), kubelet {kubelet}, pods by {runtime}.", nodes.len()))
    }

    /// Cuts a node off, or connects it again, as `windlass node` does.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn connect(&self, node: &str, connected: bool) -> Result<()> {
        let annotation = if connected { "windlass.dev/node-" } else { "windlass.dev/node=cut-off" };
        self.kubectl.run(&["annotate", "node", node, "--overwrite", annotation]).map(|_| ())
    }

    /// The folder on the host of a volume.
    ///
    /// # Errors
    /// It is not in a folder of the host.
    pub fn folder_of(&self, claim: &str) -> Result<PathBuf> {
        let claim = self.kubectl.get("pvc", claim)?.context("there is no such volume")?;
        let volume = claim["spec"]["volumeName"].as_str().context("the claim has no volume")?;
        let volume = self.kubectl.get("pv", volume)?.context("the volume is gone")?;
        let path = volume["spec"]["hostPath"]["path"].as_str().or(volume["spec"]["local"]["path"].as_str());
        path.map(PathBuf::from).context("the volume is in no folder of this machine")
    }

    /// How everything is: for those who have to find out what went wrong.
    pub fn story(&self) -> String {
        let mut story = String::new();
        let mut add = |title: &str, said: Result<String>| {
            let said = said.unwrap_or_else(|error| format!("{error:#}"));
            story.push_str(&format!("--- {title}\n{said}\n"));
        };
        let all = "etcdclusters,etcdmembers,pods,pvc";
        add("objects", self.kubectl.run(&["get", all, "-o", "wide"]));
        add("clusters", self.kubectl.run(&["get", "etcdclusters", "-o", "yaml"]));
        add("events", self.kubectl.run(&["get", "events", "--sort-by=.lastTimestamp"]));
        add("operator", self.operators().run(&["logs", "deployment/etcd-operator", "--tail=60"]));
        add("nodes", self.kubectl.run(&["get", "nodes"]));
        story
    }

    pub(crate) fn operators(&self) -> Kubectl {
        self.kubectl.within(OPERATORS)
    }
}

/// A namespace in which pods have to keep to the restricted standard of pod security.
pub(crate) fn restricted(name: &str) -> Value {
    let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let ready = conditions.iter().any(|one| one["type"] == "Ready" && one["status"] == "True");
    ready && pod["metadata"]["deletionTimestamp"].is_null()
}

fn process_of(pod: &Value) -> Option<Process> {
    Process::of_pod(OPERATOR, name_of(pod))
}
