//! What a request asks for, as an authorizer sees it: read from method, path and query alone, before anything is looked up.

use std::borrow::Cow;

use http::Method;
use windlass_core::select::{FieldSelector, LabelSelector};

use crate::api::options::Query;
use crate::kinds::names;

/// What is to be done with what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attributes<'a> {
    /// The verb; empty where the method has none.
    pub verb: Cow<'a, str>,
    /// With what.
    pub asked: Asked<'a>,
}

/// What something is to be done with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked<'a> {
    /// A resource.
    Resource {
        /// The API group.
        group: Cow<'a, str>,
        /// The plural name of the resource.
        resource: Cow<'a, str>,
        /// The subresource; empty for the object itself.
        subresource: Cow<'a, str>,
        /// The object; empty for all.
        name: Cow<'a, str>,
        /// The namespace; empty for all, and for what is in none.
        namespace: Cow<'a, str>,
    },
    /// A path that is no resource.
    Path(Cow<'a, str>),
}

/// A path that says neither what nor where: `/api/v1/watch`.
#[derive(Debug, PartialEq, Eq)]
pub struct Undetermined;

/// Words before the resource that are the verb. Of `proxy` nobody knows any more.
const SPECIAL_VERBS: [&str; 2] = ["proxy", "watch"];
/// What follows the name of a namespace and is no resource in it.
const OF_NAMESPACES: [&str; 2] = ["status", "finalize"];

impl<'a> Attributes<'a> {
    /// Something to be done with a resource.
    pub fn resource(verb: &'a str, group: &'a str, resource: &'a str) -> Attributes<'a> {
        let none = Cow::Borrowed("");
        let (group, resource) = (group.into(), resource.into());
        let asked = Asked::Resource {
            group,
            resource,
            subresource: none.clone(),
            name: none.clone(),
            namespace: none,
        };
        Attributes { verb: verb.into(), asked }
    }

    /// The same, with one object.
    #[must_use]
    pub fn named(mut self, of: impl Into<Cow<'a, str>>) -> Attributes<'a> {
        if let Asked::Resource { name, .. } = &mut self.asked {
            *name = of.into();
        }
        self
    }

    /// The same, in a namespace.
    #[must_use]
    pub fn within(mut self, of: impl Into<Cow<'a, str>>) -> Attributes<'a> {
        if let Asked::Resource { namespace, .. } = &mut self.asked {
            *namespace = of.into();
        }
        self
    }

    /// The same, with a subresource.
    #[must_use]
    pub fn below(mut self, of: impl Into<Cow<'a, str>>) -> Attributes<'a> {
        if let Asked::Resource { subresource, .. } = &mut self.asked {
            *subresource = of.into();
        }
        self
    }

    /// Something to be done at a path.
    pub fn path(verb: impl Into<Cow<'a, str>>, path: impl Into<Cow<'a, str>>) -> Attributes<'a> {
        Attributes { verb: verb.into(), asked: Asked::Path(path.into()) }
    }

    /// The namespace that is asked about.
    pub fn namespace(&self) -> &str {
        match &self.asked {
            Asked::Resource { namespace, .. } => namespace,
            Asked::Path(_) => "",
        }
    }

    /// What a request asks for, by its path without escapes.
    ///
    /// # Errors
    /// When the path ends where it should say what it is about.
    pub fn of_request(
        method: &Method,
        path: &'a str,
        query: &Query<'_>,
    ) -> Result<Attributes<'a>, Undetermined> {
        let other = || Attributes::path(method.as_str().to_ascii_lowercase(), path);
        let trimmed = path.trim_matches('/');
        let parts: Vec<&str> = if trimmed.is_empty() { Vec::new() } else { trimmed.split('/').collect() };
        let (group, parts) = match parts.as_slice() {
            ["api", _, rest @ ..] if !rest.is_empty() => ("", rest),
            ["apis", group, _, rest @ ..] if !rest.is_empty() => (*group, rest),
            _ => return Ok(other()),
        };
        let (mut verb, by_path, parts) = match parts {
            [word] if SPECIAL_VERBS.contains(word) => return Err(Undetermined),
            [word, rest @ ..] if SPECIAL_VERBS.contains(word) => (*word, true, rest),
            parts => (verb(method), false, parts),
        };
        let (namespace, parts) = match parts {
            ["namespaces", namespace, rest @ ..]
                if rest.first().is_some_and(|next| !OF_NAMESPACES.contains(next)) =>
            {
                (*namespace, rest)
            }
            ["namespaces", namespace, ..] => (*namespace, parts),
            parts => ("", parts),
        };
        let part = |at: usize| parts.get(at).copied().unwrap_or_default();
        let (resource, mut name) = (part(0), Cow::Borrowed(part(1)));
        let subresource = if verb == "proxy" { "" } else { part(2) };
        if name.is_empty() && verb == "get" && !by_path {
            verb = if query.flag("watch") { "watch" } else { "list" };
            name = selected_name(query).map_or(name, Cow::Owned);
        }
        if name.is_empty() && verb == "delete" {
            verb = "deletecollection";
        }
        let asked = Asked::Resource {
            group: group.into(),
            resource: resource.into(),
            subresource: subresource.into(),
            name,
            namespace: namespace.into(),
        };
        Ok(Attributes { verb: verb.into(), asked })
    }
}

fn verb(method: &Method) -> &'static str {
    match *method {
        Method::GET | Method::HEAD => "get",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "",
    }
}

/// The one object that a selector leaves of a collection. Options that cannot be read leave all.
pub fn selected_name(query: &Query<'_>) -> Option<String> {
    let text = query.get("fieldSelector")?;
    let fields = FieldSelector::parse(text).ok()?;
    LabelSelector::parse(query.text("labelSelector")).ok()?;
    for number in ["limit", "timeoutSeconds"] {
        query.int(number).ok()?;
    }
    let name = fields.exact("metadata.name")?;
    names::path_segment(name).is_empty().then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::route::decoded;

    fn told(method: &str, uri: &str) -> String {
        let uri: http::Uri = uri.parse().unwrap();
        let path = decoded(uri.path());
        let query = Query::parse(uri.query().unwrap_or_default());
        match Attributes::of_request(&method.parse().unwrap(), &path, &query) {
            Err(Undetermined) => "undetermined".into(),
            Ok(Attributes { verb, asked: Asked::Path(path) }) => format!("{verb} {path}"),
            Ok(Attributes {
                verb,
                asked: Asked::Resource { group, resource, subresource, name, namespace },
            }) => {
                format!("{verb} group={group} {resource}/{subresource} name={name} in={namespace}")
            }
        }
    }

    #[test]
    fn requests_are_read_as_the_real_server_reads_them() {
        let cases = [
            ("GET", "/api/v1/namespaces/a/pods", "list group= pods/ name= in=a"),
            ("GET", "/api/v1/namespaces/a/pods?watch=1", "watch group= pods/ name= in=a"),
            ("GET", "/api/v1/namespaces/a/pods?watch=false", "list group= pods/ name= in=a"),
            ("GET", "/api/v1/namespaces/a/pods/p/log", "get group= pods/log name=p in=a"),
            ("GET", "/api/v1/watch/namespaces/a/pods", "watch group= pods/ name= in=a"),
            ("GET", "/api/v1/watch/namespaces/a/pods/p", "watch group= pods/ name=p in=a"),
            ("GET", "/api/v1/namespaces/a", "get group= namespaces/ name=a in=a"),
            ("PUT", "/api/v1/namespaces/a/finalize", "update group= namespaces/finalize name=a in=a"),
            ("GET", "/api/v1/namespaces", "list group= namespaces/ name= in="),
            (
                "DELETE",
                "/apis/apps/v1/namespaces/a/deployments",
                "deletecollection group=apps deployments/ name= in=a",
            ),
            (
                "DELETE",
                "/apis/apps/v1/namespaces/a/deployments/d",
                "delete group=apps deployments/ name=d in=a",
            ),
            (
                "PATCH",
                "/apis/apps/v1/namespaces/a/deployments/d/scale",
                "patch group=apps deployments/scale name=d in=a",
            ),
            ("OPTIONS", "/api/v1/pods", " group= pods/ name= in="),
            ("GET", "/apis/apps/v1", "get /apis/apps/v1"),
            ("FOO", "/api/v1", "foo /api/v1"),
            ("GET", "/api/v1/watch", "undetermined"),
            ("GET", "/healthz", "get /healthz"),
            ("GET", "/", "get /"),
            ("GET", "/api/v1/pods?fieldSelector=metadata.name%3Dx", "list group= pods/ name=x in="),
            ("GET", "/api/v1/pods?fieldSelector=metadata.name%3Dx&limit=y", "list group= pods/ name= in="),
            ("GET", "/api/v1/pods?fieldSelector=metadata.name%3Da%2Fb", "list group= pods/ name= in="),
            // Slashes count when the path has been decoded, and empty words are words.
            ("GET", "/api/v1/namespaces/a%2fpods", "list group= pods/ name= in=a"),
            ("GET", "/api/v1/namespaces//pods", "list group= pods/ name= in="),
            ("GET", "//api/v1/pods", "list group= pods/ name= in="),
            ("GET", "/api/v1//pods", "get group= / name=pods in="),
            ("GET", "/api/v1/namespaces/a/../b/pods", "get group= ../pods name=b in=a"),
            ("GET", "/API/v1/pods", "get /API/v1/pods"),
        ];
        for (method, uri, expected) in cases {
            assert_eq!(told(method, uri), expected, "{method} {uri}");
        }
    }
}
