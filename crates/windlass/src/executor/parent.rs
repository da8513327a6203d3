//! The object that a plan is for.

use kube::Resource;
use serde::Serialize;
use serde_json::Value;
use windlass_core::{Kind, ObjectKey};

use crate::write::Target;

/// The object that a plan is for, as it was when it was planned.
#[derive(Clone, Debug, PartialEq)]
pub struct Parent {
    /// Its kind.
    pub kind: Kind,
    /// Where it is.
    pub key: ObjectKey,
    /// Which one of that name.
    pub uid: String,
    /// Which version of it.
    pub resource_version: String,
    /// Which version of its spec.
    pub generation: Option<i64>,
    /// What has to happen before it may go.
    pub finalizers: Vec<String>,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Its status; null where it has none.
    pub status: Value,
}

impl Parent {
    /// What an executor has to know of an object.
    pub fn new<K: Resource + Serialize>(kind: Kind, object: &K) -> Parent {
        let metadata = object.meta();
        let mut value = serde_json::to_value(object).unwrap_or_default();
        Parent {
            kind,
            key: ObjectKey::of(metadata),
            uid: metadata.uid.clone().unwrap_or_default(),
            resource_version: metadata.resource_version.clone().unwrap_or_default(),
            generation: metadata.generation,
            finalizers: metadata.finalizers.clone().unwrap_or_default(),
            deleting: metadata.deletion_timestamp.is_some(),
            status: value.get_mut("status").map(Value::take).unwrap_or_default(),
        }
    }

    /// This version of it, to be written.
    pub(super) fn target(&self) -> Target<'_> {
        let Parent { kind, key, uid, resource_version, .. } = self;
        Target { kind, key, uid, resource_version }
    }

    /// Whether a plan for this is a plan for the object as the server has it: the same one, with the same spec, which is
    /// being deleted or is not.
    pub(super) fn is_planned_for(&self, live: &Value) -> bool {
        let metadata = &live["metadata"];
        metadata["uid"] == self.uid
            && metadata["generation"].as_i64() == self.generation
            && metadata["deletionTimestamp"].is_null() != self.deleting
    }
}
