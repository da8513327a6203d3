//! The `windlass` command as a test runs it.

use std::path::Path;
use std::process::Command;

pub use windlass_testing::up::Folder;

pub fn windlass(arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.args(arguments).current_dir(folder);
    command
}
