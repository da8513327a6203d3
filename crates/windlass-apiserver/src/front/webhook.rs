//! Questions to webhooks, on their way there and back.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Uri};
use http_body_util::{BodyExt as _, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::CertificateError;
use rustls::pki_types::ServerName;
use tokio_rustls::TlsConnector;

use super::body::Once;
use super::clock::Clock;
use super::elsewhere::Driving;
use super::relay::{Relaying, words};
use super::trust;
use crate::api::{Failure, Peer, Place, Question, Reply, Review};

/// The largest answer.
const ANSWER_MAX: usize = 8 << 20;

/// A hook, as a connection needs it.
struct Where<'a> {
    /// What it is called: in TLS, and in messages.
    name: String,
    /// What is connected to.
    host: &'a str,
    port: u16,
    path: String,
    url: String,
}

impl Relaying {
    /// Asks a webhook, within its time and what is left of its client's.
    pub(super) async fn ask(&self, question: &Question, left: Option<Duration>, clock: &Clock) -> Reply {
        let began = clock.now();
        let body = self.body(question, left).await;
        Reply { body, took: clock.now().duration_since(began) }
    }

    async fn body(&self, question: &Question, left: Option<Duration>) -> Result<Bytes, Failure> {
        let seconds = question.timeout_seconds;
        // Who converts is not told how long it may take; who is told, in whole seconds.
        let most = left.map_or(seconds, |left| left.as_secs() + u64::from(left.subsec_nanos() > 0));
        let told = (question.review == Review::Admission).then_some(seconds.min(most));
        let there = Where::of(&question.place, told).map_err(Failure::new)?;
        let failed = |why: String| Failure::new(format!("Post {:?}: {why}", there.url));
        let asking = self.post(&there, question);
        match tokio::time::timeout(Duration::from_secs(seconds), asking).await {
            Ok(Ok(answer)) => read(answer),
            Ok(Err(why)) => Err(failed(why)),
            Err(_) => Err(failed("context deadline exceeded".to_owned())),
        }
    }

    async fn post(&self, there: &Where<'_>, question: &Question) -> Result<http::Response<Bytes>, String> {
        let dialed = |error| format!("dial tcp {}:{}: {}", there.host, there.port, words(&error));
        let io = self.dialer_of().dial(Peer::Program, there.host, there.port).await.map_err(dialed)?;
        let unverified = |why: &str| format!("tls: failed to verify certificate: {why}");
        let config = match question.authority.as_str() {
            "" => tokio::task::spawn_blocking(trust::system).await.ok().flatten(),
            authority => trust::client(None, Some(authority)).ok(),
        };
        let config = config.ok_or_else(|| unverified(UNKNOWN))?;
        let name = ServerName::try_from(there.name.clone()).map_err(|error| error.to_string())?;
        let tls = TlsConnector::from(config).connect(name, io).await;
        let tls = tls.map_err(|error| unverified(&untrusted(&error)))?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(tls)).await.map_err(|error| error.to_string())?;
        let _driving = Driving(tokio::spawn(async move {
            // The answer, or its end, tells what went wrong.
            let _ = connection.await;
        }));
        let mut request = http::Request::new(Once::from(question.body()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = there.path.parse().map_err(|_| "the path is no path".to_owned())?;
        *request.headers_mut() = headers(there);
        let response = sender.send_request(request).await.map_err(|_| "EOF".to_owned())?;
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, ANSWER_MAX).collect().await.map_err(|error| error.to_string())?;
        Ok(http::Response::from_parts(parts, body.to_bytes()))
    }
}

/// What Go says of a certificate that nobody has signed whom it knows.
const UNKNOWN: &str = "x509: certificate signed by unknown authority";

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

fn headers(there: &Where<'_>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, */*"));
    headers.insert(USER_AGENT, HeaderValue::from_static("kube-apiserver-admission"));
    if let Ok(host) = HeaderValue::from_str(&format!("{}:{}", there.name, there.port)) {
        headers.insert(HOST, host);
    }
    headers
}

/// An answer that is none is told in the words of kube-apiserver's client.
fn read(answer: http::Response<Bytes>) -> Result<Bytes, Failure> {
    let code = answer.status().as_u16();
    let media = answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media = media.to_owned();
    let body = answer.into_body();
    // What is no text is not shown.
    let text = || match media.starts_with("text/") {
        true => String::from_utf8_lossy(&body).trim().to_owned(),
        false => "unknown".to_owned(),
    };
    let why = match code {
        200..=206 if body.is_empty() => {
            let why = format!("0-length response with status code: {code} and content type: {media}");
            return Err(Failure::new(why));
        }
        200..=206 => return Ok(body),
        400 => "the server rejected our request for an unknown reason".to_owned(),
        403 => text(),
        404 => "the server could not find the requested resource".to_owned(),
        500.. => format!("an error on the server ({:?}) has prevented the request from succeeding", text()),
        _ => format!("the server responded with the status code {code} but did not return more information"),
    };
    Err(Failure { why, code })
}

impl<'a> Where<'a> {
    fn of(place: &'a Place, seconds: Option<u64>) -> Result<Where<'a>, String> {
        let timeout = seconds.map(|seconds| format!("?timeout={seconds}s")).unwrap_or_default();
        let with_timeout = |path: &str| format!("{}{timeout}", cleaned(path));
        match place {
            Place::Url(url) => {
                let uri: Uri = url.parse().map_err(|_| format!("parse {url:?}: it is no URL"))?;
                let host = url_host(url).ok_or_else(|| format!("parse {url:?}: it has no host"))?;
                let path = with_timeout(uri.path());
                let name = host.trim_matches(['[', ']']);
                let port = uri.port_u16().unwrap_or(443);
                let authority = uri.authority().map_or(host, |authority| authority.as_str());
                let url = format!("https://{authority}{path}");
                Ok(Where { name: name.to_owned(), host: name, port, path, url })
            }
            Place::Service(service, address) => {
                let name = format!("{}.{}.svc", service.name, service.namespace);
                let path = with_timeout(&service.path);
                let url = format!("https://{name}:{}{path}", service.port);
                match address {
                    Ok((host, port)) => Ok(Where { name, host, port: *port, path, url }),
                    Err(why) => Err(format!("Post {url:?}: {why}")),
                }
            }
        }
    }
}

/// A path without detours, as Go's clients ask for it. envtest writes two slashes where one would do, which a server in Go
/// answers with a redirection.
fn cleaned(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// The host in a URL.
fn url_host(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("https://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = match authority.rfind(':') {
        Some(at) if !authority[at..].contains(']') => &authority[..at],
        _ => authority,
    };
    (!host.is_empty()).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_no_detours() {
        for (path, asked) in [
            ("", "/"),
            ("/", "/"),
            ("//mutate-v1", "/mutate-v1"),
            ("/a/./b/../c/", "/a/c"),
            ("/../../a", "/a"),
        ] {
            assert_eq!(cleaned(path), asked, "{path}");
        }
    }
}
