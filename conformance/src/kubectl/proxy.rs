//! Stands between kubectl and a server, and writes down what is asked and answered.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::client::{Body, Endpoint};
use crate::servers::kubeconfig_text;

/// The headers of a request that matter. Without the others nothing is compressed, and everybody is the administrator.
const HEADERS: &[&str] = &["accept", "content-type", "user-agent", "if-none-match"];

/// A request and its answer.
#[derive(Clone, Default)]
pub struct Exchange {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
    pub status: u16,
    pub answer_headers: HeaderMap,
    /// As far as it has been sent on.
    pub answer: Vec<u8>,
}

type Log = Arc<Mutex<Vec<Arc<Mutex<Exchange>>>>>;

/// A proxy on the loopback interface, over plain HTTP. It ends with this value.
pub struct Proxy {
    log: Log,
    _connections: JoinSet<()>,
}

impl Proxy {
    /// Begins to listen and writes a kubeconfig that leads here.
    pub async fn start(server: Arc<dyn Endpoint>, kubeconfig: &Path) -> Result<Proxy> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        std::fs::write(kubeconfig, kubeconfig_text(&url, "nobody"))?;
        let log = Log::default();
        let mut connections = JoinSet::new();
        connections.spawn(listen(listener, server, log.clone()));
        Ok(Proxy { log, _connections: connections })
    }

    /// What was asked since the last time.
    pub fn take(&self) -> Vec<Exchange> {
        let log = std::mem::take(&mut *lock(&self.log));
        log.iter().map(|exchange| lock(exchange).clone()).collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn listen(listener: TcpListener, server: Arc<dyn Endpoint>, log: Log) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (server, log) = (server.clone(), log.clone());
        connections.spawn(async move {
            let service = service_fn(move |request| forward(server.clone(), log.clone(), request));
            // A client that leaves in the middle of a watch is no error.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn forward(server: Arc<dyn Endpoint>, log: Log, request: Request<Incoming>) -> Result<Response<Body>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let mut exchange =
        Exchange { method: head.method.to_string(), path, body: body.clone(), ..Exchange::default() };
    let mut request = Request::builder().method(head.method).uri(&exchange.path);
    for &name in HEADERS {
        if let Some(value) = head.headers.get(name) {
            request = request.header(name, value);
            exchange.headers.push((name.to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
        }
    }
    let mut connection = server.open().await?;
    let answer = connection.send(request.body(Full::new(body))?).await?;
    exchange.status = answer.status().as_u16();
    exchange.answer_headers = answer.headers().clone();
    let exchange = Arc::new(Mutex::new(exchange));
    lock(&log).push(exchange.clone());
    Ok(answer.map(|body| {
        body.map_frame(move |frame| {
            // The connection lives as long as its answer is read.
            let _ = &connection;
            if let Some(data) = frame.data_ref() {
                lock(&exchange).answer.extend_from_slice(data);
            }
            frame
        })
        .boxed_unsync()
    }))
}
