//! The store on disk, as bytes: what a data folder's files hold, and how a store comes back from them.
//!
//! ```text
//! 00000000000000000001.log        header │ frame │ frame │ …     the commits after revision 1
//! 00000000000000004711.snapshot   header │ frame │ … │ end       every object as of revision 4711
//! 00000000000000004711.log        header │ frame │ …             the commits after revision 4711
//!
//! header   magic (8) │ format version u32 │ 0 u32 │ base revision u64 │ 0 u32 │ CRC-32 of these u32
//! frame    length u32 │ CRC-32 of length and content u32 │ content     numbers are little-endian
//! ```
//!
//! One frame is what one `fsync` made safe, and the next is written only after that: so whatever a crash did, only
//! the last frame of the last log can be incomplete, and nobody was told that its commits happened. Such a tail
//! is cut. Anything else that does not read is damage to commits that somebody was told of, and is refused.
//!
//! A new log starts before the snapshot that makes the older one superfluous is written; then the older one is
//! closed with a frame that names its successor. So at every moment the newest snapshot and the logs from it on
//! hold everything, and a log that went missing is noticed.

mod frame;
mod record;
mod recover;
#[cfg(test)]
mod tests;

use super::{Event, Kind, Store};

pub use recover::{Cut, Damaged, Fault, Recovered, Recovery};

use frame::{FileKind, frame, header};

/// A commit to be kept.
#[derive(Clone, Debug)]
pub struct Record {
    /// The kind of the object.
    pub kind: Kind,
    /// What happened to it.
    pub event: Event,
}

/// How many bytes of commits are enough for one frame.
const FRAME_FULL: usize = 4 << 20;
/// How many bytes of objects are enough for one frame of a snapshot.
const CHUNK_FULL: usize = 1 << 20;

/// A fresh log of the commits after a revision.
pub fn new_log(base: u64) -> Vec<u8> {
    header(FileKind::Log, base).to_vec()
}

/// Adds a frame of commits to `out`, and says how many of the records it took: not all where they are many. The
/// frame must be safe on disk before the next is written.
pub fn add_commits(out: &mut Vec<u8>, records: &[Record]) -> usize {
    let mut taken = 0;
    frame(out, |out| {
        let start = out.len();
        let first = records.first().map_or(0, |record| record.event.revision);
        record::start_commits(out, first);
        while taken < records.len() && out.len() - start < FRAME_FULL {
            record::put_commit(out, &records[taken]);
            taken += 1;
        }
    });
    taken
}

/// Adds the frame that closes a log: the next log starts at this revision.
pub fn add_close(out: &mut Vec<u8>, next: u64) {
    frame(out, |out| record::put_close(out, next));
}

/// Writes a store's present state as a snapshot file, piece by piece.
pub fn write_snapshot<E>(store: &Store, mut sink: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
    sink(&header(FileKind::Snapshot, store.revision()))?;
    let mut total = 0;
    let mut out = Vec::new();
    for kind in store.kinds() {
        let snapshot = store.list(kind);
        let mut objects = snapshot.range(None, None).peekable();
        while objects.peek().is_some() {
            out.clear();
            frame(&mut out, |out| {
                record::start_objects(out, kind);
                while out.len() < CHUNK_FULL
                    && let Some(object) = objects.next()
                {
                    record::put_object(out, object);
                    total += 1;
                }
            });
            sink(&out)?;
        }
    }
    out.clear();
    frame(&mut out, |out| record::put_end(out, total));
    sink(&out)
}
