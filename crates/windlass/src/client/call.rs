//! What a request asks for.

use std::borrow::Cow;

use http::{Method, Uri};

/// A request in the words of authorisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`; the method in lower case for
    /// paths that are no resource.
    pub verb: &'static str,
    /// What it is about; `None` for `/version`, discovery and such.
    pub resource: Option<Resource>,
    /// Whether it is a dry run, by its query.
    pub dry_run: bool,
    /// Whether its answer goes on for as long as both sides like.
    pub streams: bool,
}

/// What a request is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resource {
    /// The group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The plural name.
    pub resource: String,
    /// The subresource; empty for none.
    pub subresource: String,
    /// The namespace; empty for none.
    pub namespace: String,
    /// The name; empty for a collection.
    pub name: String,
}

impl Call {
    /// What a request of this method and address asks for, as kube-apiserver reads it.
    pub fn of(method: &Method, uri: &Uri) -> Call {
        let resource = resource(uri.path());
        let query = |name: &str| query(uri.query().unwrap_or_default(), name);
        let watches = query("watch").is_some_and(|value| matches!(value, "" | "true" | "1"));
        let has_name = resource.as_ref().is_some_and(|resource| !resource.name.is_empty());
        let verb = match *method {
            Method::GET | Method::HEAD if resource.is_none() => "get",
            Method::GET | Method::HEAD if watches => "watch",
            Method::GET | Method::HEAD if has_name => "get",
            Method::GET | Method::HEAD => "list",
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE if has_name || resource.is_none() => "delete",
            Method::DELETE => "deletecollection",
            _ => "other",
        };
        let connects = resource.as_ref().is_some_and(|resource| {
            matches!(&*resource.subresource, "exec" | "attach" | "portforward" | "proxy")
        });
        let follows = query("follow").is_some_and(|value| matches!(value, "true" | "1"));
        Call {
            verb,
            dry_run: query("dryRun").is_some_and(|value| value == "All"),
            streams: verb == "watch" || connects || follows,
            resource,
        }
    }

    /// Whether it changes something in the cluster. Questions about rights and tokens are created, and change nothing.
    pub fn writes(&self) -> bool {
        let asks = self.resource.as_ref().is_some_and(|resource| {
            matches!(&*resource.group, "authorization.k8s.io" | "authentication.k8s.io")
        });
        !matches!(self.verb, "get" | "list" | "watch") && !self.dry_run && !asks
    }

    /// Whether it only reads, so that asking twice is asking once.
    pub fn reads(&self) -> bool {
        matches!(self.verb, "get" | "list" | "watch")
    }
}

impl Resource {
    /// The plural name with the subresource, as a Role writes it: `pods/status`.
    pub fn full(&self) -> Cow<'_, str> {
        if self.subresource.is_empty() {
            Cow::Borrowed(&self.resource)
        } else {
            Cow::Owned(format!("{}/{}", self.resource, self.subresource))
        }
    }
}

/// `/api/v1/…` and `/apis/group/version/…`, then `[namespaces/NAMESPACE/]resource[/name[/subresource]]`.
fn resource(path: &str) -> Option<Resource> {
    let mut parts = path.trim_matches('/').split('/').filter(|part| !part.is_empty());
    let (group, version) = match parts.next()? {
        "api" => ("", parts.next()?),
        "apis" => (parts.next()?, parts.next()?),
        _ => return None,
    };
    let mut parts: Vec<&str> = parts.collect();
    // A namespace has subresources of its own; every other word after its name is a resource in it.
    let mut namespace = "";
    if let ["namespaces", name, rest @ ..] = &*parts {
        namespace = *name;
        if !matches!(rest, [] | ["status" | "finalize", ..]) {
            parts.drain(..2);
        }
    }
    let part = |index: usize| parts.get(index).copied().unwrap_or_default().to_owned();
    parts.first()?;
    Some(Resource {
        group: group.to_owned(),
        version: version.to_owned(),
        resource: part(0),
        name: part(1),
        subresource: part(2),
        namespace: namespace.to_owned(),
    })
}

/// The first value of a name in a query. What we look for is never escaped by anybody who writes queries.
fn query<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (key == name).then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `verb group resource/subresource namespace name`, with `-` for what is empty.
    fn read(method: &str, uri: &str) -> String {
        let call = Call::of(&method.parse().unwrap(), &uri.parse().unwrap());
        let Some(of) = call.resource else { return format!("{} no resource", call.verb) };
        let dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
        [call.verb, &dash(&of.group), &of.full(), &dash(&of.namespace), &dash(&of.name)].join(" ")
    }

    #[test]
    fn requests_are_read_as_the_server_reads_them() {
        let cases = [
            ("GET", "/api/v1/pods", "list - pods - -"),
            ("GET", "/api/v1/pods?watch=true&resourceVersion=5", "watch - pods - -"),
            ("GET", "/api/v1/pods?watch", "watch - pods - -"),
            ("GET", "/api/v1/pods?watch=false", "list - pods - -"),
            ("GET", "/api/v1/namespaces/web/pods/a", "get - pods web a"),
            ("HEAD", "/api/v1/namespaces/web/pods/a", "get - pods web a"),
            ("GET", "/api/v1/namespaces/web/pods/a/log?follow=true", "get - pods/log web a"),
            ("POST", "/api/v1/namespaces/web/pods", "create - pods web -"),
            ("POST", "/api/v1/namespaces/web/pods/a/eviction", "create - pods/eviction web a"),
            (
                "PATCH",
                "/apis/apps/v1/namespaces/web/deployments/a/status",
                "patch apps deployments/status web a",
            ),
            (
                "PUT",
                "/apis/coordination.k8s.io/v1/namespaces/x/leases/l",
                "update coordination.k8s.io leases x l",
            ),
            ("DELETE", "/apis/test.example.com/v1/foobars/a", "delete test.example.com foobars - a"),
            ("DELETE", "/api/v1/namespaces/web/pods", "deletecollection - pods web -"),
            ("GET", "/api/v1/namespaces", "list - namespaces - -"),
            ("GET", "/api/v1/namespaces/web", "get - namespaces web web"),
            ("PUT", "/api/v1/namespaces/web/finalize", "update - namespaces/finalize web web"),
            ("PATCH", "/api/v1/namespaces/web/status", "patch - namespaces/status web web"),
            ("GET", "/apis/apps/v1", "get no resource"),
            ("GET", "/api", "get no resource"),
            ("GET", "/version", "get no resource"),
            ("GET", "/", "get no resource"),
            ("GET", "/healthz?watch=true", "get no resource"),
        ];
        for (method, uri, expected) in cases {
            assert_eq!(read(method, uri), expected, "{method} {uri}");
        }
    }

    #[test]
    fn a_dry_run_and_a_question_are_no_writes() {
        let writes =
            |method: &str, uri: &str| Call::of(&method.parse().unwrap(), &uri.parse().unwrap()).writes();
        assert!(writes("PATCH", "/api/v1/namespaces/web/pods/a?fieldManager=x"));
        assert!(!writes("PATCH", "/api/v1/namespaces/web/pods/a?fieldManager=x&dryRun=All"));
        assert!(writes("DELETE", "/api/v1/namespaces/web/pods/a"));
        assert!(!writes("GET", "/api/v1/pods"));
        assert!(!writes("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"));
        assert!(writes("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles"));
        assert!(writes("POST", "/unknown"));
    }

    #[test]
    fn what_goes_on_is_known_as_such() {
        let streams = |uri: &str| Call::of(&Method::GET, &uri.parse().unwrap()).streams;
        assert!(streams("/api/v1/pods?watch=1"));
        assert!(streams("/api/v1/namespaces/web/pods/a/log?follow=true"));
        assert!(streams("/api/v1/namespaces/web/pods/a/exec?command=sh"));
        assert!(!streams("/api/v1/namespaces/web/pods/a/log"));
    }
}
