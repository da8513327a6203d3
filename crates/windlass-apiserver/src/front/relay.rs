//! Requests that somebody else answers, on their way there and back.
//!
//! ```text
//! client ── request ──► where the core says ── Dialer ── TLS ──► node, or a program in the cluster
//!        ◄── answer, piece by piece ──┘
//!        ◄═══ bytes both ways, once the connection has changed its protocol ═══►
//! ```
//!
//! # Caveats
//! - kube-apiserver speaks SPDY to kubelets for clients that speak WebSocket. Here the node speaks what the client
//!   speaks; a kubelet that does not know the client's version refuses, and kubectl then tries SPDY by itself.
//! - Links in pages that come through a proxy are not rewritten.
//! - A node is asked at its own port only, but also where its address is this machine's own, which kube-apiserver refuses
//!   for `nodes/proxy`.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONNECTION, HOST, UPGRADE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::body::{Body, Once};
use super::elsewhere::{Driving, log, pass_on, remove_hops, take_over};
use super::trust;
use super::webhook::Connections;
use crate::api::{self, Peer, Relay, Relayed, Request};
use crate::status::Status;

/// Makes connections to nodes and to programs in the cluster.
pub trait Dialer: Send + Sync + 'static {
    /// Connects.
    fn dial<'a>(&'a self, peer: Peer, host: &'a str, port: u16) -> Dialing<'a>;
}

/// A connection under way.
pub type Dialing<'a> = Pin<Box<dyn Future<Output = io::Result<Box<dyn Connection>>> + Send + 'a>>;

/// Bytes in both directions.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// Connections of this machine.
pub struct Tcp;

impl Dialer for Tcp {
    fn dial<'a>(&'a self, _: Peer, host: &'a str, port: u16) -> Dialing<'a> {
        Box::pin(async move {
            let stream = TcpStream::connect((host, port)).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn Connection>)
        })
    }
}

/// How requests reach nodes and programs.
#[derive(Clone)]
pub struct Relaying {
    dialer: Arc<dyn Dialer>,
    node: Arc<ClientConfig>,
    program: Arc<ClientConfig>,
    token: Option<HeaderValue>,
    /// Where questions to webhooks go.
    webhooks: Arc<Connections>,
}

impl Default for Relaying {
    /// By connections of this machine, to nodes whose certificates are not looked at, and which are told nothing.
    fn default() -> Relaying {
        let anyone = trust::anyone();
        Relaying {
            dialer: Arc::new(Tcp),
            node: anyone.clone(),
            program: anyone,
            token: None,
            webhooks: Arc::default(),
        }
    }
}

impl Relaying {
    /// The same with connections made by `dialer`.
    #[must_use]
    pub fn dialer(self, dialer: impl Dialer) -> Relaying {
        Relaying { dialer: Arc::new(dialer), ..self }
    }

    /// The same with a bearer token by which nodes know this server.
    #[must_use]
    pub fn node_token(self, token: &str) -> Relaying {
        let value = HeaderValue::from_str(&format!("Bearer {token}")).ok().map(|mut value| {
            value.set_sensitive(true);
            value
        });
        Relaying { token: value, ..self }
    }

    /// The same with a client certificate by which nodes know this server, and the authority of the nodes' own
    /// certificates; without one, as with kube-apiserver, they are not looked at.
    pub fn node_tls(
        self,
        certificate: Option<(&str, &str)>,
        authority: Option<&str>,
    ) -> Result<Relaying, trust::Error> {
        Ok(Relaying { node: trust::client(certificate, authority)?, ..self })
    }

    /// Sends a request where it goes, and gives the answer back as it comes.
    pub(super) async fn answer(
        &self,
        relay: Relay,
        request: Request,
    ) -> Result<http::Response<Body>, Status> {
        let failed = |error: Failed| refusal(&relay, &error.0);
        let opening = self.connect(&relay);
        let io = match tokio::time::timeout(CONNECTING, opening).await {
            Ok(io) => io.map_err(failed)?,
            Err(_) => return Err(failed(Failed(dialed(&relay, "i/o timeout")))),
        };
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(io)).await.map_err(|error| failed(error.into()))?;
        let driving = Driving(tokio::spawn(async move {
            // The answer, or its end, tells what went wrong.
            let _ = connection.with_upgrades().await;
        }));
        let asks_upgrade = asked_upgrade(&request.headers).is_some();
        let outgoing = self.request(&relay, request);
        let response = sender.send_request(outgoing).await.map_err(|error| failed(error.into()))?;
        match &relay.answer {
            Relayed::Log { pod } => log(pod, response, driving).await,
            Relayed::Upgrade | Relayed::Proxy if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                take_over(response, driving).await.map_err(|error| failed(error.into()))
            }
            Relayed::Upgrade if response.status().as_u16() < 400 => {
                let code = response.status().as_u16();
                Err(Status::new(500, "", format!("invalid upgrade response: status code {code}")))
            }
            Relayed::Upgrade | Relayed::Proxy => {
                let mut response = pass_on(response, driving);
                // The answer to a client that would have taken over the connection is the other side's, word by word.
                if !asks_upgrade {
                    api::warn(response.headers_mut(), &relay.warnings);
                }
                Ok(response)
            }
        }
    }

    pub(super) fn dialer_of(&self) -> &dyn Dialer {
        &*self.dialer
    }

    pub(super) fn webhooks(&self) -> &Connections {
        &self.webhooks
    }

    async fn connect(&self, relay: &Relay) -> Result<Box<dyn Connection>, Failed> {
        let dialing = self.dialer.dial(relay.peer, &relay.host, relay.port);
        let io = dialing.await.map_err(|error| Failed(dialed(relay, &words(&error))))?;
        if !relay.tls {
            return Ok(io);
        }
        let config = match relay.peer {
            Peer::Node => &self.node,
            Peer::Program => &self.program,
        };
        let name = ServerName::try_from(relay.host.clone())
            .map_err(|_| Failed(dialed(relay, "the host's name is of no use for TLS")))?;
        let tls = TlsConnector::from(config.clone()).connect(name, io).await;
        tls.map(|tls| Box::new(tls) as Box<dyn Connection>).map_err(|error| Failed(format!("tls: {error}")))
    }

    /// The request as it is sent on. Nobody learns how the client showed who it is.
    fn request(&self, relay: &Relay, request: Request) -> http::Request<Once> {
        let is_log = matches!(relay.answer, Relayed::Log { .. });
        let mut headers = if is_log { HeaderMap::new() } else { request.headers };
        headers.remove(AUTHORIZATION);
        let upgrade = asked_upgrade(&headers);
        remove_hops(&mut headers);
        if let Some(upgrade) = upgrade {
            headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
            headers.insert(UPGRADE, upgrade);
        }
        if !headers.contains_key(HOST)
            && let Ok(host) = HeaderValue::from_str(&format!("{}:{}", relay.host, relay.port))
        {
            headers.insert(HOST, host);
        }
        if let (Peer::Node, Some(token)) = (relay.peer, &self.token) {
            headers.insert(AUTHORIZATION, token.clone());
        }
        let body = if is_log { Bytes::new() } else { request.body };
        let mut outgoing = http::Request::new(Once::from(body));
        *outgoing.method_mut() = if is_log { Method::GET } else { request.method };
        // It was a path and a query when it came, and the core only puts plain text before them.
        *outgoing.uri_mut() = relay.path.parse().unwrap_or_default();
        *outgoing.headers_mut() = headers;
        outgoing
    }
}

/// How long a connection may take, with its handshake.
const CONNECTING: Duration = Duration::from_secs(30);

/// Why the other side could not be asked, in words.
struct Failed(String);

impl From<hyper::Error> for Failed {
    fn from(error: hyper::Error) -> Failed {
        Failed(match std::error::Error::source(&error) {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        })
    }
}

fn dialed(relay: &Relay, why: &str) -> String {
    format!("dial tcp {}:{}: {why}", relay.host, relay.port)
}

/// A failure to connect, in the words of Go's.
pub(super) fn words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        io::ErrorKind::TimedOut => "i/o timeout".to_owned(),
        io::ErrorKind::NetworkUnreachable => "connect: network is unreachable".to_owned(),
        io::ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
        _ => error.to_string(),
    }
}

/// What a client is told of a failure, in kube-apiserver's words for each sort of request.
fn refusal(relay: &Relay, why: &str) -> Status {
    let Relay { host, port, path, .. } = relay;
    match relay.answer {
        Relayed::Log { .. } => Status::new(500, "", format!("Get \"https://{host}:{port}{path}\": {why}")),
        Relayed::Upgrade => Status::new(500, "", format!("error dialing backend: {why}")),
        Relayed::Proxy => {
            Status::new(503, "ServiceUnavailable", format!("error trying to reach service: {why}"))
        }
    }
}

pub(super) fn asked_upgrade(headers: &HeaderMap) -> Option<HeaderValue> {
    let values = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let asked = values.into_iter().any(|value| value.to_ascii_lowercase().contains("upgrade"));
    headers.get(UPGRADE).filter(|_| asked).cloned()
}
