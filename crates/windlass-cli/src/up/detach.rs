//! `--detach`: the same program in the background.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::folder::{Error, Folder};
use super::{Args, Failure, apply};

/// How often it is looked whether the cluster is up.
const LOOK: Duration = Duration::from_millis(20);

/// Starts the cluster in the background, shows what it says, and returns when it is up.
pub fn main(args: &Args) -> Result<(), Failure> {
    let folder = Folder::at(args.data_dir.as_deref())?;
    // What can be told here is told here, not in a log.
    drop(folder.claim()?);
    apply::read(&args.apply)?;
    let log = folder.log();
    let failed = |source| Error::Io { path: folder.log(), source };
    let written = File::create(&log).map_err(failed)?;
    let errors = written.try_clone().map_err(failed)?;
    let mut said = File::open(&log).map_err(failed)?;
    // Not its path: the file may have been replaced since it was started.
    let program = "/proc/self/exe";
    let mut child = Command::new(program)
        .arg0("windlass")
        .args(std::env::args_os().skip(1).filter(|arg| arg != "--detach"))
        .stdin(Stdio::null())
        .stdout(written)
        .stderr(errors)
        // Ctrl-C in this terminal is none of its business.
        .process_group(0)
        .spawn()
        .map_err(|source| Failure::Spawn { program: program.into(), source })?;
    let mut at = 0;
    loop {
        let up = folder.cluster().is_some_and(|cluster| cluster.pid == child.id() && cluster.ready);
        let ended = child.try_wait().map_err(failed)?.is_some();
        at = show(&mut said, at).map_err(failed)?;
        if up {
            return Ok(());
        }
        if ended {
            return Err(Failure::Detached { log });
        }
        std::thread::sleep(LOOK);
    }
}

/// Shows what is new in the log.
fn show(log: &mut File, at: u64) -> io::Result<u64> {
    log.seek(io::SeekFrom::Start(at))?;
    let mut text = Vec::new();
    log.read_to_end(&mut text)?;
    let mut out = io::stdout().lock();
    let _ = out.write_all(&text).and_then(|()| out.flush());
    Ok(at + text.len() as u64)
}
