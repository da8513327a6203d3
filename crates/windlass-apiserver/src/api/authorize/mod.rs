//! Who may do what.
//!
//! ```text
//! request ─► attributes ─► impersonate ─► policy (roles and bindings, by user and group) ─► allowed, or 403
//!                              └────────────┘
//! write of a role or binding ─► escalate: nobody grants what he does not have
//! …AccessReview, …RulesReview ─► review: the same questions, asked as objects
//! ```
//!
//! The policy is read from the store as it changes, object by object: a decision costs the bindings of its user, however many
//! there are. Members of `system:masters` may do everything, as on every server.

mod attributes;
mod escalate;
mod impersonate;
mod policy;
mod review;
mod rule;
#[cfg(test)]
mod tests;

use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use http::HeaderValue;
use http::header::HeaderName;
use thiserror::Error;

use super::options::Query;
use super::response::{Body, Response};
use super::route::{Target, decoded};
use super::server::{Request, Server, refuse};
use super::user::User;
use crate::go;
use crate::status::Status;
use crate::store::{EventType, Kind, Store};

use attributes::Undetermined;
pub(super) use attributes::selected_name;
pub use attributes::{Asked, Attributes};
pub(super) use impersonate::Ways;
use policy::{Part, Policy, Verdict};

/// How requests are judged: kube-apiserver's `--authorization-mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Authorization {
    /// Everybody who is known may do everything.
    AlwaysAllow,
    /// What roles and their bindings allow.
    #[default]
    Rbac,
}

/// A mode that there is not.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0:?} is not a way to authorize: it is AlwaysAllow or RBAC")]
pub struct UnknownMode(String);

impl FromStr for Authorization {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Authorization, UnknownMode> {
        match text {
            "AlwaysAllow" => Ok(Authorization::AlwaysAllow),
            "RBAC" => Ok(Authorization::Rbac),
            _ => Err(UnknownMode(text.to_owned())),
        }
    }
}

/// The group whose members may do everything.
pub(super) const MASTERS: &str = "system:masters";
pub(super) const GROUP: &str = "rbac.authorization.k8s.io";

/// What the policy is made of.
static PARTS: LazyLock<[(Part, Kind); 4]> = LazyLock::new(|| {
    [
        (Part::ClusterRole, Kind::new(GROUP, "clusterroles")),
        (Part::Role, Kind::new(GROUP, "roles")),
        (Part::ClusterRoleBinding, Kind::new(GROUP, "clusterrolebindings")),
        (Part::RoleBinding, Kind::new(GROUP, "rolebindings")),
    ]
});

/// The policy as it is at a revision of the store.
#[derive(Clone, Default)]
pub(super) struct Kept {
    revision: u64,
    policy: Arc<Policy>,
}

impl Kept {
    /// Reads what has changed since.
    fn follow(&mut self, store: &Store) {
        if self.revision == store.revision() {
            return;
        }
        for (part, kind) in &*PARTS {
            // What was forgotten meanwhile cannot be followed: then all of it is read anew.
            let Ok(mut events) = store.events(kind, self.revision) else {
                *self = Kept::read(store);
                return;
            };
            if events.len() == 0 {
                continue;
            }
            let policy = Arc::make_mut(&mut self.policy);
            events.by_ref().for_each(|event| match event.kind {
                EventType::Added | EventType::Modified => policy.put(*part, &event.object),
                EventType::Deleted => policy.remove(*part, &event.object),
            });
        }
        self.revision = store.revision();
    }

    fn read(store: &Store) -> Kept {
        let mut policy = Policy::default();
        for (part, kind) in &*PARTS {
            store.list(kind).range(None, None).for_each(|object| policy.put(*part, object));
        }
        Kept { revision: store.revision(), policy: Arc::new(policy) }
    }
}

/// What is decided of a question.
pub(super) enum Decision<'a> {
    /// It is allowed to everybody, or to those who may do everything.
    Always,
    Policy(Verdict<'a>),
}

impl Decision<'_> {
    pub fn is_allowed(&self) -> bool {
        match self {
            Decision::Always => true,
            Decision::Policy(verdict) => verdict.is_allowed(),
        }
    }

    pub fn reason(&self) -> String {
        match self {
            Decision::Always => String::new(),
            Decision::Policy(verdict) => verdict.reason(),
        }
    }
}

impl Server {
    /// Brings the policy up to date: before each step, so that every decision of a step is made of the state that it is in.
    pub(super) fn follow_policy(&mut self) {
        if self.config.authorization == Authorization::Rbac {
            self.policy.follow(&self.store);
        }
    }

    /// Whether a user may do something.
    pub(super) fn decide<'a>(&'a self, user: &User, attributes: &Attributes<'_>) -> Decision<'a> {
        if self.config.authorization == Authorization::AlwaysAllow || is_master(user) {
            return Decision::Always;
        }
        Decision::Policy(self.policy.policy.decide(user, attributes))
    }

    /// Refuses what a user may not do.
    fn demand(&self, user: &User, attributes: &Attributes<'_>) -> Result<(), Status> {
        let decision = self.decide(user, attributes);
        match decision.is_allowed() {
            true => Ok(()),
            false => Err(forbidden(user, attributes, &decision.reason())),
        }
    }

    /// Whether a request may go on; if not, its answer. It is judged by what its path says, as kube-apiserver does, and where
    /// it leads to something else than the path says, by that, too.
    pub(super) fn authorize(
        &self,
        request: &Request,
        query: &Query<'_>,
        target: Option<&Target>,
    ) -> Result<(), Box<(Status, Response)>> {
        let may_all = self.config.authorization == Authorization::AlwaysAllow || is_master(&request.user);
        if may_all && !is_cut_short(request.uri.path()) {
            return Ok(());
        }
        let path = decoded(request.uri.path());
        let attributes = match Attributes::of_request(&request.method, &path, query) {
            Ok(attributes) => attributes,
            Err(Undetermined) => return Err(Box::new(undetermined(request))),
        };
        let refused = |status: Status| {
            let mut response = refuse(&request.headers, request.uri.query().unwrap_or_default(), &status);
            response.headers.insert(CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
            Box::new((status, response))
        };
        self.demand(&request.user, &attributes).map_err(refused)?;
        match target.map(|target| of_target(target, &attributes)) {
            Some(other) if other != attributes => self.demand(&request.user, &other).map_err(refused),
            _ => Ok(()),
        }
    }
}

const CONTENT_TYPE_OPTIONS: HeaderName = HeaderName::from_static("x-content-type-options");

pub(super) fn is_master(user: &User) -> bool {
    user.groups.iter().any(|group| group == MASTERS)
}

/// Whether a path ends where it should say what it is about.
fn is_cut_short(path: &str) -> bool {
    let path = path.trim_end_matches('/');
    path.ends_with("/watch") || path.ends_with("/proxy")
}

/// What a target is, asked for by the same verb.
fn of_target<'a>(target: &'a Target, read: &'a Attributes<'_>) -> Attributes<'a> {
    let resource = &*target.resource;
    let mut asked = Attributes::resource(&read.verb, &resource.group, &resource.plural);
    asked = asked.below(target.subresource.as_str());
    let Asked::Resource { name, namespace, .. } = &read.asked else { return asked };
    asked = match target.name.as_str() {
        // A selector may have named it.
        "" => asked.named(&**name),
        own => asked.named(own),
    };
    match target.namespace.as_str() {
        // A namespace is read as being in itself.
        "" if resource.is_namespaces() && **namespace == *target.name => asked.within(&**namespace),
        own => asked.within(own),
    }
}

fn undetermined(request: &Request) -> (Status, Response) {
    let url = &request.uri;
    let text = format!(
        "Internal Server Error: {}: failed to create RequestInfo: unable to determine kind and namespace from url, {url}\n",
        go::quote(&url.to_string()),
    );
    let body = Body::Full(Bytes::from(escaped(&text)));
    let mut response = Response::new(500, "text/plain; charset=utf-8", body);
    response.headers.insert(CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    (Status::new(500, "", text), response)
}

/// `403`, as kube-apiserver words it.
fn forbidden(user: &User, attributes: &Attributes<'_>, reason: &str) -> Status {
    let (user, verb) = (go::quote(&user.name), &attributes.verb);
    let (mut why, status) = match &attributes.asked {
        Asked::Path(path) => (format!("User {user} cannot {verb} path {}", go::quote(path)), ("", "", "")),
        Asked::Resource { group, resource, subresource, name, namespace } => {
            let what = match subresource.is_empty() {
                true => go::quote(resource),
                false => go::quote(&format!("{resource}/{subresource}")),
            };
            let place = match namespace.is_empty() {
                true => "at the cluster scope".to_owned(),
                false => format!("in the namespace {}", go::quote(namespace)),
            };
            let why = format!(
                "User {user} cannot {verb} resource {what} in API group {} {place}",
                go::quote(group)
            );
            (why, (&**group, &**resource, &**name))
        }
    };
    why = escaped(&why);
    if !reason.is_empty() {
        why = format!("{why}: {reason}");
    }
    let (group, resource, name) = status;
    Status::forbidden(group, resource, name, &why)
}

/// Nothing that a browser would take for its own.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
