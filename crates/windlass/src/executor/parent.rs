//! The object that a plan is for.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource;
use serde::Serialize;
use serde_json::Value;
use windlass_core::{Kind, ObjectKey};

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

    /// Whether a plan for this is a plan for the object as the server has it: the same one, with the same spec, which is
    /// being deleted or is not.
    pub(super) fn is_planned_for(&self, live: &Value) -> bool {
        let metadata = &live["metadata"];
        metadata["uid"] == self.uid
            && metadata["generation"].as_i64() == self.generation
            && metadata["deletionTimestamp"].is_null() != self.deleting
    }

    /// Whether an object at a place can have this as its owner. The garbage collector takes an owner in another namespace
    /// for one that is gone, and deletes what it owns.
    pub(super) fn can_own(&self, child: &ObjectKey) -> bool {
        self.key.namespace().is_none() || self.key.namespace() == child.namespace()
    }

    /// The reference that a child has to this.
    pub(super) fn reference(&self) -> OwnerReference {
        OwnerReference {
            api_version: self.kind.resource.api_version.clone(),
            kind: self.kind.resource.kind.clone(),
            name: self.key.name().to_owned(),
            uid: self.uid.clone(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }
    }
}
