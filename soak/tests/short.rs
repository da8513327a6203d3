//! The campaign with few kills, with every run of the tests. `make soak` does a thousand.

use windlass_soak::{Options, Target, run};
use windlass_testing::up::program;

#[test]
fn nothing_acknowledged_is_lost_in_twenty_kills() {
    let data = std::env::temp_dir().join(format!("windlass-soak-short-{}", std::process::id()));
    let options = Options {
        target: Target::Server,
        program: program("windlass-cli", "windlass"),
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
