//! Admission policies: rules in CEL that are evaluated before something is written, and may change or refuse it.
//!
//! ```text
//! policy (what it is about, expressions) ─┐
//! binding (where it applies, actions) ────┼─► for each object of parameters: conditions ─► mutations, or validations ─► deny, warn
//! parameters (any object) ────────────────┘
//! ```
//!
//! Policies are compiled when they change, not when they are used. Nothing outside is asked: a policy is a function of the
//! request and of what is stored.

mod compiled;
mod mutate;
mod params;
mod rights;
mod validate;

use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value};

use super::matching::{Match, list};
use super::registry::Resource;
use super::server::{Call, Server};
use super::webhooks::Write;
use crate::json::str_at;
use crate::status::{Result, Status};
use crate::store::{Kind, Store};
use compiled::Policy;

pub(super) use mutate::Applied;

const GROUP: &str = "admissionregistration.k8s.io";

static VALIDATING: LazyLock<Pair> = LazyLock::new(|| Pair {
    policies: Kind::new(GROUP, "validatingadmissionpolicies"),
    bindings: Kind::new(GROUP, "validatingadmissionpolicybindings"),
});

static MUTATING: LazyLock<Pair> = LazyLock::new(|| Pair {
    policies: Kind::new(GROUP, "mutatingadmissionpolicies"),
    bindings: Kind::new(GROUP, "mutatingadmissionpolicybindings"),
});

/// What policies and their bindings are stored as.
struct Pair {
    policies: Kind,
    bindings: Kind,
}

/// The policies that have bindings, compiled, as they are at a revision of the store.
#[derive(Clone, Default)]
pub(super) struct Policies {
    revision: u64,
    validating: Arc<Vec<Arc<Policy>>>,
    mutating: Arc<Vec<Arc<Policy>>>,
}

impl Policies {
    /// Whether any of them judges what is written.
    pub fn judge(&self) -> bool {
        !self.validating.is_empty()
    }

    /// Whether any of them changes what is written.
    pub fn change(&self) -> bool {
        !self.mutating.is_empty()
    }

    /// Reads what has changed since.
    pub fn follow(&mut self, store: &Store) {
        if self.revision == store.revision() {
            return;
        }
        let since = self.revision;
        // What is forgotten may have changed.
        let changed = |kind: &Kind| store.events(kind, since).map_or(true, |events| events.len() > 0);
        for (pair, known) in [(&*VALIDATING, &mut self.validating), (&*MUTATING, &mut self.mutating)] {
            if [&pair.policies, &pair.bindings].into_iter().any(changed) {
                *known = Arc::new(read(store, pair, known));
            }
        }
        self.revision = store.revision();
    }
}

/// All policies that somebody has bound. What has not changed is not compiled again.
fn read(store: &Store, pair: &Pair, before: &[Arc<Policy>]) -> Vec<Arc<Policy>> {
    let bindings: Vec<Value> = store
        .list(&pair.bindings)
        .range(None, None)
        .filter_map(|object| serde_json::from_slice(object.body()).ok())
        .collect();
    let policies = store.list(&pair.policies);
    let mut out = Vec::new();
    for object in policies.range(None, None) {
        let of = |binding: &&Value| str_at(binding, &["spec", "policyName"]) == object.name();
        let bound: Vec<Value> = bindings.iter().filter(of).cloned().collect();
        if bound.is_empty() {
            continue;
        }
        let known = before.iter().find(|known| known.is(object));
        out.push(Arc::new(Policy::of(object, bound, known.map(|known| &**known))));
    }
    out
}

impl Server {
    /// Brings the policies up to date: before each step, so that every write is judged by the state that it is in.
    pub(super) fn follow_policies(&mut self) {
        self.policies.follow(&self.store);
    }

    /// Lets policies judge a write.
    pub(super) fn judge(&self, call: &mut Call<'_>, write: Write<'_>) -> Result<()> {
        if self.policies.validating.is_empty() || !self.is_judged(call, write) {
            return Ok(());
        }
        let policies = self.policies.validating.clone();
        validate::judge(self, call, write, &policies)
    }

    /// Whether policies have a say in a write.
    fn is_judged(&self, call: &Call<'_>, write: Write<'_>) -> bool {
        call.hooked && !is_exempt(write.resource)
    }

    /// How constraints match a write: its namespace, its labels, and what is done to what.
    fn matching(&self, constraints: &Value, call: &Call<'_>, write: Write<'_>) -> Result<Match> {
        let is_exact = str_at(constraints, &["matchPolicy"]) != "Equivalent";
        let of = |field: &str| self.matched(list(constraints, field), is_exact, call, write);
        let matched = match of("excludeResourceRules") {
            Match::Not if list(constraints, "resourceRules").is_empty() => Match::Asked,
            Match::Not => of("resourceRules"),
            _ => Match::Not,
        };
        let (namespaces, objects) = (&constraints["namespaceSelector"], &constraints["objectSelector"]);
        match matched {
            Match::Not => Ok(Match::Not),
            matched if self.is_selected(namespaces, objects, call, write)? => Ok(matched),
            _ => Ok(Match::Not),
        }
    }

    /// The namespace of a write as expressions see it: without what is nobody's business.
    fn namespace_object(&self, call: &Call<'_>, write: Write<'_>) -> Result<Value> {
        let namespace = &call.target.namespace;
        if namespace.is_empty() || write.resource.is_namespaces() {
            return Ok(Value::Null);
        }
        let missing = || Status::not_found("", "namespaces", namespace);
        let mut found = crate::kinds::World::get(self, "", "Namespace", "", namespace).ok_or_else(missing)?;
        let Some(object) = found.as_object_mut() else { return Ok(Value::Null) };
        object.retain(|key, _| matches!(key.as_str(), "metadata" | "spec" | "status"));
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata
                .retain(|key, _| !matches!(key.as_str(), "managedFields" | "ownerReferences" | "selfLink"));
        }
        Ok(found)
    }
}

/// What decides about policies is not decided by policies: nobody could undo a mistake.
fn is_exempt(resource: &Resource) -> bool {
    resource.group == GROUP && resource.plural.contains("admissionpolic")
}

/// A request as expressions see it: objects have names of their own.
fn seen(mut request: Value) -> Value {
    if let Some(map) = request.as_object_mut() {
        let keep = |key: &String, _: &mut Value| !matches!(key.as_str(), "object" | "oldObject");
        Map::retain(map, keep);
    }
    request
}
