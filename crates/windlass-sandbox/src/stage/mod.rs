//! What the program does when it is re-executed: the stages between a caller and a container's program.
//!
//! [`outer`] leaves the caller's namespaces and watches over the rest, [`agent`] is the first process
//! inside, [`init`] becomes a container's program or a further one in it.

mod agent;
mod assemble;
mod birth;
mod cgroups;
mod children;
mod identity;
mod init;
mod kernel;
mod nets;
mod outer;
mod program;
mod root;
mod tree;

use std::ffi::{CStr, OsStr};
use std::path::PathBuf;
use std::process::ExitCode;

/// The argument that makes a process the outer stage.
pub(crate) const OUTER: &str = "__windlass-sandbox";
const AGENT: &str = "__windlass-agent";
const INIT: &str = "__windlass-init";

/// Runs a stage when this process is one. Call it first in `main`, before any thread is started:
///
/// ```no_run
/// use std::process::ExitCode;
/// fn main() -> ExitCode {
///     if let Some(code) = windlass_sandbox::entry() {
///         return code;
///     }
///     // What the program does otherwise.
///     ExitCode::SUCCESS
/// }
/// ```
pub fn entry() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let stage = arguments.next()?;
    let mut argument = || arguments.next().map(PathBuf::from).unwrap_or_default();
    if stage == OsStr::new(OUTER) {
        Some(outer::run(&argument()))
    } else if stage == OsStr::new(AGENT) {
        Some(agent::run(&argument(), &argument().to_string_lossy()))
    } else if stage == OsStr::new(INIT) {
        Some(init::run())
    } else {
        None
    }
}

/// Names this process in the table of processes, where it would be `exe`.
fn take_name(name: &CStr) {
    // Only people read it.
    let _ = rustix::thread::set_name(name);
}
