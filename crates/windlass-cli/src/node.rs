//! `windlass node`: does to a node of a running cluster what happens to nodes.

use std::io;
use std::path::PathBuf;

use clap::Subcommand;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;
use thiserror::Error;

use crate::up::folder;
use crate::up::power::{ANNOTATION, Power};

/// Cut a node off, switch it off, or give it back what it needs, to see what happens.
///
/// The annotation windlass.dev/node of the Node says the same (`cut-off` or `off`), for those who have a kubeconfig only.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes:
  0  it is done
  1  it cannot be done
  3  no cluster runs on the data folder")]
pub struct Args {
    #[command(subcommand)]
    command: Command,

    /// The data folder [default: $XDG_DATA_HOME/windlass, or ~/.local/share/windlass]
    #[arg(long, value_name = "DIR", global = true)]
    data_dir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Nobody reaches the node, and it reaches nobody. Its pods run on
    Cut {
        /// The node
        name: String,
    },
    /// The node has no power: its pods are killed at once
    Stop {
        /// The node
        name: String,
    },
    /// The node is connected and has power again
    Start {
        /// The node
        name: String,
    },
}

/// Why nothing is done.
#[derive(Debug, Error)]
pub enum Failure {
    /// There is no cluster.
    #[error("no cluster runs on {}: `windlass up` starts one", .0.display())]
    None(PathBuf),
    /// The command cannot work.
    #[error("cannot start")]
    Runtime(#[source] io::Error),
    /// The cluster cannot be reached.
    #[error("cannot use the kubeconfig {}", .path.display())]
    Kubeconfig {
        /// Which one.
        path: PathBuf,
        /// Why not.
        source: kube::config::KubeconfigError,
    },
    /// It refuses.
    #[error("cannot change node {name}")]
    Refused {
        /// Which one.
        name: String,
        /// Why not.
        source: Box<kube::Error>,
    },
}

impl Failure {
    /// The exit code, as the help lists it.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::None(_) => 3,
            _ => 1,
        }
    }
}

/// Does it.
pub fn main(args: Args) -> Result<(), Failure> {
    let path = args.data_dir.unwrap_or_else(folder::default_path);
    let state = folder::state(&path).ok_or(Failure::None(path))?;
    let (name, power, done) = match args.command {
        Command::Cut { name } => (name, Power::CutOff, "is cut off"),
        Command::Stop { name } => (name, Power::Off, "has no power"),
        Command::Start { name } => (name, Power::On, "is connected and has power"),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(Failure::Runtime)?.block_on(switch(state.kubeconfig, &name, power))?;
    println!("Node {name} {done}.");
    Ok(())
}

async fn switch(path: PathBuf, name: &str, power: Power) -> Result<(), Failure> {
    let read = async {
        let file = Kubeconfig::read_from(&path)?;
        kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await
    };
    let config = read.await.map_err(|source| Failure::Kubeconfig { path: path.clone(), source })?;
    let refused = |source| Failure::Refused { name: name.to_owned(), source: Box::new(source) };
    let nodes: Api<Node> = Api::all(kube::Client::try_from(config).map_err(refused)?);
    let patch = json!({"metadata": {"annotations": {ANNOTATION: power.text()}}});
    nodes.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.map_err(refused)?;
    Ok(())
}
