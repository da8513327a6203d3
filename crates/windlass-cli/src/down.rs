//! `windlass down`: ends a cluster.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use thiserror::Error;

use crate::up::Folder;
use crate::up::folder;

/// End the cluster that runs in a data folder, and wait until it is gone. What it keeps stays.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes:
  0  no cluster runs there any more
  1  it did not end in time
  5  cannot use the data folder")]
pub struct Args {
    /// The cluster's data folder [default: ~/.local/share/windlass]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,

    /// How many seconds to wait; pods have their own time to end
    #[arg(long, value_name = "S", default_value_t = 60)]
    timeout: u64,
}

/// Why the cluster may still run.
#[derive(Debug, Error)]
pub enum Failure {
    /// The data folder is of no use.
    #[error(transparent)]
    Folder(#[from] folder::Error),
    /// It is still there.
    #[error(
        "the cluster did not end within {0} s: --timeout waits longer, kill -9 of process {1} ends it at once"
    )]
    Slow(u64, u32),
    /// Something runs there that does not say who it is.
    #[error("a cluster is starting in {}: try again", .0.display())]
    Unnamed(PathBuf),
    /// It belongs to somebody else.
    #[error("cannot end process {pid}")]
    Signal {
        /// The process.
        pid: u32,
        /// Why not.
        source: std::io::Error,
    },
}

impl Failure {
    /// The exit code, as the help lists it.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Folder(_) => 5,
            _ => 1,
        }
    }
}

/// Ends the cluster.
pub fn main(args: &Args) -> Result<(), Failure> {
    let folder = Folder::at(args.data_dir.as_deref())?;
    if !folder.is_taken() {
        println!("no cluster runs in {}", folder.path().display());
        return Ok(());
    }
    let cluster = folder.cluster().ok_or_else(|| Failure::Unnamed(folder.path().to_owned()))?;
    let pid =
        Pid::from_raw(cluster.pid.cast_signed()).ok_or_else(|| Failure::Unnamed(folder.path().to_owned()))?;
    kill_process(pid, Signal::TERM)
        .map_err(|source| Failure::Signal { pid: cluster.pid, source: source.into() })?;
    let started = Instant::now();
    // The lock, not the process: a number may be somebody else's by now.
    while folder.is_taken() {
        if started.elapsed() > Duration::from_secs(args.timeout) {
            return Err(Failure::Slow(args.timeout, cluster.pid));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    println!("the cluster in {} ended", folder.path().display());
    Ok(())
}
