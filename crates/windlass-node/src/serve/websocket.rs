//! Streams over a WebSocket: as channels of messages, or as a tunnel of bytes.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::{BufMut as _, Bytes, BytesMut};
use futures_util::{Sink, SinkExt as _, Stream, StreamExt as _};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{self, Message};

use super::streams::{Incoming, LINGER, Outgoing, Sent};
use super::upgrade::Channels;

/// One numbered channel.
pub(super) struct Channel {
    /// What the client sends on it.
    pub incoming: Incoming,
    /// Where to write to it.
    pub outgoing: Outgoing,
}

/// No client of Kubernetes sends longer messages: they cut their input into pieces of 32 KiB.
const MESSAGE_MAX: usize = 8 << 20;

/// A message that begins with this ends the channel whose number follows.
const END: u8 = 255;

/// What fits into a tunnel before its other end is read.
const TUNNEL: usize = 64 << 10;

/// The channels of a connection, and what drives it.
pub(super) async fn channels(
    io: impl AsyncRead + AsyncWrite + Send + Unpin,
    how: Channels,
    count: usize,
) -> (Vec<Channel>, impl Future<Output = ()> + Send) {
    let (into, from) = server(io).await.split();
    let (open, sent) = Outgoing::channel();
    let mut readers = Vec::new();
    let mut channels = Vec::new();
    for number in 0..count {
        let (to, incoming) = Incoming::new();
        readers.push(Some(to));
        channels.push(Channel { incoming, outgoing: Outgoing::new(number as u32, open.clone()) });
    }
    let drive = both(read(from, how, readers), write(into, how, sent));
    (channels, drive)
}

/// The bytes that go through a connection, and what drives it.
pub(super) async fn tunnel(
    io: impl AsyncRead + AsyncWrite + Send + Unpin,
) -> (DuplexStream, impl Future<Output = ()> + Send) {
    let (mut into, mut from) = server(io).await.split();
    let (near, far) = tokio::io::duplex(TUNNEL);
    let (mut out, mut back) = tokio::io::split(far);
    let read = async move {
        while let Some(Ok(message)) = from.next().await {
            if let Message::Binary(bytes) = message
                && back.write_all(&bytes).await.is_err()
            {
                return;
            }
        }
    };
    let write = async move {
        let mut piece = BytesMut::new();
        loop {
            piece.reserve(TUNNEL / 2);
            match out.read_buf(&mut piece).await {
                Ok(0) | Err(_) => break,
                Ok(_) => {
                    if into.send(Message::Binary(piece.split().freeze())).await.is_err() {
                        return;
                    }
                }
            }
        }
        say_goodbye(&mut into).await;
    };
    (near, both(read, write))
}

/// Runs both directions until the client is gone, or has had its time after we said good-bye.
async fn both(read: impl Future<Output = ()>, write: impl Future<Output = ()>) {
    let mut read = std::pin::pin!(read);
    tokio::select! {
        biased;
        () = &mut read => return,
        () = write => {}
    }
    let _ = tokio::time::timeout(LINGER, read).await;
}

async fn server<I: AsyncRead + AsyncWrite + Unpin>(io: I) -> WebSocketStream<I> {
    let config =
        WebSocketConfig::default().max_message_size(Some(MESSAGE_MAX)).max_frame_size(Some(MESSAGE_MAX));
    WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await
}

async fn read(
    mut from: impl Stream<Item = Result<Message, tungstenite::Error>> + Unpin,
    how: Channels,
    mut readers: Vec<Option<mpsc::Sender<Bytes>>>,
) {
    while let Some(message) = from.next().await {
        let bytes = match message {
            Ok(Message::Binary(bytes)) => bytes,
            Ok(Message::Text(text)) => Bytes::from(text),
            Ok(_) => continue,
            Err(error) => {
                tracing::debug!(%error, "a WebSocket was cut");
                return;
            }
        };
        let Some((number, data)) = bytes.split_first() else { continue };
        if how.can_end && *number == END {
            if let [number] = data
                && let Some(reader) = readers.get_mut(usize::from(*number))
            {
                *reader = None;
            }
            continue;
        }
        let number = if how.base64 { number.wrapping_sub(b'0') } else { *number };
        let data = match how.base64 {
            true => BASE64_STANDARD.decode(data).map(Bytes::from).unwrap_or_default(),
            false => bytes.slice(1..),
        };
        let Some(reader) = readers.get_mut(usize::from(number)) else { continue };
        if let Some(to) = reader
            && !data.is_empty()
            && to.send(data).await.is_err()
        {
            // Nobody reads it any more; what comes is dropped.
            *reader = None;
        }
    }
}

async fn write(
    mut into: impl Sink<Message, Error = tungstenite::Error> + Unpin,
    how: Channels,
    mut sent: mpsc::Receiver<Sent>,
) {
    while let Some(next) = sent.recv().await {
        // A channel cannot be ended alone: clients take the end of the connection for the end of all.
        let Sent::Data(number, bytes) = next else { continue };
        if into.send(message(how, number as u8, &bytes)).await.is_err() {
            return;
        }
    }
    say_goodbye(&mut into).await;
}

async fn say_goodbye(into: &mut (impl Sink<Message, Error = tungstenite::Error> + Unpin)) {
    let frame = CloseFrame { code: CloseCode::Normal, reason: "".into() };
    // A client that is gone needs none.
    let _ = into.send(Message::Close(Some(frame))).await;
}

fn message(how: Channels, number: u8, bytes: &[u8]) -> Message {
    if how.base64 {
        let mut text = String::from(char::from(b'0' + number));
        BASE64_STANDARD.encode_string(bytes, &mut text);
        return Message::text(text);
    }
    let mut message = BytesMut::with_capacity(bytes.len() + 1);
    message.put_u8(number);
    message.put_slice(bytes);
    Message::Binary(message.freeze())
}

#[cfg(test)]
mod tests {
    use super::super::streams::together;
    use super::*;

    async fn client(io: DuplexStream) -> WebSocketStream<DuplexStream> {
        WebSocketStream::from_raw_socket(io, Role::Client, None).await
    }

    async fn echo(how: Channels, say: Vec<Message>) -> Vec<Message> {
        let (near, far) = tokio::io::duplex(1 << 16);
        let (mut all, drive) = channels(near, how, 2).await;
        let session = async move {
            let Channel { mut incoming, .. } = all.remove(0);
            let Channel { outgoing, .. } = all.remove(0);
            outgoing.send("").await.unwrap();
            while let Some(bytes) = incoming.next().await {
                outgoing.send(bytes).await.unwrap();
            }
            outgoing.send("end").await.unwrap();
        };
        let talk = async {
            let mut client = client(far).await;
            for message in say {
                client.send(message).await.unwrap();
            }
            let mut heard = Vec::new();
            while let Some(Ok(message)) = client.next().await {
                heard.push(message);
            }
            heard
        };
        tokio::join!(together(drive, session), talk).1
    }

    #[tokio::test]
    async fn a_channel_is_ended_by_the_client_and_the_rest_by_closing() {
        let how = Channels { base64: false, can_end: true };
        let say = [&b"\x00one"[..], b"\x07nobody", b"", b"\x00two", b"\xff\x00", b"\x00late"];
        let heard = echo(how, say.iter().map(|bytes| Message::binary(bytes.to_vec())).collect()).await;
        let data: Vec<_> = heard.iter().filter(|message| message.is_binary()).cloned().collect();
        let expected = [&b"\x01"[..], b"\x01one", b"\x01two", b"\x01end"];
        assert_eq!(data, expected.map(|bytes| Message::binary(bytes.to_vec())));
        let Some(Message::Close(Some(close))) = heard.last() else { panic!("{heard:?}") };
        assert_eq!(close.code, CloseCode::Normal);
    }

    #[tokio::test]
    async fn base64_is_text_in_both_directions() {
        let how = Channels { base64: true, can_end: false };
        let (near, far) = tokio::io::duplex(1 << 16);
        let (mut all, drive) = channels(near, how, 1).await;
        let session = async move {
            let Channel { mut incoming, outgoing } = all.remove(0);
            assert_eq!(incoming.next().await.unwrap(), "hello");
            outgoing.send("world").await.unwrap();
        };
        let talk = async {
            let mut client = client(far).await;
            client.send(Message::text("0aGVsbG8=")).await.unwrap();
            client.next().await.unwrap().unwrap()
        };
        assert_eq!(tokio::join!(together(drive, session), talk).1, Message::text("0d29ybGQ="));
    }

    #[tokio::test]
    async fn a_tunnel_carries_bytes_and_ends_with_its_inside() {
        let (near, far) = tokio::io::duplex(1 << 16);
        let (mut inside, drive) = tunnel(near).await;
        let session = async move {
            let mut four = [0; 4];
            inside.read_exact(&mut four).await.unwrap();
            inside.write_all(&four).await.unwrap();
        };
        let talk = async {
            let mut client = client(far).await;
            for piece in ["a", "bc", "d"] {
                client.send(Message::binary(piece.as_bytes())).await.unwrap();
            }
            let answer = client.next().await.unwrap().unwrap();
            (answer, client.next().await.unwrap().unwrap())
        };
        let ((), (answer, end)) = tokio::join!(together(drive, session), talk);
        assert_eq!(answer, Message::binary(&b"abcd"[..]));
        assert!(end.is_close());
    }
}
