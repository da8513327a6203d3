//! In place of envtest's programs: started as `kube-apiserver` or `etcd`, this program is one.
//!
//! ```text
//! KUBEBUILDER_ASSETS/kube-apiserver ─┐                        ┌─ apiserver: flags ─► the API server, by the files that envtest wrote
//!                    etcd ───────────┼─ links to this program ┤
//!                    kubectl         │                        └─ etcd: answers /health, keeps nothing
//!                                    └─ `windlass envtest assets DIR` makes them
//! ```

mod apiserver;
mod assets;
mod etcd;
mod flags;

use std::path::Path;
use std::process::ExitCode;

use crate::ended;

/// Stand in for the programs that envtest starts: `kube-apiserver` and `etcd`.
///
/// Suites in Go that are written for controller-runtime's envtest run unchanged on this server.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Assets(assets::Args),
}

/// Does what is asked for.
pub fn main(args: Args) -> ExitCode {
    match args.command {
        Command::Assets(args) => ended(assets::main(&args), assets::Failure::exit_code),
    }
}

/// Where this program was started under another name: what it did as that.
pub fn entry() -> Option<ExitCode> {
    let mut arguments = std::env::args();
    let program = arguments.next()?;
    let arguments: Vec<String> = arguments.collect();
    match Path::new(&program).file_name()?.to_str()? {
        "kube-apiserver" => Some(ended(apiserver::main(&arguments), apiserver::Failure::exit_code)),
        "etcd" => Some(ended(etcd::main(&arguments), etcd::Failure::exit_code)),
        _ => None,
    }
}
