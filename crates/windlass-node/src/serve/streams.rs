//! The streams of a session, whatever carries them.
//!
//! ```text
//!            ┌────────────── a connection: WebSocket channels or SPDY streams ──────────────┐
//! Incoming ◄─┤ reads, and hands each stream what is for it; writes what the streams send ◄──┼─ Outgoing
//!            └──────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! A session ends by dropping its streams: the connection then says good-bye to its peer. A connection that ends first
//! ends the session with it.

use std::time::Duration;

use bytes::Bytes;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::mpsc;

/// What a peer sends on one stream.
pub(super) struct Incoming(mpsc::Receiver<Bytes>);

/// Where a session writes to one stream. Dropped, the stream stays open for the peer; [`Outgoing::end`] ends it.
pub(super) struct Outgoing {
    stream: u32,
    to: mpsc::Sender<Sent>,
}

/// What a session gives its connection to send.
#[derive(Debug)]
pub(super) enum Sent {
    /// On a stream.
    Data(u32, Bytes),
    /// Nothing more will come on a stream.
    End(u32),
    /// A stream has failed.
    Reset(u32),
}

/// The connection is over.
#[derive(Debug, Error)]
#[error("the connection is over")]
pub(super) struct Gone;

/// How many pieces one stream may have waiting for its reader: with pieces of 32 KiB, half a MiB. A connection whose
/// stream is not read is not read either.
const WAITING: usize = 16;

/// How many pieces of all streams may wait to be sent.
const SENDING: usize = 16;

/// The largest piece that is sent: what peers use themselves.
const PIECE: usize = 32 << 10;

/// How long a connection is kept for a peer that still has to read the end of it.
pub(super) const LINGER: Duration = Duration::from_secs(2);

impl Incoming {
    /// What is to be read, and where the connection puts it.
    pub fn new() -> (mpsc::Sender<Bytes>, Incoming) {
        let (to, from) = mpsc::channel(WAITING);
        (to, Incoming(from))
    }

    /// The next piece; `None` when the peer has ended the stream.
    pub async fn next(&mut self) -> Option<Bytes> {
        self.0.recv().await
    }
}

impl Outgoing {
    /// Where this stream's data goes.
    pub fn new(stream: u32, to: mpsc::Sender<Sent>) -> Outgoing {
        Outgoing { stream, to }
    }

    /// Where the connection finds what its streams send.
    pub fn channel() -> (mpsc::Sender<Sent>, mpsc::Receiver<Sent>) {
        mpsc::channel(SENDING)
    }

    /// Sends a piece.
    pub async fn send(&self, bytes: impl Into<Bytes>) -> Result<(), Gone> {
        self.to.send(Sent::Data(self.stream, bytes.into())).await.map_err(|_| Gone)
    }

    /// Ends the stream.
    pub async fn end(self) {
        // A connection that is over has ended it already.
        let _ = self.to.send(Sent::End(self.stream)).await;
    }

    /// Ends the stream as failed.
    pub async fn reset(self) {
        let _ = self.to.send(Sent::Reset(self.stream)).await;
    }

    /// Sends all that can be read. The reader's own failure is an end, too: a terminal has no other.
    pub async fn send_all(&self, from: &mut (impl AsyncRead + Unpin)) -> Result<(), Gone> {
        loop {
            let mut piece = bytes::BytesMut::with_capacity(PIECE);
            match from.read_buf(&mut piece).await {
                Ok(0) | Err(_) => return Ok(()),
                Ok(_) => self.send(piece).await?,
            }
        }
    }
}

/// Runs a session on its connection: until the session is over and the peer knows it, or the connection is.
pub(super) async fn together(connection: impl Future<Output = ()>, session: impl Future<Output = ()>) {
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        biased;
        () = &mut connection => return,
        () = session => {}
    }
    connection.await;
}
