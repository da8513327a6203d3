//! What a step asks the server itself, where what was watched is not enough to decide by.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use http::Request;
use http::header::ACCEPT;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use serde::Deserialize;
use serde_json::Value;
use windlass_core::{Kind, ObjectKey};

use super::Controller;
use super::discover::{Kinds, kinds};
use super::send::Failure;

/// A question to the server. Its answer is in the [view](super::View) of the next step of the same pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookUp {
    /// The metadata of one object, or that it is not there.
    Object {
        /// Its kind.
        kind: Kind,
        /// Which one.
        key: ObjectKey,
    },
    /// The metadata of all objects of a kind, in one namespace or in all.
    Objects {
        /// Their kind.
        kind: Kind,
        /// Their namespace; `None` for all of them.
        namespace: Option<String>,
    },
    /// How many replicas an object wants, by its scale subresource.
    Scale {
        /// Its kind.
        kind: Kind,
        /// Which one.
        key: ObjectKey,
    },
    /// All kinds that the server serves.
    Kinds,
    /// A signed token that says this. It is not the server who answers, but [whoever signs](super::Controller::sign): a
    /// signature takes randomness, which a step does not have.
    Token(Value),
}

/// What the server said of the scale of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaled<'a> {
    /// It was not asked: [ask](super::Turn::look_up).
    NotYet,
    /// There is no object of that name.
    Missing,
    /// It is there.
    There {
        /// The uid of the object.
        uid: &'a str,
        /// How many replicas it wants.
        replicas: i32,
    },
}

/// What the server said of one object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Looked<'a> {
    /// It was not asked: [ask](super::Turn::look_up).
    NotYet,
    /// There is no object of that name.
    Missing,
    /// It is there.
    There(&'a ObjectMeta),
}

/// What the server said of a collection.
#[derive(Clone, Debug, PartialEq)]
pub enum Listed {
    /// All there is.
    Objects(Vec<ObjectMeta>),
    /// It does not serve such objects, or does not list them.
    Unserved,
    /// It could not say.
    Failed(String),
}

/// What the server answered in one pass.
#[derive(Debug, Default)]
pub struct Answers {
    /// By path.
    objects: BTreeMap<String, Option<Box<ObjectMeta>>>,
    /// By path.
    lists: BTreeMap<String, Listed>,
    /// By path: uid and replicas, nothing, or why not.
    scales: BTreeMap<String, Result<Option<(String, i32)>, String>>,
    kinds: Option<Arc<Kinds>>,
    /// By what they say.
    tokens: BTreeMap<String, String>,
}

impl Answers {
    pub(super) fn object(&self, kind: &Kind, key: &ObjectKey) -> Looked<'_> {
        match self.objects.get(&kind.path(key.namespace(), Some(key.name()))) {
            None => Looked::NotYet,
            Some(None) => Looked::Missing,
            Some(Some(meta)) => Looked::There(meta),
        }
    }

    pub(super) fn objects(&self, kind: &Kind, namespace: Option<&str>) -> Option<&Listed> {
        self.lists.get(&kind.path(namespace, None))
    }

    pub(super) fn scale(&self, kind: &Kind, key: &ObjectKey) -> Result<Scaled<'_>, String> {
        match self.scales.get(&kind.path(key.namespace(), Some(key.name()))) {
            None => Ok(Scaled::NotYet),
            Some(Ok(None)) => Ok(Scaled::Missing),
            Some(Ok(Some((uid, replicas)))) => Ok(Scaled::There { uid, replicas: *replicas }),
            Some(Err(why)) => Err(why.clone()),
        }
    }

    pub(super) fn kinds(&self) -> Option<&Arc<Kinds>> {
        self.kinds.as_ref()
    }

    pub(super) fn token(&self, claims: &Value) -> Option<&str> {
        self.tokens.get(&claims.to_string()).map(String::as_str)
    }

    /// Asks the server, unless it has answered in this pass.
    pub(super) async fn ask(
        &mut self,
        client: &Client,
        controller: &dyn Controller,
        look_up: &LookUp,
    ) -> Result<(), Failure> {
        match look_up {
            LookUp::Object { kind, key } => {
                let path = kind.path(key.namespace(), Some(key.name()));
                if let Entry::Vacant(entry) = self.objects.entry(path) {
                    let answer = object(client, kind, key.name(), entry.key()).await?;
                    entry.insert(answer.map(Box::new));
                }
            }
            LookUp::Objects { kind, namespace } => {
                let path = kind.path(namespace.as_deref(), None);
                if let Entry::Vacant(entry) = self.lists.entry(path) {
                    let answer = objects(client, entry.key()).await;
                    entry.insert(answer);
                }
            }
            LookUp::Scale { kind, key } => {
                let path = kind.path(key.namespace(), Some(key.name()));
                if let Entry::Vacant(entry) = self.scales.entry(path) {
                    let answer = scale(client, kind, key.name(), entry.key()).await;
                    entry.insert(answer);
                }
            }
            LookUp::Token(claims) => {
                if let (Entry::Vacant(entry), Some(token)) =
                    (self.tokens.entry(claims.to_string()), controller.sign(claims))
                {
                    entry.insert(token);
                }
            }
            LookUp::Kinds => {
                if self.kinds.is_none() {
                    self.kinds = Some(Arc::new(kinds(client).await?));
                }
            }
        }
        Ok(())
    }
}

const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

#[derive(Deserialize)]
struct Partial {
    metadata: ObjectMeta,
}

#[derive(Deserialize)]
struct PartialList {
    /// `null` where there are none.
    items: Option<Vec<Partial>>,
}

async fn object(client: &Client, kind: &Kind, name: &str, path: &str) -> Result<Option<ObjectMeta>, Failure> {
    match client.request::<Partial>(get(path, METADATA)).await {
        Ok(object) => Ok(Some(object.metadata)),
        // Only a server that knows the kind and misses the name says so of the name. One that has (just now) no such kind
        // says something of the path, and that is no word on the object.
        Err(kube::Error::Api(status)) if status.code == 404 && names(&status, kind, name) => Ok(None),
        Err(source) => Err(Failure::Retry { what: format!("cannot look up {kind} {name}"), source }),
    }
}

async fn scale(
    client: &Client,
    kind: &Kind,
    name: &str,
    path: &str,
) -> Result<Option<(String, i32)>, String> {
    match client.request::<Value>(get(&format!("{path}/scale"), "application/json")).await {
        Ok(scale) => {
            let replicas = scale["spec"]["replicas"].as_i64().and_then(|count| i32::try_from(count).ok());
            Ok(Some((text(&scale["metadata"], "uid").to_owned(), replicas.unwrap_or_default())))
        }
        Err(kube::Error::Api(status)) if status.code == 404 && names(&status, kind, name) => Ok(None),
        Err(kube::Error::Api(status)) if status.code == 404 => {
            let group = kind.resource.group.as_str();
            let dot = if group.is_empty() { "" } else { "." };
            Err(format!("{}{dot}{group} does not implement the scale subresource", kind.resource.plural))
        }
        Err(error) => Err(error.to_string()),
    }
}

/// Whether an answer is about this object.
fn names(status: &kube::core::Status, kind: &Kind, name: &str) -> bool {
    let details = status.details.as_ref();
    details.is_some_and(|details| details.name == name && details.kind == kind.resource.plural)
}

async fn objects(client: &Client, path: &str) -> Listed {
    match client.request::<PartialList>(get(path, METADATA_LIST)).await {
        Ok(list) => Listed::Objects(list.items.into_iter().flatten().map(|item| item.metadata).collect()),
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 405) => Listed::Unserved,
        Err(kube::Error::Api(status)) => Listed::Failed(status.message.clone()),
        Err(error) => Listed::Failed(error.to_string()),
    }
}

/// A request for one path, with an answer of this form.
pub(super) fn get(path: &str, accept: &str) -> Request<Vec<u8>> {
    let request = Request::get(path).header(ACCEPT, accept);
    request.body(Vec::new()).expect("names of objects make a path")
}

/// The text at a field; empty where there is none.
pub(super) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    #[test]
    fn that_a_kind_is_not_served_is_no_word_on_an_object() {
        let check = |details: Value| {
            let status = json!({"status": "Failure", "reason": "NotFound", "code": 404, "details": details});
            names(&serde_json::from_value(status).unwrap(), &Kind::of::<ConfigMap>(), "a")
        };
        assert!(check(json!({"name": "a", "kind": "configmaps"})));
        assert!(!check(json!({})), "the server could not find the requested resource");
        assert!(!check(json!({"name": "b", "kind": "configmaps"})));
        assert!(!check(json!({"name": "a", "kind": "namespaces"})));
    }
}
