//! A door to our server through which ConfigMaps can be neither listed nor watched.
//!
//! A server with RBAC refuses such a request before it looks at anything; so does this door, before the server is asked at all.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tower::ServiceExt as _;
use windlass_apiserver::api::User;
use windlass_apiserver::front::{Aborted, ApiServer, Service};

use super::calls::Call;

/// Plain HTTP on the loopback interface, for one user.
pub struct Refusing {
    url: String,
    door: Arc<Door>,
    /// Ends with this value, and with it all connections.
    _listening: JoinSet<()>,
}

struct Door {
    service: Service,
    user: String,
    open: AtomicBool,
    refused: Mutex<Vec<Call>>,
}

type Body = UnsyncBoxBody<Bytes, Aborted>;

impl Refusing {
    /// Begins to listen, for a user who has all other rights.
    ///
    /// # Errors
    /// When there is no port.
    pub async fn start(server: ApiServer, user: &str) -> Result<Refusing> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let groups = vec!["system:masters".to_owned(), "system:authenticated".to_owned()];
        let service = Service::new(server, User { name: user.to_owned(), groups, ..User::default() });
        let door =
            Door { service, user: user.to_owned(), open: AtomicBool::new(false), refused: Mutex::default() };
        let door = Arc::new(door);
        let mut listening = JoinSet::new();
        listening.spawn(listen(listener, door.clone()));
        Ok(Refusing { url, door, _listening: listening })
    }

    /// Where it listens.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Lets ConfigMaps be listed and watched, or not.
    pub fn allow(&self, allowed: bool) {
        self.door.open.store(allowed, Ordering::Relaxed);
    }

    /// What was refused, oldest first.
    pub fn refused(&self) -> Vec<Call> {
        self.door.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn listen(listener: TcpListener, door: Arc<Door>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let door = door.clone();
        connections.spawn(async move {
            let service = service_fn(move |request| answer(door.clone(), request));
            // A client that leaves in the middle of a watch is no error.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(door: Arc<Door>, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let path = request.uri().path();
    let collection = path.starts_with("/api/v1/") && path.ends_with("/configmaps");
    if !collection || request.method() != Method::GET || door.open.load(Ordering::Relaxed) {
        return Ok(door.service.clone().oneshot(request).await?.map(BodyExt::boxed_unsync));
    }
    let watch = request
        .uri()
        .query()
        .is_some_and(|query| query.split('&').any(|one| one == "watch=true" || one == "watch=1"));
    let verb = if watch { "watch" } else { "list" };
    let namespace = path.strip_prefix("/api/v1/namespaces/").and_then(|rest| rest.split('/').next());
    let scope = match namespace {
        Some(namespace) => format!("in the namespace {namespace:?}"),
        None => "at the cluster scope".to_owned(),
    };
    let message = format!(
        "configmaps is forbidden: User {:?} cannot {verb} resource \"configmaps\" in API group \"\" {scope}",
        door.user
    );
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": "Forbidden", "details": {"kind": "configmaps"}, "code": 403,
    });
    door.refused.lock().unwrap_or_else(PoisonError::into_inner).push(Call {
        time: Timestamp::now(),
        user: door.user.clone(),
        verb: verb.to_owned(),
        resource: "configmaps".to_owned(),
        subresource: String::new(),
        namespace: namespace.unwrap_or_default().to_owned(),
        name: String::new(),
        code: 403,
    });
    let body = Full::new(Bytes::from(status.to_string())).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::FORBIDDEN;
    response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
    Ok(response)
}
