//! A data folder: every commit on disk before its client hears of it.
//!
//! ```text
//! step(request) ─ commits ─▶ Store ─ append (under the server's lock) ─▶ queue ─▶ writer: write, fsync ─▶ Ticket
//!                                                                                   └─ rotate ─▶ snapshot thread
//! ```
//!
//! One thread owns the log. It takes all that is queued, writes it as one frame, makes it safe with one `fsync`, and
//! then answers every ticket of it: the more clients wait, the more of them share a `fsync`. When the logs have
//! become larger than twice the last snapshot, a new log is started and a second thread writes a snapshot beside
//! the running server.
//!
//! # Guarantees
//! - A ticket is answered with success only when every commit up to its revision is safe.
//! - Whenever the process dies, the folder opens again with all of those; see [`log`](crate::store::log).
//! - Two processes cannot have one folder open.
//!
//! # Errors
//! A write that fails leaves it unknown what is on disk, so it is the last: every ticket from then on is answered
//! with [`Lost`], and the server should end.

mod folder;
mod shared;
#[cfg(test)]
mod tests;
mod ticket;
mod writer;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use thiserror::Error;

use crate::store::log::{Cut, Damaged, Fault, Recovery};
use crate::store::{Limits, Store};

use folder::{Content, Folder};
use shared::Shared;
use writer::Writer;

pub use ticket::{Lost, Ticket};

/// Who is told of [steps](Step), on the thread that does them.
pub type Observer = Arc<dyn Fn(&Step) + Send + Sync>;

/// How a data folder is kept.
#[derive(Clone)]
pub struct Options {
    /// How much of its past the store remembers.
    pub limits: Limits,
    /// Below this many bytes of logs no snapshot is worth its time. 16 MiB: read back in a tenth of a second.
    pub rotate_min: u64,
    /// Told of what the threads do, as it is done.
    pub observer: Option<Observer>,
}

impl Default for Options {
    fn default() -> Options {
        Options { limits: Limits::default(), rotate_min: 16 << 20, observer: None }
    }
}

/// A step of the rotation of a log. A crash after any of them leaves a folder that opens with everything.
#[derive(Debug)]
pub enum Step {
    /// A new log is there, still empty.
    LogStarted(u64),
    /// The log before it names it as its successor; commits go to the new one from now on.
    LogClosed(u64),
    /// The snapshot is written, under a name that does not count yet.
    SnapshotWritten(u64),
    /// The snapshot has its name: what is older does not count any more.
    SnapshotNamed(u64),
    /// What is older is removed.
    OldRemoved(u64),
    /// The snapshot could not be written. Nothing is lost: the logs are kept, and it is tried again when they have
    /// grown.
    SnapshotFailed(io::Error),
}

/// Why a data folder does not open.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// Another process has it open.
    #[error("{} is in use by another process", .0.display())]
    Locked(PathBuf),
    /// A file or the folder could not be read or written.
    #[error("{} could not be {what}", .path.display())]
    Io {
        /// The file or the folder.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// What is there is not what was written.
    #[error(transparent)]
    Damaged(#[from] Damaged),
}

/// What was found when a data folder was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveryReport {
    /// The revision that the store is at.
    pub revision: u64,
    /// The revision of the snapshot that was read, if there was one.
    pub snapshot: Option<u64>,
    /// How many commits came from logs.
    pub commits: u64,
    /// The torn tail that was cut from the last log, if there was one.
    pub cut: Option<Cut>,
}

impl fmt::Display for RecoveryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "revision {}, {} commits from logs", self.revision, self.commits)?;
        if let Some(revision) = self.snapshot {
            write!(f, " on top of the snapshot of revision {revision}")?;
        }
        if let Some(cut) = &self.cut {
            write!(f, "; {} bytes of an unfinished write cut from {}", cut.drop, cut.file)?;
        }
        Ok(())
    }
}

/// An open data folder. When it is dropped, what is queued is written first.
pub struct Durable {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
}

impl Durable {
    /// Opens a folder, or makes it, and reads the store that it holds.
    pub fn open(path: &Path, options: Options) -> Result<(Store, Durable, RecoveryReport), Error> {
        let folder = Folder::lock(path)?;
        folder.sweep()?;
        let content = folder.content()?;
        let mut recovery = Recovery::new(options.limits);
        let mut sizes = Sizes::default();
        let snapshot = content.snapshots.last().copied();
        if let Some(revision) = snapshot {
            let name = folder::snapshot_name(revision);
            let bytes = folder.read(&name)?;
            sizes.snapshot = bytes.len() as u64;
            recovery.snapshot(&folder.describe(&name), &bytes)?;
            named_right(&folder, &name, revision, recovery.revision())?;
        }
        let logs = content.logs_from(snapshot);
        for &revision in &logs {
            let name = folder::log_name(revision);
            named_right(&folder, &name, revision, recovery.revision())?;
            let bytes = folder.read(&name)?;
            sizes.logs += bytes.len() as u64;
            recovery.log(&folder.describe(&name), &bytes)?;
        }
        let recovered = recovery.finish()?;
        let mut store = recovered.store;
        if let Some(cut) = &recovered.cut {
            let torn = logs.iter().map(|base| folder::log_name(*base));
            for name in torn.filter(|name| folder.describe(name) == cut.file) {
                folder.truncate(&name, cut.keep)?;
            }
        }
        let base = logs.last().copied().unwrap_or(store.revision());
        if logs.is_empty() {
            folder.start_log(base)?;
        }
        folder.remove_before(snapshot.unwrap_or(0))?;
        let log = folder.append_to(&folder::log_name(base))?;

        store.keep_journal();
        let report = RecoveryReport {
            revision: store.revision(),
            snapshot,
            commits: recovered.commits,
            cut: recovered.cut,
        };
        let shared = Arc::new(Shared::new(store.revision()));
        let writer = Writer::new(folder, log, sizes, options, shared.clone());
        let thread = std::thread::Builder::new().name("windlass-log".to_owned());
        let writer = thread.spawn(move || writer.run()).map_err(|source| Error::Io {
            path: path.to_owned(),
            what: "given a writing thread",
            source,
        })?;
        Ok((store, Durable { shared, writer: Some(writer) }, report))
    }

    /// Queues what was committed since the last call, and gives the ticket to wait for before a client is answered.
    ///
    /// Call it under the lock that the commits were made under, with the same store each time: revisions must
    /// arrive in order. It does not touch the disk; it waits only while more is queued than memory should hold.
    pub fn append(&self, store: &mut Store) -> Ticket {
        self.shared.append(store);
        self.ticket(store.revision())
    }

    /// The ticket of a revision: what a reader waits for who may not see what a crash could take back.
    pub fn ticket(&self, revision: u64) -> Ticket {
        Ticket::new(self.shared.clone(), revision)
    }

    /// The newest revision that is safe.
    pub fn revision(&self) -> u64 {
        self.shared.lock().safe
    }
}

impl Drop for Durable {
    fn drop(&mut self) {
        self.shared.close();
        if let Some(writer) = self.writer.take() {
            // A writer that panicked has answered its tickets with `Lost`; there is nothing to add here.
            let _ = writer.join();
        }
    }
}

/// How large the files are that a start would have to read.
#[derive(Clone, Copy, Debug, Default)]
struct Sizes {
    snapshot: u64,
    logs: u64,
}

/// A file's name decides when it is removed, so it must tell what the file holds.
fn named_right(folder: &Folder, name: &str, found: u64, expected: u64) -> Result<(), Error> {
    if found == expected {
        return Ok(());
    }
    Err(Damaged { file: folder.describe(name), offset: 0, fault: Fault::Gap { expected, found } }.into())
}

impl Content {
    /// The logs that count beside a snapshot, or all.
    fn logs_from(&self, snapshot: Option<u64>) -> Vec<u64> {
        self.logs.iter().copied().filter(|base| snapshot.is_none_or(|revision| *base >= revision)).collect()
    }
}
