//! What is tried again.
//!
//! A request may be repeated when the first one cannot have done anything that the second would do once more:
//!
//! - A **read** changes nothing. It is repeated when the server was not reached, when the connection broke, and on the
//!   answers that speak of the moment and not of the request: 429, 502, 503 and 504, and 500 with a `Retry-After`.
//! - A **write** is repeated on 429 with a `Retry-After`, by which the server says that it turned the request away at the
//!   door, and when there was no connection, so that no byte of it was sent. Nothing else: after a broken connection, a
//!   timeout or a 5xx nobody knows whether it was done. A create that is repeated makes two objects or reports a conflict
//!   with itself, a delete hits the successor, and even an apply or an update could undo what came in between. Whoever
//!   planned the write looks at the world again and plans again, which is what reconciling is.
//!
//! kube's own policy repeats every verb on 429, 503 and 504, for minutes; it is off.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderMap, Request, StatusCode};
use hyper_util::client::legacy;
use kube::client::Body;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceExt as _};

use super::{Call, Refused, Settings, TimedOut, Wire, call_of};

/// How often and for how long a request is tried again. What is safe to repeat is not for settings to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// How often it is sent at most, the first time included.
    pub tries: u32,
    /// No try begins later than this after the first.
    pub within: Duration,
    /// The pause before the second try, if the server does not ask for another. It doubles from try to try, and varies.
    pub pause: Duration,
}

impl Default for Retry {
    /// Five tries in ten seconds, from a tenth of a second on: as long as an API server takes to hand over to the next.
    /// What lasts longer is the queue's to wait for.
    fn default() -> Retry {
        Retry { tries: 5, within: Duration::from_secs(10), pause: Duration::from_millis(100) }
    }
}

impl Retry {
    /// Every request is sent once.
    pub fn never() -> Retry {
        Retry { tries: 1, ..Retry::default() }
    }
}

pub(super) fn layer(inner: Wire, host: &str, settings: &Arc<Settings>) -> Wire {
    if settings.retry.tries <= 1 {
        return inner;
    }
    let settings = settings.clone();
    let host: Arc<str> = host.into();
    BoxCloneSyncService::new(tower::service_fn(move |request: Request<Body>| {
        let (inner, settings, host) = (inner.clone(), settings.clone(), host.clone());
        async move {
            let call = call_of(&request);
            let retry = &settings.retry;
            let start = settings.env.moment();
            let mut request = request;
            let mut tried = 0;
            loop {
                tried += 1;
                let next = copy(&request);
                let method = request.method().clone();
                let answer = inner.clone().oneshot(request).await;
                let (code, asked) = match &answer {
                    Ok(response) if may_repeat(&call, response.status(), response.headers()) => {
                        (Some(response.status().as_u16()), retry_after(response.headers()))
                    }
                    Err(error) if may_repeat_after(&call, error) => (None, None),
                    _ => return answer,
                };
                let own = settings.env.jittered(retry.pause * 2u32.saturating_pow(tried - 1), 0.5);
                let pause = asked.unwrap_or(own);
                let over = settings.env.moment() + pause - start > retry.within;
                let Some(next) = next.filter(|_| tried < retry.tries && !over) else { return answer };
                settings.metrics.client().retried(method.as_str(), &host, code);
                settings.env.sleep(pause).await;
                request = next;
            }
        }
    }))
}

fn may_repeat(call: &Call, status: StatusCode, headers: &HeaderMap) -> bool {
    let asked = headers.contains_key(RETRY_AFTER);
    match status {
        StatusCode::TOO_MANY_REQUESTS => asked || call.reads(),
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
            call.reads()
        }
        StatusCode::INTERNAL_SERVER_ERROR => asked && call.reads(),
        _ => false,
    }
}

fn may_repeat_after(call: &Call, error: &BoxError) -> bool {
    let error: &(dyn Error + 'static) = &**error;
    if chain(error).any(|cause| cause.is::<Refused>() || cause.is::<TimedOut>()) {
        return false;
    }
    call.reads() || chain(error).any(|cause| cause.downcast_ref().is_some_and(legacy::Error::is_connect))
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// Seconds, as the API server writes it.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

/// The same request once more, if its body can be copied: those of `kube::Api` can.
fn copy(request: &Request<Body>) -> Option<Request<Body>> {
    let mut copy = Request::new(request.body().try_clone()?);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.version_mut() = request.version();
    *copy.headers_mut() = request.headers().clone();
    *copy.extensions_mut() = request.extensions().clone();
    Some(copy)
}
