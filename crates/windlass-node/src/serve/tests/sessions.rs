//! Exec, attach and port-forward, over each way of carrying streams.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::client::{get, text, upgrade};
use super::machine::{Machine, serve};
use crate::serve::spdy::client::{Frame, Headers, Writer};

fn websocket(path: &str, protocol: &str) -> http::request::Builder {
    get(path)
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
        .header("sec-websocket-protocol", protocol)
}

fn spdy(path: &str, protocol: &str) -> http::request::Builder {
    get(path)
        .header("connection", "Upgrade")
        .header("upgrade", "SPDY/3.1")
        .header("x-stream-protocol-version", protocol)
}

/// What came on each channel, until the other end closed the WebSocket.
async fn by_channel<I: AsyncRead + AsyncWrite + Unpin>(
    socket: &mut WebSocketStream<I>,
) -> BTreeMap<u8, String> {
    let mut all = BTreeMap::<u8, String>::new();
    while let Some(Ok(message)) = socket.next().await {
        if let Message::Binary(bytes) = message {
            let text = std::str::from_utf8(&bytes[1..]).unwrap();
            all.entry(bytes[0]).or_default().push_str(text);
        }
    }
    all
}

#[tokio::test]
async fn exec_over_websocket_channels() {
    let (address, _serving) = serve(Arc::new(Machine::new())).await;
    let script = "cat;echo%20oops%20%3E%262;exit%207";
    let path = format!("/exec/ns/p/c?input=1&output=1&error=1&command=sh&command=-c&command={script}");
    let io = upgrade(address, websocket(&path, "v5.channel.k8s.io")).await;
    let mut socket = WebSocketStream::from_raw_socket(io, Role::Client, None).await;
    socket.send(Message::binary(&b"\x00hello"[..])).await.unwrap();
    socket.send(Message::binary(&b"\xff\x00"[..])).await.unwrap();
    let heard = by_channel(&mut socket).await;
    assert_eq!((heard[&1].as_str(), heard[&2].as_str()), ("hello", "oops\n"));
    let status: Value = serde_json::from_str(&heard[&3]).unwrap();
    assert_eq!(status["details"]["causes"][0]["message"], "7");
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_told_on_the_error_channel() {
    let (address, _serving) = serve(Arc::new(Machine::new())).await;
    let io = upgrade(address, websocket("/exec/ns/p/c?output=1&command=/no/such", "v4.channel.k8s.io")).await;
    let mut socket = WebSocketStream::from_raw_socket(io, Role::Client, None).await;
    let heard = by_channel(&mut socket).await;
    let status: Value = serde_json::from_str(&heard[&3]).unwrap();
    assert_eq!(status["reason"], "InternalError");
    assert!(status["message"].as_str().unwrap().contains("/no/such"), "{status}");
}

#[tokio::test]
async fn what_cannot_be_done_is_refused_before_the_protocol_changes() {
    let (address, _serving) = serve(Arc::new(Machine::new())).await;
    let exec = |path: &str| text(address, websocket(path, "v5.channel.k8s.io"));
    assert_eq!(exec("/exec/ns/q/c?output=1").await, (404, "pod does not exist".to_owned()));
    let none = (400, "you must specify at least 1 of stdin, stdout, stderr".to_owned());
    assert_eq!(exec("/exec/ns/p/c").await, none);
    let waiting = (500, r#"container not found ("slow")"#.to_owned());
    assert_eq!(exec("/exec/ns/p/slow?output=1&command=ls").await, waiting);
    let plain = text(address, get("/exec/ns/p/c?output=1&command=ls")).await;
    assert_eq!(plain, (400, "Upgrade request required".to_owned()));
}

/// A client that speaks SPDY: opens streams, and hears what comes on them.
struct Spdy<I> {
    io: I,
    writer: Writer,
}

impl<I: AsyncRead + AsyncWrite + Unpin> Spdy<I> {
    async fn write(&mut self, frame: Frame) {
        let mut out = BytesMut::new();
        frame.write(&mut out);
        self.io.write_all(&out).await.unwrap();
        self.io.flush().await.unwrap();
    }

    async fn open(&mut self, stream: u32, headers: &[(&str, &str)]) {
        let headers: Headers =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let block = self.writer.write(&headers);
        self.write(Frame::SynStream { stream, fin: false, block }).await;
    }

    async fn say(&mut self, stream: u32, fin: bool, bytes: &'static str) {
        self.write(Frame::Data { stream, fin, bytes: Bytes::from_static(bytes.as_bytes()) }).await;
    }

    /// What came on each stream until all of these had ended.
    async fn hear(&mut self, mut streams: Vec<u32>) -> BTreeMap<u32, String> {
        let mut heard = BTreeMap::<u32, String>::new();
        while !streams.is_empty() {
            let frame =
                Frame::read(&mut self.io).await.unwrap().expect("the streams end before the connection");
            match frame {
                Frame::Data { stream, fin, bytes } => {
                    heard.entry(stream).or_default().push_str(std::str::from_utf8(&bytes).unwrap());
                    streams.retain(|one| !fin || *one != stream);
                }
                Frame::RstStream { stream, .. } => streams.retain(|one| *one != stream),
                _ => {}
            }
        }
        heard
    }
}

#[tokio::test]
async fn exec_over_spdy() {
    let (address, _serving) = serve(Arc::new(Machine::new())).await;
    let path = "/exec/ns/p/c?input=1&output=1&error=1&command=sh&command=-c&command=cat;echo%20oops%20%3E%262;exit%207";
    let io = upgrade(address, spdy(path, "v4.channel.k8s.io")).await;
    let mut client = Spdy { io, writer: Writer::new() };
    for (stream, kind) in [(1, "error"), (3, "stdin"), (5, "stdout"), (7, "stderr")] {
        client.open(stream, &[("streamtype", kind)]).await;
    }
    client.say(3, false, "hel").await;
    client.say(3, true, "lo").await;
    let heard = client.hear(vec![1, 5, 7]).await;
    assert_eq!((heard[&5].as_str(), heard[&7].as_str()), ("hello", "oops\n"));
    let status: Value = serde_json::from_str(&heard[&1]).unwrap();
    assert_eq!(status["reason"], "NonZeroExitCode");
}

#[tokio::test]
async fn attach_reaches_the_running_program() {
    let (address, _serving) = serve(Arc::new(Machine::new())).await;
    let io = upgrade(address, websocket("/attach/ns/p/c?input=1&output=1", "v5.channel.k8s.io")).await;
    let mut socket = WebSocketStream::from_raw_socket(io, Role::Client, None).await;
    socket.send(Message::binary(&b"\x00echo"[..])).await.unwrap();
    socket.send(Message::binary(&b"\xff\x00"[..])).await.unwrap();
    let heard = by_channel(&mut socket).await;
    assert_eq!((heard[&1].as_str(), heard[&3].as_str()), ("echo", r#"{"metadata":{},"status":"Success"}"#));
}

/// A server in "the pod": answers what it hears up to the end, in capitals.
async fn shouting() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut heard = String::new();
            stream.read_to_string(&mut heard).await.unwrap();
            stream.write_all(heard.to_uppercase().as_bytes()).await.unwrap();
        }
    });
    port
}

/// Two connections at once, and one to a port where nobody listens.
async fn forward_over<I: AsyncRead + AsyncWrite + Unpin>(io: I) {
    let port = shouting().await.to_string();
    let mut client = Spdy { io, writer: Writer::new() };
    for (stream, request) in [(1, "0"), (5, "1")] {
        let pair = [("streamtype", "error"), ("port", &port), ("requestid", request)];
        client.open(stream, &pair).await;
        let pair = [("streamtype", "data"), ("port", &port), ("requestid", request)];
        client.open(stream + 2, &pair).await;
    }
    client.say(7, true, "second").await;
    client.say(3, true, "first").await;
    let heard = client.hear(vec![1, 3, 5, 7]).await;
    assert_eq!((heard[&3].as_str(), heard[&7].as_str()), ("FIRST", "SECOND"));

    client.open(9, &[("streamtype", "error"), ("port", "1"), ("requestid", "2")]).await;
    client.open(11, &[("streamtype", "data"), ("port", "1"), ("requestid", "2")]).await;
    let heard = client.hear(vec![9, 11]).await;
    assert!(heard[&9].starts_with("error forwarding port 1 to pod u, uid : dial"), "{heard:?}");
}

#[tokio::test]
async fn ports_over_spdy() {
    let (address, _serving) = serve(Arc::new(Machine::new())).await;
    forward_over(upgrade(address, spdy("/portForward/ns/p", "portforward.k8s.io")).await).await;
}

#[tokio::test]
async fn ports_over_spdy_in_a_websocket() {
    let (address, _serving) = serve(Arc::new(Machine::new())).await;
    let io = upgrade(address, websocket("/portForward/ns/p", "SPDY/3.1+portforward.k8s.io")).await;
    let mut socket = WebSocketStream::from_raw_socket(io, Role::Client, None).await;
    let (near, far) = tokio::io::duplex(1 << 16);
    let (mut from, mut to) = tokio::io::split(far);
    let carry = async move {
        let mut piece = vec![0; 1 << 15];
        loop {
            tokio::select! {
                biased;
                read = from.read(&mut piece) => match read.unwrap() {
                    0 => return,
                    read => socket.send(Message::binary(piece[..read].to_vec())).await.unwrap(),
                },
                Some(Ok(message)) = socket.next() => to.write_all(&message.into_data()).await.unwrap(),
            }
        }
    };
    tokio::join!(carry, forward_over(near));
}

#[tokio::test]
async fn ports_over_websocket_channels() {
    let (address, _serving) = serve(Arc::new(Machine::new())).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let path = format!("/portForward/ns/p?port={port}");
    let io = upgrade(address, websocket(&path, "v4.channel.k8s.io")).await;
    let mut socket = WebSocketStream::from_raw_socket(io, Role::Client, None).await;
    let number = port.to_le_bytes();
    for channel in [0, 1] {
        let first = socket.next().await.unwrap().unwrap();
        assert_eq!(first, Message::binary(vec![channel, number[0], number[1]]));
    }
    let (mut inside, _) = listener.accept().await.unwrap();
    socket.send(Message::binary(&b"\x00ping"[..])).await.unwrap();
    let mut four = [0; 4];
    inside.read_exact(&mut four).await.unwrap();
    assert_eq!(&four, b"ping");
    inside.write_all(b"pong").await.unwrap();
    assert_eq!(socket.next().await.unwrap().unwrap(), Message::binary(&b"\x00pong"[..]));
    drop(inside);
    assert!(socket.next().await.unwrap().unwrap().is_close());
}
