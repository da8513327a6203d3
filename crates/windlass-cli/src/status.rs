//! `windlass status`: the cluster of a data folder at a glance.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, ListParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use thiserror::Error;

use crate::common::quoted;
use crate::up::folder::{self, State};

/// Show whether a cluster runs on a data folder, and how its nodes and pods are.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes:
  0  it runs, and everything is ready
  1  it runs, and something is not ready
  3  none runs
  5  cannot read the data folder")]
pub struct Args {
    /// The data folder [default: $XDG_DATA_HOME/windlass, or ~/.local/share/windlass]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

/// Why it cannot be said.
#[derive(Debug, Error)]
pub enum Failure {
    /// There is no runtime.
    #[error("cannot start")]
    Runtime(#[source] io::Error),
    /// The folder cannot be read.
    #[error("cannot read the data folder {}", .path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl Failure {
    /// The exit code, as the help lists it.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Runtime(_) => 1,
            Failure::Folder { .. } => 5,
        }
    }
}

/// The exit code of a cluster that does not run, and of one that is not ready.
const STOPPED: u8 = 3;
const UNREADY: u8 = 1;

/// How long the API server may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Says how it is, and gives the exit code.
pub fn main(args: Args) -> Result<u8, Failure> {
    let path = args.data_dir.unwrap_or_else(folder::default_path);
    let holder = folder::holder(&path).map_err(|source| Failure::Folder { path: path.clone(), source })?;
    let Some(pid) = holder else {
        println!("No cluster runs on {}.", path.display());
        return Ok(STOPPED);
    };
    let Some(state) = folder::state(&path) else {
        println!("The cluster on {} is starting (process {pid}).", path.display());
        return Ok(UNREADY);
    };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::Runtime)?;
    let seen = runtime.block_on(async { tokio::time::timeout(PATIENCE, look(&state.kubeconfig)).await });
    let seen = match seen {
        Ok(Ok(seen)) => seen,
        Ok(Err(error)) => return Ok(silent(&state, &error)),
        Err(_) => return Ok(silent(&state, "it does not answer")),
    };
    let (text, ready) = shown(&state, &seen);
    print!("{text}");
    Ok(if ready && state.ready { 0 } else { UNREADY })
}

fn silent(state: &State, error: &str) -> u8 {
    println!("API server  {} is not ready (process {}): {error}", state.url, state.pid);
    UNREADY
}

/// What the API server says.
struct Seen {
    nodes: Vec<Node>,
    pods: Vec<Pod>,
}

async fn look(kubeconfig: &Path) -> Result<Seen, String> {
    let said = |error: &dyn std::fmt::Display| error.to_string();
    let file = Kubeconfig::read_from(kubeconfig).map_err(|error| said(&error))?;
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(file, &options);
    let client =
        kube::Client::try_from(config.await.map_err(|error| said(&error))?).map_err(|error| said(&error))?;
    let all = ListParams::default();
    let nodes = Api::<Node>::all(client.clone()).list(&all).await.map_err(|error| said(&error))?;
    let pods = Api::<Pod>::all(client).list(&all).await.map_err(|error| said(&error))?;
    Ok(Seen { nodes: nodes.items, pods: pods.items })
}

/// The text, and whether all is well.
fn shown(state: &State, seen: &Seen) -> (String, bool) {
    let nodes = seen.nodes.iter().filter(|node| is_ready_node(node)).count();
    let mut unready = Vec::new();
    let mut counts = (0, 0, 0);
    for pod in &seen.pods {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Pending");
        match phase {
            "Succeeded" => counts.1 += 1,
            "Running" if is_ready_pod(pod) => counts.0 += 1,
            _ => {
                counts.2 += 1;
                let text = |value: &Option<String>| value.clone().unwrap_or_default();
                let (namespace, name) = (text(&pod.metadata.namespace), text(&pod.metadata.name));
                unready.push(format!(
                    "            {namespace}/{name}: {}",
                    why(pod).unwrap_or_else(|| phase.to_owned())
                ));
            }
        }
    }
    let (running, completed, waiting) = counts;
    let mut text = format!(
        "API server  {} is ready (process {})\n            export KUBECONFIG={}\n\
         Nodes       {nodes} of {} ready\nPods        {running} ready, {completed} completed, {waiting} not ready\n",
        state.url,
        state.pid,
        quoted(&state.kubeconfig),
        seen.nodes.len(),
    );
    for line in &unready {
        text.push_str(line);
        text.push('\n');
    }
    (text, unready.is_empty() && nodes == state.nodes)
}

fn is_ready_node(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|one| one.type_ == "Ready" && one.status == "True")
}

fn is_ready_pod(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|one| one.type_ == "Ready" && one.status == "True")
}

/// What a container waits for.
fn why(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let containers =
        status.init_container_statuses.iter().flatten().chain(status.container_statuses.iter().flatten());
    containers.filter_map(|one| one.state.as_ref()?.waiting.as_ref()?.reason.clone()).next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_glance_says_what_is_not_ready() {
        let state = State {
            pid: 7,
            url: "https://127.0.0.1:6443".into(),
            kubeconfig: "/k".into(),
            nodes: 1,
            ready: true,
            stopping: None,
        };
        let ready = json!([{"type": "Ready", "status": "True"}]);
        let node = json!({"metadata": {"name": "a"}, "status": {"conditions": ready}});
        let good = json!({
            "metadata": {"name": "good", "namespace": "default"},
            "status": {"phase": "Running", "conditions": ready},
        });
        let bad = json!({
            "metadata": {"name": "bad", "namespace": "default"},
            "status": {"phase": "Pending", "containerStatuses": [{
                "name": "c", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                "state": {"waiting": {"reason": "ImagePullBackOff"}},
            }]},
        });
        let seen = |pods: &[&serde_json::Value]| Seen {
            nodes: vec![serde_json::from_value(node.clone()).unwrap()],
            pods: pods.iter().map(|pod| serde_json::from_value((*pod).clone()).unwrap()).collect(),
        };
        assert!(shown(&state, &seen(&[&good])).1);
        let (text, well) = shown(&state, &seen(&[&good, &bad]));
        assert!(!well);
        assert_eq!(
            text,
            "API server  https://127.0.0.1:6443 is ready (process 7)\n            export KUBECONFIG=/k\n\
             Nodes       1 of 1 ready\nPods        1 ready, 0 completed, 1 not ready\n            \
             default/bad: ImagePullBackOff\n"
        );
    }
}
