//! A piece of an answer: bytes of its own, and stored texts that are sent from where they are.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::ops::Range;
use std::sync::Arc;

use bytes::{Buf, Bytes};

use crate::store::{BETWEEN, Object};

/// Bytes on their way to a client, in one part or in several that lie apart. As a [`Buf`] it is read without bringing
/// them together.
#[derive(Debug, Default)]
pub struct Piece {
    parts: VecDeque<Part>,
    len: usize,
}

#[derive(Debug)]
enum Part {
    Own(Bytes),
    /// This range of an object's [body and what follows](Object::body_between).
    Stored(Arc<Object>, Range<usize>),
}

impl Part {
    fn bytes(&self) -> &[u8] {
        match self {
            Part::Own(bytes) => bytes,
            Part::Stored(object, range) => &object.body_between()[range.clone()],
        }
    }

    fn advance(&mut self, count: usize) {
        match self {
            Part::Own(bytes) => bytes.advance(count),
            Part::Stored(_, range) => range.start += count,
        }
    }
}

impl Piece {
    fn push(&mut self, part: Part) {
        self.len += part.bytes().len();
        self.parts.push_back(part);
    }

    /// All of it in one.
    pub fn into_bytes(mut self) -> Bytes {
        // What is one already is not copied.
        let len = self.parts.front().map_or(0, |part| part.bytes().len());
        match self.parts.pop_front() {
            Some(Part::Own(bytes)) if len == self.len => bytes,
            Some(part) => {
                self.parts.push_front(part);
                self.copy_to_bytes(self.len)
            }
            None => Bytes::new(),
        }
    }
}

/// Writes a piece.
#[derive(Default)]
pub(super) struct Writer {
    piece: Piece,
    /// What comes after the parts that are there.
    open: Vec<u8>,
}

impl Writer {
    /// How long the piece is.
    pub fn len(&self) -> usize {
        self.piece.len + self.open.len()
    }

    /// How many parts it has.
    pub fn parts(&self) -> usize {
        self.piece.parts.len()
    }

    /// The end of the piece, to write to.
    pub fn open(&mut self) -> &mut Vec<u8> {
        &mut self.open
    }

    /// Adds the end of an object's body, uncopied, with what stands before it: nothing, `{`, `,` or `,{`.
    pub fn push(&mut self, before: &'static [u8], object: Arc<Object>, from: usize) {
        self.seal();
        let range = from..object.body().len();
        match self.piece.parts.back_mut() {
            // Behind the body before it, it is stored already. Looking there would wait for memory: the end of a body
            // is read when it is sent, and not before.
            Some(Part::Stored(last, range))
                if range.end == last.body().len() && BETWEEN.as_bytes().starts_with(before) =>
            {
                range.end += before.len();
                self.piece.len += before.len();
            }
            _ if before.is_empty() => {}
            _ => self.piece.push(Part::Own(Bytes::from_static(before))),
        }
        self.piece.push(Part::Stored(object, range));
    }

    /// The piece.
    pub fn finish(mut self) -> Piece {
        self.seal();
        self.piece
    }

    fn seal(&mut self) {
        if !self.open.is_empty() {
            self.piece.push(Part::Own(std::mem::take(&mut self.open).into()));
        }
    }
}

impl From<Bytes> for Piece {
    fn from(bytes: Bytes) -> Piece {
        let mut piece = Piece::default();
        if !bytes.is_empty() {
            piece.push(Part::Own(bytes));
        }
        piece
    }
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.len
    }

    fn chunk(&self) -> &[u8] {
        self.parts.front().map_or(&[], Part::bytes)
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let filled = slices.iter_mut().zip(&self.parts);
        filled.map(|(slice, part)| *slice = IoSlice::new(part.bytes())).count()
    }

    fn advance(&mut self, mut count: usize) {
        assert!(count <= self.len, "{count} bytes of {}", self.len);
        self.len -= count;
        while let Some(part) = self.parts.front_mut().filter(|_| count > 0) {
            let step = count.min(part.bytes().len());
            part.advance(step);
            count -= step;
            if part.bytes().is_empty() {
                self.parts.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::object;

    #[test]
    fn parts_that_lie_apart_read_as_one() {
        let object = Arc::new(object("default", "a", 1, &[]));
        let body = object.body().to_vec();
        let make = || {
            let mut writer = Writer::default();
            writer.open().extend_from_slice(b"[");
            writer.push(b"", object.clone(), 0);
            writer.push(b",", object.clone(), 0);
            writer.push(b",{", object.clone(), 1);
            writer.open().extend_from_slice(b"]");
            writer.push(b"{", object.clone(), 1);
            assert_eq!((writer.len(), writer.parts()), (4 * body.len() + 4, 7));
            writer.finish()
        };
        let whole = [b"[", &*body, b",", &body, b",{", &body[1..], b"]{", &body[1..]].concat();
        assert_eq!(make().into_bytes(), whole);
        for step in [1, 7, body.len(), whole.len()] {
            let (mut piece, mut read) = (make(), Vec::new());
            while piece.has_remaining() {
                let mut slices = [IoSlice::new(&[]); 3];
                let filled = piece.chunks_vectored(&mut slices);
                let seen: Vec<u8> = slices[..filled].iter().flat_map(|slice| slice.to_vec()).collect();
                assert!(seen.starts_with(piece.chunk()) && !piece.chunk().is_empty());
                let step = step.min(seen.len());
                read.extend_from_slice(&seen[..step]);
                piece.advance(step);
            }
            assert_eq!(read, whole);
        }
        assert_eq!(Piece::from(Bytes::from_static(b"x")).into_bytes(), "x");
        assert_eq!(Piece::from(Bytes::new()).into_bytes(), "");
    }
}
