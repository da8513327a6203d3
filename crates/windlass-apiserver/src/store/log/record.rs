//! What is in a frame: commits, objects, and the marks that end a file.

use super::Record;
use crate::store::{EventType, Kind, Object, Offsets, Pair, Parts};

const COMMITS: u8 = 1;
const OBJECTS: u8 = 2;
const CLOSE: u8 = 3;
const END: u8 = 4;

const CREATE: u8 = 1;
const UPDATE: u8 = 2;
const DELETE: u8 = 3;

/// The payload of a frame, ready to be read on.
pub enum Payload<'a> {
    /// Commits of this revision and the ones after it.
    Commits(u64, Reader<'a>),
    /// Objects of a kind.
    Objects(Kind, Reader<'a>),
    /// The log is complete; the next starts at this revision.
    Close(u64),
    /// The snapshot is complete; it holds so many objects.
    End(u64),
}

/// A commit that was read back.
pub enum Commit<'a> {
    /// An object was made.
    Create(Object),
    /// An object was replaced.
    Update(Object),
    /// The object of this key was removed.
    Delete(&'a str),
}

pub fn start_commits(out: &mut Vec<u8>, first: u64) {
    out.push(COMMITS);
    out.extend(first.to_le_bytes());
}

pub fn put_commit(out: &mut Vec<u8>, record: &Record) {
    let object = &record.event.object;
    out.push(match record.event.kind {
        EventType::Added => CREATE,
        EventType::Modified => UPDATE,
        EventType::Deleted => DELETE,
    });
    put_text(out, record.kind.as_str());
    match record.event.kind {
        EventType::Added | EventType::Modified => put_object(out, object),
        EventType::Deleted => put_text(out, object.key()),
    }
}

pub fn put_close(out: &mut Vec<u8>, next: u64) {
    out.push(CLOSE);
    out.extend(next.to_le_bytes());
}

pub fn start_objects(out: &mut Vec<u8>, kind: &Kind) {
    out.push(OBJECTS);
    put_text(out, kind.as_str());
}

pub fn put_end(out: &mut Vec<u8>, total: u64) {
    out.push(END);
    out.extend(total.to_le_bytes());
}

pub fn put_object(out: &mut Vec<u8>, object: &Object) {
    put_text(out, object.namespace());
    put_text(out, object.name());
    put_text(out, object.uid());
    for pairs in [object.labels(), object.fields()] {
        put_len(out, pairs.len());
        for pair in pairs {
            put_text(out, Pair::key(pair));
            put_text(out, pair.value());
        }
    }
    let Offsets { prefix_len, meta, revision } = object.offsets();
    for offset in [prefix_len, meta.start, meta.end, revision.start, revision.end] {
        put_len(out, offset);
    }
    out.push(object.filled().into());
    put_len(out, object.body().len());
    out.extend_from_slice(object.body());
}

fn put_len(out: &mut Vec<u8>, len: usize) {
    out.extend(u32::try_from(len).expect("an object counts in 32 bits").to_le_bytes());
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_len(out, text.len());
    out.extend(text.as_bytes());
}

/// True if a payload may be one of a log that comes after a revision.
pub fn plausible(payload: &[u8], after: u64, within: usize) -> bool {
    let revision =
        payload.get(1..).and_then(|rest| rest.first_chunk()).map(|bytes| u64::from_le_bytes(*bytes));
    // Every commit takes more than a byte, so the next frame's revision is not further off than the file is long.
    matches!(payload.first(), Some(&COMMITS | &CLOSE))
        && revision.is_some_and(|revision| revision > after && revision - after <= within as u64)
}

/// Reads a payload's start. `None` if it makes no sense, which a good checksum leaves only to faults of whoever
/// wrote it.
pub fn read(payload: &[u8]) -> Option<Payload<'_>> {
    let mut reader = Reader(payload);
    let payload = match reader.u8()? {
        COMMITS => Payload::Commits(reader.u64()?, reader),
        OBJECTS => Payload::Objects(Kind::from_qualified(reader.text()?), reader),
        CLOSE => Payload::Close(reader.last_u64()?),
        END => Payload::End(reader.last_u64()?),
        _ => return None,
    };
    Some(payload)
}

/// Bytes that are read from the front.
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// True if all is read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next commit.
    pub fn commit(&mut self) -> Option<(Kind, Commit<'a>)> {
        let what = self.u8()?;
        let kind = Kind::from_qualified(self.text()?);
        let commit = match what {
            CREATE => Commit::Create(self.object()?),
            UPDATE => Commit::Update(self.object()?),
            DELETE => Commit::Delete(self.text()?),
            _ => return None,
        };
        Some((kind, commit))
    }

    /// The next object.
    pub fn object(&mut self) -> Option<Object> {
        let (namespace, name, uid) = (self.text()?, self.text()?, self.text()?);
        let (labels, fields) = (self.pairs()?, self.pairs()?);
        let prefix_len = self.len()?;
        let meta = self.len()?..self.len()?;
        let revision = self.len()?..self.len()?;
        let filled = self.u8()? != 0;
        let len = self.len()?;
        let body = self.take(len)?.to_vec();
        let offsets = Offsets { prefix_len, meta, revision };
        Object::new(Parts { namespace, name, uid, labels, fields, body, offsets, filled }).ok()
    }

    fn pairs(&mut self) -> Option<Vec<(&'a str, &'a str)>> {
        let count = self.len()?;
        (0..count).map(|_| Some((self.text()?, self.text()?))).collect()
    }

    fn text(&mut self) -> Option<&'a str> {
        let len = self.len()?;
        std::str::from_utf8(self.take(len)?).ok()
    }

    fn len(&mut self) -> Option<usize> {
        let bytes = self.take(4)?;
        Some(u32::from_le_bytes(*bytes.first_chunk()?) as usize)
    }

    fn last_u64(&mut self) -> Option<u64> {
        self.u64().filter(|_| self.is_empty())
    }

    fn u64(&mut self) -> Option<u64> {
        let bytes = self.take(8)?;
        Some(u64::from_le_bytes(*bytes.first_chunk()?))
    }

    fn u8(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }
}
