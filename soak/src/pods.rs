//! What a killed `windlass up` must not do to its pods: run one twice, or leave one behind.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::client::Address;

/// Pods that each hold a lock as long as they run: a second one of the same name would find it taken, and tell.
pub struct Pods {
    /// Where the locks are, outside of the cluster.
    folder: PathBuf,
    /// Set in the environment of every process of the pods, and of no other.
    mark: String,
}

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const PODS: &str = "/api/v1/namespaces/default/pods?labelSelector=app%3Dsoak";
/// How many pods there are.
const REPLICAS: usize = 3;
/// How long the kernel may take to end the processes of a namespace whose first process is gone.
const GONE: Duration = Duration::from_secs(10);
/// How long all pods may take until they are ready again.
const READY: Duration = Duration::from_secs(120);

const PROGRAM: &str = "exec 9>/soak/$POD.lock
flock -n 9 || { echo $POD >>/soak/twice; exit 1; }
echo $POD >>/soak/started
exec sleep 1000000";

impl Pods {
    /// Makes the folder of the locks.
    pub fn new(data: &Path) -> Result<Pods> {
        let folder = data.with_extension("locks");
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        // Whoever the pods run as writes here.
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777))?;
        Ok(Pods { mark: format!("WINDLASS_SOAK={}", folder.display()), folder })
    }

    /// Creates the pods' Deployment.
    pub fn create(&self, address: &Address) -> Result<()> {
        let (name, value) = self.mark.split_once('=').context("a mark without a name")?;
        let labels = json!({"app": "soak"});
        let deployment = json!({
            "metadata": {"name": "soak"},
            "spec": {
                "replicas": REPLICAS,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "terminationGracePeriodSeconds": 0,
                        "containers": [{
                            "name": "c", "image": "busybox", "command": ["sh", "-c", PROGRAM],
                            "env": [
                                {"name": name, "value": value},
                                {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                            ],
                            "volumeMounts": [{"name": "soak", "mountPath": "/soak"}],
                        }],
                        "volumes": [{"name": "soak", "hostPath": {"path": self.folder}}],
                    },
                },
            },
        });
        let (code, answer) = address.connect()?.ask("POST", DEPLOYMENTS, &deployment.to_string())?;
        // It is there already where the cluster was killed before anything else was acknowledged.
        ensure!(code == 201 || code == 409, "the Deployment was answered with {code}: {answer}");
        Ok(())
    }

    /// Waits until all pods are ready.
    pub fn ready(&self, address: &Address) -> Result<()> {
        let until = Instant::now() + READY;
        loop {
            let (code, pods) = address.connect()?.ask("GET", PODS, "")?;
            ensure!(code == 200, "the pods were answered with {code}: {pods}");
            let pods = pods["items"].as_array().cloned().unwrap_or_default();
            if pods.iter().filter(|pod| is_ready(pod)).count() == REPLICAS {
                return self.never_twice();
            }
            ensure!(Instant::now() < until, "the pods are not ready after {READY:?}: {pods:#?}");
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// After the cluster was killed: all processes of its pods end.
    pub fn gone(&self) -> Result<()> {
        self.never_twice()?;
        let until = Instant::now() + GONE;
        loop {
            let left = self.processes()?;
            if left.is_empty() {
                return Ok(());
            }
            ensure!(Instant::now() < until, "processes of pods are left: {left:?}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// How often a pod's program was started.
    pub fn starts(&self) -> usize {
        fs::read_to_string(self.folder.join("started")).unwrap_or_default().lines().count()
    }

    /// At the very end: no process, no mount.
    pub fn nothing_left(&self, data: &Path) -> Result<()> {
        self.gone()?;
        let mounts = fs::read_to_string("/proc/self/mounts").context("cannot read the mounts")?;
        for line in mounts.lines() {
            ensure!(!line.contains(&*data.to_string_lossy()), "a mount is left: {line}");
        }
        fs::remove_dir_all(&self.folder).with_context(|| format!("cannot remove {}", self.folder.display()))
    }

    fn never_twice(&self) -> Result<()> {
        match fs::read_to_string(self.folder.join("twice")) {
            Ok(names) => bail!("these pods ran twice at the same time: {names}"),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error).context("cannot read what pods tell"),
        }
    }

    /// The processes that carry the mark.
    fn processes(&self) -> Result<Vec<String>> {
        let mark = self.mark.as_bytes();
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").context("cannot read the processes")? {
            let path = entry?.path();
            // A process may end while it is looked at, and those of others cannot be read.
            let Ok(environment) = fs::read(path.join("environ")) else { continue };
            if environment.split(|byte| *byte == 0).any(|variable| variable == mark) {
                found.push(path.display().to_string());
            }
        }
        Ok(found)
    }
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    let ready = |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
    pod["metadata"]["deletionTimestamp"].is_null() && conditions.is_some_and(|all| all.iter().any(ready))
}
