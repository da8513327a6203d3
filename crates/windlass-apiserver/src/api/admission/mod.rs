//! The gates that stand before every write, in kube-apiserver's order.
//!
//! ```text
//! decode ─► PLUGINS, admit ─► mutating policies ─► mutating webhooks ─► prepare, validate ─┐
//!               ▲                                        │                                 │
//!               └─ once more, where they changed ────────┘                                 ▼
//!           store ◄─ quota ◄─ validating webhooks ◄─ validating policies ◄─ PLUGINS, validate
//! ```
//!
//! [`PLUGINS`] is the list: each plugin is a pure function, or two, of what is written and of the other objects. `admit` may
//! change the object and comes first, `validate` may only refuse and sees the object as it would be stored. The quota is asked
//! last and apart from the others: it is the only gate that writes something itself.

mod account;
mod certificates;
mod defaults;
mod limits;
mod namespace;
mod nodes;
mod owners;
mod plugins;
mod priority;
mod quota;
mod resize;
mod runtime;
mod security;
mod storage;
#[cfg(test)]
mod testing;
mod tolerations;
mod topology;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use memchr::memmem;
use serde_json::Value;

use super::authorize::Attributes;
use super::object::meta_str;
use super::registry::Resource;
use super::server::{Call, Ids, Server};
use super::webhooks::{Round, Write};
use crate::kinds::{Context, Namespace, World};
use crate::status::{Result, Status};
use crate::store::Kind;

pub use super::webhooks::Operation;
pub use plugins::{Plugins, UnknownPlugin};

/// What namespaces are stored as.
static NAMESPACES: LazyLock<Kind> = LazyLock::new(|| Kind::new("", "namespaces"));

/// A gate.
pub struct Plugin {
    /// Its name, as kube-apiserver's flags have it.
    pub name: &'static str,
    /// Whether it is there if nobody says anything.
    pub by_default: bool,
    /// What it has to do with.
    on: &'static [Operation],
    admit: fn(&mut Value, &mut Admission<'_>) -> Result<()>,
    validate: fn(&Value, &mut Admission<'_>) -> Result<()>,
}

use Operation::{Create, Delete, Update};

/// A plugin that does nothing: the start of every other.
const NONE: Plugin =
    Plugin { name: "", by_default: true, on: &[Create], admit: |_, _| Ok(()), validate: |_, _| Ok(()) };

/// The plugins, in the order in which they are asked.
pub static PLUGINS: &[Plugin] = &[
    Plugin { name: "NamespaceLifecycle", on: &[Create, Update, Delete], admit: namespace::admit, ..NONE },
    Plugin {
        name: "LimitRanger",
        on: &[Create, Update],
        admit: limits::admit,
        validate: limits::validate,
        ..NONE
    },
    Plugin {
        name: "ServiceAccount",
        on: &[Create, Update],
        admit: account::admit,
        validate: account::validate,
        ..NONE
    },
    Plugin { name: "TaintNodesByCondition", admit: nodes::taint, ..NONE },
    Plugin { name: "PodSecurity", on: &[Create, Update], validate: security::validate, ..NONE },
    Plugin {
        name: "Priority",
        on: &[Create, Update],
        admit: priority::admit,
        validate: priority::validate,
        ..NONE
    },
    Plugin { name: "DefaultTolerationSeconds", on: &[Create, Update], admit: tolerations::admit, ..NONE },
    Plugin { name: "DefaultStorageClass", admit: defaults::storage_class, ..NONE },
    Plugin { name: "StorageObjectInUseProtection", admit: storage::protect, ..NONE },
    Plugin {
        name: "OwnerReferencesPermissionEnforcement",
        by_default: false,
        on: &[Create, Update],
        validate: owners::validate,
        ..NONE
    },
    Plugin { name: "PersistentVolumeClaimResize", on: &[Update], validate: storage::allow_growth, ..NONE },
    Plugin { name: "RuntimeClass", admit: runtime::admit, validate: runtime::validate, ..NONE },
    Plugin { name: "CertificateApproval", on: &[Update], validate: certificates::approval, ..NONE },
    Plugin { name: "CertificateSigning", on: &[Update], validate: certificates::signing, ..NONE },
    Plugin { name: "CertificateSubjectRestriction", validate: certificates::subject, ..NONE },
    Plugin { name: "DefaultIngressClass", admit: defaults::ingress_class, ..NONE },
    Plugin { name: "PodTopologyLabels", admit: topology::admit, ..NONE },
    Plugin { name: "NodeDeclaredFeatureValidator", on: &[Update], validate: resize::features, ..NONE },
    Plugin { name: "PodResizeValidator", on: &[Update], validate: resize::room, ..NONE },
    // Asked after the webhooks, since it writes: `Server::charge`.
    Plugin { name: quota::NAME, on: &[Create, Update], ..NONE },
];

/// A write, as plugins see it.
pub struct Admission<'a> {
    /// What is known of the request.
    pub context: Context<'a>,
    /// What is to be done.
    pub operation: Operation,
    /// The name; empty where it has to be drawn first.
    pub name: &'a str,
    /// The namespace; empty for what is in none.
    pub namespace: &'a str,
    /// What is there now.
    pub old: Option<&'a Value>,
    /// Who says what the user may do otherwise.
    pub judge: &'a dyn Judge,
    /// For names that have to be drawn.
    pub ids: &'a mut dyn Ids,
    /// What the client is warned of.
    pub warnings: &'a mut Vec<String>,
}

/// Says what the user of a request may do besides.
pub trait Judge {
    /// Whether the user may; if not, why.
    fn may(&self, attributes: &Attributes<'_>) -> std::result::Result<(), String>;

    /// The resources that a kind is served as, and whether they are in namespaces.
    fn resources(&self, group: &str, version: &str, kind: &str) -> Vec<(String, bool)>;
}

impl Admission<'_> {
    /// Whether it is an object of this resource, and not a subresource of it.
    fn is_of(&self, group: &str, resource: &str) -> bool {
        self.context.subresource.is_empty() && self.is_in(group, resource)
    }

    /// Whether it is an object of this resource, or a subresource of it.
    fn is_in(&self, group: &str, resource: &str) -> bool {
        self.context.group == group && self.context.resource == resource
    }

    /// `403`, about the object that is written.
    fn refuse(&self, object: &Value, why: &str) -> Status {
        let own = [self.name, meta_str(object, "name"), meta_str(object, "generateName")];
        let own = own.into_iter().find(|name| !name.is_empty()).unwrap_or("Unknown");
        Status::forbidden(self.context.group, self.context.resource, own, why)
    }
}

impl Plugins {
    /// Lets the plugins that are on change an object.
    pub fn admit(self, object: &mut Value, admission: &mut Admission<'_>) -> Result<()> {
        self.on(admission.operation).try_for_each(|plugin| (plugin.admit)(object, admission))
    }

    /// Asks the plugins that are on whether an object may be written.
    pub fn validate(self, object: &Value, admission: &mut Admission<'_>) -> Result<()> {
        self.on(admission.operation).try_for_each(|plugin| (plugin.validate)(object, admission))
    }

    fn on(self, operation: Operation) -> impl Iterator<Item = &'static Plugin> {
        let all = PLUGINS.iter().enumerate();
        all.filter(move |(at, plugin)| self.has_at(*at) && plugin.on.contains(&operation)).map(|(_, on)| on)
    }
}

impl Server {
    /// Lets everybody change an object who may, before it is looked at.
    pub(super) fn admit(&self, call: &mut Call<'_>, write: Write<'_>, tree: &mut Value) -> Result<()> {
        let mut round = Round::default();
        loop {
            self.with(call, write, |plugins, admission| plugins.admit(tree, admission))?;
            self.mutate(call, write, tree, &mut round)?;
            if !round.goes_on() {
                return Ok(());
            }
        }
    }

    /// Asks everybody whether an object may be written as it is.
    pub(super) fn validate(&self, call: &mut Call<'_>, write: Write<'_>) -> Result<()> {
        let object = write.object.unwrap_or(&Value::Null);
        self.with(call, write, |plugins, admission| plugins.validate(object, admission))?;
        let whole =
            write.object.filter(|_| write.is_whole() && !write.resource.is_custom() && self.is_looked_at());
        match whole {
            // Those outside see it as its type writes it, such as with the status that it has not got yet.
            Some(object) => {
                let object = super::decode::canonical(write.resource, object.clone())?;
                self.review(call, write.of(&object))
            }
            None => self.review(call, write),
        }
    }

    fn with<T>(
        &self,
        call: &mut Call<'_>,
        write: Write<'_>,
        work: impl FnOnce(Plugins, &mut Admission<'_>) -> T,
    ) -> T {
        let judge = Asker { server: self, call: call.request };
        let mut admission = Admission {
            context: self.context(call, write.resource),
            operation: write.operation,
            name: &call.name,
            namespace: &call.target.namespace,
            old: write.old,
            judge: &judge,
            ids: &mut *call.ids,
            warnings: &mut call.warnings,
        };
        work(self.config.plugins, &mut admission)
    }

    /// What hooks and plugins may know of a request.
    pub(super) fn context<'a, 'c: 'a>(&'a self, call: &Call<'c>, resource: &'a Resource) -> Context<'a> {
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
            dry_run: call.query.get("dryRun").is_some(),
            noted: call.noted,
            old: None,
            world: self,
        }
    }
}

/// What the user of a request may do on this server.
struct Asker<'a> {
    server: &'a Server,
    call: &'a super::server::Request,
}

impl Judge for Asker<'_> {
    fn may(&self, attributes: &Attributes<'_>) -> std::result::Result<(), String> {
        let decision = self.server.decide(&self.call.user, attributes);
        match decision.is_allowed() {
            true => Ok(()),
            false => Err(decision.reason()),
        }
    }

    fn resources(&self, group: &str, version: &str, kind: &str) -> Vec<(String, bool)> {
        let all = self.server.registry.all();
        all.filter(|known| known.group == group && known.version == version && known.kind == kind)
            .map(|known| (known.plural.to_string(), known.namespaced))
            .collect()
    }
}

impl World for Server {
    fn get(&self, group: &str, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        let resource = self.registry.of_kind(group, kind)?;
        let object = self.store.get(&resource.storage, namespace, name)?;
        Some(self.load(resource, object))
    }

    fn list(&self, group: &str, kind: &str, namespace: &str) -> Vec<Value> {
        let Some(resource) = self.registry.of_kind(group, kind) else { return Vec::new() };
        let snapshot = self.store.list(&resource.storage);
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
        snapshot.range(namespace, None).map(|object| self.load(resource, object)).collect()
    }

    fn list_with(&self, group: &str, kind: &str, json: &str) -> Vec<Value> {
        let Some(resource) = self.registry.of_kind(group, kind) else { return Vec::new() };
        let sought = memmem::Finder::new(json);
        let snapshot = self.store.list(&resource.storage);
        let found = snapshot.range(None, None).filter(|object| sought.find(object.body()).is_some());
        found.map(|object| self.load(resource, object)).collect()
    }

    fn field(&self, group: &str, kind: &str, path: &str) -> BTreeSet<String> {
        let Some(resource) = self.registry.of_kind(group, kind) else { return BTreeSet::new() };
        let snapshot = self.store.list(&resource.storage);
        snapshot.range(None, None).filter_map(|object| object.field(path)).map(str::to_owned).collect()
    }

    fn namespace(&self, name: &str) -> Option<Namespace<'_>> {
        let found = self.store.get(&NAMESPACES, "", name)?;
        let labels = found.labels().iter().map(|pair| (pair.key(), pair.value())).collect();
        Some(Namespace { phase: found.field("status.phase").unwrap_or_default(), labels })
    }
}
