//! The life of custom resource definitions: served when their names are accepted, gone when their objects are.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::flows;
use super::object::{finalizers, meta_mut, meta_str};
use super::registry::Resource;
use super::server::{Call, Server};
use crate::codec::scalar::time::{self, Precision};
use crate::crd::{self, Definition, Names};
use crate::json::{object_entry, str_at};
use crate::managed;
use crate::status::Result;
use crate::store::{Kind, Object};

const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

impl Server {
    /// Serves all definitions of the store: after a restart.
    pub(super) fn serve_definitions(&mut self) {
        let kind = Kind::new("apiextensions.k8s.io", "customresourcedefinitions");
        let stored = self.store.list(&kind);
        for object in stored.range(None, None) {
            let tree: Value = serde_json::from_slice(object.body()).expect("stored bodies are JSON");
            self.serve(&tree, object.revision());
        }
    }

    fn serve(&mut self, tree: &Value, revision: u64) {
        let name = meta_str(tree, "name");
        if !crd::is_condition_true(tree, "Established") {
            return;
        }
        match Definition::compile(tree) {
            Ok(definition) => self.registry.serve(name, definition, revision),
            // It was valid when it was stored; a server that no longer takes it must not serve it half.
            Err(_) => self.registry.withdraw(name),
        }
    }

    /// What follows from a write: a definition is established and served, flow schemas know their levels.
    pub(super) fn after_write(
        &mut self,
        resource: &Arc<Resource>,
        object: &Arc<Object>,
        call: &Call<'_>,
    ) -> Result<()> {
        if resource.group == flows::GROUP {
            return self.settle_flows(call.now);
        }
        if !resource.is_definitions() {
            return Ok(());
        }
        let mut tree = self.load(resource, object);
        let group = str_at(&tree, &["spec", "group"]).to_owned();
        let name = meta_str(&tree, "name").to_owned();
        let accepted: Vec<Names> = self
            .registry
            .definitions()
            .filter(|(other, definition)| *other != name && definition.group == group)
            .map(|(_, definition)| definition.names.clone())
            .collect();
        let before = tree.clone();
        crd::establish(&mut tree, &accepted.iter().collect::<Vec<_>>(), call.now);
        // The controllers that do this in kube-apiserver write the status under its name.
        let (types, root) = resource.types();
        let write = managed::Write {
            manager: "kube-apiserver",
            api_version: &resource.api_version(),
            kind: &resource.kind,
            subresource: "status",
            now: call.now,
            reset: managed::Reset::Only(&[&["status"]]),
        };
        managed::update(&managed::Schema::builtin(types, root), Some(&before), &mut tree, &write);
        managed::settle(&before, &mut tree);
        let object = self.put(resource, Some(object), tree, false)?;
        let tree = self.load(resource, &object);
        self.serve(&tree, object.revision());
        Ok(())
    }

    /// What follows from a removal: the last object of a definition that is going takes it along.
    pub(super) fn after_delete(
        &mut self,
        resource: &Arc<Resource>,
        object: &Arc<Object>,
        call: &mut Call<'_>,
    ) -> Result<()> {
        if resource.group == flows::GROUP {
            return self.settle_flows(call.now);
        }
        if resource.is_definitions() {
            self.registry.withdraw(object.name());
            return Ok(());
        }
        if !resource.is_custom() || !self.store.list(&resource.storage).is_empty() {
            return Ok(());
        }
        let name = format!("{}.{}", resource.plural, resource.group);
        let definitions = self.registry.definitions_resource();
        let Some(definition) = self.store.get(&definitions.storage, "", &name).cloned() else {
            return Ok(());
        };
        let tree = self.load(&definitions, &definition);
        if meta_str(&tree, "deletionTimestamp").is_empty() {
            return Ok(());
        }
        self.finish_definition(&definitions, &definition, tree, call)
    }

    /// Deletes a definition: first its objects go, then it does.
    pub(super) fn delete_definition(
        &mut self,
        call: &mut Call<'_>,
        definitions: &Arc<Resource>,
        object: &Arc<Object>,
        mut tree: Value,
        dry_run: bool,
    ) -> Result<Arc<Object>> {
        if meta_str(&tree, "deletionTimestamp").is_empty() {
            let meta = meta_mut(&mut tree);
            meta.insert("deletionTimestamp".into(), json!(time::format(call.now, Precision::Seconds)));
        }
        let mut names: Vec<String> = finalizers(&tree).into_iter().map(str::to_owned).collect();
        if !names.iter().any(|name| name == CLEANUP) {
            names.push(CLEANUP.into());
            meta_mut(&mut tree).insert("finalizers".into(), json!(names));
        }
        terminate(&mut tree, call.now);
        let deleting = self.put(definitions, Some(object), tree.clone(), dry_run)?;
        if dry_run {
            return Ok(deleting);
        }
        let (group, plural) =
            (str_at(&tree, &["spec", "group"]), str_at(&tree, &["spec", "names", "plural"]));
        // As they are stored: nobody has to be asked how to convert what goes.
        if let Some(resource) = self.registry.stored(deleting.name()) {
            self.delete_all(call, &resource)?;
        }
        if self.store.list(&Kind::new(group, plural)).is_empty()
            && let Some(current) = self.store.get(&definitions.storage, "", deleting.name()).cloned()
        {
            let tree = self.load(definitions, &current);
            self.finish_definition(definitions, &current, tree, call)?;
        }
        Ok(deleting)
    }

    fn finish_definition(
        &mut self,
        definitions: &Arc<Resource>,
        object: &Arc<Object>,
        mut tree: Value,
        call: &mut Call<'_>,
    ) -> Result<()> {
        let rest: Vec<String> =
            finalizers(&tree).into_iter().filter(|name| *name != CLEANUP).map(str::to_owned).collect();
        if rest.is_empty() {
            return self.remove(definitions, object, call).map(drop);
        }
        meta_mut(&mut tree).insert("finalizers".into(), json!(rest));
        self.put(definitions, Some(object), tree, false)?;
        Ok(())
    }
}

/// Says in the status that the definition is going.
fn terminate(tree: &mut Value, now: Timestamp) {
    let root = tree.as_object_mut().expect("objects are JSON objects");
    let status = object_entry(root, "status");
    let mut conditions = status.get("conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    conditions.retain(|condition| condition["type"] != "Terminating");
    conditions.push(json!({
        "type": "Terminating",
        "status": "True",
        "lastTransitionTime": time::format(now, Precision::Seconds),
        "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    }));
    status.insert("conditions".into(), Value::Array(conditions));
}
