//! All objects at one revision.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use kube::Resource;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_apiserver::api::registry::Registry;
use windlass_apiserver::api::{Server, registry, write_yaml};
use windlass_apiserver::store::{Kind, Object, Snapshot, Store, Unreadable};

/// All objects at one revision: a value that no later write changes.
pub struct World {
    revision: u64,
    registry: Registry,
    kinds: BTreeMap<Kind, Snapshot>,
}

impl World {
    pub(crate) fn now(server: &Server) -> World {
        let store = server.store();
        let kinds = store.kinds().map(|kind| (kind.clone(), store.list(kind))).collect();
        World { revision: store.revision(), registry: server.registry().clone(), kinds }
    }

    pub(crate) fn at(mut server: Server, revision: u64) -> Result<World, Unreadable> {
        let kinds: Vec<Kind> = server.store().kinds().cloned().collect();
        let kinds = kinds.into_iter().map(|kind| Ok((kind.clone(), server.store_mut().at(&kind, revision)?)));
        let kinds = kinds.collect::<Result<_, Unreadable>>()?;
        Ok(World { revision, registry: server.registry().clone(), kinds })
    }

    /// The revision.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// An object. The namespace of objects that live in none is empty.
    pub fn get<K>(&self, namespace: &str, name: &str) -> Option<K>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let resource = resource_of::<K>(&self.registry)?;
        let object = self.kinds.get(&resource.storage)?.get(&Store::key(namespace, name))?;
        read(&resource, object)
    }

    /// The objects of a kind, of one namespace or of all, in the order of their keys.
    pub fn list<K>(&self, namespace: Option<&str>) -> Vec<K>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let Some(resource) = resource_of::<K>(&self.registry) else { return Vec::new() };
        let objects = self.kinds.get(&resource.storage);
        objects
            .into_iter()
            .flat_map(|all| all.range(namespace, None))
            .filter_map(|o| read(&resource, o))
            .collect()
    }

    /// All objects as YAML, sorted by kind, namespace and name, without their managed fields.
    pub fn dump(&self) -> String {
        self.dump_after(0)
    }

    /// The objects that were written after a revision, as [`World::dump`] shows them: what a test made, and not what
    /// every cluster has.
    pub fn dump_after(&self, revision: u64) -> String {
        let mut out = String::new();
        for (kind, objects) in &self.kinds {
            for object in objects.range(None, None).filter(|object| object.revision() > revision) {
                let divider = if out.is_empty() { "" } else { "---\n" };
                write!(out, "{divider}# {kind} {}\n{}", object.key(), yaml(object))
                    .expect("a String takes all");
            }
        }
        out
    }
}

/// A stored object as people read it.
pub(crate) fn yaml(object: &Object) -> String {
    let mut tree = tree(object);
    if let Some(metadata) = tree["metadata"].as_object_mut() {
        metadata.shift_remove("managedFields");
    }
    String::from_utf8_lossy(&write_yaml(&tree)).into_owned()
}

pub(crate) fn tree(object: &Object) -> Value {
    serde_json::from_slice(object.body()).unwrap_or_default()
}

pub(crate) fn resource_of<K: Resource<DynamicType = ()>>(
    registry: &Registry,
) -> Option<Arc<registry::Resource>> {
    registry.by_kind(&json!({"apiVersion": K::api_version(&()), "kind": K::kind(&())}))
}

/// A stored object as a type. Versions of a kind differ in nothing but their name where there is no conversion.
pub(crate) fn read<K: DeserializeOwned>(resource: &registry::Resource, object: &Object) -> Option<K> {
    let mut tree = tree(object);
    tree["apiVersion"] = resource.api_version().into();
    serde_json::from_value(tree).ok()
}
