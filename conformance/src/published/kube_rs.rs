//! Controllers on kube-rs's own runtime.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::servers::Server;

const PROJECT: &str = "conformance/kube-rs/controllers/Cargo.toml";

/// Runs them on both servers; what differs.
///
/// # Errors
/// They do not compile, or do not get through on the real server.
pub fn compare(reference: &Server, ours: &Server, target: &Path) -> Result<String> {
    let cargo = |verb: &str| {
        let mut command = Command::new("cargo");
        command.args([verb, "--quiet", "--locked", "--manifest-path", PROJECT, "--target-dir"]).arg(target);
        command
    };
    let built = cargo("build").status().context("cargo cannot be run")?;
    ensure!(built.success(), "{PROJECT} does not compile");
    let run = |server: &Server| -> Result<(bool, String)> {
        let output = cargo("run").env("KUBECONFIG", &server.kubeconfig).output()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok((output.status.success(), text(&output.stdout) + &text(&output.stderr)))
    };
    let (passed, expected) = run(reference)?;
    ensure!(passed, "the controllers of kube-rs on kube-apiserver: {expected}");
    let (_, said) = run(ours)?;
    Ok(match expected == said {
        true => String::new(),
        false => format!("## kube-rs\n--- reference\n{expected}--- ours\n{said}\n"),
    })
}
