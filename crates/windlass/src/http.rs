//! The HTTP servers of an operator: probes, metrics, and the user's own routes.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use axum::Router;
use axum::extract::Path;
use axum::http::header::{ACCEPT, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::env::{Env, Task};
use crate::health::Checks;
use crate::metrics::{Format, Metrics};

/// A server that cannot be reached.
#[derive(Debug, Error)]
#[error("cannot listen on {address:?} for {purpose}")]
pub struct BindError {
    /// What it is for, in words.
    pub purpose: &'static str,
    /// Where it should have listened.
    pub address: String,
    /// Why it does not: often because another process has the port.
    pub source: io::Error,
}

/// A server that has its port, and waits to be started.
#[derive(Debug)]
pub struct Listening {
    purpose: &'static str,
    listener: TcpListener,
    address: SocketAddr,
}

/// Connections that are still busy after this long when the process ends are cut.
const LEAVE: Duration = Duration::from_secs(5);

/// Takes the port of an address as kubebuilder writes them: `:8081` for all interfaces, `127.0.0.1:8081`, `:0` for any
/// free port, `0` or nothing for no server at all.
///
/// # Errors
/// When it is no address, or when it cannot be had.
pub async fn bind(purpose: &'static str, address: &str) -> Result<Option<Listening>, BindError> {
    if matches!(address.trim(), "" | "0") {
        return Ok(None);
    }
    let error = |source| BindError { purpose, address: address.to_owned(), source };
    let listener = listen(address.trim()).await.map_err(error)?;
    let address = listener.local_addr().map_err(error)?;
    Ok(Some(Listening { purpose, listener, address }))
}

async fn listen(address: &str) -> io::Result<TcpListener> {
    let Some(port) = address.strip_prefix(':') else { return TcpListener::bind(address).await };
    let port = port.parse().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    match TcpListener::bind((IpAddr::from(Ipv6Addr::UNSPECIFIED), port)).await {
        // A machine without IPv6.
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
            TcpListener::bind((IpAddr::from(Ipv4Addr::UNSPECIFIED), port)).await
        }
        listener => listener,
    }
}

impl Listening {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` comes and the requests that are there are answered.
    pub fn serve(self, env: &Env, router: Router, stop: CancellationToken) -> Task<io::Result<()>> {
        let Listening { purpose, listener, address } = self;
        tracing::info!(purpose, %address, "serving");
        let leaves = env.clone();
        env.spawn("http", async move {
            let stopped = stop.clone();
            let server = axum::serve(listener, router)
                .with_graceful_shutdown(async move { stopped.cancelled().await })
                .into_future();
            tokio::select! {
                biased;
                served = server => served,
                () = async {
                    stop.cancelled().await;
                    leaves.sleep(LEAVE).await;
                } => Ok(()),
            }
        })
    }
}

/// `/metrics`.
pub fn metrics(metrics: Metrics) -> Router {
    Router::new().route("/metrics", get(async move |headers: HeaderMap| show(&metrics, &headers)))
}

/// `/healthz` and `/readyz`, each with `?verbose`, `?exclude=NAME`, and a path below for each check.
pub fn probes(healthz: Checks, readyz: Checks) -> Router {
    question("healthz", healthz).merge(question("readyz", readyz))
}

fn show(metrics: &Metrics, headers: &HeaderMap) -> Response {
    let accept: Vec<&str> = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    let format = Format::accepted(Some(&accept.join(",")));
    ([(CONTENT_TYPE, format.content_type())], metrics.render(format)).into_response()
}

fn question(name: &'static str, checks: Checks) -> Router {
    let all = checks.clone();
    let all = move |uri: Uri| std::future::ready(answer(name, &all, uri.query().unwrap_or_default()));
    let one = move |Path(check): Path<String>| {
        std::future::ready(match checks.ask(&check) {
            None => plain(StatusCode::NOT_FOUND, format!("there is no check {check:?}\n")),
            Some(Ok(())) => plain(StatusCode::OK, "ok".to_owned()),
            Some(Err(why)) => {
                plain(StatusCode::INTERNAL_SERVER_ERROR, format!("internal server error: {why}\n"))
            }
        })
    };
    Router::new().route(&format!("/{name}"), get(all)).route(&format!("/{name}/{{check}}"), get(one))
}

fn answer(name: &str, checks: &Checks, query: &str) -> Response {
    let pairs = || query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let excluded: Vec<&str> = pairs().filter(|(key, _)| *key == "exclude").map(|(_, value)| value).collect();
    let verbose = pairs().any(|(key, _)| key == "verbose");
    let report = checks.report(name, &excluded);
    if !report.passed {
        // Kubernetes shows what failed without being asked, and logs it.
        tracing::debug!(question = name, report = report.text, "not well");
        return plain(StatusCode::INTERNAL_SERVER_ERROR, report.text);
    }
    plain(StatusCode::OK, if verbose { report.text } else { "ok".to_owned() })
}

fn plain(status: StatusCode, text: String) -> Response {
    let headers = [(CONTENT_TYPE, "text/plain; charset=utf-8"), (X_CONTENT_TYPE_OPTIONS, "nosniff")];
    (status, headers, text).into_response()
}
