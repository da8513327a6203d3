//! Why a cluster ended, or did not start.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use thiserror::Error;
use windlass_apiserver::front::{ApplyError, credentials, durable};

use crate::common::hint;

/// What went wrong. Each has its exit code.
#[derive(Debug, Error)]
pub enum Failure {
    /// There is no runtime.
    #[error("cannot start")]
    Runtime(#[source] io::Error),
    /// The arguments contradict each other, or name what is not there.
    #[error("{0}")]
    Arguments(String),
    /// The port is taken, or the address not ours.
    #[error("cannot listen at {address}{}", hint(.source))]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The kubeconfig could not be written.
    #[error("cannot write the kubeconfig {}", .path.display())]
    Kubeconfig {
        /// Where it should be.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The data folder cannot be made, read or emptied.
    #[error("cannot use the data folder {}", .path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The API server's part of it does not open.
    #[error("cannot use the data folder {}", .path.display())]
    Store {
        /// The folder.
        path: PathBuf,
        /// Why not.
        source: durable::Error,
    },
    /// Its certificates are of no use.
    #[error("cannot use the data folder {}", .path.display())]
    Credentials {
        /// The folder.
        path: PathBuf,
        /// Why not.
        source: credentials::Error,
    },
    /// Another cluster has the folder.
    #[error(
        "a cluster runs on {} already{}: `windlass status` shows it, `windlass down` stops it, --data-dir chooses another folder",
        .path.display(), .pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
    )]
    Busy {
        /// The folder.
        path: PathBuf,
        /// The process that has it.
        pid: Option<u32>,
    },
    /// Pods cannot run here.
    #[error("pods cannot run on this machine (--nodes 0 gives a cluster without them)")]
    Nodes(#[source] windlass_node::site::Error),
    /// A manifest cannot be read.
    #[error("cannot read {}", .path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A manifest was refused.
    #[error("cannot apply {what}")]
    Apply {
        /// The object and the file.
        what: String,
        /// What the server said.
        #[source]
        why: ApplyError,
    },
    /// An operator cannot be installed.
    #[error("operator {name}: {message}")]
    Operator {
        /// Which.
        name: String,
        /// Why.
        message: String,
    },
    /// The data folder failed while the cluster was running.
    #[error("ended, since the data folder failed")]
    Lost(#[source] durable::Lost),
    /// The sandbox died while the cluster was running.
    #[error("ended, since the process that holds all pods died")]
    PodsLost,
    /// A part of it ended that should not.
    #[error("ended")]
    Died(#[from] windlass::env::Died),
    /// The cluster in the background did not come up; it has said why.
    #[error("the cluster did not start: its log is {}", .log.display())]
    Detached {
        /// The log.
        log: PathBuf,
        /// How it ended.
        code: u8,
    },
}

impl Failure {
    /// The exit code, as the help lists it.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Runtime(_) | Failure::Lost(_) | Failure::PodsLost | Failure::Died(_) => 1,
            Failure::Arguments(_) => 2,
            Failure::Listen { .. } => 3,
            Failure::Kubeconfig { .. } => 4,
            Failure::Folder { .. } | Failure::Store { .. } | Failure::Credentials { .. } => 5,
            Failure::Busy { .. } => 6,
            Failure::Nodes(_) => 7,
            Failure::Read { .. } | Failure::Apply { .. } | Failure::Operator { .. } => 8,
            Failure::Detached { code, .. } => *code,
        }
    }
}
