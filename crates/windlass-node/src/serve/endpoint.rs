//! The endpoint at work: connections, and what is asked on them.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use k8s_openapi::List;
use k8s_openapi::api::core::v1::Pod;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use windlass::Env;

use super::access::{self, Access, Certificate, Tokens};
use super::command::{self, Wanted};
use super::containers::{Attach, Containers, Exec};
use super::forward;
use super::logs::{self, Asked};
use super::route::{Route, Target, route};
use super::upgrade::{Agreed, Purpose, Refusal, agree};
use crate::logs::Reader;

/// The node's HTTPS endpoint.
pub struct Endpoint {
    shared: Arc<Shared>,
    tls: TlsAcceptor,
}

struct Shared {
    env: Env,
    containers: Arc<dyn Containers>,
    tokens: Tokens,
}

type Body = UnsyncBoxBody<Bytes, io::Error>;

/// What a connection turns into after an answer that changes its protocol.
type Session = BoxFuture<'static, ()>;

/// An answer, and what the connection turns into after it.
type Answer = (Response<Body>, Option<Session>);

/// How long a client may take for its handshake and for the head of a request.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How long the endpoint rests when it cannot take a connection: it is out of file descriptors or of memory.
const REST: Duration = Duration::from_millis(100);

impl Endpoint {
    /// An endpoint for these containers.
    pub fn new(
        env: Env,
        containers: Arc<dyn Containers>,
        certificate: &Certificate,
        access: &Access,
    ) -> Result<Endpoint, access::Error> {
        let tls = TlsAcceptor::from(access::tls(certificate, access)?);
        let shared = Shared { env, containers, tokens: Tokens::new(access) };
        Ok(Endpoint { shared: Arc::new(shared), tls })
    }

    /// Serves until it is dropped. With it end all connections, and what runs on them.
    pub async fn serve(&self, listener: TcpListener) {
        let mut connections = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                Some(ended) = connections.next() => {
                    let ended: Result<(), windlass::env::Died> = ended;
                    if let Err(error) = ended {
                        tracing::error!(%error, "a connection to the node's endpoint failed");
                    }
                }
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        let serving = connection(self.shared.clone(), self.tls.clone(), stream);
                        connections.push(self.shared.env.spawn("node connection", serving));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "the node's endpoint cannot take a connection");
                        self.shared.env.sleep(REST).await;
                    }
                }
            }
        }
    }
}

/// A connection: its requests, and the session that it may turn into.
async fn connection(shared: Arc<Shared>, tls: TlsAcceptor, stream: TcpStream) {
    // A connection that is not set so still works, with small delays.
    let _ = stream.set_nodelay(true);
    let stream = match shared.env.within(HANDSHAKE, tls.accept(stream)).await {
        Some(Ok(stream)) => stream,
        Some(Err(error)) => return tracing::debug!(%error, "a client of the node's endpoint was refused"),
        None => return tracing::debug!("a client of the node's endpoint did not finish its handshake"),
    };
    // Only certificates of the authority get this far.
    let certified = stream.get_ref().1.peer_certificates().is_some_and(|chain| !chain.is_empty());
    let session: Arc<Mutex<Option<Session>>> = Arc::default();
    let service = service_fn(|request| {
        let (shared, session) = (shared.clone(), session.clone());
        async move {
            let (response, next) = shared.answer(request, certified).await;
            *session.lock().unwrap_or_else(PoisonError::into_inner) = next;
            Ok::<_, Infallible>(response)
        }
    });
    let http = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HANDSHAKE)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    if let Err(error) = http.await {
        return tracing::debug!(%error, "a connection to the node's endpoint broke");
    }
    let next = session.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(next) = next {
        next.await;
    }
}

impl Shared {
    async fn answer(self: &Arc<Shared>, request: Request<Incoming>, certified: bool) -> Answer {
        if !certified && !self.tokens.admit(request.headers()) {
            return (text(StatusCode::UNAUTHORIZED, "Unauthorized"), None);
        }
        let route = match route(request.uri().path()) {
            Some(route) => route,
            None => return (text(StatusCode::NOT_FOUND, "404 page not found\n"), None),
        };
        let readable = matches!(*request.method(), Method::GET | Method::POST);
        if !readable {
            return (text(StatusCode::METHOD_NOT_ALLOWED, "405: Method Not Allowed"), None);
        }
        let answer = match route {
            Route::Health => Ok((text(StatusCode::OK, "ok"), None)),
            Route::Pods => Ok((self.pods(), None)),
            Route::Logs(target) => self.logs(&target, request.uri()).await.map(|response| (response, None)),
            Route::Exec(target) => self.command(&target, request, false),
            Route::Attach(target) => self.command(&target, request, true),
            Route::Forward(target) => self.forward(&target, request),
        };
        answer.unwrap_or_else(|refusal| (refused(refusal), None))
    }

    fn pods(&self) -> Response<Body> {
        let items = self.containers.pods().iter().map(|pod| Pod::clone(pod)).collect();
        let list = List::<Pod> { items, ..List::default() };
        match serde_json::to_vec(&list) {
            Ok(json) => {
                let mut response = Response::new(full(json));
                let json = HeaderValue::from_static("application/json");
                response.headers_mut().insert(header::CONTENT_TYPE, json);
                response
            }
            Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
        }
    }

    async fn logs(&self, target: &Target, uri: &Uri) -> Result<Response<Body>, Refusal> {
        let asked = Asked::parse(uri.query().unwrap_or_default()).map_err(|(code, words)| {
            Refusal::new(StatusCode::from_u16(code).unwrap_or(StatusCode::BAD_REQUEST), words)
        })?;
        let Target { namespace, pod: name, container } = target;
        let pod = self
            .containers
            .pod(namespace, name)
            .ok_or_else(|| Refusal::new(StatusCode::NOT_FOUND, format!("pod {name:?} does not exist")))?;
        if !logs::has_container(&pod, container) {
            let words = format!("container {container:?} not found in pod {name:?}");
            return Err(Refusal::new(StatusCode::NOT_FOUND, words));
        }
        let bad = |words: String| Refusal::new(StatusCode::BAD_REQUEST, words);
        let run = logs::run_of(&pod, container, asked.previous).map_err(bad)?;
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let log = self
            .containers
            .log(uid, &run)
            .ok_or_else(|| bad(format!("unable to retrieve container logs for {run}")))?;
        let reader = Reader::open(&log.path, &asked.selection, self.env.now()).await;
        let reader = reader.map_err(|error| bad(format!("failed to try resolving log file: {error}")))?;
        let pieces = logs::tell(self.env.clone(), reader, log, asked.follow);
        let mut response = Response::new(StreamBody::new(pieces).boxed_unsync());
        let plain = HeaderValue::from_static("text/plain");
        response.headers_mut().insert(header::CONTENT_TYPE, plain);
        Ok(response)
    }

    fn command(
        &self,
        target: &Target,
        mut request: Request<Incoming>,
        attach: bool,
    ) -> Result<Answer, Refusal> {
        let (wanted, command) = command_of(request.uri().query().unwrap_or_default());
        if !wanted.stdin && !wanted.stdout && !wanted.stderr {
            let words = "you must specify at least 1 of stdin, stdout, stderr";
            return Err(Refusal::new(StatusCode::BAD_REQUEST, words));
        }
        let pod = self.pod_of(target)?;
        let container = target.container.clone();
        let running = logs::status_of(&pod, &container)
            .and_then(|status| status.state.as_ref())
            .is_some_and(|state| state.running.is_some());
        if !running {
            let words = match attach {
                true => format!("container {container} not found in pod {}_{}", target.pod, target.namespace),
                false => format!("container not found ({container:?})"),
            };
            return Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, words));
        }
        // Whether a program runs on a terminal was decided when it was started.
        let one_output = attach && has_terminal(&pod, &container);
        let wanted = Wanted { stderr: wanted.stderr && !one_output, ..wanted };
        let agreed = agree(request.headers(), Purpose::Command)?;
        let upgrade = hyper::upgrade::on(&mut request);
        let containers = self.containers.clone();
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        Ok(upgraded(agreed, upgrade, move |io, agreed| async move {
            let Wanted { stdin, stdout, stderr, tty } = wanted;
            let start = async {
                if attach {
                    return containers.attach(&uid, &container, Attach { stdin, stdout, stderr }).await;
                }
                let exec = Exec { command: command.clone(), stdin, stdout, stderr, tty };
                containers.exec(&uid, &container, exec).await
            };
            command::serve(io, agreed, wanted, &command, start).await;
        }))
    }

    fn forward(&self, target: &Target, mut request: Request<Incoming>) -> Result<Answer, Refusal> {
        let agreed = agree(request.headers(), Purpose::Forward);
        let by_channels = agreed.as_ref().is_ok_and(Agreed::by_channels);
        let ports = match by_channels {
            true => ports_of(request.uri().query().unwrap_or_default())
                .map_err(|words| Refusal::new(StatusCode::BAD_REQUEST, words))?,
            false => Vec::new(),
        };
        let pod = self.pod_of(target)?;
        let agreed = agreed?;
        let upgrade = hyper::upgrade::on(&mut request);
        let containers = self.containers.clone();
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        Ok(upgraded(agreed, upgrade, move |io, agreed| async move {
            forward::serve(io, agreed, ports, &*containers, &uid).await;
        }))
    }

    fn pod_of(&self, target: &Target) -> Result<Arc<Pod>, Refusal> {
        let found = self.containers.pod(&target.namespace, &target.pod);
        found.ok_or_else(|| Refusal::new(StatusCode::NOT_FOUND, "pod does not exist"))
    }
}

/// The answer that changes a connection's protocol, and what is done on it then.
fn upgraded<F: Future<Output = ()> + Send + 'static>(
    agreed: Agreed,
    upgrade: hyper::upgrade::OnUpgrade,
    serve: impl FnOnce(TokioIo<hyper::upgrade::Upgraded>, Agreed) -> F + Send + 'static,
) -> Answer {
    let response = agreed.response::<Option<Bytes>>().map(|_| full(Bytes::new()));
    let session = async move {
        match upgrade.await {
            Ok(io) => serve(TokioIo::new(io), agreed).await,
            Err(error) => tracing::debug!(%error, "a connection did not change its protocol"),
        }
    };
    (response, Some(Box::pin(session)))
}

/// What a client wants of a program, in kubelet's words.
fn command_of(query: &str) -> (Wanted, Vec<String>) {
    let mut wanted = Wanted::default();
    let mut command = Vec::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match (&*name, &*value) {
            ("input", "1") => wanted.stdin = true,
            ("output", "1") => wanted.stdout = true,
            ("error", "1") => wanted.stderr = true,
            ("tty", "1") => wanted.tty = true,
            ("command", word) => command.push(word.to_owned()),
            _ => {}
        }
    }
    // A terminal has one output.
    wanted.stderr &= !wanted.tty;
    (wanted, command)
}

/// The ports that a client of channels names.
fn ports_of(query: &str) -> Result<Vec<u16>, String> {
    let mut ports = Vec::new();
    for (_, value) in form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name == "port") {
        for port in value.split(',') {
            match port.parse::<u16>() {
                Ok(0) => return Err(format!("port {value:?} must be > 0")),
                Ok(port) => ports.push(port),
                Err(_) => return Err(format!("unable to parse {value:?} as a port")),
            }
        }
    }
    // A channel's number is one byte, a port has two of them, and 255 is none.
    match ports.len() {
        0 => Err("query parameter \"port\" is required".to_owned()),
        1..=127 => Ok(ports),
        _ => Err("no more than 127 ports fit into one connection".to_owned()),
    }
}

fn has_terminal(pod: &Pod, container: &str) -> bool {
    let Some(spec) = &pod.spec else { return false };
    let all = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let plain = all.filter(|one| one.name == container).any(|one| one.tty == Some(true));
    let mut ephemeral = spec.ephemeral_containers.iter().flatten();
    plain || ephemeral.any(|one| one.name == container && one.tty == Some(true))
}

fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

fn text(status: StatusCode, words: &str) -> Response<Body> {
    let mut response = Response::new(full(words.to_owned()));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}

fn refused(refusal: Refusal) -> Response<Body> {
    let mut response = text(refusal.status, &refusal.text);
    response.headers_mut().extend(refusal.headers);
    response
}
