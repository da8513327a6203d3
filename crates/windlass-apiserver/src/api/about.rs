//! What a request was about, for those who count.

use http::Method;
use http::header::CONTENT_TYPE;

use super::patch::APPLY;
use super::route::Target;
use super::server::Request;
use crate::schema::Str;

/// What a request was about, by the labels of kube-apiserver's metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct About {
    /// `GET`, `LIST`, `WATCH`, `POST`, `APPLY`, …
    pub verb: &'static str,
    /// The group; empty for the core group, and for what is no resource.
    pub group: Str,
    /// The version.
    pub version: Str,
    /// The plural.
    pub resource: Str,
    /// The subresource; the path of what is no resource.
    pub subresource: String,
    /// `resource` for one object, `namespace` or `cluster` for several; empty for what is no resource.
    pub scope: &'static str,
    /// Whether nothing is to be written.
    pub dry_run: bool,
}

impl About {
    /// A request on a resource.
    pub(super) fn resource(request: &Request, target: &Target, verb: &str, dry_run: bool) -> About {
        let media = request.headers.get(CONTENT_TYPE).map(http::HeaderValue::as_bytes).unwrap_or_default();
        let verb = match verb {
            "list" => "LIST",
            "watch" => "WATCH",
            "create" => "POST",
            "update" => "PUT",
            "patch" if media.starts_with(APPLY.as_bytes()) => "APPLY",
            "patch" => "PATCH",
            "delete" => "DELETE",
            "deletecollection" => "DELETECOLLECTION",
            "connect" => "CONNECT",
            _ => "GET",
        };
        let scope = match () {
            () if !target.name.is_empty() || verb == "POST" => "resource",
            () if !target.namespace.is_empty() => "namespace",
            () => "cluster",
        };
        let resource = &target.resource;
        About {
            verb,
            group: resource.group.clone(),
            version: resource.version.clone(),
            resource: resource.plural.clone(),
            subresource: target.subresource.clone(),
            scope,
            dry_run,
        }
    }

    /// A request for something else. Only what has a name of its own is told apart: paths are as many as anybody likes.
    pub(super) fn path(request: &Request) -> Option<About> {
        let path = request.uri.path();
        let subresource = match path {
            "/healthz" | "/livez" | "/readyz" => path,
            "/openapi/v2" | "/openapi/v3" => path.trim_start_matches('/'),
            _ if path.starts_with("/openapi/v3/") => "openapi/v3/",
            _ => return None,
        };
        let verb = if request.method == Method::GET { "GET" } else { "other" };
        Some(About { verb, subresource: subresource.to_owned(), ..About::default() })
    }
}
