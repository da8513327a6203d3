//! The server as a value.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, Uri};
use jiff::{SignedDuration, Timestamp};

use super::about::About;
use super::audit::{Audit, Record};
use super::authorize::{Kept, Ways};
use super::config::Config;
use super::conversion;
use super::health;
use super::negotiate::{self, Output, Shape};
use super::options::Query;
use super::policies::Policies;
use super::registry::{Flavor, Registry, Resource};
use super::relay::{self, Going, Relay};
use super::response::{Body, Response};
use super::route::{self, Lost, Route, Target, Verb};
use super::user::User;
use super::webhooks::{Answered, Consulted, Question, Reply};
use crate::codec::Format;
use crate::kinds::Noted;
use crate::status::{Result, Status};
use crate::store::Store;

/// The server: everything it knows, and nothing that it does.
///
/// A clone shares all data and is an independent server from then on, in constant time.
#[derive(Clone)]
pub struct Server {
    pub(super) store: Store,
    pub(super) registry: Registry,
    pub(super) config: Arc<Config>,
    pub(super) policy: Kept,
    pub(super) ways: Ways,
    pub(super) policies: Policies,
    audit: Audit,
}

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// Path and query.
    pub uri: Uri,
    /// The headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
    /// Who asks.
    pub user: Arc<User>,
}

/// The source of uids and of generated name suffixes.
pub trait Ids: Send {
    /// The next 64 bits.
    fn next(&mut self) -> u64;
}

/// What became of a request.
pub enum Step {
    /// It is answered.
    Done(Response),
    /// Somebody else answers it: send it there, and what comes back to the client; and what it is about.
    Relay(Box<Relay>, Box<Request>, Option<Box<About>>),
    /// Somebody outside has to be asked first: hand the answers to [`Server::answered`].
    Call(Vec<Question>, Pending),
    /// It asks for a revision that is not there yet: resume it when the store has reached the revision, or at the
    /// deadline.
    Wait {
        /// The revision to wait for.
        revision: u64,
        /// When to give up.
        deadline: Timestamp,
        /// The request.
        pending: Pending,
    },
}

/// A request that was put aside.
pub struct Pending {
    request: Box<Request>,
    deadline: Timestamp,
    /// Whether it was found that its user may ask for it. Nobody is asked twice.
    authorized: bool,
    /// What it has been through, where webhooks may be asked.
    past: Option<Box<Past>>,
}

/// What a request has been through that begins anew with each answer: it has to come to the same place.
struct Past {
    /// When it began.
    began: Timestamp,
    /// The random numbers that it drew.
    drawn: Vec<u64>,
    asking: Vec<Question>,
    answered: Vec<Answered>,
}

/// Random numbers of the past, then new ones.
struct Again<'a> {
    drawn: &'a mut Vec<u64>,
    at: usize,
    ids: &'a mut dyn Ids,
}

impl Ids for Again<'_> {
    fn next(&mut self) -> u64 {
        if self.at == self.drawn.len() {
            self.drawn.push(self.ids.next());
        }
        self.at += 1;
        self.drawn[self.at - 1]
    }
}

/// One request under way, with all that the verbs need.
pub(super) struct Call<'a> {
    pub request: &'a Request,
    pub target: &'a Target,
    pub query: &'a Query<'a>,
    pub verb: Verb,
    pub output: Output,
    pub now: Timestamp,
    pub ids: &'a mut dyn Ids,
    pub warnings: Vec<String>,
    /// Whether the request has waited for its revision as long as it may.
    pub waited: bool,
    /// The name of what was created, for the audit record.
    pub name: String,
    /// What the hooks of the kind noted of the object before it was made canonical.
    pub noted: Noted,
    /// Whether webhooks are asked about it.
    pub hooked: bool,
    /// What webhooks have said.
    pub answered: &'a [Answered],
    /// What they have to be asked before the request goes on.
    pub asking: Vec<Question>,
    /// What came of what they said.
    pub consulted: Vec<Consulted>,
}

impl Call<'_> {
    /// The same request, as a write of something else that it leads to.
    pub fn to<'b>(&'b mut self, target: &'b Target) -> Call<'b> {
        Call {
            request: self.request,
            target,
            query: self.query,
            verb: Verb::Update,
            output: self.output,
            now: self.now,
            ids: &mut *self.ids,
            warnings: Vec::new(),
            waited: self.waited,
            name: target.name.clone(),
            noted: Noted::default(),
            hooked: false,
            answered: &[],
            asking: Vec::new(),
            consulted: Vec::new(),
        }
    }

    pub fn user_agent(&self) -> String {
        let agent = self.request.headers.get(http::header::USER_AGENT);
        agent.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).unwrap_or_default()
    }
}

/// What a verb gives back: an answer, who else gives it, or the revision that it needs.
pub(super) enum Answer {
    Done(Response),
    Relay(Box<Relay>, Option<Box<About>>),
    Wait(u64),
    Call(Vec<Question>),
}

impl From<Going> for Answer {
    fn from(going: Going) -> Answer {
        match going {
            Going::There(relay) => Answer::Relay(Box::new(relay), None),
            Going::Nowhere => Answer::Done(Response::empty(204)),
            Going::Elsewhere(path) => Answer::Done(Response::moved(&path)),
        }
    }
}

impl From<Response> for Answer {
    fn from(response: Response) -> Answer {
        Answer::Done(response)
    }
}

/// Subresources that are the object itself, of which a writer may change only a part.
const OBJECT_SUBRESOURCES: [&str; 5] = ["status", "ephemeralcontainers", "resize", "approval", "finalize"];

/// How long a request waits for a revision that is not there yet.
const WAIT: SignedDuration = SignedDuration::from_secs(3);

impl Server {
    /// A server with the objects that a new cluster has.
    pub fn new(config: Config, now: Timestamp, ids: &mut dyn Ids) -> Server {
        let mut server = Server::restore(config, Store::default());
        server.bootstrap(now, ids);
        server
    }

    /// A server on a store that was kept.
    pub fn restore(config: Config, store: Store) -> Server {
        let registry = Registry::new();
        let (config, policy) = (Arc::new(config), Kept::default());
        let (ways, policies, audit) = (Ways::default(), Policies::default(), Audit::default());
        let mut server = Server { store, registry, config, policy, ways, policies, audit };
        server.serve_definitions();
        server
    }

    /// An independent server with the same state and no requests behind it, in constant time.
    pub fn fork(&self) -> Server {
        Server { audit: Audit::default(), ..self.clone() }
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The store, for the front that makes its commits durable.
    pub fn store_mut(&mut self) -> &mut Store {
        &mut self.store
    }

    /// What is served.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// What was asked so far.
    pub fn audit(&self) -> &Audit {
        &self.audit
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The configuration, to be looked at while the server is not.
    pub fn shared_config(&self) -> Arc<Config> {
        self.config.clone()
    }

    /// Forgets history that is older than [`Config::history`]. Fronts call it now and then.
    pub fn tick(&mut self, now: Timestamp) {
        self.store.mark(now);
        self.store.compact_before(now - self.config.history);
    }

    /// Takes one request as far as it goes.
    pub fn step(&mut self, mut request: Request, now: Timestamp, ids: &mut dyn Ids) -> Step {
        self.follow_policy();
        if let Err(status) = self.impersonate(&mut request) {
            let query = request.uri.query().unwrap_or_default();
            let response = refuse(&request.headers, query, &status);
            self.note_refusal(&request, None, &status, now);
            return Step::Done(response);
        }
        let past = (self.has_webhooks() || self.registry.has_conversions()).then(|| {
            Box::new(Past { began: now, drawn: Vec::new(), asking: Vec::new(), answered: Vec::new() })
        });
        let request = Box::new(request);
        self.run(Pending { request, deadline: now + WAIT, authorized: false, past }, now, ids)
    }

    /// Notes what a user may not do.
    fn note_refusal(&mut self, request: &Request, target: Option<&Target>, status: &Status, now: Timestamp) {
        let watch = Query::parse(request.uri.query().unwrap_or_default()).flag("watch");
        let verb = target.and_then(|target| route::verb(&request.method, target, watch).ok());
        let revision = self.store.revision();
        let record = || Record {
            time: now,
            user: request.user.name.clone(),
            verb: verb.map_or_else(|| method_verb(&request.method), Verb::as_str),
            path: request.uri.path().to_owned(),
            group: target.map(|t| t.resource.group.clone()).unwrap_or_default(),
            resource: target.map(|t| t.resource.plural.clone()).unwrap_or_default(),
            subresource: target.map(|t| t.subresource.clone()).unwrap_or_default(),
            namespace: target.map(|t| t.namespace.clone()).unwrap_or_default(),
            name: target.map(|t| t.name.clone()).unwrap_or_default(),
            code: status.code,
            reason: status.reason.clone(),
            revision,
        };
        self.audit.push(record, self.config.audit_max);
    }

    /// Goes on with a request that was put aside.
    pub fn resume(&mut self, pending: Pending, now: Timestamp, ids: &mut dyn Ids) -> Step {
        self.run(pending, now, ids)
    }

    /// Goes on with a request whose questions were answered, in their order.
    pub fn answered(
        &mut self,
        mut pending: Pending,
        replies: Vec<Reply>,
        now: Timestamp,
        ids: &mut dyn Ids,
    ) -> Step {
        if let Some(past) = &mut pending.past {
            let asked = std::mem::take(&mut past.asking);
            let pairs = asked.into_iter().zip(replies);
            past.answered.extend(pairs.map(|(question, reply)| Answered { question, reply }));
        }
        self.run(pending, now, ids)
    }

    fn run(&mut self, mut pending: Pending, now: Timestamp, ids: &mut dyn Ids) -> Step {
        self.follow_policy();
        self.follow_policies();
        let waited = now >= pending.deadline;
        let authorized = std::mem::replace(&mut pending.authorized, true);
        let answer = match &mut pending.past {
            None => self.answer(&pending.request, authorized, now, waited, ids, &[]),
            Some(past) => {
                let Past { began, drawn, answered, .. } = &mut **past;
                let ids = &mut Again { drawn, at: 0, ids };
                self.answer(&pending.request, authorized, *began, waited, ids, answered)
            }
        };
        match answer {
            Answer::Done(response) => Step::Done(response),
            Answer::Relay(relay, about) => Step::Relay(relay, pending.request, about),
            Answer::Wait(revision) => Step::Wait { revision, deadline: pending.deadline, pending },
            Answer::Call(questions) => {
                if let Some(past) = &mut pending.past {
                    past.asking.clone_from(&questions);
                }
                Step::Call(questions, pending)
            }
        }
    }

    fn answer(
        &mut self,
        request: &Request,
        authorized: bool,
        now: Timestamp,
        waited: bool,
        ids: &mut dyn Ids,
        answered: &[Answered],
    ) -> Answer {
        let query = Query::parse(request.uri.query().unwrap_or_default());
        let route = route::route(&self.registry, request.uri.path())
            .and_then(|route| route::reach(route, &request.method));
        if !authorized {
            let target = match &route {
                Ok(Route::Resource(target)) => Some(target),
                _ => None,
            };
            if let Err(refused) = self.authorize(request, &query, target) {
                let (status, response) = *refused;
                self.note_refusal(request, target, &status, now);
                return Answer::Done(response);
            }
        }
        let (target, answer, name, reason, verb) = match route {
            Ok(Route::Resource(mut target)) => {
                target.resource = conversion::knowing(&target.resource, answered);
                let (answer, name, reason, verb) =
                    self.resource(request, &target, &query, now, waited, ids, answered);
                (Some(target), answer, name, reason, verb)
            }
            Ok(other) => {
                let response = self.other(request, &other, &query);
                (None, Answer::Done(response), String::new(), Cow::Borrowed(""), method_verb(&request.method))
            }
            Err(lost) => (
                None,
                Answer::Done(lost_answer(&lost, request, &query)),
                String::new(),
                Cow::Borrowed(""),
                method_verb(&request.method),
            ),
        };
        let mut answer = answer;
        if let Answer::Done(Response { about, .. }) | Answer::Relay(_, about) = &mut answer {
            let found = match &target {
                Some(target) => About::resource(request, target, &query),
                None => About::path(request, &query),
            };
            *about = found.map(Box::new);
        }
        let code = match &answer {
            Answer::Done(response) => Some(response.status.as_u16()),
            Answer::Relay(..) => Some(0),
            Answer::Wait(_) | Answer::Call(_) => None,
        };
        if let Some(code) = code {
            let revision = self.store.revision();
            let record = || Record {
                time: now,
                user: request.user.name.clone(),
                verb,
                path: request.uri.path().to_owned(),
                group: target.as_ref().map(|t| t.resource.group.clone()).unwrap_or_default(),
                resource: target.as_ref().map(|t| t.resource.plural.clone()).unwrap_or_default(),
                subresource: target.as_ref().map(|t| t.subresource.clone()).unwrap_or_default(),
                namespace: target.as_ref().map(|t| t.namespace.clone()).unwrap_or_default(),
                name,
                code,
                reason,
                revision,
            };
            self.audit.push(record, self.config.audit_max);
        }
        answer
    }

    /// A request on a resource. Refusals become answers here, in the form the client reads.
    #[expect(clippy::too_many_arguments, reason = "all of it belongs to the one request")]
    fn resource(
        &mut self,
        request: &Request,
        target: &Target,
        query: &Query<'_>,
        now: Timestamp,
        waited: bool,
        ids: &mut dyn Ids,
        answered: &[Answered],
    ) -> (Answer, String, Cow<'static, str>, &'static str) {
        let plain = || plain_output(request, query);
        let refuse = |status: Status, verb: &'static str| {
            let reason = status.reason.clone();
            (Answer::Done(Response::refusal(&plain(), &status)), target.name.clone(), reason, verb)
        };
        let is_relayed = relay::is_relayed(target);
        let verb = match is_relayed {
            true => relay::verb(target, &request.method),
            false => route::verb(&request.method, target, query.flag("watch")),
        };
        let verb = match verb {
            Ok(verb) => verb,
            Err(status) => return refuse(status, method_verb(&request.method)),
        };
        let collection = target.name.is_empty();
        let output = match is_relayed {
            true => Ok(plain()),
            false => negotiate::admit(&request.headers, collection)
                .and_then(|()| negotiate::output(&request.headers, query.get("pretty"), true)),
        };
        let output = match output {
            Ok(output) => output,
            Err(status) => return refuse(status, verb.as_str()),
        };
        let mut call = Call {
            request,
            target,
            query,
            verb,
            output,
            now,
            ids,
            warnings: Vec::new(),
            waited,
            name: target.name.clone(),
            noted: Noted::default(),
            hooked: true,
            answered,
            asking: Vec::new(),
            consulted: Vec::new(),
        };
        call.warnings.extend(deprecation(target));
        let result = match is_relayed {
            true => self.relay(&mut call).map(Answer::from),
            false => self.dispatch(&mut call),
        };
        if !call.asking.is_empty() {
            return (Answer::Call(call.asking), call.name, Cow::Borrowed(""), verb.as_str());
        }
        let (warnings, name) = (std::mem::take(&mut call.warnings), std::mem::take(&mut call.name));
        let consulted = std::mem::take(&mut call.consulted);
        let (mut answer, name, reason, verb) = match result {
            Ok(answer) => (answer, name, Cow::Borrowed(""), verb.as_str()),
            Err(status) => refuse(status, verb.as_str()),
        };
        match &mut answer {
            Answer::Done(response) => {
                response.warn(&warnings);
                response.consulted = consulted;
            }
            Answer::Relay(relay, _) => relay.warnings = warnings,
            _ => {}
        }
        (answer, name, reason, verb)
    }

    fn dispatch(&mut self, call: &mut Call<'_>) -> Result<Answer> {
        if call.request.body.len() > self.config.body_max {
            return Err(too_large(self.config.body_max));
        }
        check_segments(call.target)?;
        let subresource = match call.target.subresource.as_str() {
            name if OBJECT_SUBRESOURCES.contains(&name) => "",
            name => name,
        };
        match (subresource, call.verb) {
            ("", Verb::Get) => self.get(call),
            ("", Verb::List) => self.list(call),
            ("", Verb::Watch) => self.watch(call),
            ("", Verb::Create) if call.target.resource.plural == "bindings" => {
                self.bind(call).map(Answer::Done)
            }
            ("", Verb::Create) if call.target.resource.plural == "tokenreviews" => {
                self.review_token(call).map(Answer::Done)
            }
            ("", Verb::Create) if !call.target.resource.has_verb("get") => {
                let Resource { group, plural, .. } = &*call.target.resource;
                match &**plural {
                    "subjectaccessreviews" | "selfsubjectaccessreviews" | "localsubjectaccessreviews" => {
                        self.review_access(call).map(Answer::Done)
                    }
                    "selfsubjectrulesreviews" => self.review_rules(call).map(Answer::Done),
                    "selfsubjectreviews" => self.review_self(call).map(Answer::Done),
                    _ => Err(Status::method_not_supported(group, plural, "create")),
                }
            }
            ("", Verb::Create) if self.awaits_account(call) => Ok(Answer::Wait(self.store.revision() + 1)),
            ("", Verb::Create) => self.create(call).map(Answer::Done),
            ("", Verb::Update) => self.update(call).map(Answer::Done),
            ("", Verb::Patch) => self.patch(call).map(Answer::Done),
            ("", Verb::Delete) => self.delete(call).map(Answer::Done),
            ("", Verb::DeleteCollection) => self.delete_collection(call).map(Answer::Done),
            ("scale", _) => self.scale(call).map(Answer::Done),
            ("token", _) => self.token(call).map(Answer::Done),
            ("binding", _) => self.bind(call).map(Answer::Done),
            ("eviction", _) => self.evict(call).map(Answer::Done),
            (subresource, verb) => {
                let what = format!("{}/{subresource}", call.target.resource.plural);
                Err(Status::method_not_supported(&call.target.resource.group, &what, verb.as_str()))
            }
        }
    }

    fn other(&mut self, request: &Request, route: &Route, query: &Query<'_>) -> Response {
        // Upstream these have routes with methods, and none for HEAD; the others answer to any.
        let only_get = match route {
            Route::ServerVersion | Route::OpenId(_) | Route::Groups { core: true } => true,
            Route::Version(group, version) => self.registry.is_builtin(group, version),
            _ => false,
        };
        if only_get && request.method != Method::GET {
            return Response::refusal(&refusal_output(&request.headers, query), &route::method_not_allowed());
        }
        match route {
            Route::ServerVersion => match json_only(request) {
                Ok(()) => self.version(),
                Err(status) => Response::refusal(&plain_output(request, query), &status),
            },
            Route::Health(path) => health::answer(path, query),
            // The content type is Prometheus'.
            Route::Metrics => {
                let kind = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";
                Response::new(200, kind, Body::Metrics)
            }
            Route::Index => self.index(),
            Route::OpenId(what) => self.open_id(*what),
            Route::OpenApi(path) => self.openapi(path, request),
            Route::OpenApiV2 => self.openapi_v2(request),
            Route::Groups { .. } | Route::Group(_) | Route::Version(..) => {
                self.discovery(request, route, query)
            }
            Route::Resource(_) => unreachable!("resources are dispatched by verb"),
        }
    }
}

/// What kube-apiserver says to every request on a resource that is on its way out.
fn deprecation(target: &Target) -> Option<String> {
    if let Flavor::Custom { definition, version, .. } = &target.resource.flavor {
        return definition.versions[*version].deprecation.clone();
    }
    let text = match (&*target.resource.group, &*target.resource.plural) {
        ("", "endpoints") => "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
        ("", "componentstatuses") => "v1 ComponentStatus is deprecated in v1.19+",
        _ => return None,
    };
    Some(text.to_owned())
}

/// The version is JSON, and nothing else.
fn json_only(request: &Request) -> Result<()> {
    let accept =
        request.headers.get(http::header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let fits = |part: &str| matches!(negotiate::media_type(part), "" | "*/*" | "application/json");
    if accept.trim().is_empty() || accept.split(',').any(fits) {
        return Ok(());
    }
    let message = "406: Not Acceptable\n\nAvailable representations: application/json";
    let mut status = Status::new(406, "NotAcceptable", message);
    status.details = Some(Box::default());
    Err(status)
}

fn method_verb(method: &Method) -> &'static str {
    match *method {
        Method::GET => "get",
        Method::HEAD => "head",
        Method::POST => "post",
        Method::PUT => "put",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        Method::OPTIONS => "options",
        _ => "other",
    }
}

fn plain_output(request: &Request, query: &Query<'_>) -> Output {
    refusal_output(&request.headers, query)
}

fn refusal_output(headers: &HeaderMap, query: &Query<'_>) -> Output {
    let fallback = Output { format: Format::Json, pretty: false, shape: Shape::Object };
    negotiate::output(headers, query.get("pretty"), false).unwrap_or(fallback)
}

fn lost_answer(lost: &Lost, request: &Request, query: &Query<'_>) -> Response {
    match lost {
        Lost::Path => Response::text(404, "404 page not found\n"),
        Lost::Resource => {
            let mut response = Response::refusal(&plain_output(request, query), &Status::no_such_resource());
            if request.uri.path().starts_with("/apis/apiextensions.k8s.io/v1beta1") {
                response.warn(&[crate::crd::v1beta1_hint()]);
            }
            response
        }
        Lost::Subresource { group, plural, name } => {
            Response::refusal(&plain_output(request, query), &Status::not_found(group, plural, name))
        }
    }
}

/// A refusal by the front, in the form the client reads.
pub fn refuse(headers: &HeaderMap, query: &str, status: &Status) -> Response {
    Response::refusal(&refusal_output(headers, &Query::parse(query)), status)
}

/// A name that could not be part of a path in the store, as upstream keeps it there.
fn check_segments(target: &Target) -> Result<()> {
    let (namespace, name) = (target.namespace.as_str(), target.name.as_str());
    if target.resource.namespaced && namespace.is_empty() && !name.is_empty() {
        return Err(Status::bad_request("Namespace parameter required."));
    }
    let fault = match name {
        "." | ".." => format!("may not be '{name}'"),
        _ if name.contains('%') => "may not contain '%'".to_owned(),
        _ if matches!(namespace, "." | "..") => {
            let key = format!("/{}/{namespace}", target.resource.plural);
            return Err(Status::new(500, "", format!("invalid key: {key:?}")));
        }
        _ => return Ok(()),
    };
    Err(Status::bad_request(format!("Name parameter invalid: {name:?}: {fault}")))
}

/// `413`, as kube-apiserver words it.
pub fn too_large(limit: usize) -> Status {
    let message = format!("Request entity too large: limit is {limit}");
    Status::new(413, "RequestEntityTooLarge", message)
}
