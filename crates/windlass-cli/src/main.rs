//! The `windlass` command: arguments → typed configuration → wiring.

mod apiserver;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A request makes and drops hundreds of small pieces, on whichever thread it happens to run: glibc's allocator would
/// spend a quarter of a create on putting them together again.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Build, prove and run Kubernetes operators.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, propagate_version = true)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Apiserver(apiserver::Args),
}

fn main() -> ExitCode {
    match Args::parse().command {
        Command::Apiserver(args) => match apiserver::main(args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                report(&failure);
                ExitCode::from(failure.exit_code())
            }
        },
    }
}

/// Prints an error and what caused it, each on the line of what it explains.
fn report(error: &dyn std::error::Error) {
    let mut text = format!("error: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    eprintln!("{text}");
}
