//! A cluster in the background: the same program again, with a log in place of a terminal.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::failure::Failure;
use super::folder;

/// How often the log is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Starts this program again with the same arguments, shows what it says until it is ready, and leaves it alone.
pub fn main(data: &Path) -> Result<(), Failure> {
    let failed = |source| Failure::Folder { path: data.to_owned(), source };
    std::fs::create_dir_all(data).map_err(failed)?;
    let path = data.join("windlass.log");
    let log = File::options().create(true).append(true).open(&path).map_err(failed)?;
    let mut read = File::open(&path).map_err(failed)?;
    read.seek(SeekFrom::End(0)).map_err(failed)?;

    let arguments = std::env::args_os().skip(1).filter(|argument| argument != "--detach");
    let mut child = Command::new(std::env::current_exe().map_err(Failure::Runtime)?)
        .args(arguments)
        .arg("--detached")
        .stdin(Stdio::null())
        .stdout(log.try_clone().map_err(failed)?)
        .stderr(log)
        .spawn()
        .map_err(Failure::Runtime)?;
    loop {
        let ended = child.try_wait().map_err(Failure::Runtime)?;
        let ready = folder::state(data).is_some_and(|state| state.pid == child.id() && state.ready);
        // After it has ended, or is ready, all that it said by then is in the log.
        let mut said = Vec::new();
        read.read_to_end(&mut said).map_err(failed)?;
        // Nobody may be reading any more.
        let _ = std::io::stdout().write_all(&said);
        if let Some(status) = ended {
            let code = status.code().and_then(|code| u8::try_from(code).ok()).filter(|code| *code != 0);
            return Err(Failure::Detached { log: path, code: code.unwrap_or(1) });
        }
        if ready {
            return Ok(());
        }
        std::thread::sleep(LOOK);
    }
}
