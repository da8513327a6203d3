//! One request and its answer.

use http::header::{ACCEPT, CONTENT_TYPE, WARNING};
use http::{HeaderMap, Method, Request};
use http_body_util::BodyExt as _;
use kube::client::Body;
use kube::core::Status;
use serde_json::Value;
use windlass_core::{Kind, ObjectKey};

use super::{Error, Writer};

/// A request that is being made.
pub(super) struct Call {
    /// What it does, for messages.
    what: String,
    method: Method,
    path: String,
    query: String,
    content_type: &'static str,
    body: Vec<u8>,
}

impl Call {
    pub fn new(verb: &str, method: Method, kind: &Kind, key: &ObjectKey) -> Call {
        Call {
            what: format!("{verb} {} {key}", kind.resource.kind),
            method,
            path: kind.path(key.namespace(), Some(key.name())),
            query: String::new(),
            content_type: "application/json",
            body: Vec::new(),
        }
    }

    pub fn subresource(mut self, name: &str) -> Call {
        self.path.push('/');
        self.path.push_str(name);
        self
    }

    pub fn query(mut self, name: &str, value: &str) -> Call {
        let mut query = form_urlencoded::Serializer::for_suffix(self.query, 0);
        query.append_pair(name, value);
        self.query = query.finish();
        self
    }

    pub fn apply(self, object: &Value) -> Call {
        // JSON is YAML, and this is the one name of the content type that servers before 1.35 know.
        Call { content_type: "application/apply-patch+yaml", ..self }.body(object)
    }

    pub fn merge(self, patch: &Value) -> Call {
        Call { content_type: "application/merge-patch+json", ..self }.body(patch)
    }

    pub fn json(self, body: &Value) -> Call {
        self.body(body)
    }

    fn body(self, body: &Value) -> Call {
        Call { body: body.to_string().into_bytes(), ..self }
    }
}

impl Writer {
    /// Sends a request, and waits for its answer as long as is given to it.
    pub(super) async fn send(&self, call: Call) -> Result<Value, Error> {
        let Call { what, method, mut path, query, content_type, body } = call;
        if !query.is_empty() {
            path.push('?');
            path.push_str(&query);
        }
        let request = Request::builder().method(method).uri(path);
        let request = request.header(CONTENT_TYPE, content_type).header(ACCEPT, "application/json");
        let request = request
            .body(Body::from(body))
            .map_err(|error| Error::Unaddressable { what: what.clone(), source: error })?;
        let Some(answer) = self.env.within(self.timeout, self.exchange(request)).await else {
            return Err(Error::Timeout { what, after: self.timeout });
        };
        let answer = answer.map_err(|source| Error::from_client(&what, source))?;
        for warning in answer.warnings {
            tracing::warn!(call = %what, warning, "the server warns");
        }
        match answer.refusal {
            Some(status) => Err(Error::from_status(what, status)),
            None => serde_json::from_slice(&answer.body).map_err(|source| Error::Answer { what, source }),
        }
    }

    async fn exchange(&self, request: Request<Body>) -> Result<Answer, kube::Error> {
        let response = self.client.send(request).await?;
        let (head, body) = response.into_parts();
        let body = body.collect().await?.to_bytes();
        let warnings = warnings(&head.headers);
        let refusal = (!head.status.is_success()).then(|| {
            // A proxy on the way may refuse without a Status.
            let said = || Status::failure(&String::from_utf8_lossy(&body), "");
            let status = serde_json::from_slice::<Status>(&body).unwrap_or_else(|_| said());
            status.with_code(head.status.as_u16())
        });
        Ok(Answer { body, warnings, refusal })
    }
}

struct Answer {
    body: bytes::Bytes,
    warnings: Vec<String>,
    refusal: Option<Status>,
}

/// The texts of `Warning: 299 - "text"`.
fn warnings(headers: &HeaderMap) -> Vec<String> {
    let text = |header: &http::HeaderValue| {
        let header = String::from_utf8_lossy(header.as_bytes()).into_owned();
        let quoted = header.split_once('"').and_then(|(_, rest)| rest.rsplit_once('"'));
        quoted.map_or(header.clone(), |(text, _)| text.replace("\\\"", "\""))
    };
    headers.get_all(WARNING).iter().map(text).collect()
}
