//! Headers and frames: lengths and checksums around bytes.

use super::recover::Fault;

/// The format that this code writes and reads.
const VERSION: u32 = 2;
/// How long a header is.
pub const HEADER: usize = 32;
/// The length and the checksum before a frame's content.
pub const AROUND: usize = 8;
/// The length of every frame is a multiple of this: no disk writes half of so little, so a length is there or it
/// is not.
pub const ALIGNED: usize = 8;
/// No content is longer: a frame is [full](super::FRAME_FULL) before it takes its last record, and a record is
/// little longer than its body, which is at most [`BODY_MAX`](crate::store::object::BODY_MAX).
pub const CONTENT_MAX: usize = 2 * crate::store::object::BODY_MAX;

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// Commits after a revision.
    Log,
    /// Every object as of a revision.
    Snapshot,
}

impl FileKind {
    fn magic(self) -> &'static [u8; 8] {
        match self {
            FileKind::Log => b"windlasL",
            FileKind::Snapshot => b"windlasS",
        }
    }
}

/// The header of a file.
pub fn header(kind: FileKind, base: u64) -> [u8; HEADER] {
    let mut out = [0; HEADER];
    out[..8].copy_from_slice(kind.magic());
    out[8..12].copy_from_slice(&VERSION.to_le_bytes());
    out[16..24].copy_from_slice(&base.to_le_bytes());
    let sum = crc32fast::hash(&out[..28]);
    out[28..].copy_from_slice(&sum.to_le_bytes());
    out
}

/// The base revision that a header tells.
pub fn read_header(kind: FileKind, bytes: &[u8]) -> Result<u64, Fault> {
    let header: &[u8; HEADER] = bytes.first_chunk().ok_or(Fault::Header)?;
    // The version comes before the checksum: another version may lay out the rest differently.
    if &header[..8] != kind.magic() {
        return Err(Fault::Header);
    }
    let found = u32_at(header, 8).ok_or(Fault::Header)?;
    let intact = u32_at(header, 28) == Some(crc32fast::hash(&header[..28]));
    let base = u64::from_le_bytes(*header[16..].first_chunk().ok_or(Fault::Header)?);
    match (found, intact) {
        // Clients read revisions as signed numbers, so none is ever above that.
        (VERSION, true) if i64::try_from(base).is_ok() => Ok(base),
        (VERSION | 0, _) => Err(Fault::Header),
        _ => Err(Fault::Version { found, known: VERSION }),
    }
}

/// Adds a frame to `out`, whose payload `fill` appends. Its content is the number of padding bytes, the payload,
/// the padding.
pub fn frame(out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend([0; AROUND + 1]);
    fill(out);
    let padding = (out.len() - start).next_multiple_of(ALIGNED) - (out.len() - start);
    out.resize(out.len() + padding, 0);
    out[start + AROUND] = padding as u8;
    let len = out.len() - start - AROUND;
    assert!(len <= CONTENT_MAX, "a frame of {len} bytes could not be read back");
    out[start..start + 4].copy_from_slice(&(len as u32).to_le_bytes());
    let sum = checksum(len as u32, &out[start + AROUND..]);
    out[start + 4..start + AROUND].copy_from_slice(&sum.to_le_bytes());
}

/// The length counts too: otherwise a stretch of zeros would be a row of good empty frames.
fn checksum(len: u32, content: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&len.to_le_bytes());
    hasher.update(content);
    hasher.finalize()
}

/// What stands at an offset where a frame should start.
pub enum Found<'a> {
    /// A good frame: its payload, and where the next one starts.
    Frame(&'a [u8], usize),
    /// A frame that the end of the file cuts short, or that ends with it and is not what was meant, or zeros
    /// where its length should be.
    Torn,
    /// A frame that is complete, and is not what was meant, with something after it.
    Broken,
}

/// Reads what stands at an offset that is inside of the file.
pub fn read_frame(bytes: &[u8], at: usize) -> Found<'_> {
    if let Some(payload) = good_frame(bytes, at, |_| true) {
        let len = u32_at(bytes, at).expect("a good frame has a length");
        return Found::Frame(payload, at + AROUND + len as usize);
    }
    let rest = bytes.len() - at;
    match u32_at(bytes, at) {
        // More than one write has: what is broken was followed by others.
        _ if rest > AROUND + CONTENT_MAX => Found::Broken,
        // The pages of one write may reach the disk in any order, the one with the length last.
        None | Some(0) => Found::Torn,
        Some(len) if AROUND + (len as usize) < rest => Found::Broken,
        Some(_) => Found::Torn,
    }
}

/// The payload of a good frame at any offset, if `plausible` says that it may be one: asked before the checksum is
/// reckoned, which keeps a search through bytes that mean nothing short.
pub fn good_frame(bytes: &[u8], at: usize, plausible: impl Fn(&[u8]) -> bool) -> Option<&[u8]> {
    let len = u32_at(bytes, at).filter(|len| *len as usize <= CONTENT_MAX)?;
    let content = bytes.get(at + AROUND..)?.get(..len as usize)?;
    let (padding, rest) = content.split_first()?;
    let payload = &rest[..rest.len().checked_sub(*padding as usize)?];
    (plausible(payload) && u32_at(bytes, at + 4)? == checksum(len, content)).then_some(payload)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}
