//! Probes and metrics over loopback, as the kubelet and Prometheus ask for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use windlass::Env;
use windlass::health::Checks;
use windlass::http::{bind, metrics, probes};
use windlass::metrics::Metrics;

/// The status and the body of one request.
async fn ask(address: std::net::SocketAddr, path: &str, headers: &str) -> (u16, String, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", address.port())).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), head.to_lowercase(), body.to_owned())
}

#[tokio::test]
async fn probes_metrics_and_own_routes_are_served_until_the_end() {
    let env = Env::system();
    let ready = Arc::new(AtomicBool::new(false));
    let is_ready = ready.clone();
    let readyz = Checks::new();
    readyz.add("informers", move || {
        if is_ready.load(Ordering::SeqCst) { Ok(()) } else { Err("ConfigMap: forbidden".to_owned()) }
    });
    let counted = Metrics::new();
    counted.election("lock").leading(true);
    let router = probes(Checks::new(), readyz)
        .merge(metrics(counted))
        .merge(Router::new().route("/mine", get(async || "my own")));
    let stop = CancellationToken::new();
    let listening = bind("probes", "127.0.0.1:0").await.unwrap().unwrap();
    let address = listening.address();
    let task = listening.serve(&env, router, stop.clone());

    let get = async |path| {
        let (code, _, body) = ask(address, path, "").await;
        (code, body)
    };
    assert_eq!(get("/healthz").await, (200, "ok".to_owned()));
    assert_eq!(get("/healthz?verbose").await, (200, "[+]ping ok\nhealthz check passed\n".to_owned()));
    let failed = "[+]ping ok\n[-]informers failed: ConfigMap: forbidden\nreadyz check failed\n";
    assert_eq!(get("/readyz").await, (500, failed.to_owned()));
    assert_eq!(get("/readyz?exclude=informers").await, (200, "ok".to_owned()));
    assert_eq!(get("/readyz/ping").await, (200, "ok".to_owned()));
    assert_eq!(get("/readyz/informers").await.0, 500);
    assert_eq!(get("/readyz/nothing").await.0, 404);
    ready.store(true, Ordering::SeqCst);
    assert_eq!(get("/readyz").await, (200, "ok".to_owned()));
    assert_eq!(get("/mine").await, (200, "my own".to_owned()));
    assert_eq!(get("/nothing").await.0, 404);

    let (code, head, body) = ask(address, "/metrics", "").await;
    assert_eq!(code, 200);
    assert!(head.contains("content-type: text/plain; version=0.0.4; charset=utf-8"), "{head}");
    assert!(body.contains("\nleader_election_master_status{name=\"lock\"} 1\n"), "{body}");
    let (_, head, body) =
        ask(address, "/metrics", "Accept: application/openmetrics-text;version=1.0.0\r\n").await;
    assert!(head.contains("content-type: application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(body.ends_with("# EOF\n"), "{body}");

    stop.cancel();
    task.await.unwrap().unwrap();
    assert!(TcpStream::connect(address).await.is_err(), "it still listens");
}

#[tokio::test]
async fn the_end_does_not_wait_for_a_client_that_never_ends() {
    let env = Env::system();
    let stop = CancellationToken::new();
    let listening = bind("probes", "127.0.0.1:0").await.unwrap().unwrap();
    let address = listening.address();
    let hangs = Router::new().route("/", get(async || std::future::pending::<()>().await));
    let task = listening.serve(&env, hangs, stop.clone());
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    stop.cancel();
    env.within(Duration::from_secs(10), task).await.expect("it ends").unwrap().unwrap();
}

#[tokio::test]
async fn zero_is_no_server_and_a_port_that_is_taken_is_an_error_that_says_so() {
    assert!(bind("metrics", "0").await.unwrap().is_none());
    assert!(bind("metrics", "").await.unwrap().is_none());
    let one = bind("metrics", ":0").await.unwrap().unwrap();
    let (code, ..) = {
        let env = Env::system();
        let address = one.address();
        let _task = one.serve(&env, probes(Checks::new(), Checks::new()), CancellationToken::new());
        ask(address, "/healthz", "").await
    };
    assert_eq!(code, 200, "`:PORT` is every interface, IPv4 as well");

    let one = bind("metrics", ":0").await.unwrap().unwrap();
    let taken = format!(":{}", one.address().port());
    let error = bind("health probes", &taken).await.unwrap_err();
    assert_eq!(error.to_string(), format!("cannot listen on \"{taken}\" for health probes"));
    assert_eq!(error.source.kind(), std::io::ErrorKind::AddrInUse);
    assert!(bind("metrics", ":http").await.is_err());
    assert!(bind("metrics", "8080").await.is_err());
}
