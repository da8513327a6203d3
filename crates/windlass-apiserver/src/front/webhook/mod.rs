//! Questions to webhooks, on their way there and back.

mod connections;

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Uri};

pub(super) use connections::Connections;

use super::body::Once;
use super::clock::Clock;
use super::relay::{Relaying, words};
use crate::api::{Failure, Peer, Place, Question, Reply, Review};
use connections::{Connection, Endpoint};

/// A hook, as a question needs it.
struct Where {
    endpoint: Endpoint,
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
        let there = Where::of(question, told).map_err(Failure::new)?;
        let asking = self.post(&there, question);
        let why = match tokio::time::timeout(Duration::from_secs(seconds), asking).await {
            Ok(Ok(answer)) => return read(answer),
            Ok(Err(why)) => why,
            Err(_) => "context deadline exceeded".to_owned(),
        };
        self.webhooks().forget(&there.endpoint);
        Err(Failure::new(format!("Post {:?}: {why}", there.url)))
    }

    /// Asks on a connection that was kept, or else on a new one. Where the other side closes a kept one instead of answering,
    /// it was about to close it anyway, and is asked once more: webhooks expect to hear the same question twice.
    async fn post(&self, there: &Where, question: &Question) -> Result<http::Response<Bytes>, String> {
        let Where { endpoint, .. } = there;
        if let Some(connection) = self.webhooks().take(endpoint)
            && let Some(answer) = self.ask_on(connection, there, question).await?
        {
            return Ok(answer);
        }
        let dialed = |error| format!("dial tcp {}:{}: {}", endpoint.host, endpoint.port, words(&error));
        let io = self.dialer_of().dial(Peer::Program, &endpoint.host, endpoint.port).await.map_err(dialed)?;
        let connection = Connection::open(endpoint, io).await?;
        self.ask_on(connection, there, question).await?.ok_or_else(|| "EOF".to_owned())
    }

    /// The answer on one connection, which is kept then; nothing where it was closed instead.
    async fn ask_on(
        &self,
        mut connection: Connection,
        there: &Where,
        question: &Question,
    ) -> Result<Option<http::Response<Bytes>>, String> {
        let answer = connection.ask(there.request(question)?).await.transpose()?;
        if answer.is_some() {
            self.webhooks().keep(&there.endpoint, connection);
        }
        Ok(answer)
    }
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

impl Where {
    fn of(question: &Question, seconds: Option<u64>) -> Result<Where, String> {
        let timeout = seconds.map(|seconds| format!("?timeout={seconds}s")).unwrap_or_default();
        let with_timeout = |path: &str| format!("{}{timeout}", cleaned(path));
        let endpoint = |name: &str, host: &str, port| {
            let authority = question.authority.clone();
            Endpoint { name: name.to_owned(), host: host.to_owned(), port, authority }
        };
        match &question.place {
            Place::Url(url) => {
                let uri: Uri = url.parse().map_err(|_| format!("parse {url:?}: it is no URL"))?;
                let host = url_host(url).ok_or_else(|| format!("parse {url:?}: it has no host"))?;
                let path = with_timeout(uri.path());
                let name = host.trim_matches(['[', ']']);
                let port = uri.port_u16().unwrap_or(443);
                let authority = uri.authority().map_or(host, |authority| authority.as_str());
                let url = format!("https://{authority}{path}");
                Ok(Where { endpoint: endpoint(name, name, port), path, url })
            }
            Place::Service(service, address) => {
                let name = format!("{}.{}.svc", service.name, service.namespace);
                let path = with_timeout(&service.path);
                let url = format!("https://{name}:{}{path}", service.port);
                match address {
                    Ok((host, port)) => Ok(Where { endpoint: endpoint(&name, host, *port), path, url }),
                    Err(why) => Err(format!("Post {url:?}: {why}")),
                }
            }
        }
    }

    fn request(&self, question: &Question) -> Result<http::Request<Once>, String> {
        let mut request = http::Request::new(Once::from(question.body()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.path.parse().map_err(|_| "the path is no path".to_owned())?;
        *request.headers_mut() = headers(&self.endpoint);
        Ok(request)
    }
}

fn headers(endpoint: &Endpoint) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, */*"));
    headers.insert(USER_AGENT, HeaderValue::from_static("kube-apiserver-admission"));
    if let Ok(host) = HeaderValue::from_str(&format!("{}:{}", endpoint.name, endpoint.port)) {
        headers.insert(HOST, host);
    }
    headers
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
