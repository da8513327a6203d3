//! What a step wants.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use serde::Serialize;
use serde_json::Value;
use windlass::Object;
use windlass::events::{Event, reference};
use windlass_core::{Kind, ObjectKey};

use super::LookUp;

/// What should be written, in this order, and when to look again.
///
/// The first write that fails ends the turn: what follows may stand on it.
#[derive(Debug, Default)]
pub struct Turn {
    /// What has to be known first. Where there is something, nothing else of this turn counts: the step is taken again with
    /// the answers in its view.
    pub look_ups: Vec<LookUp>,
    /// The writes.
    pub writes: Vec<Write>,
    /// The latest time of the next look.
    pub wake_at: Option<Timestamp>,
    /// Other keys that have to be looked at once the writes are done.
    pub wake: Vec<ObjectKey>,
    /// Kinds that have to be watched from now on: told to [`Controller::watch`](super::Controller::watch).
    pub watch: Vec<Kind>,
}

/// One request to the server.
#[derive(Debug)]
pub enum Write {
    /// Creates an object.
    Create {
        /// Its kind.
        kind: Kind,
        /// The object.
        object: Value,
        /// What is told once it is there: `{name}` in the note is the name that it got.
        told: Option<Box<Told>>,
    },
    /// Replaces an object, of the resourceVersion that it carries.
    Replace {
        /// Its kind.
        kind: Kind,
        /// `status`, `finalize` and the like; empty for the object itself.
        subresource: &'static str,
        /// The object.
        object: Value,
    },
    /// Merges a patch into an object.
    Patch {
        /// Its kind.
        kind: Kind,
        /// Which one.
        key: ObjectKey,
        /// As in [`Write::Replace`].
        subresource: &'static str,
        /// A merge patch; with `metadata.uid` or `metadata.resourceVersion` it is of that object only.
        patch: Value,
    },
    /// Posts to a subresource: a binding, an eviction.
    Post {
        /// The kind of the object.
        kind: Kind,
        /// The object.
        key: ObjectKey,
        /// The subresource.
        subresource: &'static str,
        /// What is posted.
        body: Value,
    },
    /// Deletes an object.
    Delete(Delete),
    /// Deletes all objects of a kind in a namespace, and what depends on them after them.
    DeleteAll {
        /// The kind.
        kind: Kind,
        /// The namespace.
        namespace: String,
    },
    /// Tells of something that happened.
    Event(Box<Told>),
}

/// Something that happened to an object.
#[derive(Clone, Debug)]
pub struct Told {
    /// To which object.
    pub regarding: ObjectReference,
    /// What.
    pub event: Event,
}

/// A deletion.
#[derive(Clone, Debug)]
pub struct Delete {
    /// The kind.
    pub kind: Kind,
    /// Which one.
    pub key: ObjectKey,
    /// Only the object with this uid.
    pub uid: Option<String>,
    /// Only the object of this resourceVersion.
    pub version: Option<String>,
    /// What becomes of its dependents; the kind's default where it is not said.
    pub propagation: Option<Propagation>,
    /// How long a pod has to end; its own choice where it is not said.
    pub grace: Option<i64>,
}

/// What becomes of the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They stay, without their owner.
    Orphan,
    /// They are deleted after it.
    Background,
    /// They are deleted before it.
    Foreground,
}

impl Propagation {
    /// As the API calls it.
    pub fn as_str(self) -> &'static str {
        match self {
            Propagation::Orphan => "Orphan",
            Propagation::Background => "Background",
            Propagation::Foreground => "Foreground",
        }
    }
}

impl Turn {
    /// Nothing to do.
    pub fn nothing() -> Turn {
        Turn::default()
    }

    /// Asks the server something first.
    pub fn look_up(&mut self, what: LookUp) {
        self.look_ups.push(what);
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Creates an object.
    pub fn create<K: Object>(&mut self, object: &K) {
        self.writes.push(Write::Create { kind: Kind::of::<K>(), object: tree(object), told: None });
    }

    /// Creates an object, and tells of it once it is there: `{name}` in the event's note is the name that it got.
    pub fn create_and_tell<K: Object, On: Object>(&mut self, object: &K, on: &On, event: Event) {
        let told = Some(Box::new(Told { regarding: reference(&Kind::of::<On>(), on.meta()), event }));
        self.writes.push(Write::Create { kind: Kind::of::<K>(), object: tree(object), told });
    }

    /// Replaces an object, unless somebody else has changed it since.
    pub fn replace<K: Object>(&mut self, object: &K) {
        self.writes.push(Write::Replace { kind: Kind::of::<K>(), subresource: "", object: tree(object) });
    }

    /// Replaces the status of an object, unless somebody else has changed the object since.
    pub fn status<K: Object>(&mut self, object: &K) {
        let object = tree(object);
        self.writes.push(Write::Replace { kind: Kind::of::<K>(), subresource: "status", object });
    }

    /// Merges a patch into an object.
    pub fn patch<K: Object>(&mut self, key: &ObjectKey, patch: Value) {
        self.writes.push(Write::Patch { kind: Kind::of::<K>(), key: key.clone(), subresource: "", patch });
    }

    /// Deletes exactly this object, and not one that has its name since.
    pub fn delete<K: Object>(&mut self, object: &K) {
        self.writes.push(Write::Delete(Delete {
            kind: Kind::of::<K>(),
            key: ObjectKey::of(object.meta()),
            uid: object.meta().uid.clone(),
            version: None,
            propagation: None,
            grace: None,
        }));
    }

    /// Tells of something that happened to an object.
    pub fn event<K: Object>(&mut self, object: &K, event: Event) {
        let regarding = reference(&Kind::of::<K>(), object.meta());
        self.writes.push(Write::Event(Box::new(Told { regarding, event })));
    }

    /// Look again at this time at the latest.
    pub fn wake_at(&mut self, time: Timestamp) {
        self.wake_at = Some(self.wake_at.map_or(time, |earlier| earlier.min(time)));
    }
}

/// An object as it is sent. Kubernetes' types know how to write themselves.
fn tree<K: Serialize>(object: &K) -> Value {
    serde_json::to_value(object).expect("an object of the API is JSON")
}
