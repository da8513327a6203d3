//! A real Kubernetes node on this machine: what `tools/real-node` starts.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::kubectl::Kubectl;
use crate::world::{LEDGER, OPERATOR, OPERATORS, restricted};

/// Where the project is.
const PROJECT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../..");
/// Says to those who run inside the node's network where its files are.
const FOLDER: &str = "WINDLASS_REAL_NODE";
/// The operator's image.
const IMAGE: &str = concat!("windlass.local/etcd-operator:", env!("CARGO_PKG_VERSION"));

/// The folder of the node that this program runs in.
pub(crate) fn folder() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

/// Becomes the program that starts a node, runs this one again inside of its network, and ends it.
///
/// # Errors
/// It cannot be run, or this is not root.
pub fn enter() -> Result<()> {
    if folder().is_some() {
        return Ok(());
    }
    ensure!(
        nix::unistd::geteuid().is_root(),
        "a real node needs root: namespaces, mounts and cgroups are made for it"
    );
    let own = std::env::current_exe().context("cannot tell where this program is")?;
    let failed = Command::new(node()).arg("run").arg(own).args(std::env::args_os().skip(1)).exec();
    Err(failed).context("the real node cannot be started")
}

/// Puts the images and the operator there, from the programs in a folder. Nothing is pulled, and the operator has the rights
/// that its manifests give it.
///
/// # Errors
/// Something of it cannot be done.
pub(crate) fn install(work: &Path, programs: &Path, kubectl: &Kubectl) -> Result<()> {
    let etcd = run(Command::new(tool("setup")).args(["--path", "etcd-3.7"]))?;
    let etcd = PathBuf::from(etcd.trim());
    let version = run(Command::new(&etcd).arg("--version"))?;
    let version = version.lines().find_map(|line| line.strip_prefix("etcd Version: "));
    let version = version.context("etcd does not say its version")?;
    let image = |reference: &str, programs: &[PathBuf]| {
        run(Command::new(node()).arg("image").arg(work).arg(reference).args(programs))
    };
    let of_etcd = ["etcd", "etcdctl", "etcdutl"].map(|name| etcd.with_file_name(name));
    image(&format!("quay.io/coreos/etcd:v{version}"), &of_etcd)?;
    image(LEDGER, &[programs.join("etcd-ledger")])?;
    let operator = programs.join(OPERATOR);
    image(IMAGE, std::slice::from_ref(&operator))?;
    kubectl.apply(&restricted(OPERATORS))?;
    let manifests =
        run(Command::new(&operator).args(["manifests", "--namespace", OPERATORS, "--image", IMAGE]))?;
    kubectl.feed(&["apply", "--server-side", "-f", "-"], &manifests).map(|_| ())
}

/// A file of the project.
pub(crate) fn file(path: &str) -> PathBuf {
    Path::new(PROJECT).join(path)
}

fn node() -> PathBuf {
    tool("real-node/node")
}

fn tool(name: &str) -> PathBuf {
    file("tools").join(name)
}

/// What a program printed.
fn run(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
