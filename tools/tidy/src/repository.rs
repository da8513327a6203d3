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
    // Of the run, which cargo tells: what was built in another clone of the repository is taken as it is.
    let own = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let root = Path::new(&own).ancestors().find(|folder| folder.join("Cargo.lock").exists());
    root.expect("a package of the repository lies below its root").to_owned()
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
