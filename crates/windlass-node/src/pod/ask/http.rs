//! Asking by HTTP.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{Either, select};
use http::{HeaderName, HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::HTTPGetAction;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{self, ClientConfig, DigitallySignedStruct, SignatureScheme};

use super::{Asked, join};
use crate::pod::probe::Finding;
use crate::serve::Connection;

const REDIRECTS_MAX: usize = 10;
const BODY_MAX: usize = 10 << 10;

pub(super) async fn probe(asked: &Asked, action: &HTTPGetAction, limit: Duration) -> Finding {
    let url = match Url::of(asked, action) {
        Ok(url) => url,
        Err(error) => return Finding::Errored(error),
    };
    let text = url.text();
    match asked.env.within(limit, get(asked, action, url, limit, "kube-probe/1.36")).await {
        None => Finding::Failure(format!(
            "Get \"{text}\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
        )),
        Some(Err(error)) => Finding::Failure(format!("Get \"{text}\": {error}")),
        Some(Ok(answer)) if answer.is_elsewhere => {
            Finding::Warning(format!("Probe terminated redirects, Response body: {}", answer.body))
        }
        Some(Ok(answer)) if (200..400).contains(&answer.status.as_u16()) => Finding::Success,
        Some(Ok(answer)) => {
            Finding::Failure(format!("HTTP probe failed with statuscode: {}", answer.status.as_u16()))
        }
    }
}

/// A hook is content with any answer.
pub(super) async fn hook(asked: &Asked, action: &HTTPGetAction, limit: Duration) -> Result<(), String> {
    let url = Url::of(asked, action)?;
    let text = url.text();
    match asked.env.within(limit, get(asked, action, url, limit, "kube-lifecycle/1.36")).await {
        None => Err(format!("Get \"{text}\": context deadline exceeded")),
        Some(Err(error)) => Err(format!("Get \"{text}\": {error}")),
        Some(Ok(_)) => Ok(()),
    }
}

struct Answer {
    status: StatusCode,
    body: String,
    /// Whether it sends us to another host.
    is_elsewhere: bool,
}

#[derive(Clone)]
struct Url {
    tls: bool,
    host: String,
    port: u16,
    path: String,
}

impl Url {
    fn of(asked: &Asked, action: &HTTPGetAction) -> Result<Url, String> {
        let host = action.host.as_deref().filter(|host| !host.is_empty()).or(asked.ip.as_deref());
        let path = action.path.as_deref().unwrap_or("/");
        Ok(Url {
            tls: action.scheme.as_deref().is_some_and(|scheme| scheme.eq_ignore_ascii_case("https")),
            host: host.unwrap_or_default().to_owned(),
            port: asked.port(&action.port)?,
            path: if path.starts_with('/') { path.to_owned() } else { format!("/{path}") },
        })
    }

    fn text(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}{}", join(&self.host, self.port), self.path)
    }

    /// Where a redirect leads.
    fn follow(&self, location: &str) -> Option<Url> {
        let Some((scheme, rest)) = location.split_once("://") else {
            let path = if location.starts_with('/') {
                location.to_owned()
            } else {
                let base = self.path.rsplit_once('/').map_or("", |(base, _)| base);
                format!("{base}/{location}")
            };
            return Some(Url { path, ..self.clone() });
        };
        let tls = match scheme {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let (authority, path) =
            rest.split_once('/').map_or((rest, String::new()), |(a, p)| (a, p.to_owned()));
        let standard = if tls { 443 } else { 80 };
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port.parse().ok()?),
            _ => (authority, standard),
        };
        Some(Url { tls, host: host.trim_matches(['[', ']']).to_owned(), port, path: format!("/{path}") })
    }
}

async fn get(
    asked: &Asked,
    action: &HTTPGetAction,
    mut url: Url,
    limit: Duration,
    agent: &'static str,
) -> Result<Answer, String> {
    let first = url.host.clone();
    for _ in 0..REDIRECTS_MAX {
        let (status, location, body) = once(asked, action, &url, limit, agent).await?;
        let next = location.filter(|_| status.is_redirection()).and_then(|to| url.follow(&to));
        match next {
            None => return Ok(Answer { status, body, is_elsewhere: false }),
            Some(next) if next.host != first => return Ok(Answer { status, body, is_elsewhere: true }),
            Some(next) => url = next,
        }
    }
    Err(format!("stopped after {REDIRECTS_MAX} redirects"))
}

async fn once(
    asked: &Asked,
    action: &HTTPGetAction,
    url: &Url,
    limit: Duration,
    agent: &'static str,
) -> Result<(StatusCode, Option<String>, String), String> {
    let connection = asked.dial(Some(&url.host), url.port, limit).await?;
    let connection: Connection = if url.tls { encrypted(connection, url).await? } else { connection };
    let (mut sender, driver) = hyper::client::conn::http1::handshake(TokioIo::new(connection))
        .await
        .map_err(|error| error.to_string())?;
    let request = request(action, url, agent).map_err(|error| error.to_string())?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(|error| match error {
            error if error.is_incomplete_message() || error.is_canceled() => "EOF".to_owned(),
            error => error.to_string(),
        })?;
        let (parts, mut body) = response.into_parts();
        let mut text = Vec::new();
        while text.len() < BODY_MAX {
            let Some(Ok(frame)) = body.frame().await else { break };
            if let Some(data) = frame.data_ref() {
                text.extend_from_slice(&data[..data.len().min(BODY_MAX - text.len())]);
            }
        }
        let location = parts.headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
        Ok((parts.status, location.map(str::to_owned), String::from_utf8_lossy(&text).into_owned()))
    };
    match select(std::pin::pin!(exchange), std::pin::pin!(driver)).await {
        Either::Left((answer, _)) => answer,
        // The connection has ended: what is left of the answer is there.
        Either::Right((_, exchange)) => exchange.await,
    }
}

fn request(
    action: &HTTPGetAction,
    url: &Url,
    agent: &'static str,
) -> Result<Request<Empty<Bytes>>, http::Error> {
    let mut request = Request::builder().method(Method::GET).uri(&*url.path).body(Empty::new())?;
    let headers = request.headers_mut();
    headers.insert(header::USER_AGENT, HeaderValue::from_static(agent));
    headers.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    headers.insert(header::HOST, HeaderValue::from_str(&join(&url.host, url.port))?);
    for said in action.http_headers.iter().flatten() {
        let (Ok(name), Ok(value)) = (said.name.parse::<HeaderName>(), HeaderValue::from_str(&said.value))
        else {
            continue;
        };
        if value.is_empty() && matches!(name, header::ACCEPT | header::USER_AGENT) {
            headers.remove(&name);
        } else {
            headers.insert(name, value);
        }
    }
    Ok(request)
}

async fn encrypted(connection: Connection, url: &Url) -> Result<Connection, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anyone(provider)))
        .with_no_client_auth();
    let name = ServerName::try_from(url.host.clone()).map_err(|error| error.to_string())?;
    let stream = TlsConnector::from(Arc::new(config)).connect(name, connection).await;
    Ok(Box::new(stream.map_err(|error| error.to_string())?))
}

/// A probe asks whether something serves, not who it is.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_lead_where_they_say() {
        let url = Url { tls: false, host: "10.0.0.1".to_owned(), port: 8080, path: "/a/b".to_owned() };
        let to = |location: &str| url.follow(location).map(|url| url.text());
        assert_eq!(to("/c").as_deref(), Some("http://10.0.0.1:8080/c"));
        assert_eq!(to("c").as_deref(), Some("http://10.0.0.1:8080/a/c"));
        assert_eq!(to("https://10.0.0.1/x").as_deref(), Some("https://10.0.0.1:443/x"));
        assert_eq!(to("http://other:81").as_deref(), Some("http://other:81/"));
        assert_eq!(to("ftp://x/"), None);
    }
}
