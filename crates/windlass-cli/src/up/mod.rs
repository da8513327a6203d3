//! `windlass up`: a cluster in one process.

mod apply;
mod detach;
pub mod folder;
mod progress;
mod run;

use std::path::PathBuf;

use thiserror::Error;

use crate::api::{self, filter};

pub use folder::Folder;

/// Run a Kubernetes cluster on this machine, until Ctrl-C.
///
/// The API server, the controllers that Kubernetes ships with, and nodes that run pods as processes, without root and
/// without anything installed. What is created stays in the data folder and is there again the next time.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes:
  0  ended by Ctrl-C, SIGTERM or `windlass down`; with --detach: the cluster is up
  1  failed while it was running
  2  the arguments make no sense
  3  cannot listen at the address
  4  cannot write the kubeconfig
  5  cannot use the data folder, or a cluster runs in it already
  6  a manifest could not be applied
  7  this machine does not allow what a node needs (`--nodes 0` runs without one)

Example:
  windlass up --apply samples/
  export KUBECONFIG=~/.local/share/windlass/kubeconfig
  kubectl get pods --watch")]
pub struct Args {
    /// Keep everything in this folder, and start with what is there [default: ~/.local/share/windlass]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,

    /// How many nodes to run pods on; 0 is an API server with controllers, where pods stay pending
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=50))]
    pub nodes: u8,

    /// Operators to run, each as a pod: names such as `foobar`, `all`, or `none`
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "none")]
    pub operators: Vec<String>,

    /// Manifests to apply once the API is there: files, or folders of them
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub apply: Vec<PathBuf>,

    /// The port of the API on 127.0.0.1; 0 is any that is free
    #[arg(long, value_name = "P", default_value_t = 6443)]
    pub port: u16,

    /// Where to write the administrator's kubeconfig [default: `kubeconfig` in the data folder]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Return when the cluster is up, and leave it running; `windlass down` ends it
    #[arg(long)]
    pub detach: bool,

    /// Throw away what is in the data folder first
    #[arg(long)]
    pub fresh: bool,

    /// What to log to stderr: error, warn, info, debug, trace, or a filter like `windlass_node=debug`
    #[arg(long, value_name = "FILTER", default_value = "warn", value_parser = filter)]
    pub log: String,
}

/// Why the cluster ended, or did not start.
#[derive(Debug, Error)]
pub enum Failure {
    /// The API server did not start, or ended.
    #[error(transparent)]
    Api(#[from] api::Failure),
    /// The data folder is of no use.
    #[error(transparent)]
    Folder(#[from] folder::Error),
    /// A manifest could not be applied.
    #[error(transparent)]
    Apply(#[from] apply::Error),
    /// The cluster in the background did not come up.
    #[error("the cluster did not come up: its log is {}", .log.display())]
    Detached {
        /// What it said.
        log: PathBuf,
    },
    /// A process could not be started.
    #[error("cannot start {} again in the background", .program.display())]
    Spawn {
        /// This program.
        program: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
}

impl Failure {
    /// The exit code, as the help lists it.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Api(failure) => failure.exit_code(),
            Failure::Folder(_) => 5,
            Failure::Apply(_) => 6,
            Failure::Detached { .. } | Failure::Spawn { .. } => 1,
        }
    }
}

/// Runs the cluster, here or in the background.
pub fn main(args: Args) -> Result<(), Failure> {
    if args.detach {
        return detach::main(&args);
    }
    api::log(&args.log);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(api::Failure::Runtime)?.block_on(run::run(args))
}
