//! `windlass image`: what the images of pods are on this machine.

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::Subcommand;
use thiserror::Error;
use windlass_node::image::{Images, Unchanged, Unresolved};

/// Add, list and remove the images that pods run.
///
/// The embedded cluster pulls from no registry. An image is the programs of this machine (busybox, alpine, debian,
/// ubuntu), something that `tools/setup` made from packages, or what is loaded or added here.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Take an image from an archive: an OCI archive, or what `docker save` writes
    Load {
        /// The archive
        #[arg(value_name = "FILE.tar")]
        archive: PathBuf,
        /// The image's name, where the archive does not say one or another is wanted
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
    },
    /// Make programs of this machine an image
    Add {
        /// The image's name
        name: String,
        /// A program; the first is what runs, and all lie in /app
        #[arg(long = "program", value_name = "FILE", required = true, num_args = 1..)]
        programs: Vec<PathBuf>,
    },
    /// Show all images
    List,
    /// Remove an image that was loaded or added
    Remove {
        /// The image's name
        name: String,
    },
}

/// Why it was not done.
#[derive(Debug, Error)]
pub enum Failure {
    /// There is no place for images.
    #[error("there is no place for images: HOME is not set, and neither is WINDLASS_CACHE")]
    Homeless,
    /// The store was not changed.
    #[error(transparent)]
    Change(#[from] Unchanged),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] Unresolved),
    /// Nobody reads the answer.
    #[error("cannot print")]
    Print(#[from] io::Error),
}

impl Failure {
    /// The exit code.
    pub fn exit_code(&self) -> u8 {
        1
    }
}

/// Does it.
pub fn main(args: Args) -> Result<(), Failure> {
    let images = Images::open(Images::default_folder().ok_or(Failure::Homeless)?);
    let mut out = io::stdout().lock();
    match args.command {
        Command::Load { archive, name } => {
            let manifest = images.load(&archive, name.as_deref())?;
            writeln!(out, "loaded {}", manifest.names.join(", "))?;
        }
        Command::Add { name, programs } => {
            let manifest = images.add(&name, &programs)?;
            writeln!(out, "added {}: {}", manifest.names.join(", "), manifest.from)?;
        }
        Command::Remove { name } => {
            images.remove(&name)?;
            writeln!(out, "removed {name}")?;
        }
        Command::List => {
            let all = images.list()?;
            let names = all.iter().flat_map(|listed| &listed.manifest.names);
            let width = names.map(String::len).max().unwrap_or_default();
            writeln!(out, "{:width$}  FROM", "NAME")?;
            for listed in &all {
                for name in &listed.manifest.names {
                    writeln!(out, "{name:width$}  {}", listed.manifest.from)?;
                }
            }
        }
    }
    Ok(())
}
