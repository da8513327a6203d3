//! Requests over one connection: TLS to a process, or a service in this one.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::certificates::Always;

/// A chain of certificates, and the key of the first.
pub(crate) type Certificate = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// A body that arrives in pieces.
pub type Body = UnsyncBoxBody<Bytes, anyhow::Error>;
/// A future that a trait can return.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// No answer takes longer: the slowest waits about three seconds for a future version.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server under comparison.
pub trait Endpoint: Send + Sync {
    /// A new connection.
    fn open(&self) -> Boxed<'_, Result<Box<dyn Connection>>>;
}

/// One connection, used for one request after the other.
pub trait Connection: Send {
    /// Sends a request and returns the answer when its head is there.
    fn send(&mut self, request: Request<Full<Bytes>>) -> Boxed<'_, Result<Response<Body>>>;
}

/// A process behind TLS on the loopback interface.
#[derive(Clone)]
pub struct Https {
    address: String,
    token: String,
    tls: TlsConnector,
}

impl Https {
    /// The server at `127.0.0.1:PORT`, with a bearer token.
    pub fn new(address: &str, token: &str) -> Https {
        Https::with(address, token, None)
    }

    /// The same, with a client certificate and its key.
    pub(crate) fn with(address: &str, token: &str, certificate: Option<Certificate>) -> Https {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .expect("ring knows the default versions")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyOnLoopback));
        let config = match certificate {
            None => config.with_no_client_auth(),
            Some((chain, key)) => {
                let key = provider.key_provider.load_private_key(key).expect("a key that was just made");
                config.with_client_cert_resolver(Arc::new(Always(Arc::new(CertifiedKey::new(chain, key)))))
            }
        };
        Https { address: address.into(), token: token.into(), tls: TlsConnector::from(Arc::new(config)) }
    }

    /// `127.0.0.1:PORT`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The bearer token.
    pub fn token(&self) -> &str {
        &self.token
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>> {
        let tcp = TcpStream::connect(&self.address)
            .await
            .with_context(|| format!("connect to {}", self.address))?;
        tcp.set_nodelay(true)?;
        let name = ServerName::try_from("127.0.0.1").expect("an address is a name");
        let stream = self.tls.connect(name, tcp).await.context("TLS handshake")?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        // Owned by the sender: it ends when the sender is dropped or the server closes.
        tokio::spawn(connection);
        Ok(sender)
    }
}

impl Endpoint for Https {
    fn open(&self) -> Boxed<'_, Result<Box<dyn Connection>>> {
        Box::pin(async move {
            let sender = None;
            Ok(Box::new(Reconnecting { to: self.clone(), sender }) as Box<dyn Connection>)
        })
    }
}

struct Reconnecting {
    to: Https,
    sender: Option<SendRequest<Full<Bytes>>>,
}

impl Connection for Reconnecting {
    fn send(&mut self, mut request: Request<Full<Bytes>>) -> Boxed<'_, Result<Response<Body>>> {
        Box::pin(async move {
            request.headers_mut().insert("host", self.to.address.parse()?);
            if !request.headers().contains_key("authorization") && !self.to.token.is_empty() {
                request.headers_mut().insert("authorization", format!("Bearer {}", self.to.token).parse()?);
            }
            // An `authorization` that is there and empty means: nobody.
            if request.headers().get("authorization").is_some_and(|value| value.is_empty()) {
                request.headers_mut().remove("authorization");
            }
            // The server may have closed the connection after an answer such as 413.
            let usable = match &mut self.sender {
                Some(sender) => sender.ready().await.is_ok(),
                None => false,
            };
            if !usable {
                self.sender = Some(timeout(PATIENCE, self.to.connect()).await??);
            }
            let sender = self.sender.as_mut().expect("just connected");
            let answer = timeout(PATIENCE, sender.send_request(request)).await.context("no answer")?;
            if answer.is_err() {
                self.sender = None;
            }
            Ok(answer?.map(|body| body.map_err(anyhow::Error::from).boxed_unsync()))
        })
    }
}

/// Servers on the loopback interface sign for themselves; the harness started them, so it knows whom it talks to.
#[derive(Debug)]
struct AnyOnLoopback;

impl ServerCertVerifier for AnyOnLoopback {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        rustls::crypto::ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}
