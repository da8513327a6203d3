//! The campaign with few kills, with every run of the tests. `make soak` does a thousand.

use std::path::PathBuf;
use std::process::Command;

use windlass_soak::{Options, Target, run};

#[test]
fn nothing_acknowledged_is_lost_in_twenty_kills() {
    let data = std::env::temp_dir().join(format!("windlass-soak-short-{}", std::process::id()));
    let options = Options {
        target: Target::Server,
        program: program(),
        data: data.clone(),
        kills: 20,
        writers: 4,
        seed: 7,
        progress: |_| {},
    };
    let summary =
        run(&options).unwrap_or_else(|error| panic!("{error:#}; the data is in {}", data.display()));
    println!("{summary}");
    assert_eq!(summary.kills, 20);
    assert!(summary.writes > 20, "{summary}");
    assert!(summary.resumed > 5, "{summary}");
    std::fs::remove_dir_all(&data).expect("the data folder can be removed");
    std::fs::remove_file(data.with_extension("log")).expect("the log can be removed");
}

/// The `windlass` program of this profile. Cargo builds the programs of a package only for its own tests.
fn program() -> PathBuf {
    let own = PathBuf::from(env!("CARGO_BIN_EXE_windlass-soak"));
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "-p", "windlass-cli"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    if own.parent().is_some_and(|folder| folder.ends_with("release")) {
        build.arg("--release");
    }
    assert!(build.status().expect("cargo runs").success(), "windlass-cli does not build");
    own.with_file_name("windlass")
}
