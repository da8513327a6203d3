//! Server-side apply.

use std::collections::BTreeSet;

use serde_json::Value;

use super::element::PathElement;
use super::entries::{self, Entry, Id, Managers, Operation};
use super::error::{ApplyError, Conflict};
use super::own::{self, Write};
use super::set::Set;
use super::shape::Schema;
use super::{element, fieldset, last_applied, merge, remove, validate, zero};
use crate::json::{at, str_at};

/// Who owned an object's fields before the first apply, if nobody is known to.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Applies a configuration to an object, or makes the object of it if `live` is `None`.
///
/// The answer is the merged object with its `managedFields`; it is neither canonical nor defaulted. Fields that the
/// manager applied before and that the configuration no longer has are gone, unless somebody else owns them.
///
/// # Errors
/// Conflicts, if the configuration changes fields that others own and `force` is not set; configurations that are
/// not of the kind's type.
pub fn apply(
    schema: &Schema<'_>,
    live: Option<&Value>,
    config: &Value,
    write: &Write<'_>,
    force: bool,
) -> Result<Value, ApplyError> {
    check_request(config, write)?;
    let mut live = match live {
        Some(live) => live.clone(),
        None => zero::object(schema, write.api_version, write.kind),
    };
    let managers = match entries::take(&mut live) {
        Some(Value::Array(list)) => Managers::decode(&list)
            .map_err(|e| ApplyError::Typed(format!("failed to decode managed fields: {e}")))?,
        _ => Managers::default(),
    };
    let managers = if managers.0.is_empty() {
        let empty = zero::object(schema, write.api_version, write.kind);
        own::record(schema, &empty, &live, managers, write, BEFORE_FIRST_APPLY)
            .map_err(|e| ApplyError::Typed(format!("failed to create manager for existing fields: {e}")))?
    } else {
        managers
    };
    let operation = Apply { schema, live: &live, config, write };
    let (mut object, managers) = match write.manager {
        last_applied::MANAGER => operation.run_as_kubectl(managers, force)?,
        _ => operation.run(managers, force)?,
    };
    entries::put(&mut object, managers.encode(schema.custom), schema.custom);
    Ok(object)
}

/// What can be said of a request without the live object.
fn check_request(config: &Value, write: &Write<'_>) -> Result<(), ApplyError> {
    let (api_version, kind) = (str_at(config, &["apiVersion"]), str_at(config, &["kind"]));
    if api_version != write.api_version || kind != write.kind {
        return Err(ApplyError::BadRequest(format!("invalid object type: {}", gvk(config))));
    }
    if at(config, &["metadata", "managedFields"]).is_some_and(|entries| !entries.is_null()) {
        return Err(ApplyError::BadRequest("metadata.managedFields must be nil".to_owned()));
    }
    Ok(())
}

struct Apply<'s, 'a> {
    schema: &'s Schema<'a>,
    live: &'s Value,
    config: &'s Value,
    write: &'s Write<'s>,
}

impl Apply<'_, '_> {
    fn run(&self, managers: Managers, force: bool) -> Result<(Value, Managers), ApplyError> {
        let Apply { schema, live, config, write } = *self;
        let typed = |what: &str, object: &Value, faults: validate::Faults| {
            ApplyError::Typed(format!("failed to create typed {what} object ({}): {faults}", name(object)))
        };
        validate::object(schema, config, false).map_err(|faults| typed("patch", config, faults))?;
        validate::object(schema, live, true).map_err(|faults| typed("live", live, faults))?;

        let mut managers = own::reconciled(schema, managers);
        let id = Id::new(write.manager, Operation::Apply, write.api_version, write.subresource);
        let said = write.reset.filter(fieldset::of(schema, config));
        let (last, time) = match managers.0.remove(&id) {
            Some(entry) => (entry.set, entry.time),
            None => (Set::default(), None),
        };
        let merged = merge::objects(schema, live, config);
        let object = if last.is_subset(&said) { merged } else { self.prune(merged, &managers, &said, &last) };

        let comparison = own::compare(schema, live, &object, write);
        let conflicts = own::conflicts(&managers, &comparison, &id);
        if !force && !conflicts.is_empty() {
            return Err(ApplyError::Conflicts(conflicts));
        }
        own::yield_fields(&mut managers, &comparison, None);
        let set = own::stripped(said);
        if !set.is_empty() {
            let time = if element::same(live, &object) { time } else { Some(write.now) };
            managers.0.insert(id, Entry { version: write.api_version.to_owned(), set, time });
        }
        Ok((object, managers))
    }

    /// An apply by `kubectl` over what `kubectl` once applied on its own side: fields that are still as they were
    /// applied do not conflict, and the annotation that tells of them is kept up to date.
    fn run_as_kubectl(&self, managers: Managers, force: bool) -> Result<(Value, Managers), ApplyError> {
        let (mut object, managers) = match self.run(managers.clone(), force) {
            Err(ApplyError::Conflicts(conflicts)) => {
                let conflicts = self.conflicts_besides_last_applied(conflicts);
                if !conflicts.is_empty() {
                    return Err(ApplyError::Conflicts(conflicts));
                }
                self.run(managers, true)?
            }
            other => other?,
        };
        last_applied::refresh(&mut object, self.config);
        Ok((object, managers))
    }

    fn conflicts_besides_last_applied(&self, mut conflicts: Vec<Conflict>) -> Vec<Conflict> {
        if let Some(allowed) = last_applied::allowed(self.schema, self.live, self.write.api_version) {
            let text = |path: &Vec<PathElement>| path.iter().map(ToString::to_string).collect();
            let allowed: BTreeSet<String> = allowed.paths().iter().map(text).collect();
            conflicts.retain(|conflict| !allowed.contains(&conflict.path));
        }
        conflicts
    }

    /// The merged object without what the manager applied last time and does not now, and nobody else owns.
    fn prune(&self, merged: Value, managers: &Managers, said: &Set, last: &Set) -> Value {
        let schema = self.schema;
        let named = |set: Set| fieldset::with_named_fields(schema, set);
        let set_of = |object: &Value| named(fieldset::of(schema, object));
        let last = named(last.clone());
        let all = set_of(&merged);
        let pruned = set_of(&remove::items(schema, merged.clone(), &last));
        // What anybody owns comes back, with the manager's new configuration.
        let others = managers.0.values().map(|entry| entry.set.clone());
        let owned = named(Set::union_all(others.chain([said.clone()]).collect()));
        let gone = all.clone().difference(&pruned).difference(&owned);
        let pruned = set_of(&remove::items(schema, merged.clone(), &gone));
        // What went with its parent but was never the manager's comes back too.
        let gone = all.difference(&pruned).intersection(&last);
        remove::items(schema, merged, &gone)
    }
}

/// `namespace/name; group/version, Kind=kind`, as messages name an object.
fn name(object: &Value) -> String {
    let metadata = |key| str_at(object, &["metadata", key]);
    format!("{}/{}; {}", metadata("namespace"), metadata("name"), gvk(object))
}

fn gvk(object: &Value) -> String {
    let version = str_at(object, &["apiVersion"]);
    let slash = if version.contains('/') { "" } else { "/" };
    format!("{slash}{version}, Kind={}", str_at(object, &["kind"]))
}
