//! What a step sees.

use std::sync::Arc;

use serde_json::Value;
use windlass::Object;
use windlass::cache::{Cache, ReadError};
use windlass_core::{Kind, ObjectKey};

use super::look::Answers;
use super::wiring::BY_CONTROLLER;
use super::{Kinds, Listed, Looked, Scaled};

/// The objects that the controllers watch, with their own writes already in them.
///
/// # Panics
/// Reads of a kind that the controller did not [declare](super::Controller::declare): a mistake in its code, which the
/// runner catches and tells.
pub struct View<'a> {
    cache: &'a Cache,
    refused: &'a [Refusal],
    answers: &'a Answers,
    /// Whether some kinds may not have been listed yet.
    partial: bool,
}

/// A write that the server refused for good: not a conflict, and not a server that is away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What was tried: `create`, `update`, `patch`, `post`, `delete`.
    pub verb: &'static str,
    /// The kind of the object.
    pub kind: String,
    /// Its name, or the prefix of one that is generated.
    pub name: String,
    /// The HTTP status.
    pub code: u16,
    /// The server's reason, such as `Forbidden`.
    pub reason: String,
    /// The server's words.
    pub message: String,
}

impl Refusal {
    /// Whether the server takes nothing new for the namespace, because that is being deleted.
    pub(crate) fn is_of_an_ending_namespace(&self) -> bool {
        self.code == 403 && self.message.ends_with("because it is being terminated")
    }
}

impl<'a> View<'a> {
    pub(crate) fn new(cache: &'a Cache, refused: &'a [Refusal], answers: &'a Answers) -> View<'a> {
        View { cache, refused, answers, partial: false }
    }

    /// A view for who is told of changes, also before all kinds have been listed: what is not known yet is not there. Its
    /// own change will be told.
    pub(crate) fn partial(cache: &'a Cache, answers: &'a Answers) -> View<'a> {
        View { cache, refused: &[], answers, partial: true }
    }

    /// What the server itself says of an object, where the step has [asked](super::LookUp::Object).
    pub fn looked(&self, kind: &Kind, key: &ObjectKey) -> Looked<'a> {
        self.answers.object(kind, key)
    }

    /// What the server itself says of a collection, where the step has [asked](super::LookUp::Objects).
    pub fn listed(&self, kind: &Kind, namespace: Option<&str>) -> Option<&'a Listed> {
        self.answers.objects(kind, namespace)
    }

    /// How many replicas an object wants, where the step has [asked](super::LookUp::Scale).
    ///
    /// # Errors
    /// Why the server could not say.
    pub fn scale(&self, kind: &Kind, key: &ObjectKey) -> Result<Scaled<'a>, String> {
        self.answers.scale(kind, key)
    }

    /// A signed token that says this, where the step has [asked](super::LookUp::Token).
    pub fn token(&self, claims: &Value) -> Option<&'a str> {
        self.answers.token(claims)
    }

    /// The kinds that the server serves, where the step has [asked](super::LookUp::Kinds).
    pub fn kinds(&self) -> Option<&'a Arc<Kinds>> {
        self.answers.kinds()
    }

    /// What the server refused in the last turn of this key. A step that sees some only reports them.
    pub fn refused(&self) -> &'a [Refusal] {
        self.refused
    }

    /// An object.
    pub fn get<K: Object>(&self, key: &ObjectKey) -> Option<Arc<K>> {
        self.read(self.cache.get(key))
    }

    /// The objects of one namespace or of all, in the order of their keys.
    pub fn list<K: Object>(&self, namespace: Option<&str>) -> Vec<Arc<K>> {
        self.read(self.cache.list(namespace))
    }

    /// The objects whose controller has this uid, in the order of their keys.
    pub fn children<K: Object>(&self, uid: &str) -> Vec<Arc<K>> {
        self.by_index(BY_CONTROLLER, uid)
    }

    /// The objects that no controller owns, of one namespace.
    pub fn orphans<K: Object>(&self, namespace: &str) -> Vec<Arc<K>> {
        self.by_index(BY_CONTROLLER, &super::wiring::nobody_in(namespace))
    }

    /// The objects that an index has under a value, in the order of their keys.
    pub fn by_index<K: Object>(&self, index: &str, value: &str) -> Vec<Arc<K>> {
        self.read(self.cache.by_index(index, value))
    }

    /// The cache itself, for kinds that have no Rust type.
    pub fn cache(&self) -> &'a Cache {
        self.cache
    }

    fn read<T: Default>(&self, answer: Result<T, ReadError>) -> T {
        match answer {
            Ok(found) => found,
            Err(ReadError::NotSynced { .. }) if self.partial => T::default(),
            Err(error) => panic!("a controller reads what it did not declare: {error}"),
        }
    }
}
