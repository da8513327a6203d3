//! A program that runs in the sandbox.

use std::os::fd::{AsFd, OwnedFd};

use tokio::sync::watch;

use crate::error::Error;
use crate::sandbox::Sandbox;
use crate::spec::{Exit, Size};

/// A container, or a further program in one, that was started. Dropping it leaves the program running.
#[derive(Debug)]
pub struct Process {
    sandbox: Sandbox,
    serial: u64,
    pid: i32,
    terminal: Option<OwnedFd>,
    exit: watch::Receiver<Option<Exit>>,
}

impl Process {
    pub(crate) fn new(
        sandbox: Sandbox,
        serial: u64,
        pid: i32,
        terminal: Option<OwnedFd>,
        exit: watch::Receiver<Option<Exit>>,
    ) -> Process {
        Process { sandbox, serial, pid, terminal, exit }
    }

    /// Its number inside the sandbox.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Our end of its terminal, once: what it writes can be read here. Reading fails with `EIO` when
    /// nobody has the other end any more.
    pub fn terminal(&mut self) -> Option<OwnedFd> {
        self.terminal.take()
    }

    /// Waits for its end. Any number of callers may; one that is dropped loses nothing.
    /// When the sandbox ends, its processes were killed.
    pub async fn exited(&self) -> Exit {
        self.watch().await
    }

    /// The same, as a future of its own.
    pub fn watch(&self) -> impl Future<Output = Exit> + Send + 'static {
        let mut exit = self.exit.clone();
        async move {
            match exit.wait_for(Option::is_some).await {
                Ok(exit) => exit.unwrap_or(Exit { code: 137, signal: Some(9), oom: false }),
                Err(_) => Exit { code: 137, signal: Some(9), oom: false },
            }
        }
    }

    /// How it ended, if it has.
    pub fn exit(&self) -> Option<Exit> {
        *self.exit.borrow()
    }

    /// Sends it a signal. One that has ended is left in peace.
    pub async fn signal(&self, signal: i32) -> Result<(), Error> {
        if self.exit().is_some() {
            return Ok(());
        }
        match self.sandbox.signal_serial(self.serial, signal).await {
            // It ended in between.
            Err(Error::Unknown { .. }) => Ok(()),
            other => other,
        }
    }
}

/// Tells a terminal its size, through either end.
pub fn resize(terminal: impl AsFd, size: Size) -> std::io::Result<()> {
    let size =
        rustix::termios::Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
    Ok(rustix::termios::tcsetwinsize(terminal, size)?)
}
