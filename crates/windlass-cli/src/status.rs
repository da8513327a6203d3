//! `windlass status`: what a cluster is doing.

use std::path::PathBuf;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, ResourceExt as _};
use thiserror::Error;

use crate::up::{Folder, folder};

/// Show whether a cluster runs in a data folder, with its nodes and pods.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes:
  0  it runs, its nodes are ready, and all pods are as they should be
  1  it runs, and something is not ready
  3  no cluster runs there
  5  cannot use the data folder")]
pub struct Args {
    /// The cluster's data folder [default: ~/.local/share/windlass]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

/// Why the cluster is not well, or cannot be asked.
#[derive(Debug, Error)]
pub enum Failure {
    /// The data folder is of no use.
    #[error(transparent)]
    Folder(#[from] folder::Error),
    /// There is none.
    #[error("no cluster runs in {}: `windlass up` starts one", .0.display())]
    Down(PathBuf),
    /// Something is not ready.
    #[error("not everything is ready")]
    Unready,
    /// It does not answer.
    #[error("the API at {url} does not answer")]
    Silent {
        /// The API.
        url: String,
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Failure {
    /// The exit code, as the help lists it.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Folder(_) => 5,
            Failure::Down(_) => 3,
            Failure::Unready | Failure::Silent { .. } => 1,
        }
    }
}

/// Shows the cluster.
pub fn main(args: &Args) -> Result<(), Failure> {
    let folder = Folder::at(args.data_dir.as_deref())?;
    let cluster = folder.is_taken().then(|| folder.cluster()).flatten();
    let cluster = cluster.ok_or_else(|| Failure::Down(folder.path().to_owned()))?;
    println!("cluster in {} (process {})", folder.path().display(), cluster.pid);
    println!("  api          {}", cluster.url);
    println!("  kubeconfig   {}", cluster.kubeconfig.display());
    let url = cluster.url.clone();
    let silent = |source| Failure::Silent { url: url.clone(), source };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| silent(error.into()))?;
    let ready = runtime.block_on(show(&cluster.kubeconfig)).map_err(silent)?;
    if ready && cluster.ready { Ok(()) } else { Err(Failure::Unready) }
}

/// Shows nodes and pods, and says whether all are ready.
async fn show(kubeconfig: &std::path::Path) -> Result<bool, Box<dyn std::error::Error + Send + Sync>> {
    let config = Kubeconfig::read_from(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
    let client = Client::try_from(config)?;
    let mut ready = true;
    for node in Api::<Node>::all(client.clone()).list(&Default::default()).await? {
        let conditions =
            node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        let is_ready =
            conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True");
        println!("  node         {} {}", node.name_any(), if is_ready { "ready" } else { "not ready" });
        ready &= is_ready;
    }
    let pods = Api::<Pod>::all(client).list(&Default::default()).await?.items;
    let waiting: Vec<&Pod> = pods.iter().filter(|pod| !is_well(pod)).collect();
    println!("  pods         {} of {} ready", pods.len() - waiting.len(), pods.len());
    for pod in waiting.iter().take(10) {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("unknown");
        println!("    {}/{} {phase}", pod.namespace().unwrap_or_default(), pod.name_any());
    }
    Ok(ready && waiting.is_empty())
}

fn is_well(pod: &Pod) -> bool {
    let Some(status) = &pod.status else { return false };
    let ready = status.conditions.iter().flatten().any(|one| one.type_ == "Ready" && one.status == "True");
    ready || status.phase.as_deref() == Some("Succeeded")
}
