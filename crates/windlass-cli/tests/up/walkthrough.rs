//! The README's walk-through is true: its commands are run, and their output compared.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A command of the README and what it says it prints.
struct Shown {
    command: String,
    output: String,
}

fn shown(markdown: &str) -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    for line in
        windlass_tidy::papers::fenced_blocks(markdown, "console").iter().flat_map(|block| block.lines())
    {
        match (line.strip_prefix("$ "), all.last_mut()) {
            (Some(command), _) => all.push(Shown { command: command.to_owned(), output: String::new() }),
            (None, Some(last)) => {
                last.output.push_str(line);
                last.output.push('\n');
            }
            (None, None) => panic!("the walk-through starts with an output: {line}"),
        }
    }
    all
}

/// Widths of columns and ages depend on when one looks.
fn normalised(output: &str) -> String {
    let word = |word: &str| if is_age(word) { "<age>".to_owned() } else { word.to_owned() };
    let line = |line: &str| line.split_whitespace().map(word).collect::<Vec<_>>().join(" ");
    output.lines().map(line).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

/// `7s`, `2m5s`.
fn is_age(word: &str) -> bool {
    let mut digits = 0;
    word.chars().all(|c| {
        let unit = "smhd".contains(c) && digits > 0;
        digits = if c.is_ascii_digit() { digits + 1 } else { 0 };
        unit || digits > 0
    }) && word.ends_with(['s', 'm', 'h', 'd'])
}

#[test]
fn the_walk_through_of_the_readme_is_true() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let readme = std::fs::read_to_string(repository.join("README.md")).unwrap();
    let folder = crate::support::Folder::new("walkthrough");
    // A folder like the repository, and a home whose cluster is that of this test.
    for name in ["docs", "tools"] {
        std::os::unix::fs::symlink(repository.join(name), folder.path().join(name)).unwrap();
    }
    std::fs::create_dir_all(folder.path().join(".local/share")).unwrap();
    std::os::unix::fs::symlink(folder.path().join("data"), folder.path().join(".local/share/windlass"))
        .unwrap();
    let samples = repository.join("samples").display().to_string();
    let cluster = crate::up(&["--apply", &samples], folder.path());

    let mut exports = String::new();
    let shown = shown(&readme);
    assert!(shown.len() > 10, "the README has a walk-through of {} commands", shown.len());
    for Shown { command, output } in shown {
        if command.starts_with("export ") {
            exports.push_str(&format!("{command}\n"));
            continue;
        }
        let printed = bash(&format!("{exports}{command}"), folder.path().into());
        assert_eq!(normalised(&printed), normalised(&output), "after: {command}\n{printed}");
    }
    assert_eq!(cluster.end("-INT").code(), Some(0), "Ctrl-C ends it");
}

/// Where set-up puts things, as it would be without the home of this test.
fn cache() -> PathBuf {
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from);
    named("WINDLASS_CACHE").unwrap_or_else(|| {
        let cache = named("XDG_CACHE_HOME").or_else(|| Some(named("HOME")?.join(".cache")));
        cache.expect("a home").join("windlass")
    })
}

fn bash(script: &str, folder: PathBuf) -> String {
    let script = format!("exec 2>&1\n{script}");
    let mut command = Command::new("bash");
    command.args(["-c", &script]).current_dir(&folder).env("HOME", &folder).env("WINDLASS_CACHE", cache());
    let output = command.output().expect("bash runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn ages_are_told_from_other_words() {
    for age in ["7s", "0s", "2m5s", "3d"] {
        assert!(is_age(age), "{age}");
    }
    for word in ["0/2", "s", "m5", "5", "test", "v1.36.4", "seconds"] {
        assert!(!is_age(word), "{word}");
    }
}
