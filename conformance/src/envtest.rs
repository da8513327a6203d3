//! A project in Go, written for envtest: its suites against the real programs and against ours.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::published::vetted;
use crate::servers::program;

/// The project, from the top of the repository.
const PROJECT: &str = "conformance/go-operator";
/// What its suites print when the server is there.
const STARTED: &str = "control plane started in ";

/// Runs the suites on both; whether they pass on both.
///
/// # Errors
/// They cannot be run.
pub fn run(windlass: &Path, output: &Path) -> Result<bool> {
    fs::create_dir_all(output)?;
    let go = vetted(PROJECT)?;
    // What is compiled counts for neither of them.
    let built = Command::new(&go).args(["test", "-run=^$", "./..."]).current_dir(PROJECT).status();
    ensure!(built.context("go cannot be run")?.success(), "{PROJECT} does not compile");
    let mut passed = true;
    for (name, assets) in [("real", real(output)?), ("ours", ours(windlass, output)?)] {
        let begun = Instant::now();
        let mut test = Command::new(&go);
        test.args(["test", "-count=1", "-p=1", "-v", "./..."]).current_dir(PROJECT);
        let done = test.env("KUBEBUILDER_ASSETS", assets).output().context("go cannot be run")?;
        let took = begun.elapsed();
        let said = String::from_utf8_lossy(&done.stdout);
        let log = output.join(format!("{name}.log"));
        fs::write(&log, [&done.stdout[..], &done.stderr[..]].concat())?;
        let starts: Vec<&str> =
            said.lines().filter_map(|line| line.split_once(STARTED)).map(|(_, it)| it).collect();
        let verdict = if done.status.success() { "all suites pass" } else { "FAILED" };
        println!("{name}: {verdict}; {} in all, started in {}", seconds(took), starts.join(" and "));
        if !done.status.success() {
            println!("{}", log.display());
        }
        passed &= done.status.success() && !starts.is_empty();
    }
    Ok(passed)
}

fn seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}

/// A folder with the real programs.
fn real(output: &Path) -> Result<PathBuf> {
    let folder = fresh(&output.join("real"))?;
    for program in ["kube/kube-apiserver", "kube/kubectl", "etcd-3.6/etcd"].map(program) {
        let program = program?;
        let name = program.file_name().context("a program has a name")?;
        std::os::unix::fs::symlink(&program, folder.join(name))?;
    }
    Ok(folder)
}

/// A folder with ours, as users make it.
pub(crate) fn ours(windlass: &Path, output: &Path) -> Result<PathBuf> {
    let folder = fresh(&output.join("ours"))?;
    let made = Command::new(windlass).args(["envtest", "assets"]).arg(&folder).output();
    let made = made.context("windlass cannot be run")?;
    ensure!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Ok(folder)
}

fn fresh(folder: &Path) -> Result<PathBuf> {
    // It may not be there.
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder)?;
    Ok(folder.canonicalize()?)
}
