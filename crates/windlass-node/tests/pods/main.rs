//! Pods as processes of this machine: an API server in this process, the sandbox, its networks, and kubelet's part.
//!
//! This program is re-executed as the sandbox, so it has a `main` of its own. Arguments are parts of the names of the tests
//! to run. Started by root it runs all of them twice, the second time as a user without any rights.

mod files;
mod lives;
mod streams;
mod world;

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, ExitCode};

use world::World;

fn main() -> ExitCode {
    if let Some(code) = windlass_sandbox::entry() {
        return code;
    }
    // Options are those of the usual runner, and mean nothing here.
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let failed = runtime.block_on(async {
        let world = World::start().await;
        let mut tests = Vec::new();
        for (name, test) in lives::TESTS.iter().chain(files::TESTS).chain(streams::TESTS) {
            if wanted.is_empty() || wanted.iter().any(|part| name.contains(part.as_str())) {
                tests.push((*name, tokio::spawn(test(world.clone()))));
            }
        }
        let mut failed = 0;
        for (name, test) in tests {
            match test.await {
                Ok(()) => println!("test {name} ... ok"),
                Err(_) => {
                    println!("test {name} ... FAILED");
                    failed += 1;
                }
            }
        }
        world.stop().await;
        failed
    });
    let second = if nix::unistd::geteuid().is_root() { run_as_ordinary_user(&wanted) } else { true };
    if failed == 0 && second { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The user of the second turn: `nobody`, who owns nothing.
const ORDINARY: &str = "65534";

/// Runs this program again as a user who is not root, from a place where that user can read it.
fn run_as_ordinary_user(wanted: &[String]) -> bool {
    let folder = tempfile::tempdir().expect("a folder");
    let for_all = |path: &std::path::Path, mode: u32| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a place for all");
    };
    for_all(folder.path(), 0o1777);
    let program = folder.path().join("pods");
    std::fs::copy("/proc/self/exe", &program).expect("a copy of this program");
    for_all(&program, 0o755);
    println!("as an ordinary user:");
    let status = Command::new("setpriv")
        .args(["--reuid", ORDINARY, "--regid", ORDINARY, "--clear-groups"])
        .args(["--inh-caps=-all", "--bounding-set=-all", "--"])
        .arg(&program)
        .args(wanted)
        .env("TMPDIR", folder.path())
        .status();
    status.expect("setpriv is part of util-linux").success()
}
