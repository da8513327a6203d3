//! The `windlass` command: arguments → typed configuration → wiring.

mod apiserver;
mod common;
mod down;
mod envtest;
mod image;
mod node;
mod status;
mod up;

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
    Up(Box<up::Args>),
    Down(down::Args),
    Status(status::Args),
    Image(image::Args),
    Node(node::Args),
    Apiserver(apiserver::Args),
    Envtest(envtest::Args),
}

fn main() -> ExitCode {
    // This program is also the stages of its sandbox.
    if let Some(code) = windlass_sandbox::entry() {
        return code;
    }
    // And what envtest starts, under other names.
    if let Some(code) = envtest::entry() {
        return code;
    }
    match Args::parse().command {
        Command::Up(args) => ended(up::main(&args), up::Failure::exit_code),
        Command::Down(args) => ended(down::main(args), down::Failure::exit_code),
        Command::Status(args) => match status::main(args) {
            Ok(code) => ExitCode::from(code),
            Err(failure) => ended(Err(failure), status::Failure::exit_code),
        },
        Command::Image(args) => ended(image::main(args), image::Failure::exit_code),
        Command::Node(args) => ended(node::main(args), node::Failure::exit_code),
        Command::Apiserver(args) => ended(apiserver::main(args), apiserver::Failure::exit_code),
        Command::Envtest(args) => envtest::main(args),
    }
}

fn ended<E: std::error::Error>(result: Result<(), E>, code: impl Fn(&E) -> u8) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            report(&failure);
            ExitCode::from(code(&failure))
        }
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
