//! No write without the lease.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Request;
use http_body::{Frame, SizeHint};
use kube::client::Body;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceExt as _};

use super::refused::name;
use super::{Refused, Settings, Wire, call_of};

/// Says whether this process may write now.
///
/// The client asks right before it hands a write to the wire, and a second time when the connection takes the body of the
/// request. A process that was stopped in between, past its lease, sends nothing when it goes on.
pub trait Fence: Send + Sync {
    /// Whether a write may be sent at this moment.
    fn may_write(&self) -> bool;
}

pub(super) fn layer(inner: Wire, settings: &Arc<Settings>) -> Wire {
    let Some(fence) = settings.fence.clone() else { return inner };
    BoxCloneSyncService::new(tower::service_fn(move |mut request: Request<Body>| {
        let (inner, fence) = (inner.clone(), fence.clone());
        async move {
            let call = call_of(&request);
            if call.writes() {
                if !fence.may_write() {
                    return Err(Refused::NotLeading { call: name(&call) }.into());
                }
                request.extensions_mut().insert(Asked { fence, call: name(&call) });
            }
            inner.oneshot(request).await
        }
    }))
}

/// A write on its way, and whom to ask once more.
#[derive(Clone)]
struct Asked {
    fence: Arc<dyn Fence>,
    call: String,
}

/// A request's body that asks the fence when it is taken. The connection has written no byte of the body then, and a
/// request without its body is none: the server throws it away.
pub(super) struct FencedBody {
    inner: Body,
    asked: Option<Asked>,
}

/// The request as the connection gets it.
pub(super) fn fenced(request: Request<Body>) -> Request<FencedBody> {
    let (mut parts, inner) = request.into_parts();
    let asked = parts.extensions.remove::<Asked>();
    Request::from_parts(parts, FencedBody { inner, asked })
}

impl http_body::Body for FencedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(asked) = &self.asked
            && !asked.fence.may_write()
        {
            return Poll::Ready(Some(Err(Refused::NotLeading { call: asked.call.clone() }.into())));
        }
        Pin::new(&mut self.inner).poll_frame(cx).map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
