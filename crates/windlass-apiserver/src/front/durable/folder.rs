//! The files of a data folder, and the order of operations that makes each change of them all or nothing.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::Error;
use crate::store::log;

/// A locked folder.
pub struct Folder {
    path: PathBuf,
    /// Locked as long as it is open.
    _lock: File,
}

/// What files there are, each by its revision, oldest first.
#[derive(Debug, Default)]
pub struct Content {
    pub snapshots: Vec<u64>,
    pub logs: Vec<u64>,
}

pub fn log_name(base: u64) -> String {
    format!("{base:020}.log")
}

pub fn snapshot_name(revision: u64) -> String {
    format!("{revision:020}.snapshot")
}

/// The end of a name that does not count yet.
const TEMPORARY: &str = ".tmp";

impl Folder {
    /// Makes the folder if it is not there, and locks it.
    pub fn lock(path: &Path) -> Result<Folder, Error> {
        fs::create_dir_all(path).map_err(failed(path, "made"))?;
        let file = path.join("lock");
        let lock = OpenOptions::new().create(true).write(true).truncate(false).open(&file);
        let lock = lock.map_err(failed(&file, "opened"))?;
        match lock.try_lock() {
            Ok(()) => Ok(Folder { path: path.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(Error::Locked(path.to_owned())),
            Err(TryLockError::Error(source)) => Err(failed(&file, "locked")(source)),
        }
    }

    /// Removes what a crash left without a name.
    pub fn sweep(&self) -> Result<(), Error> {
        for name in self.names()? {
            if name.ends_with(TEMPORARY) {
                self.remove(&name)?;
            }
        }
        Ok(())
    }

    /// Which files there are.
    pub fn content(&self) -> Result<Content, Error> {
        let mut content = Content::default();
        for name in self.names()? {
            if let Some(revision) = revision_of(&name, ".log") {
                content.logs.push(revision);
            } else if let Some(revision) = revision_of(&name, ".snapshot") {
                content.snapshots.push(revision);
            }
        }
        content.logs.sort_unstable();
        content.snapshots.sort_unstable();
        Ok(content)
    }

    fn names(&self) -> Result<Vec<String>, Error> {
        let failed = || failed(&self.path, "read");
        let entries = fs::read_dir(&self.path).map_err(failed())?;
        let names = entries.map(|entry| Ok(entry?.file_name().into_string().ok()));
        // A name that is not text is none of ours.
        names.filter_map(io::Result::transpose).collect::<io::Result<_>>().map_err(failed())
    }

    /// A file as messages name it.
    pub fn describe(&self, name: &str) -> String {
        self.path.join(name).display().to_string()
    }

    /// All of a file.
    pub fn read(&self, name: &str) -> Result<Vec<u8>, Error> {
        let path = self.path.join(name);
        fs::read(&path).map_err(failed(&path, "read"))
    }

    /// Cuts a file's tail off for good.
    pub fn truncate(&self, name: &str, len: u64) -> Result<(), Error> {
        let path = self.path.join(name);
        let cut = || -> io::Result<()> {
            let file = OpenOptions::new().write(true).open(&path)?;
            file.set_len(len)?;
            file.sync_all()
        };
        cut().map_err(failed(&path, "cut"))
    }

    /// A log, to append to.
    pub fn append_to(&self, name: &str) -> Result<File, Error> {
        let path = self.path.join(name);
        OpenOptions::new().append(true).open(&path).map_err(failed(&path, "opened"))
    }

    /// Makes an empty log of the commits after a revision.
    pub fn start_log(&self, base: u64) -> Result<(), Error> {
        let name = log_name(base);
        self.write(&name, |file| file.write_all(&log::new_log(base)))?;
        self.name(&name)
    }

    /// Writes a file that does not count yet, safely.
    pub fn write(&self, name: &str, fill: impl FnOnce(&mut File) -> io::Result<()>) -> Result<(), Error> {
        let path = self.temporary(name);
        let write = || -> io::Result<()> {
            let mut file = File::create(&path)?;
            fill(&mut file)?;
            file.sync_all()
        };
        write().map_err(failed(&path, "written"))
    }

    /// Gives a written file its name, safely: it is there with all that was written, or it is not there.
    pub fn name(&self, name: &str) -> Result<(), Error> {
        let path = self.path.join(name);
        fs::rename(self.temporary(name), &path).map_err(failed(&path, "named"))?;
        self.sync()
    }

    /// Forgets a written file that did not get its name.
    pub fn forget(&self, name: &str) {
        // It may not be there, and if it stays it is removed when the folder is opened the next time.
        let _ = fs::remove_file(self.temporary(name));
    }

    /// Removes everything that a snapshot of this revision makes superfluous.
    pub fn remove_before(&self, revision: u64) -> Result<(), Error> {
        let content = self.content()?;
        let old = |revisions: Vec<u64>| revisions.into_iter().filter(move |old| *old < revision);
        for name in old(content.snapshots).map(snapshot_name).chain(old(content.logs).map(log_name)) {
            self.remove(&name)?;
        }
        self.sync()
    }

    fn remove(&self, name: &str) -> Result<(), Error> {
        let path = self.path.join(name);
        fs::remove_file(&path).map_err(failed(&path, "removed"))
    }

    fn temporary(&self, name: &str) -> PathBuf {
        self.path.join([name, TEMPORARY].concat())
    }

    /// Makes names safe.
    fn sync(&self) -> Result<(), Error> {
        File::open(&self.path).and_then(|folder| folder.sync_all()).map_err(failed(&self.path, "synced"))
    }
}

fn revision_of(name: &str, end: &str) -> Option<u64> {
    name.strip_suffix(end).filter(|digits| digits.len() == 20)?.parse().ok()
}

fn failed(path: &Path, what: &'static str) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { path, what, source }
}
