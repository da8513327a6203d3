//! The gates that stand before a write for every kind: namespaces come and go in order.

use std::sync::LazyLock;

use serde_json::Value;

use super::object::meta_str;
use super::registry::{Flavor, Resource};
use super::server::{Call, Server};
use crate::kinds::{Context, World};
use crate::status::{Result, Status};
use crate::store::Kind;

/// What namespaces are stored as.
static NAMESPACES: LazyLock<Kind> = LazyLock::new(|| Kind::new("", "namespaces"));

/// Namespaces that a cluster cannot be without.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

impl Server {
    /// What hooks may know of a request.
    pub(super) fn context<'a>(&'a self, call: &'a Call<'_>, resource: &'a Resource) -> Context<'a> {
        let (types, root) = resource.types();
        Context {
            now: call.now,
            subresource: &call.target.subresource,
            group: &resource.group,
            version: &resource.version,
            kind: &resource.kind,
            namespaced: resource.namespaced,
            resource: &resource.plural,
            user: &call.request.user.name,
            groups: &call.request.user.groups,
            uid: &call.request.user.uid,
            extra: &call.request.user.extra,
            types,
            root,
            dry_run: !call.query.all("dryRun").is_empty(),
            noted: call.noted,
            world: self,
        }
    }

    /// What the admission plugins do to objects of built-in kinds.
    pub(super) fn admit(
        &self,
        call: &Call<'_>,
        resource: &Resource,
        tree: &mut Value,
        old: Option<&Value>,
    ) -> Result<()> {
        match &resource.flavor {
            Flavor::Builtin { hooks, .. } => (hooks.admit)(tree, old, &self.context(call, resource)),
            Flavor::Custom { .. } => Ok(()),
        }
    }

    /// Objects are made only in namespaces that exist and are not on their way out.
    pub(super) fn admit_create(&self, resource: &Resource, tree: &Value) -> Result<()> {
        if !resource.namespaced {
            return Ok(());
        }
        let name = meta_str(tree, "namespace");
        let Some(namespace) = self.store.get(&NAMESPACES, "", name) else {
            return Err(Status::not_found("", "namespaces", name));
        };
        // The phase is a selectable field, which is known without reading the namespace's body.
        if namespace.field("status.phase") == Some("Terminating") {
            let why =
                format!("unable to create new content in namespace {name} because it is being terminated");
            let own = [meta_str(tree, "name"), meta_str(tree, "generateName")];
            let own = own.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
            let status = Status::forbidden(&resource.group, &resource.plural, own, &why);
            let message = format!("namespace {name} is being terminated");
            return Err(status.cause("NamespaceTerminating", message, "metadata.namespace"));
        }
        Ok(())
    }

    pub(super) fn admit_delete(&self, resource: &Resource, name: &str) -> Result<()> {
        if resource.is_namespaces() && IMMORTAL.contains(&name) {
            return Err(Status::forbidden("", "namespaces", name, "this namespace may not be deleted"));
        }
        Ok(())
    }
}

impl World for Server {
    fn get(&self, group: &str, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        let resource =
            self.registry.all().find(|resource| resource.group == group && resource.kind == kind)?;
        let object = self.store.get(&resource.storage, namespace, name)?;
        Some(self.load(resource, object))
    }

    fn list(&self, group: &str, kind: &str, namespace: &str) -> Vec<Value> {
        let found = self.registry.all().find(|resource| resource.group == group && resource.kind == kind);
        let Some(resource) = found else { return Vec::new() };
        let snapshot = self.store.list(&resource.storage);
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
        snapshot.range(namespace, None).map(|object| self.load(resource, object)).collect()
    }
}
