//! The thread that owns the log, and the one that writes snapshots.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::thread::JoinHandle;

use super::folder::{Folder, log_name, snapshot_name};
use super::shared::{Rotation, Shared};
use super::{Error, Options, Sizes, Step};
use crate::store::Store;
use crate::store::log::{self, Record};

/// What the writing thread owns.
pub struct Writer {
    folder: Arc<Folder>,
    log: File,
    sizes: Sizes,
    options: Options,
    shared: Arc<Shared>,
    /// One frame; kept for its capacity.
    buffer: Vec<u8>,
    /// The thread that writes a snapshot; it gives back how large it became.
    snapshot: Option<JoinHandle<Result<u64, Error>>>,
}

impl Writer {
    pub fn new(folder: Folder, log: File, sizes: Sizes, options: Options, shared: Arc<Shared>) -> Writer {
        let folder = Arc::new(folder);
        Writer { folder, log, sizes, options, shared, buffer: Vec::new(), snapshot: None }
    }

    /// Writes until no more is coming, or something fails.
    pub fn run(mut self) {
        // However this thread ends, nobody is left waiting.
        let _ended = Ended(self.shared.clone());
        while let Some(work) = self.shared.take() {
            let upto = work.rotate.as_ref().map_or(u64::MAX, |store| store.revision());
            let rotated = work.records.partition_point(|record| record.event.revision <= upto);
            let (before, after) = work.records.split_at(rotated);
            let done = self.write(before).and_then(|()| match work.rotate {
                Some(store) => self.rotate(*store),
                None => Ok(()),
            });
            if let Err(error) = done.and_then(|()| self.write(after)) {
                self.shared.fail(error);
                break;
            }
            self.consider_rotation();
        }
        self.finish_snapshot();
    }

    fn write(&mut self, mut records: &[Record]) -> io::Result<()> {
        while !records.is_empty() {
            self.buffer.clear();
            let taken = log::add_commits(&mut self.buffer, records);
            self.write_buffer()?;
            self.shared.made_safe(records[taken - 1].event.revision);
            records = &records[taken..];
        }
        Ok(())
    }

    fn write_buffer(&mut self) -> io::Result<()> {
        self.log.write_all(&self.buffer)?;
        self.log.sync_data()?;
        self.sizes.logs += self.buffer.len() as u64;
        Ok(())
    }

    /// Asks for the state of the store when the logs have become long.
    fn consider_rotation(&mut self) {
        if self.snapshot.as_ref().is_some_and(JoinHandle::is_finished) {
            self.finish_snapshot();
        }
        let long = self.sizes.logs > self.options.rotate_min.max(2 * self.sizes.snapshot);
        if long && self.snapshot.is_none() {
            let mut state = self.shared.lock();
            if matches!(state.rotation, Rotation::Idle) {
                state.rotation = Rotation::Wanted;
            }
        }
    }

    /// Starts a new log at a store's revision, and lets the store be written as a snapshot beside it.
    fn rotate(&mut self, store: Store) -> io::Result<()> {
        let revision = store.revision();
        self.folder.start_log(revision).map_err(io::Error::other)?;
        let next = self.folder.append_to(&log_name(revision)).map_err(io::Error::other)?;
        tell(&self.options, Step::LogStarted(revision));
        self.buffer.clear();
        log::add_close(&mut self.buffer, revision);
        self.write_buffer()?;
        tell(&self.options, Step::LogClosed(revision));
        self.log = next;
        // From here on the new log's size counts; a snapshot that fails is tried again when it has grown.
        self.sizes.logs = 0;
        let (folder, options) = (self.folder.clone(), self.options.clone());
        let thread = std::thread::Builder::new().name("windlass-snapshot".to_owned());
        match thread.spawn(move || write_snapshot(&folder, &options, &store)) {
            Ok(thread) => self.snapshot = Some(thread),
            Err(error) => self.end_rotation(Err(error)),
        }
        Ok(())
    }

    /// Takes the result of the snapshot's thread; waits for it if need be.
    fn finish_snapshot(&mut self) {
        let Some(thread) = self.snapshot.take() else { return };
        let snapshot = match thread.join() {
            Ok(snapshot) => snapshot.map_err(io::Error::other),
            Err(_) => Err(io::Error::other("the thread that writes snapshots panicked")),
        };
        self.end_rotation(snapshot);
    }

    fn end_rotation(&mut self, snapshot: io::Result<u64>) {
        match snapshot {
            Ok(size) => self.sizes.snapshot = size,
            Err(error) => tell(&self.options, Step::SnapshotFailed(error)),
        }
        self.shared.lock().rotation = Rotation::Idle;
    }
}

fn write_snapshot(folder: &Folder, options: &Options, store: &Store) -> Result<u64, Error> {
    let revision = store.revision();
    let name = snapshot_name(revision);
    let mut size = 0;
    let written = folder.write(&name, |file| {
        log::write_snapshot(store, |piece| {
            size += piece.len() as u64;
            file.write_all(piece)
        })
    });
    if written.is_err() {
        folder.forget(&name);
    }
    written?;
    tell(options, Step::SnapshotWritten(revision));
    folder.name(&name)?;
    tell(options, Step::SnapshotNamed(revision));
    folder.remove_before(revision)?;
    tell(options, Step::OldRemoved(revision));
    Ok(size)
}

fn tell(options: &Options, step: Step) {
    if let Some(observer) = &options.observer {
        observer(&step);
    }
}

/// Answers those who still wait when the writing thread ends.
struct Ended(Arc<Shared>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.fail(io::Error::other("the log is closed"));
    }
}
