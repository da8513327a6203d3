//! A SPDY connection whose streams are opened by the client.

use std::collections::BTreeMap;
use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;

use super::frame::{Frame, invalid};
use super::headers::{Headers, Reader, Writer};
use crate::serve::streams::{Incoming, LINGER, Outgoing, Sent};

/// A stream that the client has opened.
pub(in crate::serve) struct Accepted {
    /// Its number.
    pub id: u32,
    /// Its headers, by lower-case names.
    pub headers: Headers,
    /// What the client sends on it.
    pub incoming: Incoming,
    /// Where to write to it.
    pub outgoing: Outgoing,
}

/// The streams of a connection as they are opened. Dropping it and them ends the connection.
pub(in crate::serve) struct Accepting {
    accepted: mpsc::Receiver<Accepted>,
    /// The connection goes on while this is kept, even between two streams.
    _open: mpsc::Sender<Sent>,
}

impl Accepting {
    /// The next stream; `None` when the connection is over.
    pub async fn next(&mut self) -> Option<Accepted> {
        self.accepted.recv().await
    }
}

/// How many streams may wait for somebody to take them.
const ACCEPTED: usize = 16;

/// What the reader asks the writer to answer.
enum Reply {
    Opened(u32),
    Pong(u32),
}

/// A stream is over because one side wants it so.
const CANCEL: u32 = 5;

/// Takes a connection: the streams that come, and what drives it, which must be polled for anything to come.
pub(in crate::serve) fn accept(
    io: impl AsyncRead + AsyncWrite + Send + Unpin,
) -> (Accepting, impl Future<Output = ()> + Send) {
    let (open, sent) = Outgoing::channel();
    let (to, accepted) = mpsc::channel(ACCEPTED);
    let weak = open.downgrade();
    let drive = async move {
        let (from, into) = tokio::io::split(io);
        // Small: it only ever holds answers to what has been read.
        let (replies, asked) = mpsc::channel(ACCEPTED);
        let read = async {
            let failed = read(BufReader::new(from), &to, &weak, &replies).await.err();
            if let Some(error) = failed {
                tracing::debug!(%error, "a SPDY connection was cut");
            }
        };
        let mut read = std::pin::pin!(read);
        tokio::select! {
            biased;
            () = &mut read => return,
            // Whatever the writer ends with, the peer may still be told something by closing.
            _ = write(into, sent, asked) => {}
        }
        let _ = tokio::time::timeout(LINGER, read).await;
    };
    (Accepting { accepted, _open: open }, drive)
}

async fn read(
    mut from: impl AsyncRead + Unpin,
    accepted: &mpsc::Sender<Accepted>,
    open: &mpsc::WeakSender<Sent>,
    replies: &mpsc::Sender<Reply>,
) -> io::Result<()> {
    let mut headers = Reader::new();
    let mut streams: BTreeMap<u32, mpsc::Sender<Bytes>> = BTreeMap::new();
    while let Some(frame) = Frame::read(&mut from).await? {
        match frame {
            Frame::SynStream { stream, fin, block } => {
                let headers = headers.read(&block)?;
                if streams.contains_key(&stream) || stream % 2 == 0 {
                    return Err(invalid("a stream is opened under a number that it cannot have"));
                }
                // The session is over, and with it the wish for streams.
                let Some(open) = open.upgrade() else { continue };
                let (to, incoming) = Incoming::new();
                if !fin {
                    streams.insert(stream, to);
                }
                let outgoing = Outgoing::new(stream, open);
                // A reply is queued before the stream is handed out, so nothing is written to a stream before it.
                if replies.send(Reply::Opened(stream)).await.is_err() {
                    return Ok(());
                }
                let _ = accepted.send(Accepted { id: stream, headers, incoming, outgoing }).await;
            }
            Frame::Data { stream, fin, bytes } => {
                if let Some(to) = streams.get(&stream)
                    && !bytes.is_empty()
                    && to.send(bytes).await.is_err()
                {
                    // Nobody reads it any more; what comes is dropped.
                    streams.remove(&stream);
                }
                if fin {
                    streams.remove(&stream);
                }
            }
            Frame::Headers { stream, fin, block } => {
                headers.read(&block)?;
                if fin {
                    streams.remove(&stream);
                }
            }
            Frame::RstStream { stream, .. } => {
                streams.remove(&stream);
            }
            Frame::Ping { id } => {
                if replies.send(Reply::Pong(id)).await.is_err() {
                    return Ok(());
                }
            }
            Frame::SynReply { .. } | Frame::GoAway { .. } | Frame::Other => {}
        }
    }
    Ok(())
}

/// Writes what the streams send, until they are all gone.
async fn write(
    mut into: impl AsyncWrite + Unpin,
    mut sent: mpsc::Receiver<Sent>,
    mut replies: mpsc::Receiver<Reply>,
) -> io::Result<()> {
    let mut headers = Writer::new();
    let mut last_stream = 0;
    let mut out = BytesMut::new();
    loop {
        let frame = tokio::select! {
            biased;
            Some(reply) = replies.recv() => match reply {
                Reply::Opened(stream) => {
                    last_stream = last_stream.max(stream);
                    Frame::SynReply { stream, fin: false, block: headers.write(&Headers::new()) }
                }
                Reply::Pong(id) => Frame::Ping { id },
            },
            next = sent.recv() => match next {
                Some(Sent::Data(stream, bytes)) => Frame::Data { stream, fin: false, bytes },
                Some(Sent::End(stream)) => Frame::Data { stream, fin: true, bytes: Bytes::new() },
                Some(Sent::Reset(stream)) => Frame::RstStream { stream, status: CANCEL },
                None => break,
            },
        };
        frame.write(&mut out);
        into.write_all_buf(&mut out).await?;
        into.flush().await?;
    }
    Frame::GoAway { last_stream, status: 0 }.write(&mut out);
    into.write_all_buf(&mut out).await?;
    into.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::streams::together;

    fn open(writer: &mut Writer, stream: u32, kind: &str, out: &mut BytesMut) {
        let headers = Headers::from([("streamtype".to_owned(), kind.to_owned())]);
        Frame::SynStream { stream, fin: false, block: writer.write(&headers) }.write(out);
    }

    #[tokio::test]
    async fn streams_are_opened_answered_read_and_written() {
        let (mut client, server) = tokio::io::duplex(1 << 16);
        let (mut accepting, drive) = accept(server);
        let session = async move {
            let mut one = accepting.next().await.unwrap();
            let mut two = accepting.next().await.unwrap();
            assert_eq!((one.id, one.headers["streamtype"].as_str()), (1, "stdin"));
            assert_eq!((two.id, two.headers["streamtype"].as_str()), (3, "stdout"));
            assert_eq!(one.incoming.next().await.unwrap(), "hello");
            assert_eq!(one.incoming.next().await, None);
            assert_eq!(two.incoming.next().await, None);
            two.outgoing.send("world").await.unwrap();
            two.outgoing.end().await;
        };
        let mut out = BytesMut::new();
        let mut writer = Writer::new();
        open(&mut writer, 1, "stdin", &mut out);
        open(&mut writer, 3, "stdout", &mut out);
        Frame::Data { stream: 1, fin: true, bytes: "hello".into() }.write(&mut out);
        Frame::RstStream { stream: 3, status: CANCEL }.write(&mut out);
        Frame::Ping { id: 9 }.write(&mut out);
        let talk = async {
            client.write_all(&out).await.unwrap();
            let mut seen = Vec::new();
            while let Some(frame) = Frame::read(&mut client).await.unwrap() {
                seen.push(frame);
            }
            drop(client);
            seen
        };
        let ((), seen) = tokio::join!(together(drive, session), talk);
        let is_reply =
            |frame: &Frame, of: u32| matches!(frame, Frame::SynReply { stream, .. } if *stream == of);
        assert!(is_reply(&seen[0], 1) && is_reply(&seen[1], 3), "{seen:?}");
        let data = Frame::Data { stream: 3, fin: false, bytes: "world".into() };
        let at = |wanted: &Frame| seen.iter().position(|frame| frame == wanted).unwrap();
        assert!(at(&data) < at(&Frame::Data { stream: 3, fin: true, bytes: Bytes::new() }));
        at(&Frame::Ping { id: 9 });
        assert_eq!(seen.last(), Some(&Frame::GoAway { last_stream: 3, status: 0 }));
    }

    #[tokio::test]
    async fn a_client_that_goes_ends_the_session() {
        let (client, server) = tokio::io::duplex(1 << 16);
        let (mut accepting, drive) = accept(server);
        drop(client);
        together(drive, async move {
            accepting.next().await;
            std::future::pending::<()>().await;
        })
        .await;
    }
}
