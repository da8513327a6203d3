//! SPDY/3.1, as the node reads it: frames, and the header blocks in them.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};

// The files themselves: they stand on nothing else, and all of the node would come with a dependency on it.
#[path = "../../crates/windlass-node/src/serve/spdy/frame.rs"]
mod frame;
#[path = "../../crates/windlass-node/src/serve/spdy/headers.rs"]
mod headers;

use frame::Frame;
use headers::{Reader, Writer};

/// The most that a block of headers unfolds to, and what one step of unfolding may go beyond it.
const UNFOLDED_MAX: usize = (256 << 10) + (64 << 10);

/// Whatever reads as a frame is written and read back. Blocks of headers unfold to a bounded size, in the order of the
/// connection, and are written and read back, too.
pub fn run(data: &[u8]) {
    let mut from = data;
    let (mut reader, mut second, mut writer) = (Reader::new(), Reader::new(), Writer::new());
    while let Some(frame) = next(&mut from) {
        if frame != Frame::Other {
            let mut written = BytesMut::new();
            frame.write(&mut written);
            let mut again = &written[..];
            assert_eq!(next(&mut again).as_ref(), Some(&frame));
            assert!(again.is_empty(), "{} bytes too many", again.len());
        }
        let (Frame::SynStream { block, .. } | Frame::SynReply { block, .. } | Frame::Headers { block, .. }) =
            frame
        else {
            continue;
        };
        // The connection is over then.
        let Ok(headers) = reader.read(&block) else { return };
        let size: usize = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        // What is no text grows: each byte of it becomes a sign of three.
        assert!(size <= 3 * UNFOLDED_MAX, "{size} bytes of headers");
        let block: Bytes = writer.write(&headers);
        assert_eq!(second.read(&block).expect("what was written reads"), headers);
    }
}

/// The next frame of a slice, which is always ready.
fn next(from: &mut &[u8]) -> Option<Frame> {
    let mut read = pin!(Frame::read(from));
    match read.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(frame) => frame.ok().flatten(),
        Poll::Pending => panic!("a slice is read at once"),
    }
}
