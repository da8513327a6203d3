//! Frames: what a SPDY connection is cut into.

use std::io;

use bytes::{BufMut as _, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// A frame. Header blocks are still compressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// The client opens a stream.
    SynStream { stream: u32, fin: bool, block: Bytes },
    /// Its acceptance.
    SynReply { stream: u32, fin: bool, block: Bytes },
    /// A stream is over, both ways, at once.
    RstStream { stream: u32, status: u32 },
    /// Is anybody there? The answer is the same frame.
    Ping { id: u32 },
    /// No more streams are opened.
    GoAway { last_stream: u32, status: u32 },
    /// More headers of a stream. The compression is one for the whole connection, so they must be read.
    Headers { stream: u32, fin: bool, block: Bytes },
    /// What a stream carries.
    Data { stream: u32, fin: bool, bytes: Bytes },
    /// Settings, window updates, and what is unknown: nothing is done about them.
    Other,
}

/// Nobody needs a longer frame: the peers cut their data into pieces of 32 KiB.
const LENGTH_MAX: usize = 4 << 20;

const CONTROL: u32 = 0x8000_0000;
const VERSION: u32 = 3;
const FIN: u8 = 1;

impl Frame {
    /// Reads the next frame; `None` when the connection has ended between two.
    pub async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Frame>> {
        let mut head = [0; 8];
        if from.read(&mut head[..1]).await? == 0 {
            return Ok(None);
        }
        from.read_exact(&mut head[1..]).await?;
        let word = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
        let flags = head[4];
        let length = u32::from_be_bytes([0, head[5], head[6], head[7]]) as usize;
        if length > LENGTH_MAX {
            return Err(invalid("a frame is too long"));
        }
        let mut body = vec![0; length];
        from.read_exact(&mut body).await?;
        Frame::parse(word, flags, Bytes::from(body)).map(Some)
    }

    fn parse(word: u32, flags: u8, mut body: Bytes) -> io::Result<Frame> {
        let fin = flags & FIN != 0;
        if word & CONTROL == 0 {
            return Ok(Frame::Data { stream: word, fin, bytes: body });
        }
        if (word >> 16) & 0x7fff != VERSION {
            return Err(invalid("a frame is of another version than 3"));
        }
        let mut number = || match body.len() {
            0..4 => Err(invalid("a frame is too short")),
            _ => {
                let four = body.split_to(4);
                Ok(u32::from_be_bytes([four[0], four[1], four[2], four[3]]) & !CONTROL)
            }
        };
        Ok(match word & 0xffff {
            1 => {
                let (stream, _associated) = (number()?, number()?);
                if body.len() < 2 {
                    return Err(invalid("a frame is too short"));
                }
                Frame::SynStream { stream, fin, block: body.split_off(2) }
            }
            2 => Frame::SynReply { stream: number()?, fin, block: body },
            3 => Frame::RstStream { stream: number()?, status: number()? },
            6 => {
                // An id has all its bits.
                let id = <[u8; 4]>::try_from(&body[..]).map_err(|_| invalid("a ping has four bytes"))?;
                Frame::Ping { id: u32::from_be_bytes(id) }
            }
            7 => Frame::GoAway { last_stream: number()?, status: number()? },
            8 => Frame::Headers { stream: number()?, fin, block: body },
            _ => Frame::Other,
        })
    }

    /// The frame as bytes, after what is in `out`.
    pub fn write(&self, out: &mut BytesMut) {
        let control = |out: &mut BytesMut, kind: u32, fin: bool, length: usize| {
            out.put_u32(CONTROL | VERSION << 16 | kind);
            out.put_u32(u32::from(fin) << 24 | length as u32);
        };
        match self {
            Frame::SynStream { stream, fin, block } => {
                control(out, 1, *fin, block.len() + 10);
                out.put_u32(*stream);
                out.put_u32(0);
                out.put_u16(0);
                out.put_slice(block);
            }
            Frame::SynReply { stream, fin, block } | Frame::Headers { stream, fin, block } => {
                let kind = if matches!(self, Frame::SynReply { .. }) { 2 } else { 8 };
                control(out, kind, *fin, block.len() + 4);
                out.put_u32(*stream);
                out.put_slice(block);
            }
            Frame::RstStream { stream, status } => {
                control(out, 3, false, 8);
                out.put_u32(*stream);
                out.put_u32(*status);
            }
            Frame::Ping { id } => {
                control(out, 6, false, 4);
                out.put_u32(*id);
            }
            Frame::GoAway { last_stream, status } => {
                control(out, 7, false, 8);
                out.put_u32(*last_stream);
                out.put_u32(*status);
            }
            Frame::Data { stream, fin, bytes } => {
                out.put_u32(*stream);
                out.put_u32(u32::from(*fin) << 24 | bytes.len() as u32);
                out.put_slice(bytes);
            }
            Frame::Other => {}
        }
    }
}

pub(super) fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use proptest::prelude::*;

    use super::*;

    #[tokio::test]
    async fn frames_are_read_as_they_were_written() {
        let block = Bytes::from_static(b"block");
        let frames = [
            Frame::SynStream { stream: 1, fin: false, block: block.clone() },
            Frame::SynReply { stream: 1, fin: true, block: block.clone() },
            Frame::RstStream { stream: 3, status: 5 },
            Frame::Ping { id: 0x8000_0001 },
            Frame::GoAway { last_stream: 7, status: 0 },
            Frame::Headers { stream: 5, fin: false, block },
            Frame::Data { stream: 9, fin: true, bytes: Bytes::from_static(b"data") },
        ];
        let mut bytes = BytesMut::new();
        for frame in &frames {
            frame.write(&mut bytes);
        }
        let mut from = &bytes[..];
        for frame in &frames {
            assert_eq!(Frame::read(&mut from).await.unwrap().as_ref(), Some(frame));
        }
        assert_eq!(Frame::read(&mut from).await.unwrap(), None);
    }

    fn bytes() -> impl Strategy<Value = Bytes> {
        prop::collection::vec(any::<u8>(), 0..100).prop_map(Bytes::from)
    }

    fn frames() -> impl Strategy<Value = Frame> {
        let id = || 0..CONTROL;
        prop_oneof![
            (id(), any::<bool>(), bytes()).prop_map(|(stream, fin, block)| Frame::SynStream {
                stream,
                fin,
                block
            }),
            (id(), any::<bool>(), bytes()).prop_map(|(stream, fin, block)| Frame::SynReply {
                stream,
                fin,
                block
            }),
            (id(), id()).prop_map(|(stream, status)| Frame::RstStream { stream, status }),
            any::<u32>().prop_map(|id| Frame::Ping { id }),
            (id(), id()).prop_map(|(last_stream, status)| Frame::GoAway { last_stream, status }),
            (id(), any::<bool>(), bytes()).prop_map(|(stream, fin, block)| Frame::Headers {
                stream,
                fin,
                block
            }),
            (id(), any::<bool>(), bytes()).prop_map(|(stream, fin, bytes)| Frame::Data {
                stream,
                fin,
                bytes
            }),
        ]
    }

    /// All that can be read of some bytes, and whether they end between two frames.
    fn read_all(mut from: &[u8]) -> (Vec<Frame>, bool) {
        let mut all = Vec::new();
        loop {
            // A slice is always ready.
            let read = Frame::read(&mut from).now_or_never().expect("a slice is read at once");
            match read {
                Ok(Some(frame)) => all.push(frame),
                Ok(None) => return (all, true),
                Err(_) => return (all, false),
            }
        }
    }

    proptest! {
        #[test]
        fn any_frames_are_read_as_they_were_written(frames in prop::collection::vec(frames(), 0..8)) {
            let mut out = BytesMut::new();
            frames.iter().for_each(|frame| frame.write(&mut out));
            prop_assert_eq!(read_all(&out), (frames, true));
        }

        #[test]
        fn frames_that_are_damaged_are_read_or_refused(
            frames in prop::collection::vec(frames(), 1..4),
            harm in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        ) {
            let mut out = BytesMut::new();
            frames.iter().for_each(|frame| frame.write(&mut out));
            for (at, byte) in harm {
                let at = at.index(out.len());
                out[at] = byte;
            }
            read_all(&out);
        }
    }

    #[tokio::test]
    async fn what_is_no_frame_ends_the_connection() {
        let too_long = [0, 0, 0, 1, 0, 0xff, 0xff, 0xff];
        let other_version = [0x80, 2, 0, 6, 0, 0, 0, 4, 0, 0, 0, 1];
        let too_short = [0x80, 3, 0, 1, 0, 0, 0, 4, 0, 0, 0, 1];
        let cut_off = [0x80, 3, 0];
        for bytes in [&too_long[..], &other_version, &too_short, &cut_off] {
            assert!(Frame::read(&mut &bytes[..]).await.is_err(), "{bytes:?}");
        }
        let settings = [0x80, 3, 0, 4, 0, 0, 0, 4, 0, 0, 0, 0];
        assert_eq!(Frame::read(&mut &settings[..]).await.unwrap(), Some(Frame::Other));
    }
}
