//! From the server's bytes to an object as it is kept: without what nobody reads, and no larger than needed.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource;
use kube::core::{DynamicObject, TypeMeta};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use windlass_core::{Kind, ObjectKey};

use super::managed::Ours;
use crate::env::panic_message;

/// What can be cached: all types of `k8s-openapi`, custom resources, `DynamicObject`, `PartialObjectMeta<K>`.
pub trait Cached: Resource + Clone + DeserializeOwned + Serialize + Send + Sync + 'static {}

impl<K: Resource + Clone + DeserializeOwned + Serialize + Send + Sync + 'static> Cached for K {}

/// Changes an object before it is kept: takes out what nobody reads. It must leave name, namespace, uid,
/// resourceVersion and owners alone.
pub type Transform<K> = Arc<dyn Fn(&mut K) + Send + Sync>;

/// Why an object cannot be kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// It does not fit the Rust type.
    #[error("it does not fit the type")]
    Type(#[source] serde_json::Error),
    /// It has no name, or its resourceVersion is no number.
    #[error("its metadata is not that of a stored object")]
    Metadata,
    /// The transform panicked.
    #[error("the transform panicked: {0}")]
    Transform(String),
}

/// An object as it is kept, and what its managed fields said of one manager.
pub(super) struct Decoded<K> {
    pub(super) key: ObjectKey,
    pub(super) object: K,
    pub(super) version: u64,
    pub(super) ours: Ours,
}

/// What decoding depends on.
pub(super) struct Decoder<K> {
    pub(super) kind: Kind,
    pub(super) manager: Arc<str>,
    pub(super) transform: Option<Transform<K>>,
}

impl<K: Cached> Decoder<K> {
    /// An object of a list, or of an event.
    pub(super) fn raw(&self, json: &RawValue) -> Result<Decoded<K>, DecodeError> {
        let object = if K::metadata_api() {
            // `apiVersion` and `kind` would be those of `PartialObjectMetadata`, with every object.
            let part: MetadataPart<&RawValue> =
                serde_json::from_str(json.get()).map_err(DecodeError::Type)?;
            let only = format!("{{\"metadata\":{}}}", part.metadata.get());
            serde_json::from_str(&only)
        } else {
            serde_json::from_str(json.get())
        };
        self.finish(object.map_err(DecodeError::Type)?)
    }

    /// An object as the server answered a write.
    pub(super) fn value(&self, json: &Value) -> Result<Decoded<K>, DecodeError> {
        let object = if K::metadata_api() {
            let mut only = serde_json::Map::new();
            only.insert("metadata".to_owned(), json["metadata"].clone());
            K::deserialize(Value::Object(only))
        } else {
            K::deserialize(json)
        };
        self.finish(object.map_err(DecodeError::Type)?)
    }

    fn finish(&self, mut object: K) -> Result<Decoded<K>, DecodeError> {
        let entries = object.meta_mut().managed_fields.take().unwrap_or_default();
        let ours = Ours::of(entries, &self.manager);
        let meta = object.meta();
        if meta.name.is_none() {
            return Err(DecodeError::Metadata);
        }
        let key = ObjectKey::of(meta);
        let version = meta.resource_version.as_deref().and_then(|version| version.parse().ok());
        let version = version.ok_or(DecodeError::Metadata)?;
        // Items of a list do not say what they are; of a type that does not know either, somebody has to.
        if let Some(object) = (&mut object as &mut dyn Any).downcast_mut::<DynamicObject>() {
            let (api_version, kind) =
                (self.kind.resource.api_version.clone(), self.kind.resource.kind.clone());
            object.types = Some(TypeMeta { api_version, kind });
        }
        if let Some(transform) = &self.transform {
            catch_unwind(AssertUnwindSafe(|| transform(&mut object)))
                .map_err(|panic| DecodeError::Transform(panic_message(&*panic).to_owned()))?;
        }
        // What was read has room to grow in every list and string; a copy has none.
        Ok(Decoded { key, object: object.clone(), version, ours })
    }
}

#[derive(Deserialize)]
struct MetadataPart<T> {
    metadata: T,
}

/// The little that has to be known of an object, whatever else is wrong with it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Head {
    metadata: HeadMeta,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeadMeta {
    name: String,
    #[serde(default)]
    namespace: Option<String>,
    #[serde(default)]
    uid: Option<String>,
    resource_version: String,
}

impl Head {
    pub(super) fn read(json: &RawValue) -> Option<Head> {
        serde_json::from_str(json.get()).ok()
    }

    pub(super) fn key(&self) -> ObjectKey {
        ObjectKey::new(self.metadata.namespace.as_deref(), &self.metadata.name)
    }

    pub(super) fn uid(&self) -> Option<&str> {
        self.metadata.uid.as_deref()
    }

    pub(super) fn version(&self) -> Option<u64> {
        self.metadata.resource_version.parse().ok()
    }

    pub(super) fn reference(&self, kind: &Kind) -> ObjectReference {
        ObjectReference {
            api_version: Some(kind.resource.api_version.clone()),
            kind: Some(kind.resource.kind.clone()),
            name: Some(self.metadata.name.clone()),
            namespace: self.metadata.namespace.clone(),
            uid: self.metadata.uid.clone(),
            resource_version: Some(self.metadata.resource_version.clone()),
            ..ObjectReference::default()
        }
    }
}
