//! Answers of others, on their way to the client.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderName, UPGRADE};
use http::{HeaderMap, HeaderValue};
use hyper::body::Incoming;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::task::JoinHandle;

use super::body::Body;
use super::metrics::Going;
use crate::status::{Details, Status};

/// How much of a refusal is read.
const REFUSAL_MAX: usize = 50_000;

/// Keeps a connection going for as long as its answer is read.
pub(super) struct Driving(pub JoinHandle<()>);

impl Drop for Driving {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The rest of an answer from elsewhere.
pub(super) struct Elsewhere {
    body: Incoming,
    _driving: Driving,
}

impl Elsewhere {
    pub fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, hyper::Error>>> {
        loop {
            let frame = std::task::ready!(http_body::Body::poll_frame(Pin::new(&mut self.body), context));
            match frame.map(|frame| frame.map(http_body::Frame::into_data)) {
                Some(Ok(Ok(data))) => return Poll::Ready(Some(Ok(data))),
                // Trailers, which nobody waits for.
                Some(Ok(Err(_))) => {}
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
    }
}

/// An answer as it is.
pub(super) fn pass_on(response: http::Response<Incoming>, driving: Driving) -> http::Response<Body> {
    let (mut parts, body) = response.into_parts();
    remove_hops(&mut parts.headers);
    http::Response::from_parts(parts, Body::elsewhere(Elsewhere { body, _driving: driving }))
}

/// A log, or the node's refusal as kube-apiserver words it.
pub(super) async fn log(
    pod: &str,
    response: http::Response<Incoming>,
    driving: Driving,
) -> Result<http::Response<Body>, Status> {
    let code = response.status().as_u16();
    if (200..=206).contains(&code) {
        let body = Body::elsewhere(Elsewhere { body: response.into_body(), _driving: driving });
        let mut response = http::Response::new(body);
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        let private = HeaderValue::from_static("no-cache, private");
        response.headers_mut().insert(CACHE_CONTROL, private);
        return Ok(response);
    }
    let mut rest = Elsewhere { body: response.into_body(), _driving: driving };
    let mut text = Vec::new();
    while let Some(piece) = std::future::poll_fn(|context| rest.poll_piece(context)).await {
        text.extend_from_slice(&piece.map_err(|error| Status::internal(&error.to_string()))?);
        if text.len() >= REFUSAL_MAX {
            text.truncate(REFUSAL_MAX);
            break;
        }
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    Err(match code {
        400 => Status::bad_request(text),
        500 => Status::internal(&text),
        _ => generic(code, pod),
    })
}

/// What client-go makes of an answer that it did not expect.
fn generic(code: u16, pod: &str) -> Status {
    let (reason, message) = match code {
        401 => ("Unauthorized", "the server has asked for the client to provide credentials".to_owned()),
        403 => ("Forbidden", "unknown".to_owned()),
        404 => ("NotFound", "the server could not find the requested resource".to_owned()),
        422 => ("Invalid", "the server rejected our request due to an error in our request".to_owned()),
        503 => ("ServiceUnavailable", "the server is currently unable to handle the request".to_owned()),
        500.. => (
            "InternalError",
            "an error on the server (\"unknown\") has prevented the request from succeeding".to_owned(),
        ),
        _ => (
            "",
            format!("the server responded with the status code {code} but did not return more information"),
        ),
    };
    let mut status = Status::new(code, reason, format!("{message} ( pods/log {pod})"));
    let details = Details { name: pod.to_owned(), kind: "pods/log".to_owned(), ..Details::default() };
    status.details = Some(Box::new(details));
    status
}

/// A connection that has changed its protocol at the other side, for the front to pipe its client's into.
#[derive(Clone)]
pub(super) struct TakeOver(Arc<Mutex<Option<Other>>>);

/// The other side of such a connection.
struct Other {
    io: TokioIo<Upgraded>,
    _driving: Driving,
    going: Option<Going>,
}

impl TakeOver {
    /// It is counted when it ends.
    pub fn counted(&self, going: Going) {
        if let Some(other) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            other.going = Some(going);
        }
    }

    /// Carries bytes both ways until either side has ended.
    pub async fn pipe(self, client: impl AsyncRead + AsyncWrite + Unpin) {
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(other) = taken else { return };
        let (mut from_client, mut to_client) = tokio::io::split(client);
        let (mut from_other, mut to_other) = tokio::io::split(other.io);
        tokio::select! {
            biased;
            // Whatever it ended with, it has ended.
            _ = tokio::io::copy(&mut from_other, &mut to_client) => {}
            _ = tokio::io::copy(&mut from_client, &mut to_other) => {}
        }
        let _ = to_client.shutdown().await;
        let _ = to_other.shutdown().await;
    }
}

pub(super) async fn take_over(
    mut response: http::Response<Incoming>,
    driving: Driving,
) -> hyper::Result<http::Response<Body>> {
    let io = TokioIo::new(hyper::upgrade::on(&mut response).await?);
    let (mut parts, _) = response.into_parts();
    parts.extensions = http::Extensions::new();
    let other = Other { io, _driving: driving, going: None };
    parts.extensions.insert(TakeOver(Arc::new(Mutex::new(Some(other)))));
    Ok(http::Response::from_parts(parts, Bytes::new().into()))
}

/// Takes away what is said of one connection only.
pub(super) fn remove_hops(headers: &mut HeaderMap) {
    const HOPS: [HeaderName; 7] = [
        CONNECTION,
        UPGRADE,
        http::header::TE,
        http::header::TRAILER,
        http::header::TRANSFER_ENCODING,
        http::header::PROXY_AUTHENTICATE,
        http::header::PROXY_AUTHORIZATION,
    ];
    for name in HOPS {
        headers.remove(name);
    }
    headers.remove("keep-alive");
    headers.remove("proxy-connection");
}
