//! From method and path to what is asked for.

use std::borrow::Cow;
use std::sync::Arc;

use http::Method;

use super::registry::{Registry, Resource};
use crate::status::Status;

/// What a path stands for.
#[derive(Debug, Clone)]
pub enum Route {
    /// A resource: a collection, an object or a subresource.
    Resource(Target),
    /// `/api` or `/apis`.
    Groups {
        /// Whether it is `/api`.
        core: bool,
    },
    /// `/apis/<group>`.
    Group(String),
    /// `/api/v1` or `/apis/<group>/<version>`.
    Version(String, String),
    /// `/openapi/v3…`; the rest of the path.
    OpenApi(String),
    /// `/openapi/v2`.
    OpenApiV2,
    /// `/version`.
    ServerVersion,
    /// `/healthz`, `/livez`, `/readyz` and the checks below them.
    Health(String),
    /// `/metrics`.
    Metrics,
    /// `/`.
    Index,
    /// Who issues the tokens of service accounts, and with which keys.
    OpenId(OpenId),
}

/// What is said of the issuer of service account tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenId {
    /// `/.well-known/openid-configuration`.
    Configuration,
    /// `/openid/v1/jwks`.
    Keys,
}

/// A resource and where in it.
#[derive(Debug, Clone)]
pub struct Target {
    /// The resource.
    pub resource: Arc<Resource>,
    /// The namespace; empty for all, or for cluster-scoped resources.
    pub namespace: String,
    /// The name; empty for the collection.
    pub name: String,
    /// The subresource; empty for the object itself.
    pub subresource: String,
    /// The path had the old `/watch/` prefix.
    pub watch: bool,
}

/// A path that leads nowhere.
#[derive(Debug, Clone, PartialEq)]
pub enum Lost {
    /// No such path: plain text.
    Path,
    /// No such resource in a group that exists: a `Status`.
    Resource,
    /// No such subresource of a custom resource: a `Status` that names the object.
    Subresource {
        /// The group.
        group: String,
        /// The resource.
        plural: String,
        /// The object.
        name: String,
    },
}

/// A path without its escapes. What counts is the path that is left: an escaped slash is a slash, to those who may see it
/// and to those who may not.
pub fn decoded(path: &str) -> Cow<'_, str> {
    percent_encoding::percent_decode_str(path).decode_utf8_lossy()
}

/// Finds what a path stands for.
pub fn route(registry: &Registry, path: &str) -> Result<Route, Lost> {
    let path = &*decoded(path);
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let parts = parts.strip_suffix(&[""]).unwrap_or(&parts);
    match parts {
        [] => Ok(Route::Index),
        ["version"] => Ok(Route::ServerVersion),
        ["metrics"] if !path.ends_with('/') => Ok(Route::Metrics),
        ["healthz" | "livez" | "readyz", ..] if !path.ends_with('/') => Ok(Route::Health(parts.join("/"))),
        [".well-known", "openid-configuration"] => Ok(Route::OpenId(OpenId::Configuration)),
        ["openid", "v1", "jwks"] => Ok(Route::OpenId(OpenId::Keys)),
        ["openapi", "v2"] if !path.ends_with('/') => Ok(Route::OpenApiV2),
        ["openapi", "v3", rest @ ..] => {
            let slash = if path.ends_with('/') { "/" } else { "" };
            Ok(Route::OpenApi(rest.join("/") + slash))
        }
        ["api"] => Ok(Route::Groups { core: true }),
        ["apis"] => Ok(Route::Groups { core: false }),
        ["api", "v1"] => Ok(Route::Version(String::new(), "v1".into())),
        ["api", "v1", rest @ ..] => resource(registry, "", "v1", rest),
        ["apis", group] if registry.has_group(group, "") => Ok(Route::Group((*group).to_owned())),
        ["apis", group, version] if registry.has_group(group, version) => {
            Ok(Route::Version((*group).to_owned(), (*version).to_owned()))
        }
        ["apis", group, version, rest @ ..] if !rest.is_empty() && registry.has_group(group, "") => {
            resource(registry, group, version, rest)
        }
        ["apis", group, _] if registry.has_group(group, "") => Err(lost(registry, group)),
        // What lies below these belongs to their services, which answer in their own form.
        ["api" | "version", ..] => Err(Lost::Resource),
        _ => Err(Lost::Path),
    }
}

/// Custom resources are found by a handler of their own upstream, which knows no groups.
fn lost(registry: &Registry, group: &str) -> Lost {
    if registry.is_builtin(group, "") { Lost::Resource } else { Lost::Path }
}

fn resource(registry: &Registry, group: &str, version: &str, parts: &[&str]) -> Result<Route, Lost> {
    let (watch, parts) = match parts {
        ["watch", rest @ ..] => (true, rest),
        parts => (false, parts),
    };
    let find = |plural: &str| registry.find(group, version, plural).ok_or_else(|| lost(registry, group));
    // `namespaces/<n>/<resource>…` is a resource in a namespace, unless <resource> is a subresource of namespaces.
    if let ["namespaces", namespace, plural, rest @ ..] = parts
        && let Ok(found) = find(plural)
        && found.namespaced
    {
        return target(found, namespace, rest, watch);
    }
    match parts {
        [plural, rest @ ..] => {
            let found = find(plural)?;
            if found.namespaced && !rest.is_empty() {
                return Err(lost(registry, group));
            }
            target(found, "", rest, watch)
        }
        [] => Err(lost(registry, group)),
    }
}

fn target(resource: Arc<Resource>, namespace: &str, rest: &[&str], watch: bool) -> Result<Route, Lost> {
    let (name, subresource) = match rest {
        [] => ("", String::new()),
        [name] => (*name, String::new()),
        // What follows is a path of the program behind it.
        [name, "proxy", ..] => (*name, "proxy".to_owned()),
        [name, sub @ ..] => (*name, sub.join("/")),
    };
    if !subresource.is_empty() && resource.subresource(&subresource).is_none() {
        if !resource.is_custom() {
            return Err(Lost::Resource);
        }
        let (group, plural) = (resource.group.to_string(), resource.plural.to_string());
        return Err(Lost::Subresource { group, plural, name: name.to_owned() });
    }
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    Ok(Route::Resource(Target { resource, namespace, name, subresource, watch }))
}

/// Whether a route leads somewhere by this method. Custom objects of all namespaces can be read, and else are not there.
pub fn reach(route: Route, method: &Method) -> Result<Route, Lost> {
    if let Route::Resource(target) = &route
        && target.resource.is_custom()
        && target.resource.namespaced
        && target.namespace.is_empty()
        && !matches!(*method, Method::GET | Method::HEAD)
    {
        return Err(Lost::Path);
    }
    Ok(route)
}

/// What is to be done with a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Read one object.
    Get,
    /// Read a collection.
    List,
    /// Follow a collection.
    Watch,
    /// Make an object.
    Create,
    /// Replace an object.
    Update,
    /// Change part of an object.
    Patch,
    /// Remove an object.
    Delete,
    /// Remove a collection.
    DeleteCollection,
    /// Speak with what is behind an object.
    Connect,
}

impl Verb {
    /// The verb's name in discovery and in audit records.
    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Watch => "watch",
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Patch => "patch",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
            Verb::Connect => "connect",
        }
    }
}

/// The verb of a method on a target, if the resource offers it.
pub fn verb(method: &Method, target: &Target, watch: bool) -> Result<Verb, Status> {
    let collection = target.name.is_empty();
    let watch = watch || target.watch;
    // Upstream, built-in resources have a route per method, and none for HEAD; custom ones have one handler, which
    // looks at the rest of the path later.
    let custom = target.resource.is_custom();
    let refused = |verb: &str| match custom {
        true => Status::method_not_supported(&target.resource.group, &target.resource.plural, verb),
        false => method_not_allowed(),
    };
    let read = *method == Method::GET || *method == Method::HEAD && custom;
    let verb = match *method {
        _ if read && collection && watch => Verb::Watch,
        _ if read && collection => Verb::List,
        _ if read && target.watch => Verb::Watch,
        _ if read => Verb::Get,
        Method::POST if collection || custom || !target.subresource.is_empty() => Verb::Create,
        Method::PUT if !collection => Verb::Update,
        Method::PATCH if !collection => Verb::Patch,
        Method::PUT | Method::PATCH if custom => return Err(Status::bad_request("name must be provided")),
        Method::DELETE if collection => Verb::DeleteCollection,
        Method::DELETE => Verb::Delete,
        _ => return Err(refused("")),
    };
    // A collection over all namespaces can be read and emptied nowhere, and created in nowhere.
    let everywhere = target.resource.namespaced && target.namespace.is_empty();
    if everywhere && matches!(verb, Verb::Create | Verb::DeleteCollection) {
        return Err(refused(verb.as_str()));
    }
    let offered = match target.subresource.as_str() {
        "" => target.resource.has_verb(verb.as_str()),
        name => target
            .resource
            .subresource(name)
            .is_some_and(|sub| sub.verbs.iter().any(|have| have == verb.as_str())),
    };
    if offered { Ok(verb) } else { Err(refused(verb.as_str())) }
}

/// `405`, as go-restful's answer is worded.
pub fn method_not_allowed() -> Status {
    let mut status = Status::new(
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
    );
    status.details = Some(Box::default());
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(path: &str) -> Target {
        match route(&Registry::new(), path) {
            Ok(Route::Resource(target)) => target,
            other => panic!("{path}: {other:?}"),
        }
    }

    #[test]
    fn paths_of_namespaced_and_cluster_objects() {
        let pod = target("/api/v1/namespaces/a/pods/p/status");
        assert_eq!(
            (pod.namespace.as_str(), pod.name.as_str(), pod.subresource.as_str()),
            ("a", "p", "status")
        );
        let namespace = target("/api/v1/namespaces/a/finalize");
        assert_eq!((&*namespace.resource.plural, namespace.subresource.as_str()), ("namespaces", "finalize"));
        assert_eq!(target("/api/v1/namespaces/a").name, "a");
        assert!(target("/apis/apps/v1/deployments").namespace.is_empty());
        assert!(target("/api/v1/watch/namespaces/a/pods").watch);
    }

    #[test]
    fn documents_have_no_slash_at_the_end() {
        let registry = Registry::new();
        let document = |path: &str| match route(&registry, path) {
            Ok(Route::OpenApi(name)) => name,
            other => panic!("{path}: {other:?}"),
        };
        assert_eq!(document("/openapi/v3"), "");
        assert_eq!(document("/openapi/v3/"), "/");
        assert_eq!(document("/openapi/v3/apis/apps/v1"), "apis/apps/v1");
        assert_eq!(document("/openapi/v3/apis/"), "apis/");
        assert_eq!(route(&registry, "/openapi/v2/").unwrap_err(), Lost::Path);
    }

    #[test]
    fn lost_paths_are_told_apart() {
        let registry = Registry::new();
        assert_eq!(route(&registry, "/nope").unwrap_err(), Lost::Path);
        assert_eq!(route(&registry, "/apis/nope/v1/x").unwrap_err(), Lost::Path);
        assert_eq!(route(&registry, "/apis/apps/v1/nope").unwrap_err(), Lost::Resource);
        assert_eq!(route(&registry, "/api/v1/pods/x").unwrap_err(), Lost::Resource);
    }

    #[test]
    fn verbs_follow_method_and_discovery() {
        let pods = target("/api/v1/namespaces/a/pods");
        assert_eq!(verb(&Method::GET, &pods, true).unwrap(), Verb::Watch);
        assert_eq!(verb(&Method::POST, &pods, false).unwrap(), Verb::Create);
        assert_eq!(verb(&Method::PUT, &pods, false).unwrap_err().code, 405);
        assert_eq!(verb(&Method::POST, &target("/api/v1/pods"), false).unwrap_err().code, 405);
        assert_eq!(verb(&Method::DELETE, &target("/api/v1/namespaces"), false).unwrap_err().code, 405);
        assert_eq!(verb(&Method::HEAD, &pods, false).unwrap_err().code, 405);
    }
}
