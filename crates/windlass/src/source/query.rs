//! What is listed and watched, as requests.

use std::time::Duration;

use form_urlencoded::Serializer;
use http::header::{ACCEPT, ACCEPT_ENCODING};
use http::{HeaderValue, Request};
use kube::client::Body;
use windlass_core::Kind;

/// What is listed and watched.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    pub(crate) kind: Kind,
    pub(crate) namespace: Option<String>,
    pub(crate) labels: Option<String>,
    pub(crate) fields: Option<String>,
    pub(crate) metadata_only: bool,
}

/// How many objects a page of a list has. More would make the server, and us, hold more at once.
const PAGE: &str = "500";

impl Query {
    /// A page of a list. After a page whose rest has expired, the whole list is asked for at once.
    pub(super) fn list(&self, rest: Option<&str>, paged: bool) -> http::Result<Request<Body>> {
        let mut query = self.selectors();
        if paged {
            query.append_pair("limit", PAGE);
        }
        if let Some(rest) = rest {
            query.append_pair("continue", rest);
        }
        self.get(true, &query.finish())
    }

    /// A watch that goes on from a version.
    pub(super) fn watch(&self, from: u64, timeout: Duration) -> http::Result<Request<Body>> {
        let mut query = self.selectors();
        query.append_pair("resourceVersion", &from.to_string());
        self.stream(query, timeout)
    }

    /// A watch that begins with a list.
    pub(super) fn watch_list(&self, timeout: Duration) -> http::Result<Request<Body>> {
        let mut query = self.selectors();
        query.append_pair("sendInitialEvents", "true");
        query.append_pair("resourceVersionMatch", "NotOlderThan");
        self.stream(query, timeout)
    }

    /// Which resources the server has in the kind's group and version.
    pub(super) fn discovery(&self) -> http::Result<Request<Body>> {
        let resource = &self.kind.resource;
        let root = if resource.group.is_empty() { "/api" } else { "/apis" };
        request(&format!("{root}/{}", resource.api_version), "application/json")
    }

    fn stream(&self, mut query: Serializer<'_, String>, timeout: Duration) -> http::Result<Request<Body>> {
        query.append_pair("watch", "true");
        query.append_pair("allowWatchBookmarks", "true");
        query.append_pair("timeoutSeconds", &timeout.as_secs().to_string());
        let mut request = self.get(false, &query.finish())?;
        // Servers from 1.37 on compress every event by itself, which decoders in the client take for the whole answer.
        request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        Ok(request)
    }

    fn selectors(&self) -> Serializer<'static, String> {
        let mut query = Serializer::new(String::new());
        if let Some(labels) = &self.labels {
            query.append_pair("labelSelector", labels);
        }
        if let Some(fields) = &self.fields {
            query.append_pair("fieldSelector", fields);
        }
        query
    }

    fn get(&self, list: bool, query: &str) -> http::Result<Request<Body>> {
        let accept = match (self.metadata_only, list) {
            (false, _) => "application/json",
            (true, true) => "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
            (true, false) => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        };
        let path = self.kind.path(self.namespace.as_deref(), None);
        request(&format!("{path}?{query}"), accept)
    }
}

fn request(target: &str, accept: &'static str) -> http::Result<Request<Body>> {
    Request::get(target).header(ACCEPT, accept).body(Body::empty())
}
