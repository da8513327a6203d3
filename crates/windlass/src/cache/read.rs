//! Reading from the cache.

use std::any::{Any, TypeId, type_name};
use std::collections::BTreeMap;
use std::sync::Arc;

use kube::Resource;
use kube::core::DynamicObject;
use serde_json::Value;
use windlass_core::{Kind, ObjectKey};

use super::any::{AnyInformer, ObjectMetadata};
use super::decode::Cached;
use super::health::State;
use super::informer::{Informer, Inner};
use super::registry::Cache;
use super::store::Span;

/// Why something cannot be read from the cache.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// Nobody declared that the kind is read. The cache never starts to watch something on its own.
    #[error("{kind} is read, and nothing declares that: add `{line}` to the controller")]
    NotDeclared {
        /// The kind.
        kind: String,
        /// The line that is missing.
        line: String,
    },
    /// The kind is declared, and not for this namespace.
    #[error("{kind} is not watched in namespace {namespace:?}")]
    OutOfScope {
        /// The kind.
        kind: String,
        /// The namespace.
        namespace: String,
    },
    /// The first list is not complete.
    #[error("{kind} is not there yet: {why}")]
    NotSynced {
        /// The kind.
        kind: String,
        /// What it is waiting for.
        why: String,
    },
    /// No index of that name is declared.
    #[error("{kind} has no index {name:?}: add it where the kind is declared")]
    NoSuchIndex {
        /// The kind.
        kind: String,
        /// The name.
        name: String,
    },
}

/// Typed reads. A kind that is declared more than once is read from where all of its objects are, before where some are.
impl Cache {
    /// An object.
    ///
    /// # Errors
    /// When it cannot be told whether it is there.
    pub fn get<K>(&self, key: &ObjectKey) -> Result<Option<Arc<K>>, ReadError>
    where
        K: Cached + Resource<DynamicType = ()>,
        K::Scope: 'static,
    {
        self.get_of(&Kind::of::<K>(), key)
    }

    /// The objects of one namespace, or of all that are watched, in the order of their keys.
    ///
    /// # Errors
    /// When it cannot be told whether these are all.
    pub fn list<K>(&self, namespace: Option<&str>) -> Result<Vec<Arc<K>>, ReadError>
    where
        K: Cached + Resource<DynamicType = ()>,
        K::Scope: 'static,
    {
        self.list_of(&Kind::of::<K>(), namespace)
    }

    /// The objects that an index has under a value, in the order of their keys.
    ///
    /// # Errors
    /// When it cannot be told whether these are all.
    pub fn by_index<K>(&self, name: &str, value: &str) -> Result<Vec<Arc<K>>, ReadError>
    where
        K: Cached + Resource<DynamicType = ()>,
        K::Scope: 'static,
    {
        self.by_index_of(&Kind::of::<K>(), name, value)
    }

    /// [`Cache::get`] for types that do not know their kind.
    ///
    /// # Errors
    /// As there.
    pub fn get_of<K: Cached>(&self, kind: &Kind, key: &ObjectKey) -> Result<Option<Arc<K>>, ReadError> {
        let from = readable(self.informers_of::<K>(kind)?, kind, key.namespace())?;
        Ok(typed::<K>(from).find_map(|informer| informer.get(key)))
    }

    /// [`Cache::list`] for types that do not know their kind.
    ///
    /// # Errors
    /// As there.
    pub fn list_of<K: Cached>(&self, kind: &Kind, namespace: Option<&str>) -> Result<Vec<Arc<K>>, ReadError> {
        let from = readable(self.informers_of::<K>(kind)?, kind, namespace)?;
        Ok(union(typed::<K>(from).map(|informer| informer.list(namespace))))
    }

    /// [`Cache::by_index`] for types that do not know their kind.
    ///
    /// # Errors
    /// As there.
    pub fn by_index_of<K: Cached>(
        &self,
        kind: &Kind,
        name: &str,
        value: &str,
    ) -> Result<Vec<Arc<K>>, ReadError> {
        let mut all = self.informers_of::<K>(kind)?;
        all.retain(|informer| informer.has_index(name));
        if all.is_empty() {
            return Err(ReadError::NoSuchIndex { kind: kind.to_string(), name: name.to_owned() });
        }
        let from = readable(all, kind, None)?;
        Ok(union(typed::<K>(from).filter_map(|informer| informer.by_index(name, value))))
    }

    fn informers_of<K: Cached>(&self, kind: &Kind) -> Result<Vec<Arc<dyn AnyInformer>>, ReadError> {
        let mut all = self.informers();
        all.retain(|informer| informer.kind() == kind && informer.holds() == TypeId::of::<K>());
        declared(all, kind, || {
            let name = short(type_name::<K>());
            if TypeId::of::<K>() == TypeId::of::<DynamicObject>() {
                ".reads_dynamic(kind)".to_owned()
            } else if K::metadata_api() {
                let of = name.strip_prefix("PartialObjectMeta<").and_then(|rest| rest.strip_suffix('>'));
                format!(".reads_metadata::<{}>()", of.unwrap_or(&name))
            } else {
                format!(".reads::<{name}>()")
            }
        })
    }
}

/// Reads without a type, of kinds that were declared as [owned](super::Declared::owned).
impl Cache {
    /// The objects that a controller owns, in the order of their keys.
    ///
    /// # Errors
    /// When it cannot be told whether these are all.
    pub fn children_of(&self, kind: &Kind, owner_uid: &str) -> Result<Vec<ObjectMetadata>, ReadError> {
        let from = readable(self.owned(kind)?, kind, None)?;
        let all = from.iter().filter_map(|informer| informer.children_of(owner_uid)).flatten();
        let by_key: BTreeMap<_, _> = all.map(|child| (child.key.clone(), child)).collect();
        Ok(by_key.into_values().collect())
    }

    /// An object's metadata.
    ///
    /// # Errors
    /// When it cannot be told whether it is there.
    pub fn metadata(&self, kind: &Kind, key: &ObjectKey) -> Result<Option<ObjectMetadata>, ReadError> {
        let from = readable(self.owned(kind)?, kind, key.namespace())?;
        Ok(from.iter().find_map(|informer| informer.metadata(key)))
    }

    /// An object as JSON, and the set of fields that we [applied](Cache::managed) to it: both of one version.
    ///
    /// # Errors
    /// When it cannot be told whether it is there.
    pub fn value(&self, kind: &Kind, key: &ObjectKey) -> Result<Option<(Value, Option<Value>)>, ReadError> {
        let from = readable(self.owned(kind)?, kind, key.namespace())?;
        Ok(from.iter().find_map(|informer| informer.value(key)))
    }

    /// The set of fields that we applied to an object, as `fieldsV1` has it; `None` if we never did.
    ///
    /// # Errors
    /// When it cannot be told whether the object is there.
    pub fn managed(&self, kind: &Kind, key: &ObjectKey) -> Result<Option<Value>, ReadError> {
        let from = readable(self.owned(kind)?, kind, key.namespace())?;
        Ok(from.iter().find_map(|informer| informer.managed(key)))
    }

    fn owned(&self, kind: &Kind) -> Result<Vec<Arc<dyn AnyInformer>>, ReadError> {
        let mut all = self.informers();
        all.retain(|informer| informer.kind() == kind && informer.is_owned());
        declared(all, kind, || format!(".owns::<{}>()", kind.resource.kind))
    }
}

fn declared(
    informers: Vec<Arc<dyn AnyInformer>>,
    kind: &Kind,
    line: impl FnOnce() -> String,
) -> Result<Vec<Arc<dyn AnyInformer>>, ReadError> {
    match informers.is_empty() {
        true => Err(ReadError::NotDeclared { kind: kind.to_string(), line: line() }),
        false => Ok(informers),
    }
}

/// Which informers to ask: one that has everything there is, or all that have a part of it.
fn readable(
    mut informers: Vec<Arc<dyn AnyInformer>>,
    kind: &Kind,
    namespace: Option<&str>,
) -> Result<Vec<Arc<dyn AnyInformer>>, ReadError> {
    let span = Span::of(namespace);
    if let Some(namespace) = namespace {
        informers.retain(|informer| informer.covers(&span));
        if informers.is_empty() {
            let namespace = namespace.to_owned();
            return Err(ReadError::OutOfScope { kind: kind.to_string(), namespace });
        }
    }
    if let Some(whole) = informers.iter().position(|one| one.filter().is_all() && one.covers(&span)) {
        informers = vec![informers.swap_remove(whole)];
    }
    match informers.iter().find(|informer| !informer.is_synced(&span)) {
        Some(waiting) => Err(ReadError::NotSynced { kind: kind.to_string(), why: why(&**waiting) }),
        None => Ok(informers),
    }
}

/// What an informer is waiting for.
fn why(informer: &dyn AnyInformer) -> String {
    let health = informer.health();
    if health.is_empty() {
        return "the operator has not started".to_owned();
    }
    let failing = health.into_iter().find_map(|health| match health.state {
        State::Failing { error, .. } => Some(error),
        _ => None,
    });
    failing.unwrap_or_else(|| "the first list is not complete".to_owned())
}

fn typed<K: Cached>(informers: Vec<Arc<dyn AnyInformer>>) -> impl Iterator<Item = Informer<K>> {
    let any = informers.into_iter().map(|informer| informer as Arc<dyn Any + Send + Sync>);
    any.filter_map(|any| any.downcast::<Inner<K>>().ok()).map(Informer::from_inner)
}

/// Several lists as one, in the order of their keys.
fn union<K: Cached>(mut lists: impl Iterator<Item = Vec<Arc<K>>>) -> Vec<Arc<K>> {
    let first = lists.next().unwrap_or_default();
    let Some(second) = lists.next() else { return first };
    let all = first.into_iter().chain(second).chain(lists.flatten());
    let by_key: BTreeMap<_, _> = all.map(|object| (ObjectKey::of(object.meta()), object)).collect();
    by_key.into_values().collect()
}

/// A type's name without the modules that it and its parameters are in.
fn short(name: &str) -> String {
    let parts = name.split_inclusive(['<', '>', ',', ' ']);
    parts.map(|part| part.rsplit_once("::").map_or(part, |(_, last)| last)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_declaration_names_the_line_to_add() {
        use k8s_openapi::api::core::v1::ConfigMap;
        use kube::core::PartialObjectMeta;
        let cache = Cache::new("test");
        let key = ObjectKey::namespaced("default", "one");
        let error = cache.get::<ConfigMap>(&key).unwrap_err();
        let said =
            "ConfigMap is read, and nothing declares that: add `.reads::<ConfigMap>()` to the controller";
        assert_eq!(error.to_string(), said);
        let error = cache.list::<PartialObjectMeta<ConfigMap>>(None).unwrap_err();
        assert!(error.to_string().contains("`.reads_metadata::<ConfigMap>()`"), "{error}");
        let error = cache.list_of::<DynamicObject>(&Kind::of::<ConfigMap>(), None).unwrap_err();
        assert!(error.to_string().contains("`.reads_dynamic(kind)`"), "{error}");
        let error = cache.children_of(&Kind::of::<ConfigMap>(), "uid").unwrap_err();
        assert!(error.to_string().contains("`.owns::<ConfigMap>()`"), "{error}");
    }
}
