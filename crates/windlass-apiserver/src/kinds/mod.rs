//! What the type table cannot say of the built-in kinds: defaults, preparation, admission, validation.
//!
//! [`hooks`] finds the [`Hooks`] of a kind. A write calls them in this order, as kube-apiserver does:
//!
//! ```text
//! decode  → default
//!         → (field ownership)
//! create  → (admission) → [`Hooks::create`]: begin, status reset, generation, prepare_create, validate_create
//! update  → (admission) → [`Hooks::update`]: begin, immutable metadata, prepare_update, generation, validate_update
//! /status → (admission) → [`Hooks::update_status`]: prepare_status, validate_status
//!         → warnings → (admission) → store → default
//! ```
//!
//! Trees are canonical: pruned, and with quantities and times in their one form. Nothing here reads a clock or
//! looks into the store: the [`Context`] brings both.

mod admissionregistration;
mod apps;
pub(crate) mod autoscaling;
mod batch;
mod certificates;
pub(crate) mod check;
mod coordination;
mod core;
mod diff;
mod discovery;
mod equal;
mod events;
pub mod generation;
pub(crate) mod inner;
pub mod meta;
pub mod names;
mod networking;
mod others;
mod paths;
pub(crate) mod pod;
mod policy;
mod rbac;
mod scheduling;
mod storage;
pub(crate) mod tree;
mod warn;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use crate::field::Errors;
use crate::schema::{TypeId, Types};
use crate::status::Status;
use generation::Generation;

pub(crate) use tree::seconds;

/// What a hook may know of the request.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The time of the request.
    pub now: Timestamp,
    /// The subresource that is written; empty for the object itself.
    pub subresource: &'a str,
    /// The API group of the kind; empty for core.
    pub group: &'a str,
    /// The version that the request speaks.
    pub version: &'a str,
    /// The kind.
    pub kind: &'a str,
    /// The types that the kind is written in.
    pub types: &'a Types,
    /// The type of the kind among them.
    pub root: TypeId,
    /// Whether objects of the kind live in namespaces.
    pub namespaced: bool,
    /// The plural resource, for the wording of refusals.
    pub resource: &'a str,
    /// The name of the user who asks.
    pub user: &'a str,
    /// The groups of the user who asks.
    pub groups: &'a [String],
    /// The uid of the user who asks; empty where nobody knows it.
    pub uid: &'a str,
    /// What else is known of the user who asks.
    pub extra: &'a BTreeMap<String, Vec<String>>,
    /// Whether nothing will be stored.
    pub dry_run: bool,
    /// What was to be known of the object as it was sent.
    pub noted: Noted,
    /// What the object was before, where its checks look at it: at an update.
    pub old: Option<&'a Value>,
    /// The other objects of the server.
    pub world: &'a dyn World,
}

/// What the canonical form of an object does not tell of it as it was sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Noted {
    /// What [`Hooks::notes`] said.
    pub own: bool,
    /// Whether the spec of its pods has a list of groups that is there, but empty.
    pub empty_groups: bool,
    /// Of a definition, by index: the versions at the root of whose schemas there is a list or map that is empty and must
    /// not be there at all beside a status.
    pub empty_roots: u64,
}

impl Noted {
    /// Whether a version of a definition has such a root.
    pub fn has_empty_root(self, version: usize) -> bool {
        version < 64 && self.empty_roots & (1 << version) != 0
    }
}

/// The other objects of the server, as admission looks at them.
pub trait World {
    /// One object; `namespace` is empty for cluster-scoped kinds.
    fn get(&self, group: &str, kind: &str, namespace: &str, name: &str) -> Option<Value>;

    /// All objects of a kind in a namespace, or everywhere if `namespace` is empty.
    fn list(&self, group: &str, kind: &str, namespace: &str) -> Vec<Value>;

    /// Those in whose JSON this stands, such as `"globalDefault":true`: what cannot be meant need not be read.
    fn list_with(&self, group: &str, kind: &str, json: &str) -> Vec<Value> {
        let mut all = self.list(group, kind, "");
        all.retain(|object| object.to_string().contains(json));
        all
    }

    /// What all objects of a kind have in a field by which they can be selected; nothing has to be read for it.
    fn field(&self, group: &str, kind: &str, path: &str) -> BTreeSet<String> {
        let pointer = format!("/{}", path.replace('.', "/"));
        let of = |object: &Value| object.pointer(&pointer).and_then(Value::as_str).map(str::to_owned);
        self.list(group, kind, "").iter().filter_map(of).collect()
    }

    /// What admission asks of a namespace with almost every write.
    fn namespace(&self, name: &str) -> Option<Namespace<'_>>;
}

/// What is known of a namespace without reading it.
#[derive(Clone, Debug)]
pub struct Namespace<'a> {
    /// Where in its life it is.
    pub phase: &'a str,
    /// Its labels.
    pub labels: Vec<(&'a str, &'a str)>,
}

/// A server without any objects.
pub struct Nothing;

impl World for Nothing {
    fn get(&self, _: &str, _: &str, _: &str, _: &str) -> Option<Value> {
        None
    }

    fn list(&self, _: &str, _: &str, _: &str) -> Vec<Value> {
        Vec::new()
    }

    fn namespace(&self, _: &str) -> Option<Namespace<'_>> {
        None
    }
}

/// What is particular to a kind.
#[derive(Clone, Copy)]
pub struct Hooks {
    /// Fills defaults. Idempotent; runs at every decode. Stored objects are decoded, too, when they are read, so
    /// that what preparation adds can call for more defaults: the labels of a job follow from its template.
    pub default: fn(&mut Value),
    /// What the kind must know of an object as it was sent, and its canonical form does not tell: Go tells an empty
    /// list from none, and a map that a default takes from elsewhere in the object is the same map.
    /// [`Context::noted`] brings it to the other hooks.
    pub notes: fn(&Value) -> bool,
    /// Allocates what the server hands out, before the object is prepared; `None` is the old object at a create.
    pub begin: fn(&mut Value, Option<&Value>, &Context<'_>) -> Result<(), Status>,
    /// What a name must look like.
    pub name: names::Rule,
    /// When `metadata.generation` grows.
    pub generation: Generation,
    /// Whether a create drops the `status` that the client sent.
    pub resets_status: bool,
    /// Whether finalizers must be fully qualified.
    pub qualifies: bool,
    /// The checks of metadata that the kind repeats at an update, which tells each fault once more.
    pub rechecks: &'static [meta::Check],
    /// The same for an update of the status.
    pub rechecks_status: &'static [meta::Check],
    /// Prepares an object that is about to be created; the status is already reset.
    pub prepare_create: fn(&mut Value, &Context<'_>),
    /// Prepares an update of the object itself, or of a subresource other than `status` that holds it
    /// ([`Context::subresource`] tells); the status is already the old one.
    pub prepare_update: fn(&mut Value, &Value, &Context<'_>),
    /// Prepares an update of the status; spec and metadata are already restored.
    pub prepare_status: fn(&mut Value, &Value, &Context<'_>),
    /// Checks a new object.
    pub validate_create: fn(&Value, &Context<'_>, &mut Errors),
    /// Checks an update of the object itself, or of a subresource other than `status`.
    pub validate_update: fn(&Value, &Value, &Context<'_>, &mut Errors),
    /// Checks an update of the status.
    pub validate_status: fn(&Value, &Value, &Context<'_>, &mut Errors),
    /// Takes away what is checked and then not kept.
    pub canonicalize: fn(&mut Value),
    /// What an object without anything has all the same, as bookmarks show it: plain numbers of the real server's
    /// inner type are zero.
    pub blank: fn(&mut Value),
    /// Annotations that stand for fields of the real server's inner type: metadata by itself does not show them.
    pub inner_annotations: &'static [&'static str],
    /// Warnings for the client of a new object before it is prepared, whether it is then refused or not.
    pub forewarnings: fn(&Value) -> Vec<String>,
    /// Warnings for the client, as kube-apiserver sends them in `Warning` headers; the old object at an update.
    pub warnings: fn(&Value, Option<&Value>) -> Vec<String>,
}

impl Hooks {
    /// A kind without any particulars: the start of every other.
    pub const NONE: Hooks = Hooks {
        default: |_| {},
        notes: |_| false,
        begin: |_, _, _| Ok(()),
        name: names::dns_subdomain,
        generation: Generation::NONE,
        resets_status: true,
        qualifies: true,
        rechecks: &[meta::Check::Update],
        rechecks_status: &[meta::Check::Update],
        prepare_create: |_, _| {},
        prepare_update: |_, _, _| {},
        prepare_status: |_, _, _| {},
        validate_create: |_, _, _| {},
        validate_update: |_, _, _, _| {},
        validate_status: |_, _, _, _| {},
        canonicalize: |_| {},
        blank: |_| {},
        inner_annotations: &[],
        forewarnings: |_| Vec::new(),
        warnings: |_, _| Vec::new(),
    };

    /// What must be known of an object as it was sent.
    pub fn note(&self, kind: &str, object: &Value) -> Noted {
        let empty_groups = pod::features::spec_of(kind, object).is_some_and(pod::security::has_empty_groups);
        Noted { own: (self.notes)(object), empty_groups, empty_roots: 0 }
    }

    /// Makes a new object ready to be stored, or refuses it.
    ///
    /// Name, uid and creation time must be set already: some kinds read them.
    pub fn create(&self, object: &mut Value, context: &Context<'_>) -> Result<(), Status> {
        (self.begin)(object, None, context)?;
        if self.resets_status {
            tree::remove(object, "status");
        }
        self.generation.create(object);
        pod::features::forget(context.kind, object, None);
        (self.prepare_create)(object, context);
        let mut errors = Errors::default();
        meta::validate_create(object, context.namespaced, self.qualifies, self.name, &mut errors);
        (self.validate_create)(object, context, &mut errors);
        context.verdict(object, errors)?;
        (self.canonicalize)(object);
        tree::forget_empty_lists(object);
        Ok(())
    }

    /// Makes an update ready to be stored, or refuses it. The status must be the old one already.
    pub fn update(&self, new: &mut Value, old: &Value, context: &Context<'_>) -> Result<(), Status> {
        (self.begin)(new, Some(old), context)?;
        self.generation.keep(new, old);
        pod::features::forget(context.kind, new, Some(old));
        (self.prepare_update)(new, old, context);
        self.generation.update(new, old, context);
        meta::keep_system_fields(new, old);
        let mut errors = Errors::default();
        self.check_metadata(self.rechecks, new, old, context, &mut errors);
        (self.validate_update)(new, old, &Context { old: Some(old), ..*context }, &mut errors);
        context.verdict(new, errors)?;
        (self.canonicalize)(new);
        tree::forget_empty_lists(new);
        Ok(())
    }

    /// Makes an update of the status ready to be stored, or refuses it. Spec and metadata must be restored already.
    pub fn update_status(&self, new: &mut Value, old: &Value, context: &Context<'_>) -> Result<(), Status> {
        self.generation.keep(new, old);
        (self.prepare_status)(new, old, context);
        meta::keep_system_fields(new, old);
        let mut errors = Errors::default();
        self.check_metadata(self.rechecks_status, new, old, context, &mut errors);
        (self.validate_status)(new, old, context, &mut errors);
        context.verdict(new, errors)?;
        tree::forget_empty_lists(new);
        Ok(())
    }

    fn check_metadata(
        &self,
        rechecks: &[meta::Check],
        new: &Value,
        old: &Value,
        context: &Context<'_>,
        errors: &mut Errors,
    ) {
        meta::validate_common(new, old, context.namespaced, errors);
        for check in rechecks {
            match check {
                meta::Check::Whole => {
                    meta::validate_create(new, context.namespaced, self.qualifies, self.name, errors);
                }
                meta::Check::Update => meta::validate_update(new, old, self.qualifies, errors),
            }
        }
    }
}

impl Context<'_> {
    fn verdict(&self, object: &Value, errors: Errors) -> Result<(), Status> {
        // Events of both groups are one kind to the real server, which knows it by its older name.
        let group = if self.kind == "Event" { "" } else { self.group };
        match errors.is_empty() {
            true => Ok(()),
            false => {
                Err(Status::invalid(group, self.kind, tree::text_at(object, &["metadata", "name"]), errors))
            }
        }
    }
}

/// The hooks of a kind; those of a kind without particulars do nothing.
pub fn hooks(group: &str, kind: &str) -> &'static Hooks {
    let found = match group {
        "" => core::hooks(kind),
        "apps" => apps::hooks(kind),
        "batch" => batch::hooks(kind),
        "policy" => policy::hooks(kind),
        "autoscaling" => autoscaling::hooks(kind),
        "certificates.k8s.io" => certificates::hooks(kind),
        "coordination.k8s.io" => coordination::hooks(kind),
        "discovery.k8s.io" => discovery::hooks(kind),
        "events.k8s.io" => events::hooks(kind),
        "networking.k8s.io" => networking::hooks(kind),
        "rbac.authorization.k8s.io" => rbac::hooks(kind),
        "scheduling.k8s.io" => scheduling::hooks(kind),
        "storage.k8s.io" => storage::hooks(kind),
        "admissionregistration.k8s.io" => admissionregistration::hooks(kind),
        _ => others::hooks(group, kind),
    };
    found.unwrap_or(&Hooks::NONE)
}
