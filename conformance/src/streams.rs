//! Streams into pods, by a program in Go that uses client-go: over SPDY and over WebSocket, and by kubectl with WebSockets
//! on and off.
//!
//! ```text
//! streams/*.go ─┬▶ windlass up: our server, our node ─▶ what it printed ─┐
//!               └▶ a real node (tools/real-node), as root ─▶ recorded ───┴▶ compared
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use windlass_testing::up::Cluster;

use crate::published::vetted;
use crate::servers::program;

/// The project, from the top of the repository.
const PROJECT: &str = "conformance/streams";
/// What the program printed on the real node.
const RECORDED: &str = "conformance/streams/recorded.txt";

/// Runs the program on our cluster, and as root on a real one; whether it printed the same.
///
/// # Errors
/// It cannot be run.
pub fn run(windlass: &Path, output: &Path, record: bool) -> Result<bool> {
    let programs = Programs::build(output)?;
    let mut real = fs::read_to_string(RECORDED).unwrap_or_default();
    if nix::unistd::geteuid().is_root() {
        let mut command = Command::new("tools/real-node/node");
        command.arg("run").arg(&programs.streams);
        real = programs.run(&mut command, &output.join("real.log"))?;
        if record {
            fs::write(RECORDED, &real)?;
        }
    } else {
        println!("the real node is left out, it needs root: what it printed is recorded");
    }
    let folder = output.join("cluster");
    fs::create_dir_all(&folder)?;
    let windlass = windlass.canonicalize().with_context(|| windlass.display().to_string())?;
    let cluster = Cluster::up(&windlass, &["--fresh"], &folder);
    let mut command = Command::new(&programs.streams);
    command.env("KUBECONFIG", folder.join("data/kubeconfig"));
    let ours = programs.run(&mut command, &output.join("ours.log"));
    drop(cluster);
    Ok(compare(&real, &ours?))
}

/// Prints the lines that differ; whether there are none.
fn compare(real: &str, ours: &str) -> bool {
    let (real, ours): (Vec<&str>, Vec<&str>) = (real.lines().collect(), ours.lines().collect());
    let mut different = 0;
    for index in 0..real.len().max(ours.len()) {
        let (real, ours) = (real.get(index), ours.get(index));
        if real != ours {
            different += 1;
            println!("real: {}\nours: {}", real.unwrap_or(&"nothing"), ours.unwrap_or(&"nothing"));
        }
    }
    println!("streams: {} lines, {different} different", real.len());
    different == 0 && !real.is_empty()
}

/// What is built of the project.
struct Programs {
    streams: PathBuf,
    echo: PathBuf,
}

impl Programs {
    fn build(output: &Path) -> Result<Programs> {
        fs::create_dir_all(output)?;
        let output = output.canonicalize()?;
        let go = vetted(PROJECT)?;
        let build = |name: &str, package: &str| -> Result<PathBuf> {
            let program = output.join(name);
            let mut command = Command::new(&go);
            // One of them runs in a pod, where there may be no library.
            command.args(["build", "-o"]).arg(&program).arg(package).env("CGO_ENABLED", "0");
            let built = command.current_dir(PROJECT).status().context("go cannot be run")?;
            ensure!(built.success(), "{PROJECT} does not compile");
            Ok(program)
        };
        Ok(Programs { streams: build("streams", ".")?, echo: build("echo", "./echo")? })
    }

    /// What the program prints; what it logs goes to a file.
    fn run(&self, command: &mut Command, log: &Path) -> Result<String> {
        command.env("ECHO_SERVER", &self.echo).env("KUBECTL", program("kube/kubectl")?);
        let done = command.output().with_context(|| format!("{command:?}"))?;
        fs::write(log, &done.stderr)?;
        ensure!(done.status.success(), "{command:?} failed, see {}", log.display());
        Ok(String::from_utf8_lossy(&done.stdout).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_differs_or_is_missing_is_a_difference() {
        assert!(compare("a\nb\n", "a\nb\n"));
        assert!(!compare("a\nb\n", "a\nc\n"));
        assert!(!compare("a\nb\n", "a\n"));
        assert!(!compare("", ""));
    }
}
