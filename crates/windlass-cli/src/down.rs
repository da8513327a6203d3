//! `windlass down`: stops the cluster of a data folder.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use thiserror::Error;

use crate::up::folder;

/// Stop the cluster that runs on a data folder, and wait until nothing of it is left. Pods have their grace periods. What it
/// holds stays in the folder.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes:
  0  it has stopped, or none was running
  1  it does not stop
  5  cannot read the data folder")]
pub struct Args {
    /// The data folder [default: $XDG_DATA_HOME/windlass, or ~/.local/share/windlass]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

/// Why it is not stopped.
#[derive(Debug, Error)]
pub enum Failure {
    /// The folder cannot be read.
    #[error("cannot read the data folder {}", .path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The process cannot be told.
    #[error("cannot stop process {pid}")]
    Signal {
        /// The process.
        pid: i32,
        /// Why not.
        source: nix::errno::Errno,
    },
    /// It goes on.
    #[error("process {pid} does not stop: `kill -9 {pid}` ends it, and leaves nothing behind either")]
    Stays {
        /// The process.
        pid: i32,
    },
}

impl Failure {
    /// The exit code, as the help lists it.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Signal { .. } | Failure::Stays { .. } => 1,
            Failure::Folder { .. } => 5,
        }
    }
}

/// How long it may take beside the grace periods of pods: longer than anything in it waits for anything.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);

/// Stops it.
pub fn main(args: Args) -> Result<(), Failure> {
    let path = args.data_dir.unwrap_or_else(folder::default_path);
    let holder = || folder::holder(&path).map_err(|source| Failure::Folder { path: path.clone(), source });
    let Some(pid) = holder()? else {
        println!("No cluster runs on {}.", path.display());
        return Ok(());
    };
    let pid = i32::try_from(pid).unwrap_or(i32::MAX);
    kill(Pid::from_raw(pid), Signal::SIGTERM).map_err(|source| Failure::Signal { pid, source })?;
    let started = Instant::now();
    let mut patience = PATIENCE;
    while holder()?.is_some() {
        let stopping = folder::state(&path).and_then(|state| state.stopping);
        if let Some(stopping) = stopping.filter(|_| patience == PATIENCE) {
            println!("{}; `kill -9 {pid}` ends them at once", stopping.what);
            patience += Duration::from_secs(stopping.seconds.max(1));
        }
        if started.elapsed() > patience {
            return Err(Failure::Stays { pid });
        }
        std::thread::sleep(LOOK);
    }
    println!("The cluster on {} has stopped.", path.display());
    Ok(())
}
