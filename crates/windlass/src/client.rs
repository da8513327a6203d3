//! The way to the API server: a `kube::Client` that gives up in time, repeats only what is safe to repeat, counts what it
//! does, and asks before it writes.
//!
//! ```text
//! kube::Client ─► guard ─► retry ─► meter ─► limit ─► fence ─► the wire
//!                 declared? reads,   rest_    a time   leading?  (HTTP, or the server of a test)
//!                 read-only? 429     client_* for all
//! ```
//!
//! The same layers stand around a connection ([`connect`]) and around any other client ([`layered`]), so that a test's
//! server in the same process is reached by the code that is shipped.

mod call;
mod connect;
mod fence;
mod guard;
mod limit;
mod meter;
mod refused;
mod retry;

pub use call::{Call, Resource};
pub use connect::{ConnectError, Server, config, connect};
pub use fence::Fence;
pub use limit::TimedOut;
pub use refused::{Refused, refusal};
pub use retry::Retry;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use kube::client::Body;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service, ServiceExt as _};

use crate::env::Env;
use crate::metrics::Metrics;
use crate::rules::Rules;

/// How a client behaves.
#[derive(Clone)]
pub struct Settings {
    /// Clock and randomness.
    pub env: Env,
    /// Where requests are counted.
    pub metrics: Metrics,
    /// How long one request may take until its answer is complete; a watch, until its answer begins. 30 seconds unless
    /// told otherwise.
    pub timeout: Duration,
    /// What is tried again.
    pub retry: Retry,
    /// Asked before every write: a process that does not lead must not write. None for what happens beside the lease: the
    /// lease itself, and events.
    pub fence: Option<Arc<dyn Fence>>,
    /// Where given, a call that it does not cover fails, and says what to declare.
    pub guard: Option<Rules>,
    /// Refuse every write but dry runs.
    pub read_only: bool,
    /// The `User-Agent`: who asks, for the server's audit log.
    pub agent: String,
}

impl Settings {
    /// Half a minute, retries, no fence, no guard.
    pub fn new(env: &Env, metrics: &Metrics) -> Settings {
        Settings {
            env: env.clone(),
            metrics: metrics.clone(),
            timeout: Duration::from_secs(30),
            retry: Retry::default(),
            fence: None,
            guard: None,
            read_only: false,
            agent: concat!("windlass/", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}

/// The same client with layers around it.
pub fn layered(inner: kube::Client, settings: Settings) -> kube::Client {
    let namespace = inner.default_namespace().to_owned();
    let wire = tower::service_fn(move |request: Request<Body>| {
        let inner = inner.clone();
        async move { inner.send(request).await }
    });
    stack(wire, namespace, String::new(), settings)
}

/// A service on the way, of which each layer makes another.
type Wire = BoxCloneSyncService<Request<Body>, Reply, BoxError>;
type Reply = Response<UnsyncBoxBody<Bytes, BoxError>>;

fn stack<S, B>(wire: S, namespace: String, host: String, settings: Settings) -> kube::Client
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let settings = Arc::new(settings);
    let wire = wire
        .map_response(|response| response.map(|body| body.map_err(Into::into).boxed_unsync()))
        .map_err(Into::into);
    let wire = BoxCloneSyncService::new(wire);
    let wire = fence::layer(wire, &settings);
    let wire = limit::layer(wire, &settings);
    let wire = meter::layer(wire, &host, &settings);
    let wire = retry::layer(wire, &host, &settings);
    let wire = guard::layer(wire, &settings);
    kube::Client::new(wire, namespace)
}

/// What a request asks for. The outermost layer reads it from the request and leaves it there for the others, since the
/// path may get a prefix on its way.
fn call_of(request: &Request<Body>) -> Call {
    match request.extensions().get::<Call>() {
        Some(call) => call.clone(),
        None => Call::of(request.method(), request.uri()),
    }
}
