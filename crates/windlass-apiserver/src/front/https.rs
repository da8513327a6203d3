//! The HTTPS front: HTTP/1.1 and HTTP/2 over TLS.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::header;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::body::Remote;
use super::credentials::Serving;
use super::elsewhere::TakeOver;
use super::identity::{self, Caller, Identity, Shown};
use super::rewound::Rewound;
use super::running::ApiServer;
use super::service::collect;
use crate::status::Status;

/// What is waited for, and how much is taken at once. Each limit keeps what one client costs bounded.
#[derive(Clone, Debug)]
pub struct Limits {
    /// How long a TLS handshake may take.
    pub handshake: Duration,
    /// How long the head of a request may take, and a connection may be idle under HTTP/1.1.
    pub head: Duration,
    /// How long the body of a request may take.
    pub body: Duration,
    /// How long requests under way may take when the server ends.
    pub drain: Duration,
    /// How many connections there may be. Each holds about 40 KiB of buffers, 160 MiB in all, and up to 160 KiB more
    /// while a client is slow to read a long answer.
    pub connections: usize,
    /// How many requests may be under way on one HTTP/2 connection.
    pub streams: u32,
}

impl Default for Limits {
    /// As kube-apiserver where it has the limit: 250 streams, a minute for a request.
    fn default() -> Limits {
        Limits {
            handshake: Duration::from_secs(10),
            head: Duration::from_secs(60),
            body: Duration::from_secs(60),
            drain: Duration::from_secs(5),
            connections: 4096,
            streams: 250,
        }
    }
}

/// A socket that listens.
pub struct Https {
    listener: TcpListener,
    /// What is waited for.
    pub limits: Limits,
}

impl Https {
    /// Listens at an address; port 0 is any that is free.
    pub async fn bind(address: SocketAddr) -> io::Result<Https> {
        Ok(Https::over(TcpListener::bind(address).await?))
    }

    /// Listens by a socket that somebody made: in another network, for one.
    pub fn over(listener: TcpListener) -> Https {
        Https { listener, limits: Limits::default() }
    }

    /// Where it listens.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop` resolves or the server is [closed](ApiServer::close), then ends all watches, gives requests
    /// under way a moment, and returns. No connection, whatever comes through it, ends it earlier.
    pub async fn serve(self, server: ApiServer, serving: &Serving, stop: impl Future<Output = ()>) {
        let (stopping, stopped) = watch::channel(());
        let connection = Arc::new(Connection {
            server: server.clone(),
            identity: serving.identity.clone(),
            acceptor: TlsAcceptor::from(serving.tls.clone()),
            limits: self.limits.clone(),
            stopped,
        });
        let mut stop = pin!(stop);
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                () = &mut stop => break,
                () = server.closed() => break,
                Some(ended) = connections.join_next() => report(ended),
                accepted = self.listener.accept(), if connections.len() < self.limits.connections => match accepted {
                    Ok((stream, peer)) => {
                        connections.spawn(connection.clone().run(stream, peer));
                    }
                    Err(error) => {
                        // Out of files, mostly: what is open goes on, and what ends makes room.
                        tracing::warn!(%error, "a connection could not be accepted");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                },
            }
        }
        drop(self.listener);
        server.close();
        drop(stopping);
        let drained = async {
            while let Some(ended) = connections.join_next().await {
                report(ended);
            }
        };
        if tokio::time::timeout(self.limits.drain, drained).await.is_err() {
            tracing::info!(connections = connections.len(), "connections are cut off");
            connections.shutdown().await;
        }
    }
}

fn report(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a connection panicked");
    }
}

/// What every connection knows.
struct Connection {
    server: ApiServer,
    identity: Identity,
    acceptor: TlsAcceptor,
    limits: Limits,
    /// Changes, by being closed, when the server stops.
    stopped: watch::Receiver<()>,
}

impl Connection {
    async fn run(self: Arc<Self>, stream: TcpStream, peer: SocketAddr) {
        // Answers are written whole; waiting for more to fill a packet would only delay them.
        let _ = stream.set_nodelay(true);
        let mut stopped = self.stopped.clone();
        let accept = self.acceptor.accept_with(stream, |session| session.set_buffer_limit(Some(TLS_BUFFER)));
        let handshake = tokio::time::timeout(self.limits.handshake, accept);
        let stream = tokio::select! {
            stream = handshake => stream,
            _ = stopped.changed() => return,
        };
        let stream = match stream {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(%peer, %error, "TLS handshake failed"),
            Err(_) => return tracing::debug!(%peer, "TLS handshake took too long"),
        };
        let session = stream.get_ref().1;
        let caller = Arc::new(Caller::from(self.identity.of_certificates(session.peer_certificates())));
        let h2 = session.alpn_protocol() == Some(b"h2");
        // What the connection is piped into, once it has changed its protocol.
        let next: Arc<Mutex<Option<TakeOver>>> = Arc::default();
        let service = hyper::service::service_fn({
            let (connection, next) = (self.clone(), next.clone());
            move |request| {
                let (connection, next, caller) = (connection.clone(), next.clone(), caller.clone());
                Box::pin(async move {
                    let mut response = connection.answer(request, caller).await?;
                    *next.lock().unwrap_or_else(PoisonError::into_inner) =
                        response.extensions_mut().remove::<TakeOver>();
                    Ok::<_, Infallible>(response)
                })
            }
        });
        let stream = TokioIo::new(stream);
        let ended = if h2 {
            let mut builder = http2::Builder::new(TokioExecutor::new());
            builder
                .timer(TokioTimer::new())
                .max_concurrent_streams(self.limits.streams)
                // A dead client is noticed, however long its watch is quiet.
                .keep_alive_interval(Duration::from_secs(30))
                .keep_alive_timeout(Duration::from_secs(20));
            let mut connection = pin!(builder.serve_connection(stream, service));
            tokio::select! {
                ended = connection.as_mut() => ended,
                _ = stopped.changed() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            }
        } else {
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new()).header_read_timeout(self.limits.head);
            let mut connection = builder.serve_connection(stream, service);
            let ended = tokio::select! {
                ended = poll_fn(|context| connection.poll_without_shutdown(context)) => ended,
                _ = stopped.changed() => {
                    std::pin::Pin::new(&mut connection).graceful_shutdown();
                    poll_fn(|context| connection.poll_without_shutdown(context)).await
                }
            };
            if ended.is_ok() {
                let parts = connection.into_parts();
                let next = next.lock().unwrap_or_else(PoisonError::into_inner).take();
                match next {
                    Some(next) => {
                        let client = Rewound { first: parts.read_buf, io: parts.io.into_inner() };
                        tokio::select! {
                            biased;
                            () = next.pipe(client) => {}
                            _ = stopped.changed() => {}
                        }
                    }
                    None => close(parts.io.into_inner(), stopped).await,
                }
            }
            ended
        };
        if let Err(error) = ended {
            tracing::debug!(%peer, %error, "a connection broke");
        }
    }

    async fn answer(
        self: Arc<Self>,
        request: http::Request<Incoming>,
        caller: Arc<Caller>,
    ) -> Result<http::Response<Remote>, Infallible> {
        let warning = identity::warning(&caller.certified, request.headers());
        let mut response = self.judged(request, &caller).await;
        if let Some(warning) = warning {
            response.headers_mut().append(header::WARNING, warning);
        }
        Ok(response)
    }

    async fn judged(&self, request: http::Request<Incoming>, caller: &Caller) -> http::Response<Remote> {
        let (parts, body) = request.into_parts();
        let refuse =
            |status: &Status| self.server.refuse(&parts.headers, &parts.uri, status).map(Remote::from);
        let (method, path) = (&parts.method, parts.uri.path());
        let judged = self.server.authorization();
        let shown = self.identity.of_request(&caller.certified, method, path, &parts.headers, judged);
        let user = match shown {
            Ok(Shown::User(user)) => user,
            Ok(Shown::Token(token)) => match self.server.account(&token, &caller.last).await {
                Some(user) => user,
                None => return refuse(&identity::unauthorized()),
            },
            Err(status) => return refuse(&status),
        };
        let body = match self.body(&parts, body).await {
            Ok(body) => body,
            Err(status) => return refuse(&status),
        };
        let response = self.server.call(http::Request::from_parts(parts, body), user).await;
        response.map(Remote::from)
    }

    /// The body of a request. Most are there at once, or there is none: a timer is set only where one is waited for.
    async fn body(&self, parts: &http::request::Parts, body: Incoming) -> Result<Bytes, Status> {
        let mut collecting = pin!(collect(parts, body, self.server.body_max()));
        let collected = match poll_fn(|context| Poll::Ready(collecting.as_mut().poll(context))).await {
            Poll::Ready(collected) => Ok(collected),
            Poll::Pending => tokio::time::timeout(self.limits.body, collecting).await,
        };
        match collected {
            Ok(Ok(body)) => Ok(body),
            Ok(Err(unread)) => Err(unread.status()),
            Err(_) => Err(Status::new(408, "Timeout", "the body of the request did not arrive in time")),
        }
    }
}

/// How much is encrypted at a time: a piece of a list, so that it goes out by one call. It is held only while it is sent.
const TLS_BUFFER: usize = 160 << 10;

/// How long, and how many bytes, the rest of what a client sends is thrown away after the last answer.
const LINGER: Duration = Duration::from_millis(500);
const LINGER_BYTES: usize = 16 << 20;

/// Closes a connection so that its client can read the last answer: with bytes of a refused body still unread, closing
/// at once would tell the client that the connection broke, and nothing else. A server that stops does not wait.
async fn close(mut stream: TlsStream<TcpStream>, mut stopped: watch::Receiver<()>) {
    let mut waste = [0; 4096];
    let mut wasted = 0;
    let closing = async {
        stream.shutdown().await?;
        while wasted < LINGER_BYTES {
            match stream.read(&mut waste).await? {
                0 => break,
                read => wasted += read,
            }
        }
        io::Result::Ok(())
    };
    tokio::select! {
        biased;
        // Whatever comes of it, the connection is over.
        _ = tokio::time::timeout(LINGER, closing) => {}
        _ = stopped.changed() => {}
    }
}
