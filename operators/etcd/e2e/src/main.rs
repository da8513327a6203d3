//! `etcd-e2e`: breaks etcd clusters on a running Kubernetes, for as long as you like.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::{Args, Parser, Subcommand};
use etcd_e2e::{Fault, Random, Rounds, World, fifty, killed, rounds};
use windlass_testing::up::Folder;

/// Break etcd clusters under load, and look whether they heal and nothing is lost
#[derive(Debug, Parser)]
#[command(version)]
struct Command {
    #[command(flatten)]
    place: Place,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Args)]
struct Place {
    /// A cluster that is there already, with the operator in it, and whose nodes are this machine [default: a `windlass up` of
    /// its own]
    #[arg(long, global = true, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// The image of the load, on a cluster that is there already
    #[arg(long, global = true, value_name = "NAME")]
    ledger_image: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Every fault and every size, round after round
    Faults {
        /// How often each
        #[arg(long, default_value_t = 20)]
        rounds: u64,

        /// How many EtcdClusters are broken at the same time
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
        lanes: u64,

        /// Decides who is hit and when
        #[arg(long, default_value_t = 1)]
        seed: u64,

        /// Only these, and no changes of size
        #[arg(long, value_name = "FAULT", value_delimiter = ',')]
        only: Vec<Fault>,

        /// Where to put the report
        #[arg(long, value_name = "FILE.md")]
        report: Option<PathBuf>,
    },
    /// Kill the operator while it works
    Killed {
        /// How often in each course
        #[arg(long, default_value_t = 8)]
        kills: usize,

        /// Decides when
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Many EtcdClusters of one member at once
    Fifty {
        /// How many
        #[arg(long, default_value_t = 50)]
        clusters: usize,

        /// How long the operator is watched at rest
        #[arg(long, default_value_t = 60)]
        seconds: u64,
    },
}

fn main() -> Result<ExitCode> {
    let Command { place, action } = Command::parse();
    let folder = Folder::new("etcd-e2e");
    let world = world(&place, folder.path())?;
    let told = |error: anyhow::Error| error.context(world.story());
    match action {
        Action::Faults { rounds: number, lanes, seed, only, report } => {
            let sizes = only.is_empty();
            let mut faults = if sizes { Fault::ALL.to_vec() } else { only };
            if !world.can_cut()? {
                println!("this cluster cannot cut nodes off: that is left out");
                faults.retain(|fault| *fault != Fault::NodeCut);
            }
            println!("seed {seed}");
            let options = Rounds { rounds: number, lanes, seed, faults, sizes };
            let tally = rounds(&world, &options, |line| println!("{line}"));
            let text = tally.markdown(&about());
            println!("{text}");
            if let Some(path) = report {
                std::fs::write(&path, text).with_context(|| path.display().to_string())?;
            }
            return Ok(if tally.failures().is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        Action::Killed { kills, seed } => {
            println!("seed {seed}");
            let told = killed(&world, "killed", kills, &mut Random::new(seed)).map_err(told)?;
            told.iter().for_each(|line| println!("{line}"));
        }
        Action::Fifty { clusters, seconds } => {
            let measured = fifty(&world, clusters, Duration::from_secs(seconds)).map_err(told)?;
            println!("{measured}");
            ensure!(measured.idle_percent() < 1.0, "the operator needs 1 % of a core or more to do nothing");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The cluster that is named, or one of its own by the programs beside this one.
fn world(place: &Place, folder: &Path) -> Result<World> {
    if let Some(kubeconfig) = &place.kubeconfig {
        return World::there(kubeconfig, place.ledger_image.as_deref());
    }
    let own = std::env::current_exe().context("cannot tell where this program is")?;
    World::up(&own.with_file_name("windlass"), &own.with_file_name("etcd-ledger"), folder)
}

/// Where and when.
fn about() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo");
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("an unknown processor", |(_, model)| model);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{cores} cores of {model}, Linux {}.", read("/proc/sys/kernel/osrelease").trim())
}
