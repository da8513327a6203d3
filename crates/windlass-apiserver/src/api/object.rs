//! Between trees and stored objects.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::conversion;
use super::convert::to_storage;
use super::registry::{Flavor, Resource};
use super::server::Server;
use crate::json::{self, at, object_entry, str_at};
use crate::status::{Result, Status};
use crate::store::{Change, Object, Offsets, Parts};
use crate::{codec, schema};

impl Server {
    /// The tree of a stored object, in the resource's version.
    pub(super) fn load(&self, resource: &Resource, object: &Object) -> Value {
        load(resource, object)
    }

    /// A tree as it will be stored at `revision`, under its own name.
    pub(super) fn seal(&self, resource: &Resource, tree: Value, revision: u64) -> Result<Object> {
        let name = meta_str(&tree, "name").to_owned();
        self.seal_as(resource, &name, tree, revision)
    }

    /// The same under the name that it is asked for by: one that admission has renamed on its way keeps the place that its
    /// writer meant.
    fn seal_as(&self, resource: &Resource, name: &str, tree: Value, revision: u64) -> Result<Object> {
        let (mut tree, filled) = read_back(resource, tree);
        meta_mut(&mut tree).insert("resourceVersion".into(), json!(revision.to_string()));
        let mut tree = match resource.api_version() == resource.storage_api_version {
            true => super::decode::canonical(resource, tree)?,
            false => super::decode::canonical(&self.storage_resource(resource), tree)?,
        };
        if resource.is_custom() {
            tree.sort_all_objects();
        }
        // The reader of bodies, patches and ownership each have limits of their own, which may add up.
        if !json::is_within(&tree, json::DEPTH_MAX) {
            return Err(Status::bad_request(format!("the {} is nested too deep to be kept", resource.kind)));
        }
        let encoded = codec::write(&tree);
        let fields = self.selectable(resource, &tree);
        let parts = Parts {
            namespace: str_at(&tree, &["metadata", "namespace"]),
            name,
            uid: str_at(&tree, &["metadata", "uid"]),
            labels: pairs(at(&tree, &["metadata", "labels"])),
            fields: fields.iter().map(|(label, text)| (label.as_str(), text.as_str())).collect(),
            offsets: Offsets {
                prefix_len: encoded.prefix_len,
                meta: encoded.meta_range,
                revision: encoded.rv_range,
            },
            body: encoded.bytes,
            filled,
        };
        Object::new(parts).map_err(|e| Status::internal(&e.to_string()))
    }

    /// Makes of a custom object what is stored of it: policies and hooks leave fields that its schema does not know, and metadata that
    /// nobody can read.
    pub(super) fn settle(&self, resource: &Resource, tree: &mut Value) -> Result<()> {
        let Flavor::Custom { definition, version, .. } = &resource.flavor else { return Ok(()) };
        if !self.has_webhooks() && !self.policies.change() {
            return Ok(());
        }
        let version = &definition.versions[*version];
        version.prune(tree, &mut Vec::new());
        version.default(tree);
        if resource.api_version() == resource.storage_api_version {
            codec::drop_malformed_meta(schema::builtin(), tree);
            return Ok(());
        }
        // Whoever converts wants to read it.
        codec::canonical_meta(schema::builtin(), "", tree, &mut Vec::new())
            .map_err(|error| Status::new(500, "", error.to_string()))
    }

    /// Stores a tree over the object that is there now, or in its free place; a dry run only shows what it would be.
    ///
    /// A write that changes nothing keeps the revision and wakes nobody: controllers rely on it to come to rest. What
    /// was not written but [filled in](read_back) is written once.
    pub(super) fn put(
        &mut self,
        resource: &Resource,
        current: Option<&Arc<Object>>,
        tree: Value,
        dry_run: bool,
    ) -> Result<Arc<Object>> {
        let name = current.map_or_else(|| meta_str(&tree, "name"), |current| current.name()).to_owned();
        self.put_as(resource, &name, current, tree, dry_run)
    }

    /// The same under the name that it is asked for by.
    pub(super) fn put_as(
        &mut self,
        resource: &Resource,
        name: &str,
        current: Option<&Arc<Object>>,
        tree: Value,
        dry_run: bool,
    ) -> Result<Arc<Object>> {
        // Over another object it is written under the old revision first, so that it can be compared; a commit stamps the
        // new one. What a dry run would create has no revision.
        let revision = match current {
            Some(current) => current.revision(),
            None if dry_run => 0,
            None => self.store.next_revision(),
        };
        let object = self.seal_as(resource, name, tree, revision)?;
        if let Some(current) = current
            && object.body() == current.body()
            && !current.filled()
        {
            return Ok(current.clone());
        }
        if dry_run {
            return Ok(Arc::new(object));
        }
        let change = match current {
            None => Change::Create(object),
            Some(current) => Change::Update { object, expected: current.revision() },
        };
        let event =
            self.store.commit(&resource.storage, change).expect("the state was read in the same step");
        Ok(event.object)
    }

    /// The resource in the version in which it is stored.
    fn storage_resource(&self, resource: &Resource) -> Arc<Resource> {
        let (group, version) = super::registry::split_api_version(&resource.storage_api_version);
        // The version in which a custom kind is stored need not be served.
        let stored = || self.registry.stored(&format!("{}.{group}", resource.plural));
        self.registry
            .find(group, version, &resource.plural)
            .or_else(stored)
            .expect("the storage version of a resource is known")
    }

    /// The values of the fields by which an object can be selected, in whichever of its versions.
    fn selectable(&self, resource: &Resource, stored: &Value) -> Vec<(String, String)> {
        if resource.api_version() == resource.storage_api_version && !resource.has_views {
            return resource
                .fields
                .iter()
                .map(|field| (field.label.to_string(), field.text(stored)))
                .collect();
        }
        let mut out: Vec<(String, String)> = Vec::new();
        for view in self.registry.views(&resource.storage) {
            let tree = super::convert::from_storage(&conversion::sharing(view, resource), stored.clone());
            for field in view
                .fields
                .iter()
                .filter(|field| out.iter().all(|(label, _)| *label != field.label))
                .collect::<Vec<_>>()
            {
                out.push((field.label.to_string(), field.text(&tree)));
            }
        }
        out
    }
}

/// A tree as it is when it is read again in the version in which it is stored, and whether that is more than was written:
/// kube-apiserver fills defaults whenever it decodes a stored object, also for what it cleared before it stored it, and for
/// what the object's writer could not know, who saw another version.
fn read_back(resource: &Resource, tree: Value) -> (Value, bool) {
    match &resource.flavor {
        Flavor::Builtin { hooks, .. } => {
            let mut tree = tree;
            let written = json::fingerprint(&tree);
            (hooks.default)(&mut tree);
            let filled = json::fingerprint(&tree) != written;
            (to_storage(resource, tree), filled)
        }
        Flavor::Custom { definition, .. } => {
            let mut tree = to_storage(resource, tree);
            let filled = definition.storage().is_some_and(|stored| stored.default(&mut tree));
            (tree, filled)
        }
    }
}

/// The tree of a stored object, in the resource's version.
pub(super) fn load(resource: &Resource, object: &Object) -> Value {
    let mut tree: Value = serde_json::from_slice(object.body()).expect("stored bodies are JSON");
    if object.revision() == 0 {
        meta_mut(&mut tree).shift_remove("resourceVersion");
    }
    super::convert::from_storage(resource, tree)
}

/// Whether stored bytes can be served for this resource as they are.
pub(super) fn serves_stored(resource: &Resource, object: &Object) -> bool {
    !resource.converted && object.revision() >= resource.since && object.revision() > 0
}

/// `metadata`, which every object has.
pub(super) fn meta_mut(tree: &mut Value) -> &mut Map<String, Value> {
    let object = tree.as_object_mut().expect("objects are JSON objects");
    object_entry(object, "metadata")
}

/// The spec, which is put there if there is none.
pub(super) fn spec_mut(tree: &mut Value) -> &mut Map<String, Value> {
    let tree = tree.as_object_mut().expect("objects are JSON objects");
    crate::json::object_entry(tree, "spec")
}

/// The string at `metadata.<key>`; empty if there is none.
pub(super) fn meta_str<'a>(tree: &'a Value, key: &str) -> &'a str {
    str_at(tree, &["metadata", key])
}

/// The finalizers of an object.
pub(super) fn finalizers(tree: &Value) -> Vec<&str> {
    let list = at(tree, &["metadata", "finalizers"]).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

fn pairs(map: Option<&Value>) -> Vec<(&str, &str)> {
    let entries = map.and_then(Value::as_object).into_iter().flatten();
    entries.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default())).collect()
}
