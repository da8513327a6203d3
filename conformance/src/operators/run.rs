//! Running checks, one or many.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::scene::{Scene, Times};
use super::server::Server;

/// Something that has to be so on every server.
pub struct Check {
    /// Its name, which is also its namespace.
    pub name: &'static str,
    /// What it shows, in a few words.
    pub shows: &'static str,
    /// Whether its operator works in all namespaces, so that no other may run meanwhile.
    pub alone: bool,
    /// The check; what it saw, with figures.
    pub run: fn(&Scene<'_>) -> Result<String>,
}

/// How many checks run at a time. Most of their time is spent waiting.
const AT_ONCE: usize = 3;

/// Runs one check.
///
/// # Errors
/// When it is not so.
pub fn run_one(
    check: &Check,
    server: &dyn Server,
    program: &Path,
    times: &Times,
    folder: &Path,
) -> Result<String> {
    let scene = Scene::new(check.name, server, program, times, folder)?;
    (check.run)(&scene).with_context(|| format!("{} on {}: {}", check.name, server.name(), check.shows))
}

/// Runs checks and prints what came of each; whether all are well.
pub fn run_all(checks: &[&Check], server: &dyn Server, program: &Path, times: &Times, folder: &Path) -> bool {
    let failed = AtomicUsize::new(0);
    let run = |check: &Check| {
        let started = Instant::now();
        let seen = run_one(check, server, program, times, folder);
        let took = started.elapsed();
        if seen.is_err() {
            failed.fetch_add(1, Ordering::Relaxed);
        }
        print(check, server.name(), took, &seen);
    };
    let (alone, together): (Vec<&Check>, Vec<&Check>) = checks.iter().partition(|check| check.alone);
    alone.into_iter().for_each(run);
    // The last one is taken first.
    let waiting = Mutex::new(together.into_iter().rev().collect::<Vec<_>>());
    let next = || waiting.lock().expect("nobody panics with it").pop();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(check) = next() {
                    run(check);
                }
            });
        }
    });
    failed.into_inner() == 0
}

fn print(check: &Check, server: &str, took: Duration, seen: &Result<String>) {
    let (verdict, text) = match seen {
        Ok(figures) => ("ok", figures.clone()),
        Err(error) => ("FAILED", format!("{error:#}")),
    };
    println!("{verdict:8}{server:5} {:10} {:5.1} s  {text}", check.name, took.as_secs_f64());
}
