//! Programs and definitions that others have published, on both servers: helm, by its own means, the custom kinds of
//! cert-manager and of the operator of Prometheus, and controllers on the runtime of kube-rs.

mod definitions;
mod helm;
mod kube_rs;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

pub use definitions::{objects, sources};
pub use helm::compare as compare_helm;
pub use kube_rs::compare as compare_kube_rs;

/// The Go of the set-up, or of the PATH.
///
/// # Errors
/// `tools/setup` is not there.
pub fn go() -> Result<PathBuf> {
    let said =
        Command::new("tools/setup").args(["--path", "go"]).output().context("tools/setup cannot be run")?;
    let brought = PathBuf::from(String::from_utf8_lossy(&said.stdout).trim());
    Ok(if brought.exists() { brought } else { PathBuf::from("go") })
}

/// The same, when it finds no fault with a project. `make lint` does without, which would have to bring the modules.
///
/// # Errors
/// It does, or cannot be run.
pub fn vetted(project: &str) -> Result<PathBuf> {
    let go = go()?;
    let vetted = Command::new(&go).args(["vet", "./..."]).current_dir(project).status();
    ensure!(vetted.context("go cannot be run")?.success(), "go vet finds fault with {project}");
    Ok(go)
}

/// Where Go keeps the published source of a module.
fn module(name: &str) -> Result<PathBuf> {
    let said = Command::new(go()?)
        .args(["mod", "download", "-json", name])
        .current_dir(std::env::temp_dir())
        .output()
        .context("go cannot be run")?;
    let told: serde_json::Value = serde_json::from_slice(&said.stdout)
        .with_context(|| format!("{name}: {}", String::from_utf8_lossy(&said.stderr)))?;
    let folder = told["Dir"].as_str().with_context(|| format!("{name}: {}", told["Error"]))?;
    Ok(Path::new(folder).to_owned())
}
