//! The load: a pod that writes, with a ledger of what was acknowledged.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::Signal;
use serde::Deserialize;
use serde_json::json;

use crate::etcd::Etcd;
use crate::host::Process;
use crate::kubectl::until;
use crate::world::World;

/// Writes in a second.
const RATE: u32 = 200;
/// The load's program.
const PROGRAM: &str = "etcd-ledger";

/// A load under way.
#[derive(Debug)]
pub struct Load<'a> {
    world: &'a World,
    pod: String,
}

/// What the ledger's checker says.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// Whether nothing is lost and nothing reordered.
    pub holds: bool,
    /// How long it ran, in seconds.
    pub seconds: f64,
    /// Writes that were acknowledged, and looked for.
    pub acknowledged: u64,
    /// Writes without an answer.
    pub maybe: u64,
    /// The longest time without an acknowledgement, in seconds.
    pub longest_pause_seconds: f64,
    /// What etcd broke.
    pub violations: Vec<String>,
}

impl<'a> Load<'a> {
    /// Starts one against the Service of clients, beside the operator: on a node that is not cut off.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(world: &'a World, etcd: &Etcd, label: &str) -> Result<Load<'a>> {
        let pod = format!("load-{}-{label}", etcd.name);
        let namespace = world.kubectl.namespace();
        let endpoints = format!("http://{}-client.{namespace}.svc:2379", etcd.name);
        let node = world.operator()?["spec"]["nodeName"].clone();
        world.kubectl.apply(&json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": pod},
            "spec": {
                "restartPolicy": "Never",
                "nodeName": node,
                "securityContext": {
                    "runAsNonRoot": true,
                    "runAsUser": 65532,
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
                "containers": [{
                    "name": "load",
                    "image": world.ledger,
                    "imagePullPolicy": "IfNotPresent",
                    "args": [
                        "run", "--endpoints", endpoints, "--rate", RATE.to_string(),
                        // What is left there when a container ends is in the pod's status.
                        "--report", "/dev/termination-log",
                    ],
                    "securityContext": {
                        "allowPrivilegeEscalation": false,
                        "capabilities": {"drop": ["ALL"]},
                    },
                }],
            },
        }))?;
        let runs = || Ok(Process::of_pod(PROGRAM, &pod).ok_or_else(|| "its process is not there".to_owned()));
        until("a load", Duration::from_secs(60), runs)?;
        Ok(Load { world, pod })
    }

    /// Ends it, and waits for the verdict, which has to be a good one.
    ///
    /// # Errors
    /// Something is lost or reordered, or nothing is proved.
    pub fn end(self) -> Result<Verdict> {
        let process = Process::of_pod(PROGRAM, &self.pod).context("the load has ended by itself")?;
        process.signal(Signal::SIGTERM)?;
        let ended = || {
            let pod = self.world.kubectl.get("pod", &self.pod)?.context("the load's pod is gone")?;
            let terminated = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
            let message = terminated["message"].as_str().map(str::to_owned);
            Ok(match terminated.is_null() {
                true => Err("it has not ended".to_owned()),
                false => Ok(message),
            })
        };
        let (message, _) = until("a verdict", Duration::from_secs(150), ended)?;
        let logs = self.world.kubectl.run(&["logs", &self.pod])?;
        let report = message.with_context(|| format!("the load left no report: {logs}"))?;
        let verdict: Verdict = serde_json::from_str(&report).with_context(|| logs.clone())?;
        ensure!(verdict.holds && verdict.violations.is_empty(), "etcd broke its word: {logs}");
        // A load that writes nothing proves nothing.
        let few = verdict.seconds * f64::from(RATE) / 20.0;
        ensure!(verdict.acknowledged as f64 > few, "hardly anything was written: {logs}");
        self.world.kubectl.run(&["delete", "pod", &self.pod, "--wait=false"])?;
        Ok(verdict)
    }
}
