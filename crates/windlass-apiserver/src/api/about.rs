//! What a request was about, for those who count: by kube-apiserver's labels, and with its habits.
//!
//! It counts what has reached a route: nothing that was refused to somebody, and nothing for which there is no method.

use http::Method;
use http::header::CONTENT_TYPE;

use super::authorize::selected_name;
use super::discovery::wants_aggregated;
use super::negotiate;
use super::options::Query;
use super::patch::{self, APPLY};
use super::relay;
use super::route::{self, Target};
use super::server::Request;
use crate::schema::Str;

/// What a request was about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// By what it is told from others.
    pub labels: Labels,
    /// `All` where nothing is to be written, `invalid` where it says something else.
    pub dry_run: &'static str,
    /// Whether it is counted how large the answers are.
    pub is_sized: bool,
    /// Whether it is a request that somebody waits for the end of, and is really to be done.
    pub is_awaited: bool,
    /// Verb and scope while it goes on: these are read from the request alone.
    pub going: (&'static str, &'static str),
}

/// The labels of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Labels {
    /// The plural; first, since most are told apart by it.
    pub resource: Str,
    /// `GET`, `LIST`, `WATCH`, `POST`, `APPLY`, …
    pub verb: &'static str,
    /// The group; empty for the core group, and for what is no resource.
    pub group: Str,
    /// The version.
    pub version: Str,
    /// The subresource; the path of what is no resource.
    pub subresource: String,
    /// `resource` for one object, `namespace` or `cluster` for several; empty for what is no resource.
    pub scope: &'static str,
    /// Which part of the server answers; empty for what is no part of the API.
    pub component: &'static str,
}

/// Where bytes flow both ways, or for long.
const CONNECTS: [&str; 5] = ["log", "exec", "portforward", "attach", "proxy"];

impl About {
    /// A request on a resource, if there is a way to it.
    pub(super) fn resource(request: &Request, target: &Target, query: &Query<'_>) -> Option<About> {
        let (method, resource) = (&request.method, &target.resource);
        let is_custom = resource.is_custom();
        let asks_watch = query.flag("watch");
        if relay::is_relayed(target) {
            relay::verb(target, method).ok()?;
        } else {
            route::verb(method, target, asks_watch).ok()?;
            if !is_custom {
                negotiate::admit(&request.headers, target.name.is_empty()).ok()?;
                (*method != Method::PATCH || patch::is_routed(&request.headers)).then_some(())?;
            }
        }
        // What follows a proxy's name is no part of it.
        let subresource = target.subresource.split('/').next().unwrap_or_default();
        let connects = CONNECTS.contains(&subresource);
        let is_read = matches!(*method, Method::GET | Method::HEAD);
        let scope = |name_is_there: bool| match () {
            () if name_is_there || *method == Method::POST => "resource",
            () if !target.namespace.is_empty() => "namespace",
            () => "cluster",
        };
        let named = !target.name.is_empty();
        let selected = named || is_read && selected_name(query).is_some();
        let going = scope(selected);
        // Built-in kinds have a route for each scope; custom ones have what the request says.
        let scope = if is_custom { going } else { scope(named) };
        let verb = |scope: &str| match () {
            () if connects => "CONNECT",
            () => verb(request, scope, asks_watch),
        };
        let watches = target.watch || is_read && !named && asks_watch;
        // Built-in kinds have one route for lists and for watches, unless the path says so.
        let is_other = if is_custom { watches } else { target.watch };
        let dry_run = dry_run(query);
        let labels = Labels {
            verb: if target.watch { "WATCH" } else { verb(scope) },
            group: resource.group.clone(),
            version: resource.version.clone(),
            resource: resource.plural.clone(),
            subresource: subresource.to_owned(),
            scope,
            component: "apiserver",
        };
        Some(About {
            labels,
            dry_run,
            is_sized: is_read && !connects && !is_other,
            is_awaited: !watches && dry_run.is_empty(),
            going: (verb(going), going),
        })
    }

    /// A request for something else. Only what has a name of its own is told apart: paths are as many as anybody likes.
    pub(super) fn path(request: &Request, query: &Query<'_>) -> Option<About> {
        let path = request.uri.path();
        let (subresource, component) = match path {
            "/healthz" | "/livez" | "/readyz" => (path, ""),
            "/openapi/v3" => ("openapi/v3", ""),
            "/api" if request.method != Method::GET => return None,
            "/api" | "/apis" if wants_aggregated(request) => (&path[1..], "apiserver"),
            _ if path.starts_with("/openapi/v3/") => ("openapi/v3/", ""),
            _ => return None,
        };
        let verb = verb(request, "", query.flag("watch"));
        let labels = Labels { verb, subresource: subresource.to_owned(), component, ..Labels::default() };
        let dry_run = dry_run(query);
        Some(About { labels, dry_run, is_sized: true, is_awaited: dry_run.is_empty(), going: ("", "") })
    }
}

/// The verb of a method. Whoever says that he watches does, even if he gets one object.
fn verb(request: &Request, scope: &str, asks_watch: bool) -> &'static str {
    let media = request.headers.get(CONTENT_TYPE).map(http::HeaderValue::as_bytes);
    match request.method {
        Method::GET if asks_watch => "WATCH",
        Method::GET | Method::HEAD if matches!(scope, "resource" | "") => "GET",
        Method::GET | Method::HEAD => "LIST",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH if media == Some(APPLY.as_bytes()) => "APPLY",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

fn dry_run(query: &Query<'_>) -> &'static str {
    match query.all("dryRun") {
        none if none.is_empty() => "",
        all if all.iter().all(|value| *value == "All") => "All",
        _ => "invalid",
    }
}
