//! Writes on their way to the server.

use http::header::CONTENT_TYPE;
use http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};
use windlass::cache::Cache;
use windlass::events::Recorder;
use windlass_core::{Kind, ObjectKey};

use super::{Delete, Refusal, Write};

/// Sends the writes of one controller, and tells the cache of their answers.
#[derive(Clone)]
pub(crate) struct Sender {
    pub client: Client,
    pub cache: Cache,
    pub recorder: Recorder,
}

/// Why a write was not done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The server will refuse it again.
    #[error("{} {} {}: {}", .0.verb, .0.kind, .0.name, .0.message)]
    Refused(Refusal),
    /// What was read is out of date, or the server is away: the next look may see more.
    #[error("{what}")]
    Retry {
        what: String,
        #[source]
        source: kube::Error,
    },
}

/// Who owns the fields that controllers write, as on every cluster.
const MANAGER: &str = "kube-controller-manager";

impl Sender {
    /// Sends one write.
    pub async fn send(&self, write: Write) -> Result<(), Failure> {
        match write {
            Write::Event(told) => {
                self.recorder.publish(&told.regarding, told.event);
                Ok(())
            }
            Write::Create { kind, object, told } => {
                let (key, name) = names(&object);
                let call = Call { verb: "create", kind: &kind, name: &name };
                let path = kind.path(key.namespace(), None);
                let answer = self.call(call, Method::POST, path, "application/json", Some(&object)).await?;
                self.cache.absorb(&kind, &answer, None);
                if let Some(mut told) = told {
                    let got = answer["metadata"]["name"].as_str().unwrap_or(&name);
                    told.event.note = told.event.note.replace("{name}", got);
                    self.recorder.publish(&told.regarding, told.event);
                }
                Ok(())
            }
            Write::Replace { kind, subresource, object } => {
                let (key, name) = names(&object);
                let call = Call { verb: "update", kind: &kind, name: &name };
                let path = under(kind.path(key.namespace(), Some(&name)), subresource);
                let answer = self.call(call, Method::PUT, path, "application/json", Some(&object)).await?;
                self.cache.absorb(&kind, &answer, None);
                Ok(())
            }
            Write::Patch { kind, key, subresource, patch } => {
                let call = Call { verb: "patch", kind: &kind, name: key.name() };
                let path = under(kind.path(key.namespace(), Some(key.name())), subresource);
                let content = "application/merge-patch+json";
                let answer = self.call(call, Method::PATCH, path, content, Some(&patch)).await?;
                self.cache.absorb(&kind, &answer, None);
                Ok(())
            }
            Write::Post { kind, key, subresource, body } => {
                let call = Call { verb: "post", kind: &kind, name: key.name() };
                let path = under(kind.path(key.namespace(), Some(key.name())), subresource);
                self.call(call, Method::POST, path, "application/json", Some(&body)).await?;
                Ok(())
            }
            Write::Delete(delete) => self.delete(&delete).await,
            Write::DeleteAll { kind, namespace } => {
                let call = Call { verb: "delete", kind: &kind, name: &namespace };
                let path = kind.path(Some(&namespace), None);
                let options = json!({
                    "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background",
                });
                self.call(call, Method::DELETE, path, "application/json", Some(&options)).await?;
                Ok(())
            }
        }
    }

    async fn delete(&self, delete: &Delete) -> Result<(), Failure> {
        let Delete { kind, key, uid, version, propagation, grace } = delete;
        let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
        if let Some(uid) = uid {
            options["preconditions"]["uid"] = uid.as_str().into();
        }
        if let Some(version) = version {
            options["preconditions"]["resourceVersion"] = version.as_str().into();
        }
        if let Some(propagation) = propagation {
            options["propagationPolicy"] = propagation.as_str().into();
        }
        if let Some(grace) = grace {
            options["gracePeriodSeconds"] = (*grace).into();
        }
        let call = Call { verb: "delete", kind, name: key.name() };
        let path = kind.path(key.namespace(), Some(key.name()));
        let answer = self.call(call, Method::DELETE, path, "application/json", Some(&options)).await;
        let answer = match answer {
            Ok(answer) => answer,
            // Gone is what was wanted; another of its name is none of our business.
            Err(Failure::Retry { source: kube::Error::Api(status), .. }) if status.code == 404 => {
                return Ok(());
            }
            Err(failure) => return Err(failure),
        };
        // Some kinds answer with the object even when it is gone: only one that waits for something is still there.
        let waits = answer["metadata"]["finalizers"].as_array().is_some_and(|some| !some.is_empty())
            || answer["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or_default() > 0;
        if waits {
            self.cache.absorb(kind, &answer, None);
        } else if let Some(uid) = uid {
            self.cache.removed(kind, key, uid, None);
        }
        Ok(())
    }

    async fn call(
        &self,
        call: Call<'_>,
        method: Method,
        path: String,
        content: &str,
        body: Option<&Value>,
    ) -> Result<Value, Failure> {
        let body = body.map(|body| as_go_writes(body).into_bytes()).unwrap_or_default();
        let uri = format!("{path}?fieldManager={MANAGER}");
        let request = Request::builder().method(method).uri(uri).header(CONTENT_TYPE, content);
        let request = request.body(body).expect("names of objects make a path");
        self.client.request::<Value>(request).await.map_err(|error| call.failed(error))
    }
}

/// JSON as Go writes it: with signs of HTML as escapes, which mean the same.
///
/// A real kube-apiserver keeps what a ControllerRevision holds as the very bytes that it was sent, and refuses every patch
/// of it where these are not those that Go would write: it takes them for a change.
pub(crate) fn as_go_writes(json: &Value) -> String {
    let mut text = json.to_string();
    for (sign, escape) in ESCAPES {
        if text.contains(sign) {
            text = text.replace(sign, escape);
        }
    }
    text
}

const ESCAPES: [(char, &str); 5] =
    [('<', "\\u003c"), ('>', "\\u003e"), ('&', "\\u0026"), ('\u{2028}', "\\u2028"), ('\u{2029}', "\\u2029")];

/// What is being tried, for messages.
struct Call<'a> {
    verb: &'static str,
    kind: &'a Kind,
    name: &'a str,
}

impl Call<'_> {
    fn failed(self, error: kube::Error) -> Failure {
        let Call { verb, kind, name } = self;
        match error {
            // 404, 409 and 410: somebody was quicker. 408, 429: later. 500: a webhook that failed, for example.
            kube::Error::Api(status)
                if (400..=500).contains(&status.code)
                    && ![404, 408, 409, 410, 429].contains(&status.code) =>
            {
                Failure::Refused(Refusal {
                    verb,
                    kind: kind.resource.kind.clone(),
                    name: name.to_owned(),
                    code: status.code,
                    reason: status.reason.clone(),
                    message: status.message.clone(),
                })
            }
            source => Failure::Retry { what: format!("cannot {verb} {kind} {name}"), source },
        }
    }
}

fn under(path: String, subresource: &str) -> String {
    if subresource.is_empty() { path } else { format!("{path}/{subresource}") }
}

/// Where an object is, and its name or the prefix that it is to have.
fn names(object: &Value) -> (ObjectKey, String) {
    let metadata = &object["metadata"];
    let text = |field: &str| metadata[field].as_str().filter(|text| !text.is_empty());
    let name = text("name").or_else(|| text("generateName")).unwrap_or_default();
    (ObjectKey::new(text("namespace"), name), name.to_owned())
}
