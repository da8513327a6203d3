//! `etcd-e2e`: breaks etcd clusters on a running Kubernetes, for as long as you like.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::{Args, Parser, Subcommand};
use etcd_e2e::{Fault, Random, Rounds, World, doomed, enter, fifty, killed, rounds, sample};
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
    #[arg(long, global = true, value_name = "FILE", conflicts_with = "real")]
    kubeconfig: Option<PathBuf>,

    /// A real Kubernetes of its own: kube-apiserver, its controllers, kubelet on containerd. As root
    #[arg(long, global = true)]
    real: bool,

    /// The image of the load, on a cluster that is there already
    #[arg(long, global = true, value_name = "NAME")]
    ledger_image: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// The sample, every fault and every size once, and the operator killed on the way
    All {
        /// Decides who is hit and when
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
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
    /// Kill the operator right after each of its writes, in every course
    Doomed,
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
    if place.real {
        enter()?;
    }
    let folder = Folder::new("etcd-e2e");
    let world = world(&place, folder.path())?;
    let told = |error: anyhow::Error| error.context(world.story());
    match action {
        Action::All { seed } => {
            let took = sample(&world).map_err(told)?;
            println!("samples/operators/etcdcluster.yaml: three members after {:.1} s", took.as_secs_f64());
            let options =
                Rounds { rounds: 1, lanes: 1, seed, faults: faults(&world, Vec::new())?, sizes: true };
            if !broken(&world, &options, None)? {
                return Ok(ExitCode::FAILURE);
            }
            kill(&world, 3, seed).map_err(told)?;
            doom(&world).map_err(told)?;
        }
        Action::Faults { rounds, lanes, seed, only, report } => {
            let sizes = only.is_empty();
            let options = Rounds { rounds, lanes, seed, faults: faults(&world, only)?, sizes };
            if !broken(&world, &options, report.as_deref())? {
                return Ok(ExitCode::FAILURE);
            }
        }
        Action::Killed { kills, seed } => kill(&world, kills, seed).map_err(told)?,
        Action::Doomed => doom(&world).map_err(told)?,
        Action::Fifty { clusters, seconds } => {
            let measured = fifty(&world, clusters, Duration::from_secs(seconds)).map_err(told)?;
            println!("{measured}");
            ensure!(measured.idle_percent() < 1.0, "the operator needs 1 % of a core or more to do nothing");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Those that are asked for, or all of them; without those that cannot happen there.
fn faults(world: &World, only: Vec<Fault>) -> Result<Vec<Fault>> {
    let mut faults = if only.is_empty() { Fault::ALL.to_vec() } else { only };
    if !world.can_cut()? {
        println!("{}: left out, since that takes three nodes of `windlass up`", Fault::NodeCut);
        faults.retain(|fault| *fault != Fault::NodeCut);
    }
    Ok(faults)
}

/// Breaks things; whether all of it healed.
fn broken(world: &World, options: &Rounds, report: Option<&Path>) -> Result<bool> {
    println!("seed {}", options.seed);
    let tally = rounds(world, options, |line| println!("{line}"));
    let text = tally.markdown(&format!("{}\n{}", world.about()?, about()));
    println!("{text}");
    if let Some(path) = report {
        std::fs::write(path, text).with_context(|| path.display().to_string())?;
    }
    Ok(tally.failures().is_empty())
}

/// Kills the operator.
fn kill(world: &World, kills: usize, seed: u64) -> Result<()> {
    println!("seed {seed}");
    let told = killed(world, "killed", kills, &mut Random::new(seed))?;
    told.iter().for_each(|line| println!("{line}"));
    Ok(())
}

/// Lets the operator be killed after each of its writes.
fn doom(world: &World) -> Result<()> {
    doomed(world, "doomed")?.iter().for_each(|line| println!("{line}"));
    Ok(())
}

/// The cluster that is named, or one of its own by the programs beside this one.
fn world(place: &Place, folder: &Path) -> Result<World> {
    if let Some(kubeconfig) = &place.kubeconfig {
        return World::there(kubeconfig, place.ledger_image.as_deref());
    }
    let own = std::env::current_exe().context("cannot tell where this program is")?;
    if place.real {
        return World::real(own.parent().context("a program is in a folder")?);
    }
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
