//! The in-process front: requests and answers as values, no socket and no TLS.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, Method, Uri, header};
use thiserror::Error;

use super::body::Body;
use super::elsewhere::TakeOver;
use super::running::ApiServer;
use crate::api::User;
use crate::status::Status;

/// A server as a [`tower::Service`], for one user.
///
/// It never fails: whatever goes wrong is an answer.
#[derive(Clone)]
pub struct Service {
    server: ApiServer,
    user: Arc<User>,
}

impl Service {
    /// The server as `user` sees it.
    pub fn new(server: ApiServer, user: User) -> Service {
        Service { server, user: Arc::new(user) }
    }
}

impl<B> tower::Service<http::Request<B>> for Service
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let Service { server, user } = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let is_head = parts.method == Method::HEAD;
            let mut response = match collect(&parts, body, server.body_max()).await {
                Ok(body) => server.call(http::Request::from_parts(parts, body), user).await,
                Err(unread) => server.refuse(&parts.headers, &parts.uri, &unread.status()),
            };
            if response.extensions_mut().remove::<TakeOver>().is_some() {
                let words = "there is no connection here that could change its protocol: use the HTTPS front";
                response = server.refuse(&HeaderMap::new(), &Uri::default(), &Status::bad_request(words));
            }
            // On a connection HTTP leaves the body out; here nobody else does.
            if is_head {
                *response.body_mut() = Bytes::new().into();
            }
            Ok(response)
        })
    }
}

/// Why a request's body was not read to its end.
#[derive(Debug, Error)]
pub(super) enum Unread {
    #[error("the body has more than {0} bytes")]
    TooLarge(usize),
    #[error("the body broke off")]
    Broken,
}

impl Unread {
    pub fn status(&self) -> Status {
        match self {
            Unread::TooLarge(limit) => crate::api::too_large(*limit),
            Unread::Broken => Status::bad_request("unexpected EOF"),
        }
    }
}

/// Reads the body of a request whose method has one, up to a limit: memory is taken for what has arrived, never for
/// what was announced.
pub(super) async fn collect<B: http_body::Body>(
    parts: &http::request::Parts,
    body: B,
    limit: usize,
) -> Result<Bytes, Unread> {
    if !matches!(parts.method, Method::POST | Method::PUT | Method::PATCH | Method::DELETE) {
        return Ok(Bytes::new());
    }
    let announced =
        parts.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if announced.is_some_and(|length: u64| length > limit as u64) {
        return Err(Unread::TooLarge(limit));
    }
    let mut body = std::pin::pin!(body);
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(frame) = std::future::poll_fn(|context| body.as_mut().poll_frame(context)).await {
        let Ok(frame) = frame else { return Err(Unread::Broken) };
        let Ok(mut data) = frame.into_data() else { continue };
        if first.len() + all.len() + data.remaining() > limit {
            return Err(Unread::TooLarge(limit));
        }
        // Most bodies come in one piece, which is then the body, uncopied.
        if first.is_empty() && all.is_empty() {
            first = data.copy_to_bytes(data.remaining());
            continue;
        }
        if all.is_empty() {
            all.extend_from_slice(&std::mem::take(&mut first));
        }
        while data.has_remaining() {
            let piece = data.chunk();
            all.extend_from_slice(piece);
            let taken = piece.len();
            data.advance(taken);
        }
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}
