//! The campaign as a program.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Parser;
use windlass_soak::{Options, Target, run};

/// Kill `windlass apiserver`, or a whole cluster, under writes, and look for what it had acknowledged.
#[derive(Debug, Parser)]
struct Args {
    /// How many times to kill it
    #[arg(long, value_name = "N", default_value_t = 1000)]
    kills: u64,

    /// Kill `windlass up` with pods on a node instead of `windlass apiserver`
    #[arg(long)]
    cluster: bool,

    /// How many clients write at once
    #[arg(long, value_name = "N", default_value_t = 4)]
    writers: u64,

    /// What is written and when it is killed: the same number gives the same choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// The windlass program [default: the one beside this program]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,

    /// The data folder, which must not be there yet; it is kept if something is wrong [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let beside =
        std::env::current_exe().context("cannot tell where this program is")?.with_file_name("windlass");
    let temporary = std::env::temp_dir().join(format!("windlass-soak-{}", std::process::id()));
    let data = args.data.unwrap_or(temporary);
    let options = Options {
        target: if args.cluster { Target::Cluster } else { Target::Server },
        program: args.program.unwrap_or(beside),
        data: data.clone(),
        kills: args.kills,
        writers: args.writers,
        seed: args.seed,
        progress: |summary| println!("{summary}"),
    };
    println!("killing {} {} times, data in {}", options.program.display(), options.kills, data.display());
    let summary = run(&options)?;
    println!("nothing acknowledged was lost: {summary}");
    std::fs::remove_dir_all(&data).context("cannot remove the data folder")?;
    std::fs::remove_file(data.with_extension("log")).context("cannot remove the log")
}
