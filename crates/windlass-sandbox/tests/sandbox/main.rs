//! The sandbox against the kernel it stands on, as root and as an ordinary user.
//!
//! This program is re-executed for the stages, so it has a `main` of its own instead of the usual one.
//! Arguments are parts of the names of the tests to run. Started by root it runs all of them twice, the
//! second time as a user without any rights.

mod containers;
mod files;
mod networks;
mod world;

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, ExitCode};

/// The user of the second turn: `nobody`, who owns nothing.
const ORDINARY: &str = "65534";

fn main() -> ExitCode {
    if let Some(code) = windlass_sandbox::entry() {
        return code;
    }
    if std::env::var_os(world::VICTIM).is_some() {
        return world::be_victim();
    }
    if std::env::var_os(world::FORBIDDEN).is_some() {
        return world::be_forbidden();
    }
    // Options are those of the usual runner, and mean nothing here.
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let who = if world::is_root() { "root" } else { "user" };
    let mut failed = 0;
    for (name, test) in containers::TESTS.iter().chain(files::TESTS).chain(networks::TESTS) {
        if !wanted.is_empty() && !wanted.iter().any(|part| name.contains(part.as_str())) {
            continue;
        }
        match std::panic::catch_unwind(test) {
            Ok(()) => println!("test {name} ({who}) ... ok"),
            Err(_) => {
                println!("test {name} ({who}) ... FAILED");
                failed += 1;
            }
        }
    }
    let second = if world::is_root() { run_as_ordinary_user(&wanted) } else { true };
    if failed == 0 && second { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs this program again as a user who is not root, from a place where that user can read it.
fn run_as_ordinary_user(wanted: &[String]) -> bool {
    let folder = world::Folder::new("ordinary");
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o1777)).expect("a folder for all");
    let program = folder.path().join("sandbox");
    std::fs::copy("/proc/self/exe", &program).expect("a copy of this program");
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).expect("a program for all");
    let status = Command::new("setpriv")
        .args([
            "--reuid",
            ORDINARY,
            "--regid",
            ORDINARY,
            "--clear-groups",
            "--inh-caps=-all",
            "--bounding-set=-all",
            "--",
        ])
        .arg(&program)
        .args(wanted)
        .env("TMPDIR", folder.path())
        .status();
    status.expect("setpriv is part of util-linux").success()
}
