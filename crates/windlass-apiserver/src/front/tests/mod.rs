//! The fronts from the outside: over TLS, and as a service.

mod conversions;
mod in_process;
mod metrics;
mod over_tls;
mod relays;
mod rough_clients;
mod tokens;
mod webhooks;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::credentials::Credentials;
use super::https::{Https, Limits};
use super::{ApiServer, Body, Options, Random};
use crate::api::Config;

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn server() -> ApiServer {
    ApiServer::start(Options { random: Random::from_seed(1), ..Options::default() })
}

/// A server behind TLS at some port.
struct Served {
    server: ApiServer,
    credentials: Arc<Credentials>,
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Served {
    async fn start() -> Served {
        Served::with(Limits::default()).await
    }

    async fn with(limits: Limits) -> Served {
        Served::run(limits, Options { random: Random::from_seed(1), ..Options::default() }).await
    }

    async fn of(options: Options) -> Served {
        Served::run(Limits::default(), options).await
    }

    async fn run(limits: Limits, options: Options) -> Served {
        let mut https = Https::bind(SocketAddr::new(LOOPBACK, 0)).await.unwrap();
        https.limits = limits;
        let address = https.local_addr().unwrap();
        let credentials = Arc::new(Credentials::generate(LOOPBACK).unwrap());
        let (stop, stopped) = oneshot::channel();
        let config = Config { tokens: Some(credentials.tokens()), ..options.config };
        let server = ApiServer::start(Options { config, ..options });
        let task = tokio::spawn({
            let (server, credentials) = (server.clone(), credentials.clone());
            async move {
                https.serve(server, credentials.serving(), async { stopped.await.unwrap_or(()) }).await;
            }
        });
        Served { server, credentials, address, stop: Some(stop), task }
    }

    /// Asks the server to end, and waits until it has.
    async fn stop(&mut self) {
        drop(self.stop.take());
        (&mut self.task).await.unwrap();
    }

    fn admin(&self) -> (String, String) {
        (self.credentials.admin_certificate.clone(), self.credentials.admin_key.clone())
    }

    async fn tls(&self, protocol: &str, certificate: Option<(String, String)>) -> TlsStream<TcpStream> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.credentials.authority.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match certificate {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
                builder.with_client_auth_cert(vec![certificate], key).unwrap()
            }
        };
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let stream = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
    }

    async fn client(&self, protocol: &str, certificate: Option<(String, String)>) -> Client {
        let stream = TokioIo::new(self.tls(protocol, certificate).await);
        if protocol == "h2" {
            let (sender, connection) =
                hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
            tokio::spawn(connection);
            Client::H2(sender)
        } else {
            let (sender, connection) = hyper::client::conn::http1::handshake(stream).await.unwrap();
            tokio::spawn(connection);
            Client::H1(sender)
        }
    }

    /// The administrator over HTTP/2.
    async fn admin_client(&self) -> Client {
        self.client("h2", Some(self.admin())).await
    }
}

/// One connection to the server.
enum Client {
    H1(hyper::client::conn::http1::SendRequest<Full<Bytes>>),
    H2(hyper::client::conn::http2::SendRequest<Full<Bytes>>),
}

impl Client {
    async fn send(&mut self, request: http::Request<Full<Bytes>>) -> hyper::Result<http::Response<Incoming>> {
        match self {
            Client::H1(sender) => sender.send_request(request).await,
            Client::H2(sender) => sender.send_request(request).await,
        }
    }

    async fn get(&mut self, path: &str) -> (u16, Value) {
        answer(self.send(get(path)).await.unwrap()).await
    }
}

fn get(path: &str) -> http::Request<Full<Bytes>> {
    request("GET", path, "")
}

fn request(method: &str, path: &str, body: impl Into<Bytes>) -> http::Request<Full<Bytes>> {
    http::Request::builder()
        .method(method)
        .uri(path)
        .header("host", "localhost")
        .header("content-type", "application/json")
        .body(Full::new(body.into()))
        .unwrap()
}

async fn answer(response: http::Response<Incoming>) -> (u16, Value) {
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (
        code,
        serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into())),
    )
}

fn config_map(name: &str) -> String {
    format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}}}}"#)
}

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// The next line of a watch.
async fn event<B>(body: &mut B) -> Value
where
    B: http_body::Body<Data = Bytes> + Unpin,
    B::Error: std::fmt::Debug,
{
    let frame = tokio::time::timeout(Duration::from_secs(10), body.frame()).await.expect("no event came");
    let data = frame.expect("the watch ended").unwrap().into_data().unwrap();
    serde_json::from_slice(&data)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&data)))
}

/// Whole answers of the in-process service.
async fn ask(server: &ApiServer, method: &str, path: &str, body: &str) -> (u16, Value) {
    let response = open(server, method, path, body).await;
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

async fn open(server: &ApiServer, method: &str, path: &str, body: &str) -> http::Response<Body> {
    let request = request(method, path, body.to_owned());
    tower::ServiceExt::oneshot(server.service(), request).await.unwrap()
}
