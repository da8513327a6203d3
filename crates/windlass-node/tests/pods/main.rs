//! Pods as processes of this machine: an API server in this process, the sandbox, its networks, and kubelet's part.
//!
//! This program is re-executed as the sandbox, so it has a `main` of its own. Arguments are parts of the names of the tests
//! to run.

mod files;
mod lives;
mod streams;
mod world;

use std::process::ExitCode;

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
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
