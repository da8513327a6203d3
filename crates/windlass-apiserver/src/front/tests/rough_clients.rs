//! Clients that are slow, rude or broken. The server goes on for the others.

use super::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

async fn is_well(served: &Served) {
    let mut client = served.admin_client().await;
    assert_eq!(client.get("/readyz").await.0, 200);
}

/// All that the server sends until it closes the connection.
async fn read_all(stream: &mut TlsStream<TcpStream>) -> String {
    let mut bytes = Vec::new();
    let reading = stream.read_to_end(&mut bytes);
    // Some connections end without a goodbye; what was read before counts.
    let _ = tokio::time::timeout(Duration::from_secs(10), reading).await.expect("the connection stays open");
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test]
async fn a_hundred_megabytes_are_not_read() {
    let served = Served::start().await;
    for framing in ["content-length: 100000000", "transfer-encoding: chunked"] {
        let mut stream = served.tls("http/1.1", Some(served.admin())).await;
        let head = format!(
            "POST {CONFIG_MAPS} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{framing}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let (mut reading, mut writing) = tokio::io::split(stream);
        let sent = tokio::spawn(async move {
            let piece = vec![b'x'; 1 << 16];
            let mut sent = 0;
            for _ in 0..1600 {
                let head: &[u8] = if framing.starts_with('t') { b"10000\r\n" } else { b"" };
                let tail: &[u8] = if framing.starts_with('t') { b"\r\n" } else { b"" };
                for part in [head, &piece, tail] {
                    if writing.write_all(part).await.is_err() {
                        return sent;
                    }
                    sent += part.len();
                }
            }
            sent
        });
        let mut answer = vec![0; 1024];
        let read = reading.read(&mut answer).await.unwrap_or_else(|error| panic!("{framing}: {error}"));
        let answer = String::from_utf8_lossy(&answer[..read]);
        assert!(answer.starts_with("HTTP/1.1 413 "), "{framing}: {answer}");
        drop(reading);
        let sent = sent.await.unwrap();
        assert!(sent < 90_000_000, "{framing}: {sent} bytes were taken");
    }
    is_well(&served).await;
}

#[tokio::test]
async fn who_is_slow_to_ask_is_cut_off() {
    let limits =
        Limits { head: Duration::from_millis(200), body: Duration::from_millis(200), ..Limits::default() };
    let served = Served::with(limits).await;
    let mut no_head = served.tls("http/1.1", Some(served.admin())).await;
    no_head.write_all(b"GET /api HTTP/1.1\r\nhost: loc").await.unwrap();
    assert_eq!(read_all(&mut no_head).await, "");

    let mut no_body = served.tls("http/1.1", Some(served.admin())).await;
    let head = format!("POST {CONFIG_MAPS} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 50\r\n\r\n{{");
    no_body.write_all(head.as_bytes()).await.unwrap();
    let answer = read_all(&mut no_body).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    is_well(&served).await;
}

#[tokio::test]
async fn who_never_starts_tls_is_cut_off() {
    let limits = Limits { handshake: Duration::from_millis(200), ..Limits::default() };
    let served = Served::with(limits).await;
    let mut silent = TcpStream::connect(served.address).await.unwrap();
    let mut byte = [0];
    let read =
        tokio::time::timeout(Duration::from_secs(5), silent.read(&mut byte)).await.expect("it stays open");
    assert_eq!(read.unwrap_or(0), 0);
    let mut plain = TcpStream::connect(served.address).await.unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    is_well(&served).await;
}

#[tokio::test]
async fn garbage_is_answered_or_dropped() {
    let served = Served::start().await;
    for (protocol, garbage) in [
        ("http/1.1", &b"\x00\x01\x02\xff\r\n\r\n"[..]),
        ("http/1.1", b"GET /%zz%00?%=& HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"),
        ("http/1.1", b"GET /api HTTP/9.9\r\n\r\n"),
        ("h2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nnot a frame at all, but enough bytes for one"),
        ("h2", b"GET / HTTP/1.1\r\n\r\n"),
    ] {
        let mut stream = served.tls(protocol, Some(served.admin())).await;
        stream.write_all(garbage).await.unwrap();
        read_all(&mut stream).await;
    }
    is_well(&served).await;
}

#[tokio::test]
async fn connections_that_vanish_leave_nothing_behind() {
    let served = Served::start().await;
    for i in 0..20 {
        let protocol = if i % 2 == 0 { "h2" } else { "http/1.1" };
        let mut client = served.client(protocol, Some(served.admin())).await;
        let watch = client.send(get(&format!("{CONFIG_MAPS}?watch=1"))).await.unwrap();
        drop(watch);
        drop(client);
        let mut stream = served.tls("http/1.1", Some(served.admin())).await;
        let head = format!("POST {CONFIG_MAPS} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 50\r\n\r\n{{");
        stream.write_all(head.as_bytes()).await.unwrap();
    }
    assert_eq!(ask(&served.server, "POST", CONFIG_MAPS, &config_map("after")).await.0, 201);
    is_well(&served).await;
}

#[tokio::test]
async fn a_watcher_that_does_not_read_keeps_nobody_waiting() {
    let served = Served::start().await;
    let mut client = served.client("http/1.1", Some(served.admin())).await;
    let _unread = client.send(get(&format!("{CONFIG_MAPS}?watch=1"))).await.unwrap();
    let value = "x".repeat(100_000);
    for i in 0..100 {
        let body = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("c{i}")},
            "data": {"key": value}});
        assert_eq!(ask(&served.server, "POST", CONFIG_MAPS, &body.to_string()).await.0, 201);
    }
    is_well(&served).await;
}

#[tokio::test]
async fn one_connection_carries_many_requests_at_once() {
    let served = Served::start().await;
    let Client::H2(sender) = served.admin_client().await else { unreachable!() };
    let answers = (0..300).map(|_| {
        let mut sender = sender.clone();
        tokio::spawn(async move {
            sender.ready().await.unwrap();
            sender.send_request(get("/api/v1/namespaces/default")).await.unwrap().status()
        })
    });
    for answer in answers.collect::<Vec<_>>() {
        assert_eq!(answer.await.unwrap(), 200);
    }
}
