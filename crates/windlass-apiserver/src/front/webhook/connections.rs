//! Connections to webhooks, kept for the next question: a handshake costs more than most answers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig};
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

use super::super::body::Once;
use super::super::elsewhere::Driving;
use super::super::relay;
use super::super::trust;

/// How many connections to one place are kept, and how long each, as by kube-apiserver.
const KEPT_MAX: usize = 25;
const KEPT_FOR: Duration = Duration::from_secs(90);

/// The largest answer.
const ANSWER_MAX: usize = 8 << 20;

/// Whom a connection is to. Whoever is to be known by other certificates is met anew.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Endpoint {
    /// What it is called in TLS.
    pub name: String,
    /// What is connected to.
    pub host: String,
    pub port: u16,
    /// The certificates that it is known by, in PEM; if there are none, those of this machine.
    pub authority: String,
}

/// Connections on which nobody waits for an answer.
#[derive(Default)]
pub(in crate::front) struct Connections(Mutex<BTreeMap<Endpoint, Vec<(Connection, Instant)>>>);

impl Connections {
    /// The one that was used last.
    pub(super) fn take(&self, endpoint: &Endpoint) -> Option<Connection> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = all.get_mut(endpoint)?;
        while let Some((connection, since)) = kept.pop() {
            if is_good(&connection, since) {
                return Some(connection);
            }
        }
        all.remove(endpoint);
        None
    }

    /// Keeps one for the next question.
    pub(super) fn keep(&self, endpoint: &Endpoint, connection: Connection) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, kept| {
            kept.retain(|(connection, since)| is_good(connection, *since));
            !kept.is_empty()
        });
        let kept = all.entry(endpoint.clone()).or_default();
        if kept.len() < KEPT_MAX {
            kept.push((connection, Instant::now()));
        }
    }

    /// Closes those to somebody who did not answer: what is wrong with one may be wrong with all.
    pub(super) fn forget(&self, endpoint: &Endpoint) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(endpoint);
    }
}

fn is_good(connection: &Connection, since: Instant) -> bool {
    !connection.sender.is_closed() && since.elapsed() < KEPT_FOR
}

/// A connection to a webhook, which answers one question at a time.
pub(super) struct Connection {
    sender: SendRequest<Once>,
    _driving: Driving,
}

impl Connection {
    /// Shakes hands with an endpoint.
    pub async fn open(endpoint: &Endpoint, io: Box<dyn relay::Connection>) -> Result<Connection, String> {
        let config = trusting(&endpoint.authority).await.ok_or_else(|| unverified(UNKNOWN))?;
        let name = ServerName::try_from(endpoint.name.clone()).map_err(|error| error.to_string())?;
        let tls = TlsConnector::from(config).connect(name, io).await;
        let tls = tls.map_err(|error| unverified(&untrusted(&error)))?;
        let (sender, connection) =
            http1::handshake(TokioIo::new(tls)).await.map_err(|error| error.to_string())?;
        let driving = Driving(tokio::spawn(async move {
            // The answer, or its end, tells what went wrong.
            let _ = connection.await;
        }));
        Ok(Connection { sender, _driving: driving })
    }

    /// Sends a request and reads the answer. Nothing comes of it where the other side closed the connection instead.
    pub async fn ask(
        &mut self,
        request: http::Request<Once>,
    ) -> Option<Result<http::Response<Bytes>, String>> {
        // The last answer was read, but perhaps not its end.
        self.sender.ready().await.ok()?;
        let (parts, body) = self.sender.send_request(request).await.ok()?.into_parts();
        let body = Limited::new(body, ANSWER_MAX).collect().await;
        Some(match body {
            Ok(body) => Ok(http::Response::from_parts(parts, body.to_bytes())),
            Err(error) => Err(error.to_string()),
        })
    }
}

async fn trusting(authority: &str) -> Option<Arc<ClientConfig>> {
    match authority {
        "" => tokio::task::spawn_blocking(trust::system).await.ok().flatten(),
        authority => trust::client(None, Some(authority)).ok(),
    }
}

/// What Go says of a certificate that nobody has signed whom it knows.
const UNKNOWN: &str = "x509: certificate signed by unknown authority";

fn unverified(why: &str) -> String {
    format!("tls: failed to verify certificate: {why}")
}

/// Why a certificate was not good enough.
fn untrusted(error: &std::io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::Other(_),
        )) => UNKNOWN.to_owned(),
        _ => error.to_string(),
    }
}
