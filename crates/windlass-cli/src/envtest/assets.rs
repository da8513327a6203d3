//! `windlass envtest assets`: the folder that `KUBEBUILDER_ASSETS` names.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::common::quoted;

/// Make the folder that KUBEBUILDER_ASSETS names: kube-apiserver, etcd and kubectl
///
/// kube-apiserver and etcd are links to this program, which knows by its name what it is. kubectl is a link to the one in the
/// PATH; only suites that run kubectl need it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  windlass envtest assets bin/k8s
  KUBEBUILDER_ASSETS=$PWD/bin/k8s go test ./...

Exit codes:
  0  the folder is there
  1  something could not be made")]
pub struct Args {
    /// The folder. What is there already under these names is replaced
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// Copy the programs instead of linking to them: for a folder that goes elsewhere
    #[arg(long)]
    copy: bool,
}

/// Why there is no such folder.
#[derive(Debug, Error)]
pub enum Failure {
    /// This program does not know where it is.
    #[error("cannot tell where this program is")]
    Own(#[source] io::Error),
    /// A file could not be made.
    #[error("cannot make {}", .path.display())]
    Make {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl Failure {
    /// The exit code.
    pub fn exit_code(&self) -> u8 {
        1
    }
}

/// The programs that are this one.
const OURS: [&str; 2] = ["kube-apiserver", "etcd"];

/// Makes the folder.
pub fn main(args: &Args) -> Result<(), Failure> {
    let own = std::env::current_exe().map_err(Failure::Own)?;
    let folder = std::path::absolute(&args.folder).map_err(failed(&args.folder))?;
    fs::create_dir_all(&folder).map_err(failed(&folder))?;
    for name in OURS {
        put(&own, &folder.join(name), args.copy)?;
    }
    match kubectl() {
        Some(kubectl) => put(&kubectl, &folder.join("kubectl"), args.copy)?,
        None => {
            eprintln!("kubectl is not in the PATH, and so not in the folder: only suites that run it need it")
        }
    }
    println!("export KUBEBUILDER_ASSETS={}", quoted(&folder));
    Ok(())
}

fn failed(path: &Path) -> impl Fn(io::Error) -> Failure {
    move |source| Failure::Make { path: path.to_owned(), source }
}

/// Puts a program under another name, in one step: a suite that is running may be about to start it.
fn put(program: &Path, place: &Path, copy: bool) -> Result<(), Failure> {
    let fresh = place.with_extension(format!("new-{}", std::process::id()));
    let made = match copy {
        true => fs::copy(program, &fresh).map(|_| ()),
        false => std::os::unix::fs::symlink(program, &fresh),
    };
    made.and_then(|()| fs::rename(&fresh, place)).map_err(|source| {
        // What was half made is of no use; that it cannot be removed changes nothing about the failure.
        let _ = fs::remove_file(&fresh);
        failed(place)(source)
    })
}

/// The kubectl of the PATH.
fn kubectl() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let there = std::env::split_paths(&path).map(|folder| folder.join("kubectl")).find(|file| file.is_file());
    there.and_then(|file| file.canonicalize().ok())
}
