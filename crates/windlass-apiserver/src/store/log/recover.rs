//! From bytes back to a store.

use thiserror::Error;

use super::frame::{self, FileKind, Found, HEADER};
use super::record::{self, Commit, Payload};
use crate::store::{Change, Kind, Limits, Store};

/// A store that is being read back: the newest snapshot first, then the logs from it on.
pub struct Recovery {
    store: Store,
    commits: u64,
    cut: Option<Cut>,
    /// The last file that was read: its name, its length, and the revision at which a log must follow, if one must.
    last: Option<(String, usize, Option<u64>)>,
}

/// A store that was read back.
pub struct Recovered {
    /// The store as of the last commit that was written completely.
    pub store: Store,
    /// How many commits came from logs.
    pub commits: u64,
    /// The incomplete tail, if there was one.
    pub cut: Option<Cut>,
}

/// An incomplete tail of a log. Nobody was told that what it holds had happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The file.
    pub file: String,
    /// How many bytes of it are good.
    pub keep: u64,
    /// How many bytes follow that are not.
    pub drop: u64,
}

/// A file that is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file} is damaged at byte {offset}: {fault}; {}", .fault.advice(.file, *.offset))]
pub struct Damaged {
    /// The file.
    pub file: String,
    /// Where in it.
    pub offset: u64,
    /// What is wrong there.
    pub fault: Fault,
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// It does not start as such a file does.
    #[error("its header is not one of ours, or does not match its checksum")]
    Header,
    /// It was written in another format.
    #[error("it has format version {found}, and this program knows version {known}")]
    Version {
        /// The version that the file names.
        found: u32,
        /// The version that can be read.
        known: u32,
    },
    /// A checksum does not match, and what follows shows that it did once.
    #[error("the checksum does not match, and it is not the torn end of a last write")]
    Checksum,
    /// It ends before it should.
    #[error("it is not complete")]
    Incomplete,
    /// Its content cannot be what was written.
    #[error("{0}")]
    Content(&'static str),
    /// The revisions do not follow one another.
    #[error("it goes on after revision {found}, but what came before it ends at revision {expected}")]
    Gap {
        /// Where the files read before end.
        expected: u64,
        /// Where this one says that they do.
        found: u64,
    },
    /// A log must follow, and there is none.
    #[error("it is followed by {next:020}.log, which is missing")]
    Missing {
        /// The revision after which the missing log starts.
        next: u64,
    },
}

impl Fault {
    /// What can be done.
    fn advice(&self, file: &str, offset: u64) -> String {
        match self {
            Fault::Version { .. } => "open it with the version of windlass that wrote it".to_owned(),
            Fault::Gap { .. } | Fault::Missing { .. } => {
                "a file of the data folder is missing: put it back, or restore the folder from a backup"
                    .to_owned()
            }
            Fault::Checksum => format!(
                "restore the data folder from a backup; to give up every write after this point instead, remove \
                 any later logs and run `truncate -s {offset} {file}`"
            ),
            Fault::Header | Fault::Incomplete | Fault::Content(_) => {
                "restore the data folder from a backup".to_owned()
            }
        }
    }
}

impl Recovery {
    /// Nothing read yet.
    pub fn new(limits: Limits) -> Recovery {
        Recovery { store: Store::new(limits), commits: 0, cut: None, last: None }
    }

    /// Reads the newest snapshot; where there is one, this comes first.
    pub fn snapshot(&mut self, file: &str, bytes: &[u8]) -> Result<(), Damaged> {
        let damaged = |offset: usize, fault| Damaged { file: file.to_owned(), offset: offset as u64, fault };
        let revision = frame::read_header(FileKind::Snapshot, bytes).map_err(|fault| damaged(0, fault))?;
        let mut at = HEADER;
        let mut total = 0;
        loop {
            if at == bytes.len() {
                return Err(damaged(at, Fault::Incomplete));
            }
            let content = |what| damaged(at, Fault::Content(what));
            let (payload, end) = match frame::read_frame(bytes, at) {
                Found::Frame(payload, end) => (payload, end),
                Found::Torn | Found::Broken => return Err(content("a checksum does not match")),
            };
            match record::read(payload) {
                Some(Payload::Objects(kind, mut reader)) => {
                    while !reader.is_empty() {
                        let object = reader.object().ok_or_else(|| content("an object does not read"))?;
                        if object.revision() > revision {
                            return Err(content("an object is newer than the snapshot"));
                        }
                        if !self.store.load(&kind, object) {
                            return Err(content("an object is there twice"));
                        }
                        total += 1;
                    }
                }
                Some(Payload::End(count)) if count == total => {
                    at = end;
                    break;
                }
                Some(Payload::End(_)) => return Err(content("the number of objects is not what it was")),
                _ => return Err(content("a frame does not belong into a snapshot")),
            }
            at = end;
        }
        if at != bytes.len() {
            return Err(damaged(at, Fault::Content("something follows the end")));
        }
        self.store.loaded(revision);
        self.last = Some((file.to_owned(), bytes.len(), Some(revision)));
        Ok(())
    }

    /// The revision that the files read so far lead to.
    pub fn revision(&self) -> u64 {
        self.store.revision()
    }

    /// Reads the next log.
    pub fn log(&mut self, file: &str, bytes: &[u8]) -> Result<(), Damaged> {
        let damaged = |offset: usize, fault| Damaged { file: file.to_owned(), offset: offset as u64, fault };
        let base = frame::read_header(FileKind::Log, bytes).map_err(|fault| damaged(0, fault))?;
        let expected = self.store.revision();
        if base != expected {
            return Err(damaged(16, Fault::Gap { expected, found: base }));
        }
        let mut at = HEADER;
        let mut next = None;
        while at < bytes.len() {
            if next.is_some() {
                return Err(damaged(at, Fault::Content("something follows the frame that closes the log")));
            }
            let (payload, end) = match frame::read_frame(bytes, at) {
                Found::Frame(payload, end) => (payload, end),
                Found::Torn if self.cut.is_none() && !self.goes_on(bytes, at) => {
                    let (keep, drop) = (at as u64, (bytes.len() - at) as u64);
                    self.cut = Some(Cut { file: file.to_owned(), keep, drop });
                    break;
                }
                Found::Torn | Found::Broken => return Err(damaged(at, Fault::Checksum)),
            };
            // A log is torn only by a crash, and after that nothing was written before the tail was cut.
            if let Some(Cut { file, keep: offset, .. }) = self.cut.clone() {
                return Err(Damaged { file, offset, fault: Fault::Checksum });
            }
            match record::read(payload) {
                Some(Payload::Commits(first, reader)) => {
                    self.commits(first, reader).map_err(|fault| damaged(at, fault))?;
                }
                Some(Payload::Close(revision)) if revision == self.store.revision() => next = Some(revision),
                Some(Payload::Close(found)) => {
                    return Err(damaged(at, Fault::Gap { expected: self.store.revision(), found }));
                }
                _ => return Err(damaged(at, Fault::Content("a frame does not belong into a log"))),
            }
            at = end;
        }
        self.last = Some((file.to_owned(), bytes.len(), next));
        Ok(())
    }

    /// The store, when all files are read.
    pub fn finish(self) -> Result<Recovered, Damaged> {
        match self.last {
            Some((file, len, Some(next))) => {
                Err(Damaged { file, offset: len as u64, fault: Fault::Missing { next } })
            }
            _ => Ok(Recovered { store: self.store, commits: self.commits, cut: self.cut }),
        }
    }

    /// True if there is a good frame somewhere after an offset: then what is at the offset was once good too.
    fn goes_on(&self, bytes: &[u8], at: usize) -> bool {
        let plausible = |payload: &[u8]| record::plausible(payload, self.store.revision(), bytes.len());
        let mut later = (at..bytes.len()).step_by(frame::ALIGNED).skip(1);
        later.any(|at| frame::good_frame(bytes, at, plausible).is_some())
    }

    fn commits(&mut self, first: u64, mut reader: record::Reader<'_>) -> Result<(), Fault> {
        let expected = self.store.revision();
        if first != expected + 1 {
            return Err(Fault::Gap { expected, found: first.saturating_sub(1) });
        }
        while !reader.is_empty() {
            let (kind, commit) = reader.commit().ok_or(Fault::Content("a commit does not read"))?;
            self.commit(&kind, commit)?;
            self.commits += 1;
        }
        Ok(())
    }

    fn commit(&mut self, kind: &Kind, commit: Commit<'_>) -> Result<(), Fault> {
        let current = |key: &str| self.store.find(kind, key).map_or(0, |object| object.revision());
        let change = match commit {
            Commit::Create(object) => Change::Create(object),
            Commit::Update(object) => Change::Update { expected: current(object.key()), object },
            Commit::Delete(key) => Change::Delete { key: key.to_owned(), expected: current(key) },
        };
        if let Change::Create(object) | Change::Update { object, .. } = &change
            && object.revision() != self.store.next_revision()
        {
            return Err(Fault::Content("an object is not of the revision of its commit"));
        }
        match self.store.commit(kind, change) {
            Ok(_) => Ok(()),
            Err(_) => Err(Fault::Content("a commit does not fit the object before it")),
        }
    }
}
