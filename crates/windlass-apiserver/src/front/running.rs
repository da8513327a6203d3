//! The server at work: one value behind a lock, with a clock and a source of ids.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use http::header::HeaderName;
use http::{HeaderMap, HeaderValue, Uri};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;
use tokio::time::Instant;

use super::body::Body;
use super::clock::Clock;
use super::durable::{Durable, Lost, Ticket};
use super::elsewhere::TakeOver;
use super::identity::{LastToken, Named, Token};
use super::metrics::{Going, Metrics, Outcome, Underway};
use super::random::{Random, mix};
use super::relay::{Relaying, asked_upgrade};
use super::service::Service;
use super::signal::Signal;
use super::turns::{Turn, Turns};
use crate::api::{
    self, Authorization, Config, Ids, NAMED, Question, Relay, Reply, Request, Server, Step, Used, User,
    Wanted,
};
use crate::status::Status;
use crate::store::{Kind, Store};

/// A server that is running. Clones are the same server; [`ApiServer::fork`] makes another.
///
/// # Guarantees
/// - A request is answered when all that its answer shows is safe in the data folder, if there is one.
/// - A request that panics is answered with a 500. What it had committed stays, what it had not is gone.
/// - Watches cost nothing while nothing happens, and end when they are dropped or the server is closed.
#[derive(Clone)]
pub struct ApiServer {
    shared: Arc<Shared>,
}

/// How a server runs.
pub struct Options {
    /// What the server is told.
    pub config: Config,
    /// Its clock.
    pub clock: Clock,
    /// Where uids and name suffixes come from.
    pub random: Random,
    /// What an earlier run left, and where this one keeps its commits.
    pub durable: Option<(Store, Durable)>,
    /// How it reaches nodes, and programs in the cluster.
    pub relaying: Relaying,
}

impl Default for Options {
    /// The machine's clock and randomness, and nothing on disk.
    fn default() -> Options {
        Options {
            config: Config::default(),
            clock: Clock::System,
            random: Random::from_os(),
            durable: None,
            relaying: Relaying::default(),
        }
    }
}

pub(super) struct Shared {
    inner: Arc<Turns<Inner>>,
    progress: Signal<Progress>,
    /// Whether the server is closed, for those who wait for nothing else: a commit wakes none of them.
    closed: watch::Sender<bool>,
    /// The store as watchers read it: all that are woken by a commit share one clone.
    view: Mutex<Option<Arc<Store>>>,
    pub clock: Clock,
    body_max: usize,
    authorization: Authorization,
    durable: Option<Durable>,
    /// Why nothing can be made durable any more.
    failure: OnceLock<Lost>,
    audit_ids: AuditIds,
    relaying: Relaying,
    /// The revision of the last change of each of the kinds that tokens name.
    named: [AtomicU64; NAMED.len()],
    pub metrics: Arc<Metrics>,
}

struct Inner {
    server: Server,
    random: Random,
    ticked: Timestamp,
}

/// What came of a step, and what its answer has to wait for.
type Taken = Result<(Step, Option<Ticket>), Status>;

/// Who has answered a request.
enum Answered {
    Here(api::Response),
    Elsewhere(http::Response<Body>),
}

/// How far the server is.
#[derive(Clone, Copy, Debug)]
struct Progress {
    revision: u64,
    closed: bool,
}

/// How often history is trimmed, at most.
const TICK: SignedDuration = SignedDuration::from_secs(10);

static NAMED_KINDS: LazyLock<[Kind; NAMED.len()]> =
    LazyLock::new(|| NAMED.map(|plural| Kind::new("", plural)));

const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

impl ApiServer {
    /// Starts a server: on what an earlier run left, or with the objects that a new cluster has.
    pub fn start(options: Options) -> ApiServer {
        let Options { config, clock, mut random, durable, relaying } = options;
        let now = clock.now();
        let (server, durable) = match durable {
            Some((store, durable)) => {
                let fresh = store.revision() <= Store::default().revision();
                let mut server = Server::restore(config, store);
                if fresh {
                    server.bootstrap(now, &mut random);
                }
                (server, Some(durable))
            }
            None => (Server::new(config, now, &mut random), None),
        };
        ApiServer::run(server, clock, random, durable, relaying)
    }

    fn run(
        mut server: Server,
        clock: Clock,
        mut random: Random,
        durable: Option<Durable>,
        relaying: Relaying,
    ) -> ApiServer {
        if let Some(durable) = &durable {
            // What the bootstrap committed; the first answer waits for it as for everything before it.
            drop(durable.append(server.store_mut()));
        }
        let progress = Progress { revision: server.store().revision(), closed: false };
        let audit_ids = AuditIds { seed: random.next(), count: AtomicU64::new(0) };
        let ticked = clock.now();
        let Config { body_max, authorization, .. } = *server.config();
        let shared = Shared {
            inner: Turns::new(Inner { server, random, ticked }),
            progress: Signal::new(progress),
            closed: watch::Sender::new(false),
            view: Mutex::new(None),
            clock,
            body_max,
            authorization,
            durable,
            failure: OnceLock::new(),
            audit_ids,
            relaying,
            named: Default::default(),
            metrics: Arc::default(),
        };
        ApiServer { shared: Arc::new(shared) }
    }

    /// Another server with the same objects and history and no requests behind it, in constant time. What happens to
    /// one is not seen by the other. A fork keeps nothing on disk.
    pub fn fork(&self) -> ApiServer {
        let (server, random) = {
            let inner = self.shared.lock();
            (inner.server.fork(), inner.random.clone())
        };
        ApiServer::run(server, self.shared.clock.clone(), random, None, self.shared.relaying.clone())
    }

    /// Answers a request of a user whom the caller vouches for.
    pub async fn call(
        &self,
        request: http::Request<Bytes>,
        user: impl Into<Arc<User>>,
    ) -> http::Response<Body> {
        let (parts, body) = request.into_parts();
        let audit_id = self.shared.audit_ids.of(&parts.headers);
        let began = self.now();
        let _underway = Underway::begin(&self.shared, !parts.method.is_safe(), began);
        let request =
            Request { method: parts.method, uri: parts.uri, headers: parts.headers, body, user: user.into() };
        match self.answer(request, began).await {
            Ok(Answered::Here(response)) => self.shared.count(response, began, audit_id),
            Ok(Answered::Elsewhere(mut response)) => {
                response.headers_mut().insert(AUDIT_ID, audit_id);
                response
            }
            Err(status) => self.shared.respond(api::refuse(&HeaderMap::new(), "", &status), audit_id),
        }
    }

    /// Refuses a request that does not reach the server.
    pub(super) fn refuse(&self, headers: &HeaderMap, uri: &Uri, status: &Status) -> http::Response<Body> {
        let response = api::refuse(headers, uri.query().unwrap_or_default(), status);
        self.shared.respond(response, self.shared.audit_ids.of(headers))
    }

    async fn answer(&self, request: Request, began: Timestamp) -> Result<Answered, Status> {
        let allowed = match api::allowance(&request) {
            Ok(allowed) => allowed,
            Err(status) => {
                let query = request.uri.query().unwrap_or_default();
                return Ok(Answered::Here(api::refuse(&request.headers, query, &status)));
            }
        };
        let first = self.shared.turn(|server, now, ids| {
            #[cfg(test)]
            assert_ne!(request.uri.path(), "/panic", "a request that panics");
            server.step(request, now, ids)
        });
        let mut step = first.await?;
        loop {
            match step {
                (Step::Done(response), ticket) => {
                    if let Some(ticket) = ticket {
                        ticket.await.map_err(|lost| self.shared.lost(&lost))?;
                    }
                    return Ok(Answered::Here(response));
                }
                // What few requests come to has futures of its own: those of all others are moved about less.
                (Step::Relay(relay, request, about), _) => {
                    let going = about.map(|about| Going::begin(&self.shared, *about, began, true));
                    return Ok(Box::pin(self.relayed(*relay, *request, going)).await);
                }
                (Step::Wait { revision, deadline, pending }, _) => {
                    let reached = self.shared.reached(revision);
                    // Whichever comes first: the server looks at the clock itself.
                    let waiting = tokio::time::timeout_at(self.shared.clock.instant(deadline), reached);
                    let _ = Box::pin(waiting).await;
                    step = self.shared.turn(|server, now, ids| server.resume(pending, now, ids)).await?;
                }
                (Step::Call(questions, pending), _) => {
                    let deadline = allowed.map(|allowed| self.shared.clock.instant(began + allowed));
                    let Some(replies) = Box::pin(self.ask(&questions, deadline)).await else {
                        return Ok(Answered::Here(api::timed_out()));
                    };
                    let answered = |server: &mut Server, now, ids: &mut dyn Ids| {
                        server.answered(pending, replies, now, ids)
                    };
                    step = self.shared.turn(answered).await?;
                }
            }
        }
    }

    /// Has a request answered by somebody else.
    async fn relayed(&self, relay: Relay, request: Request, going: Option<Going>) -> Answered {
        let (headers, uri) = (request.headers.clone(), request.uri.clone());
        let warnings = relay.warnings.clone();
        match self.shared.relaying.answer(relay, request).await {
            Ok(response) => Answered::Elsewhere(counted(response, going, &headers)),
            Err(status) => {
                drop(going.map(|going| going.coded(status.code)));
                let query = uri.query().unwrap_or_default();
                let mut response = api::refuse(&headers, query, &status);
                response.warn(&warnings);
                Answered::Here(response)
            }
        }
    }

    /// Asks all of these at once, and for no longer than the client waits; `None` when it has waited long enough.
    async fn ask(&self, questions: &[Question], deadline: Option<Instant>) -> Option<Vec<Reply>> {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let Shared { relaying, clock, .. } = &*self.shared;
        let asking = questions.iter().map(|question| relaying.ask(question, left, clock));
        let asking = futures_util::future::join_all(asking);
        match deadline {
            Some(deadline) => tokio::time::timeout_at(deadline, asking).await.ok(),
            None => Some(asking.await),
        }
    }

    /// The server as a [`tower::Service`] whose every request is the administrator's: what `kube::Client::new` takes.
    pub fn service(&self) -> Service {
        self.service_as(User::admin())
    }

    /// The same for another user, who may do what [`Config::authorization`] lets him.
    ///
    /// ```
    /// use windlass_apiserver::api::{Authorization, Config, User};
    /// use windlass_apiserver::front::{ApiServer, Options};
    ///
    /// let config = Config { authorization: Authorization::Rbac, ..Config::default() };
    /// let server = ApiServer::start(Options { config, ..Options::default() });
    /// let bob = server.service_as(User::new("bob", ["developers"]));
    /// let operator = server.service_as(User::account("default", "foobar-operator"));
    /// # let _ = (bob, operator);
    /// ```
    pub fn service_as(&self, user: User) -> Service {
        Service::new(self.clone(), user)
    }

    /// The service account that a token speaks for, if it does. The signature is looked at before the server is, and once
    /// for all requests that show the same token on one connection; whether what the token names is still there, whenever
    /// something of such a kind has changed. A look at each request would put threads to sleep (see [`Turns`]).
    pub(super) async fn account(&self, token: &Token<'_>, last: &LastToken) -> Option<Arc<User>> {
        let now = self.now();
        let refused = |error: String| tracing::debug!(error, "a token of a service account was refused");
        let checked = last.or_check(token, || {
            let config = self.inspect(|server| server.shared_config());
            let text = std::str::from_utf8(token.text).ok()?;
            config.tokens.as_ref()?.check(text, &[], now).map_err(refused).ok()?
        })?;
        checked.is_timely(now).map_err(refused).ok()?;
        if let Some(user) = last.bearer(&checked, &self.shared.named()) {
            return Some(user);
        }
        let (shared, token) = (self.shared.clone(), checked.clone());
        let look = move |inner: &mut Inner| (shared.named(), inner.server.bearer(&token, now));
        let (named, bearer) = self.shared.inner.take(look).await;
        let bearer = bearer.map_err(refused).ok()?;
        if let Some(used) = &bearer.used {
            self.note(used).await;
        }
        let user = Arc::new(bearer.user);
        if bearer.lasts {
            last.note(&checked, named, user.clone());
        }
        Some(user)
    }

    /// Writes down that a token which lives in a Secret is used.
    async fn note(&self, used: &Used) {
        if let Err(status) = self.answer(used.request(), self.now()).await {
            tracing::warn!(error = status.message, "the use of a token could not be written down");
        }
    }

    /// Looks at the server. It answers nobody meanwhile.
    pub fn inspect<T>(&self, look: impl FnOnce(&Server) -> T) -> T {
        look(&self.shared.lock().server)
    }

    /// A fork of the server as a value, for reading at leisure.
    pub fn snapshot(&self) -> Server {
        self.shared.lock().server.clone()
    }

    /// Resolves to the store once it is past a revision; `None` when the server is closed.
    pub async fn changed(&self, after: u64) -> Option<Arc<Store>> {
        self.shared.clone().after(after).await
    }

    /// How requests are judged.
    pub fn authorization(&self) -> Authorization {
        self.shared.authorization
    }

    /// The largest request body.
    pub fn body_max(&self) -> usize {
        self.shared.body_max
    }

    /// The server's time.
    pub fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    /// Ends all watches, so that connections can be closed. Requests are still answered.
    pub fn close(&self) {
        self.shared.close();
    }

    /// Resolves when the server is closed: because somebody did it, or because its data folder failed it.
    pub async fn closed(&self) {
        let mut closed = self.shared.closed.subscribe();
        // The sender lives in `self`.
        let _ = closed.wait_for(|closed| *closed).await;
    }

    /// Why nothing can be written any more, if so.
    pub fn failure(&self) -> Option<&Lost> {
        self.shared.failure.get()
    }
}

impl Shared {
    /// Gives an answer, and counts it: now, if it is whole, or when it ends.
    fn count(
        self: &Arc<Shared>,
        mut response: api::Response,
        began: Timestamp,
        audit_id: HeaderValue,
    ) -> http::Response<Body> {
        let now = self.clock.now();
        if matches!(response.body, api::Body::Metrics) {
            // Of a copy: requests go on meanwhile.
            let server = self.lock().server.clone();
            response.body = api::Body::Full(self.metrics.render(&server, now).into());
        }
        let asking = self.metrics.consulted(std::mem::take(&mut response.consulted));
        let (about, code) = (response.about.take(), response.status.as_u16());
        let is_watch = matches!(response.body, api::Body::Watch(_));
        let mut out = self.respond(response, audit_id);
        let Some(about) = about else { return out };
        match http_body::Body::size_hint(out.body()).exact() {
            Some(bytes) => {
                let took = now.duration_since(began);
                self.metrics.answered(*about, &Outcome { code, took, asking, bytes });
            }
            None => {
                let going = Going::begin(self, *about, began, is_watch).coded(code);
                out.body_mut().counted(if is_watch { going.of_events() } else { going });
            }
        }
        out
    }

    fn respond(self: &Arc<Shared>, response: api::Response, audit_id: HeaderValue) -> http::Response<Body> {
        let mut out = http::Response::new(Body::new(response.body, self.clone()));
        *out.status_mut() = response.status;
        *out.headers_mut() = response.headers;
        out.headers_mut().insert(AUDIT_ID, audit_id);
        out
    }

    /// The server. A panic in a request is caught before it can poison the lock, and one in [`ApiServer::inspect`]
    /// only reads.
    fn lock(&self) -> Turn<'_, Inner> {
        self.inner.lock()
    }

    /// Lets the server take one step, as soon as it is free.
    async fn turn(
        self: &Arc<Shared>,
        step: impl FnOnce(&mut Server, Timestamp, &mut dyn Ids) -> Step + Send + 'static,
    ) -> Taken {
        let shared = self.clone();
        self.inner.take(move |inner| shared.take_turn(inner, step)).await
    }

    /// Takes a step, and tells everyone who waits for what it committed.
    fn take_turn(
        &self,
        inner: &mut Inner,
        step: impl FnOnce(&mut Server, Timestamp, &mut dyn Ids) -> Step,
    ) -> Taken {
        let now = self.clock.now();
        let Inner { server, random, ticked } = inner;
        let before = server.store().revision();
        // A commit is one call into the store, and everything before it works on copies: a panic leaves nothing
        // half-done behind.
        let outcome = catch_unwind(AssertUnwindSafe(|| step(server, now, random)));
        let revision = server.store().revision();
        let ticket = self.durable.as_ref().map(|durable| match revision > before {
            true => durable.append(server.store_mut()),
            false => durable.ticket(revision),
        });
        if now.duration_since(*ticked) >= TICK {
            *ticked = now;
            server.tick(now);
            // Nobody may be watching any more: let go of what only the watchers' view holds.
            self.view().take();
        }
        if revision > before {
            for (kind, last) in NAMED_KINDS.iter().zip(&self.named) {
                // What is forgotten already is as good as changed.
                if server.store().events(kind, before).map_or(true, |mut events| events.next().is_some()) {
                    last.store(revision, Ordering::Release);
                }
            }
            self.progress.change(|progress| progress.revision = revision);
        }
        outcome.map(|step| (step, ticket)).map_err(|panic| {
            tracing::error!(reason = panic_text(&*panic), "a request panicked");
            Status::internal("the request made the server panic; its log says where")
        })
    }

    /// When the kinds that tokens name were last changed.
    fn named(&self) -> Named {
        std::array::from_fn(|kind| self.named[kind].load(Ordering::Acquire))
    }

    /// Has objects converted for a watch.
    pub async fn convert(self: Arc<Shared>, wanted: Wanted) -> (Question, Reply) {
        let question = self.inner.take(move |inner| inner.server.conversion(&wanted)).await;
        let reply = self.relaying.ask(&question, None, &self.clock).await;
        (question, reply)
    }

    /// Resolves when the store has reached a revision.
    async fn reached(&self, revision: u64) {
        self.progress.wait_for(|progress| progress.revision >= revision).await;
    }

    /// Resolves to the store once it is past a revision and safe; `None` when the server is closed.
    pub async fn after(self: Arc<Shared>, revision: u64) -> Option<Arc<Store>> {
        let reached =
            self.progress.wait_for(|progress| progress.closed || progress.revision > revision).await;
        if reached.closed {
            return None;
        }
        // Requests that are waiting for their turn go first: what they commit is then sent in the same piece.
        tokio::task::yield_now().await;
        let revision = self.progress.get().revision;
        let store = self.store(revision).await;
        if let Some(durable) = &self.durable {
            let ticket = durable.ticket(store.revision());
            if let Err(lost) = ticket.await {
                self.lost(&lost);
                return None;
            }
        }
        Some(store)
    }

    /// The store at a revision or after it. All who are woken by the same commits share one clone of it.
    async fn store(&self, revision: u64) -> Arc<Store> {
        if let Some(store) = self.view().as_ref().filter(|store| store.revision() >= revision) {
            return store.clone();
        }
        let store = Arc::new(self.inner.take(|inner| inner.server.store().clone()).await);
        *self.view() = Some(store.clone());
        store
    }

    /// Nothing else is locked, and nothing waited for, while this is.
    fn view(&self) -> MutexGuard<'_, Option<Arc<Store>>> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The data folder has failed: no write can be answered for any more, and the server ends.
    fn lost(&self, lost: &Lost) -> Status {
        // The first reason is the reason.
        let _ = self.failure.set(lost.clone());
        self.close();
        Status::internal(&lost.to_string())
    }

    fn close(&self) {
        self.progress.change(|progress| progress.closed = true);
        self.closed.send_if_modified(|closed| !std::mem::replace(closed, true));
    }
}

/// An answer from elsewhere, counted when it ends.
fn counted(
    mut response: http::Response<Body>,
    going: Option<Going>,
    headers: &HeaderMap,
) -> http::Response<Body> {
    let Some(going) = going else { return response };
    // What becomes of a connection that is to change its protocol is not told by a code.
    let code = if asked_upgrade(headers).is_some() { 0 } else { response.status().as_u16() };
    let going = going.coded(code);
    match response.extensions().get::<TakeOver>() {
        Some(next) => next.counted(going),
        None => response.body_mut().counted(going),
    }
    response
}

/// Gives every request the id under which its answer, and any log of it, is found.
struct AuditIds {
    seed: u64,
    count: AtomicU64,
}

impl AuditIds {
    /// The client's own, or a new one.
    fn of(&self, headers: &HeaderMap) -> HeaderValue {
        if let Some(given) = headers.get(&AUDIT_ID).filter(|given| !given.is_empty()) {
            return given.clone();
        }
        let count = self.count.fetch_add(2, Ordering::Relaxed);
        let high = mix(self.seed.wrapping_add(count));
        let low = mix(self.seed.wrapping_add(count + 1));
        // The bits of a random uuid: version 4, variant 1.
        let high = high & !0xf000 | 0x4000;
        let low = low & !(3 << 62) | 1 << 63;
        HeaderValue::from_bytes(&uuid(high, low)).expect("hexadecimal digits and dashes")
    }
}

/// A uuid as text. It is written for every answer, by hand: formatting takes longer than the rest of an answer's head.
fn uuid(high: u64, low: u64) -> [u8; 36] {
    let mut digits = (u128::from(high) << 64 | u128::from(low))
        .to_be_bytes()
        .into_iter()
        .flat_map(|byte| [byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)]));
    std::array::from_fn(|at| match at {
        8 | 13 | 18 | 23 => b'-',
        _ => digits.next().expect("32 digits"),
    })
}

pub(super) fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("unknown")
}
