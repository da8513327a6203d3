//! `windlass up` as people use it: alone, with pods, by kubectl, and as the README shows it.

mod alone;
mod databases;
mod ending;
mod kubectl;
mod node;
mod nodes;
mod shown;
#[path = "../support/mod.rs"]
mod support;
mod walkthrough;
mod webhooks;

use std::path::Path;
use std::time::{Duration, Instant};

use windlass_testing::up::Cluster;

/// A cluster of the program under test.
fn up(arguments: &[&str], folder: &Path) -> Cluster {
    Cluster::up(Path::new(env!("CARGO_BIN_EXE_windlass")), arguments, folder)
}

/// Waits until something is so, and fails when it takes too long.
fn until_within(limit: Duration, what: &str, mut is: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is() {
        assert!(started.elapsed() < limit, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
