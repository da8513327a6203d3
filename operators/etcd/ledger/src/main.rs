//! `etcd-ledger`: the load and its check, as a pod or by hand.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use clap::{Args, Parser, Subcommand};
use etcd_ledger::{Load, Options, Report};
use tokio::signal::unix::{SignalKind, signal};

/// Write to etcd at a constant rate, and prove that no acknowledged write is lost or reordered
#[derive(Debug, Parser)]
#[command(version)]
struct Command {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Write, then check; exits with 0 if all is well, with 1 if not, or if it could not be checked
    Run(Run),
}

#[derive(Debug, Args)]
struct Run {
    /// Where etcd is (http://host:2379,…); the members that it names are asked, too
    #[arg(long, value_delimiter = ',', required = true, env = "ETCD_LEDGER_ENDPOINTS")]
    endpoints: Vec<String>,

    /// Writes in a second
    #[arg(long, default_value_t = 200)]
    rate: u32,

    /// How long to write; without it, until SIGTERM or Ctrl-C, which end it earlier, too
    #[arg(long)]
    seconds: Option<u64>,

    /// Where to put the report, as JSON; it is printed in words in any case
    #[arg(long)]
    report: Option<PathBuf>,

    /// Clients that write, each one write at a time
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    writers: u32,

    /// Keys of each of them
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    keys: u32,

    /// How long a write waits for its answer, in milliseconds
    #[arg(long, default_value_t = 2000)]
    deadline_ms: u64,

    /// Begins all keys; the default is another one for every run
    #[arg(long)]
    prefix: Option<String>,

    /// Ask only the endpoints that are named, whatever members the cluster has
    #[arg(long)]
    no_follow: bool,
}

fn main() -> Result<ExitCode> {
    let Command { action: Action::Run(run) } = Command::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let report = runtime.block_on(measure(&run))?;
    println!("{report}");
    if let Some(path) = &run.report {
        let text = serde_json::to_string_pretty(&report)?;
        std::fs::write(path, text + "\n").with_context(|| format!("could not write {}", path.display()))?;
    }
    Ok(if report.holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn measure(run: &Run) -> Result<Report> {
    let mut options = Options::new(run.endpoints.clone(), run.prefix.clone().unwrap_or_else(fresh_prefix));
    options.rate = run.rate;
    options.writers = run.writers;
    options.keys = run.keys;
    options.follow = !run.no_follow;
    options.client = options.client.deadline(Duration::from_millis(run.deadline_ms));
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let started = Instant::now();
    let load = Load::start(options)?;
    let enough = async {
        match run.seconds {
            Some(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        () = enough => {}
    }
    let ran = started.elapsed();
    let ended = load.stop().await;
    Report::of(&ended, ran).await.context("nothing is proved")
}

fn fresh_prefix() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("ledger/{}-{}", now.as_nanos(), std::process::id())
}
