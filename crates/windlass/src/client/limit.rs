//! A time for every request.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use kube::client::Body;
use thiserror::Error;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceExt as _};

use super::refused::name;
use super::{Settings, Wire, call_of};

/// A request that took too long. Whether the server has done what it asked for, nobody knows.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{call} was not answered in {} s", .after.as_secs_f64())]
pub struct TimedOut {
    /// What was asked for.
    pub call: String,
    /// How long it was waited for.
    pub after: Duration,
}

pub(super) fn layer(inner: Wire, settings: &Arc<Settings>) -> Wire {
    let settings = settings.clone();
    BoxCloneSyncService::new(tower::service_fn(move |request: Request<Body>| {
        let (inner, settings) = (inner.clone(), settings.clone());
        async move {
            let call = call_of(&request);
            let timed_out = TimedOut { call: name(&call), after: settings.timeout };
            let deadline = settings.env.moment() + settings.timeout;
            let answer = settings.env.within(settings.timeout, inner.oneshot(request)).await;
            let answer = answer.ok_or_else(|| timed_out.clone())??;
            if call.streams {
                return Ok(answer);
            }
            // A server that falls silent in the middle of an answer would be waited for without end.
            let env = settings.env.clone();
            let too_late = Box::pin(async move { env.sleep_until(deadline).await });
            Ok(answer.map(|inner| Limited { inner, too_late, timed_out }.boxed_unsync()))
        }
    }))
}

/// The body of an answer, until it is too late.
struct Limited {
    inner: UnsyncBoxBody<Bytes, BoxError>,
    too_late: Pin<Box<dyn Future<Output = ()> + Send>>,
    timed_out: TimedOut,
}

impl http_body::Body for Limited {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(cx) {
            return Poll::Ready(frame);
        }
        self.too_late.as_mut().poll(cx).map(|()| Some(Err(self.timed_out.clone().into())))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
