//! Reading the repository that this crate lies in.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A text file of the repository.
#[derive(Clone, Debug)]
pub struct File {
    /// Path from the root of the repository, with `/`.
    pub path: String,
    /// The whole text.
    pub text: String,
}

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository's root exists")
}

/// All text files that are tracked, or that a `git add` of everything would track: a breach is to be seen before it is
/// committed. Binary data is left out.
///
/// # Panics
/// When git cannot be asked: a check that sees no file must not pass.
pub fn text_files() -> Vec<File> {
    let root = root();
    let listing =
        output(Command::new("git").current_dir(&root).args(["ls-files", "-z", "-co", "--exclude-standard"]));
    let files: Vec<File> = listing
        .split('\0')
        .filter(|path| !path.is_empty())
        .filter_map(|path| {
            let bytes = std::fs::read(root.join(path)).ok()?;
            Some(File { path: path.to_owned(), text: String::from_utf8(bytes).ok()? })
        })
        .collect();
    assert!(!files.is_empty(), "git lists no file in {}", root.display());
    files
}

/// What `cargo metadata` says of the crates of the workspace.
///
/// # Panics
/// When cargo cannot be asked.
pub fn cargo_metadata() -> String {
    output(Command::new(env!("CARGO")).current_dir(root()).args([
        "metadata",
        "--no-deps",
        "--offline",
        "--format-version",
        "1",
    ]))
}

fn output(command: &mut Command) -> String {
    let out = command.output().unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
    assert!(out.status.success(), "{command:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).expect("the listing is UTF-8")
}
