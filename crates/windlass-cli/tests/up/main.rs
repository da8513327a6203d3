//! `windlass up` as people use it: alone, with pods, by kubectl, and as the README shows it.

mod alone;
mod databases;
mod ending;
mod kubectl;
mod node;
#[path = "../support/mod.rs"]
mod support;
mod walkthrough;

use std::path::Path;

use windlass_testing::up::Cluster;

/// A cluster of the program under test.
fn up(arguments: &[&str], folder: &Path) -> Cluster {
    Cluster::up(Path::new(env!("CARGO_BIN_EXE_windlass")), arguments, folder)
}
