//! Pods that really run, on strings: what the puppet writes into statuses is brought about on processes.
//!
//! A container of an image `puppet/NAME:TAG` becomes one of `busybox:NAME.TAG` whose program waits to be told how to end,
//! by files in a folder that it shares with us: `UID.end` is a pipe that it reads its exit code from, and whether it is
//! ready is whether `UID.ready` or `UID.unready` is there. What is played is the same on both sides, and a node makes of it
//! what it makes of every pod.
//!
//! As the puppet does, only one thing is done at a time, when nothing happens any more: the next pod is bound, or told to
//! end, when all others have become what they are to be.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe;
use tokio::time::{Instant, sleep};

use super::heart::ALIVE;
use super::mirror::{Entry, View};
use super::puppet::{self, Fate, NODE, ON_STRINGS};
use super::scenario::{Scenario, Step};

/// Waits for its exit code, and ends at once when it is asked to.
const PROGRAM: &str =
    "trap 'exit 143' TERM; mkfifo /strings/$UID.end; read code < /strings/$UID.end; exit $code";

/// The same, but it does not end when it is asked to.
const STUCK: &str = "trap '' TERM; mkfifo /strings/$UID.end; read code < /strings/$UID.end; exit $code";

/// How long a program has to begin to listen.
const LISTENS: Duration = Duration::from_secs(20);

/// The strings of all pods of a stage. Clones pull the same ones.
#[derive(Clone, Debug)]
pub struct Strings {
    folder: PathBuf,
    /// Whether pods are bound by us, and not by a scheduler.
    bind: bool,
    told: Arc<Mutex<Told>>,
}

/// What pods were told, by their uids.
#[derive(Debug, Default)]
struct Told {
    /// What is to become of them, where it is not what their image says.
    fates: BTreeMap<String, Fate>,
    /// Those that were told to end.
    ended: BTreeSet<String>,
}

/// What is to be done next.
#[derive(Debug, PartialEq)]
pub enum Next<'a> {
    /// A pod is to be bound to a node.
    Bind(&'a Value, String),
    /// The program of a pod is to end with a code.
    End(&'a Value, i64),
    /// Some pod is not yet what it is to be.
    Wait,
    /// Nothing.
    Nothing,
}

impl Strings {
    /// Strings that end in a folder, which is made.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new(folder: &Path, bind: bool) -> Result<Strings> {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        Ok(Strings { folder: folder.to_owned(), bind, told: Arc::default() })
    }

    /// An object, or a patch of one, whose pods have strings.
    pub fn tie(&self, scenario: &Scenario, object: &Value) -> Value {
        match object {
            Value::Array(items) => items.iter().map(|item| self.tie(scenario, item)).collect(),
            Value::Object(map) => {
                let mut tied: Value = Value::Object(
                    map.iter().map(|(key, value)| (key.clone(), self.tie(scenario, value))).collect(),
                );
                if is_on_strings(&tied) {
                    self.tie_pod(watched(scenario), &mut tied);
                }
                tied
            }
            other => other.clone(),
        }
    }

    fn tie_pod(&self, watched: bool, spec: &mut Value) {
        let mut stuck = false;
        for container in spec["containers"].as_array_mut().into_iter().flatten() {
            let Some(named) = container["image"].as_str().and_then(|image| image.strip_prefix("puppet/"))
            else {
                continue;
            };
            let name = named.split(':').next().unwrap_or(named).to_owned();
            stuck |= name == "stuck";
            container["image"] = json!(format!("{ON_STRINGS}{}", named.replace(':', ".")));
            container["command"] = json!(["sh", "-c", if name == "stuck" { STUCK } else { PROGRAM }]);
            container["env"] =
                json!([{"name": "UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}]);
            container["volumeMounts"] = json!([{"name": "strings", "mountPath": "/strings"}]);
            if let Some(probe) = probe(&name, watched) {
                container["readinessProbe"] = probe;
            }
        }
        let volume = json!({"name": "strings", "hostPath": {"path": self.folder, "type": "Directory"}});
        match spec["volumes"].as_array_mut() {
            Some(volumes) => volumes.push(volume),
            None => spec["volumes"] = json!([volume]),
        }
        if stuck {
            // Longer than any scenario.
            spec["terminationGracePeriodSeconds"] = json!(3600);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is to be done next in a namespace.
    pub fn next<'a>(&self, view: &'a View) -> Next<'a> {
        let told = self.lock();
        let pods: Vec<&Entry> = view.iter().filter(|entry| entry.kind.kind == "Pod").collect();
        if pods.iter().any(|pod| {
            pod.gone && !told.ended.contains(uid(&pod.object)) && !is_end_told_of(&pod.object, view)
        }) {
            return Next::Wait;
        }
        let mut next = Next::Nothing;
        for pod in pods.iter().filter(|pod| !pod.gone) {
            let before =
                pods.iter().filter(|other| other.order < pod.order && image(other) == image(pod)).count();
            let uid = uid(&pod.object);
            let fate = told.fates.get(uid).copied().unwrap_or_else(|| puppet::fate(&pod.object, before));
            match self.of_pod(&pod.object, fate, told.ended.contains(uid), view) {
                Next::Wait => return Next::Wait,
                Next::Nothing => {}
                to_do if next == Next::Nothing => next = to_do,
                _ => {}
            }
        }
        next
    }

    fn of_pod<'a>(&self, pod: &'a Value, fate: Fate, told: bool, view: &View) -> Next<'a> {
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        let deleted = pod["metadata"]["deletionTimestamp"].is_string();
        if node.is_empty() {
            let wanted = self.bind && fate != Fate::Unbound && !deleted;
            return if wanted { Next::Bind(pod, puppet::wanted_node(pod)) } else { Next::Nothing };
        }
        if !is_alive(view, node) {
            return Next::Nothing;
        }
        if deleted {
            // Where its grace is over the node has done its part, and somebody's finalizer holds it.
            let over = pod["metadata"]["deletionGracePeriodSeconds"] == 0;
            return if over || fate == Fate::Stuck { Next::Nothing } else { Next::Wait };
        }
        let phase = pod["status"]["phase"].as_str().unwrap_or("Pending");
        let is = match (phase, fate) {
            ("Succeeded" | "Failed", _) | (_, Fate::Pending | Fate::Unbound) => true,
            ("Running", Fate::Ready | Fate::Stuck) => is_ready(pod),
            ("Running", Fate::Running) => !is_ready(pod),
            ("Running", Fate::Succeed) if !told => return Next::End(pod, 0),
            ("Running", Fate::Fail(code)) if !told => return Next::End(pod, code),
            _ => false,
        };
        let told = match (phase, fate) {
            ("Pending", _) => true,
            ("Running", Fate::Running) if is_asked(pod) => is_told_of(pod, "Unhealthy", view),
            _ => is_told_of(pod, "Started", view),
        };
        if is && told { Next::Nothing } else { Next::Wait }
    }

    /// Lets a pod become ready, or not.
    ///
    /// # Errors
    /// When its string cannot be pulled.
    pub fn ready(&self, pod: &Value, ready: bool) -> Result<()> {
        let (there, gone) = if ready { ("ready", "unready") } else { ("unready", "ready") };
        let file = |name: &str| self.folder.join(format!("{}.{name}", uid(pod)));
        fs::write(file(there), "")?;
        match fs::remove_file(file(gone)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        self.lock().fates.insert(uid(pod).to_owned(), if ready { Fate::Ready } else { Fate::Running });
        Ok(())
    }

    /// The program of a pod is to end with a code as soon as it runs.
    pub fn will_end(&self, pod: &Value, code: i64) {
        let fate = if code == 0 { Fate::Succeed } else { Fate::Fail(code) };
        self.lock().fates.insert(uid(pod).to_owned(), fate);
    }

    /// Lets the program of a pod end with a code.
    ///
    /// # Errors
    /// When it does not listen.
    pub async fn end(&self, pod: &Value, code: i64) -> Result<()> {
        let uid = uid(pod);
        self.lock().ended.insert(uid.to_owned());
        let file = self.folder.join(format!("{uid}.end"));
        let deadline = Instant::now() + LISTENS;
        loop {
            // It cannot be opened before the program has.
            if let Ok(mut sender) = pipe::OpenOptions::new().open_sender(&file) {
                return Ok(sender.write_all(format!("{code}\n").as_bytes()).await?);
            }
            if Instant::now() > deadline {
                bail!("the program of pod {} does not listen", pod["metadata"]["name"]);
            }
            sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Whether a scenario lets pods become ready or unready while they run.
fn watched(scenario: &Scenario) -> bool {
    let changes =
        |step: &Step| matches!(step, Step::Pods(pods) if pods.act == "ready" || pods.act == "unready");
    scenario.steps.iter().any(changes)
}

/// Where nothing changes while it runs, a pod that is ready has no probe, and one that never gets ready has one that is
/// never asked.
fn probe(name: &str, watched: bool) -> Option<Value> {
    let file = match name {
        "running" => "-e /strings/$UID.ready",
        _ if watched => "! -e /strings/$UID.unready",
        _ => return None,
    };
    let mut probe = json!({
        "exec": {"command": ["sh", "-c", format!("test {file}")]},
        "periodSeconds": 1, "failureThreshold": 1, "timeoutSeconds": 30,
    });
    if !watched {
        probe["initialDelaySeconds"] = json!(3600);
    }
    Some(probe)
}

fn is_on_strings(spec: &Value) -> bool {
    let containers = spec["containers"].as_array().into_iter().flatten();
    containers.filter_map(|container| container["image"].as_str()).any(|image| image.starts_with("puppet/"))
}

/// Whether a node runs: that of everybody, or one that a scenario says is alive.
fn is_alive(view: &View, name: &str) -> bool {
    let is_it =
        |entry: &&Entry| entry.kind.kind == "Node" && !entry.gone && entry.object["metadata"]["name"] == name;
    name == NODE
        || view.iter().find(is_it).is_some_and(|node| node.object["metadata"]["labels"][ALIVE].is_string())
}

/// Whether it is asked now and then whether a pod is ready.
fn is_asked(pod: &Value) -> bool {
    let probe = &pod["spec"]["containers"][0]["readinessProbe"];
    probe.is_object() && probe["initialDelaySeconds"].is_null()
}

/// Whether the node has told of a pod for this reason: events come a little later than statuses.
fn is_told_of(pod: &Value, reason: &str, view: &View) -> bool {
    view.iter().any(|entry| {
        let event = &entry.object;
        entry.kind.kind == "Event"
            && event["reason"] == reason
            && event["involvedObject"]["uid"] == pod["metadata"]["uid"]
    })
}

/// Whether the node has told of the end of a pod that is gone, where it is still able to: a namespace that goes takes no
/// more events.
fn is_end_told_of(pod: &Value, view: &View) -> bool {
    let ends = |entry: &Entry| {
        let metadata = &entry.object["metadata"];
        entry.kind.kind == "Namespace" && (entry.gone || metadata["deletionTimestamp"].is_string())
    };
    let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    !is_told_of(pod, "Started", view)
        || is_told_of(pod, "Killing", view)
        || !is_alive(view, node)
        || view.iter().any(ends)
}

/// Whether a pod, or a node, is ready.
pub fn is_ready(object: &Value) -> bool {
    let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

fn image(pod: &Entry) -> &Value {
    &pod.object["spec"]["containers"][0]["image"]
}

fn uid(pod: &Value) -> &str {
    pod["metadata"]["uid"].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests;
