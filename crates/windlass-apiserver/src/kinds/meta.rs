//! Object metadata: what is common to all kinds, custom ones included.

use serde_json::{Value, json};

use super::inner;
use super::names::{self, Rule};
use super::tree::{at, entries, flag, get, int, list, remove, restore, same, set, sub, text};
use crate::field::{Errors, Path};

/// The most bytes that keys and values of annotations may have together.
pub const ANNOTATIONS_MAX: usize = 256 << 10;

/// Checks the metadata of a new object. `builtin` adds the rules that only built-in kinds have.
pub fn validate_create(
    object: &Value,
    namespaced: bool,
    builtin: bool,
    name_rule: Rule,
    errors: &mut Errors,
) {
    let metadata = get(object, "metadata").unwrap_or(&Value::Null);
    let path = Path::Root.child("metadata");
    let generated = text(metadata, "generateName");
    if !generated.is_empty() {
        for fault in name_rule(&without_trailing_dash(generated)) {
            errors.invalid(&path.child("generateName"), &json!(generated), &fault);
        }
    }
    match text(metadata, "name") {
        "" => errors.required(&path.child("name"), "name or generateName is required"),
        name => {
            for fault in name_rule(name) {
                errors.invalid(&path.child("name"), &json!(name), &fault);
            }
        }
    }
    match (namespaced, text(metadata, "namespace")) {
        (true, "") => errors.required(&path.child("namespace"), ""),
        (true, namespace) => {
            for fault in names::dns_label(namespace) {
                errors.invalid(&path.child("namespace"), &json!(namespace), &fault);
            }
        }
        (false, "") => {}
        (false, _) => errors.forbidden(&path.child("namespace"), "not allowed on this type"),
    }
    if let Some(generation) = int(metadata, "generation").filter(|generation| *generation < 0) {
        errors.invalid(&path.child("generation"), &json!(generation), NOT_NEGATIVE);
    }
    labels(metadata, "labels", &path, errors);
    annotations(metadata, &path, errors);
    owners(metadata, &path, errors);
    finalizers(metadata, &path, errors);
    if builtin {
        qualified_finalizers(metadata, &path, errors);
    }
}

/// A check of the metadata of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// All that is asked of a new object.
    Whole,
    /// What may not change, and what is checked again.
    Update,
}

/// Checks the metadata of an update as is done for every kind, before the kind's own checks; system fields must
/// have been kept with [`keep_system_fields`].
pub fn validate_common(new: &Value, old: &Value, namespaced: bool, errors: &mut Errors) {
    validate_create(new, namespaced, false, names::path_segment, errors);
    validate_update(new, old, false, errors);
}

/// Checks the metadata of an update against the old one.
pub fn validate_update(new: &Value, old: &Value, builtin: bool, errors: &mut Errors) {
    let (new, old) =
        (get(new, "metadata").unwrap_or(&Value::Null), get(old, "metadata").unwrap_or(&Value::Null));
    let path = Path::Root.child("metadata");
    if new.get("deletionTimestamp").is_some_and(|time| !time.is_null()) {
        let added =
            list(new, "finalizers").iter().filter(|finalizer| !list(old, "finalizers").contains(finalizer));
        let mut added = added.filter_map(Value::as_str).collect::<Vec<_>>();
        added.sort_unstable();
        added.dedup();
        if get(old, "deletionTimestamp").is_some() && !added.is_empty() {
            let found = added.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{found}}}"
            );
            errors.forbidden(&path.child("finalizers"), &detail);
        }
    }
    for field in IMMUTABLE {
        immutable(new, old, &path, field, errors);
    }
    labels(new, "labels", &path, errors);
    annotations(new, &path, errors);
    owners(new, &path, errors);
    if builtin {
        qualified_finalizers(new, &path, errors);
    }
}

/// Restores what no update may change: uid if left out, times of creation and deletion.
pub fn keep_system_fields(new: &mut Value, old: &Value) {
    let Some(old) = get(old, "metadata") else { return };
    let metadata = sub(new, "metadata");
    if text(metadata, "uid").is_empty() {
        restore(metadata, old, "uid");
    }
    for field in ["creationTimestamp", "deletionTimestamp"] {
        if get(old, field).is_some() {
            restore(metadata, old, field);
        }
    }
    if get(metadata, "deletionGracePeriodSeconds").is_none()
        && get(old, "deletionGracePeriodSeconds").is_some()
    {
        restore(metadata, old, "deletionGracePeriodSeconds");
    }
}

/// Removes owner references that stand twice and returns the warning for the client, if there were any.
pub fn dedup_owner_references(object: &mut Value) -> Option<String> {
    let references = at(object, &["metadata", "ownerReferences"])?.as_array()?.clone();
    let mut kept: Vec<Value> = Vec::with_capacity(references.len());
    let mut twice: Vec<String> = Vec::new();
    for reference in references {
        if kept.contains(&reference) {
            let uid = text(&reference, "uid").to_owned();
            if !twice.contains(&uid) {
                twice.push(uid);
            }
        } else {
            kept.push(reference);
        }
    }
    if twice.is_empty() {
        return None;
    }
    set(sub(object, "metadata"), "ownerReferences", kept);
    Some(format!(
        ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may \
         reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
        twice.join(", ")
    ))
}

/// Drops what a create request may not bring along.
pub fn wipe_system_fields(object: &mut Value) {
    let metadata = sub(object, "metadata");
    for field in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        remove(metadata, field);
    }
}

/// Checks the labels in a map field: of metadata, or of a selector.
pub(crate) fn labels(holder: &Value, field: &str, path: &Path<'_>, errors: &mut Errors) {
    for (key, value) in entries(holder, field) {
        let path = path.child(field);
        for fault in names::label_key(key) {
            errors.invalid(&path, &json!(key), &fault);
        }
        for fault in names::label_value(value.as_str().unwrap_or("")) {
            errors.invalid(&path, value, &fault);
        }
    }
}

/// Checks the annotations.
pub(crate) fn annotations(metadata: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("annotations");
    let mut size = 0;
    for (key, value) in entries(metadata, "annotations") {
        size += key.len() + value.as_str().map_or(0, str::len);
        for fault in names::label_key(&key.to_lowercase()) {
            errors.invalid(&path, &json!(key), &fault);
        }
    }
    if size > ANNOTATIONS_MAX {
        errors.too_long(&path, ANNOTATIONS_MAX);
    }
}

/// A field that must stay as it is.
pub(crate) fn immutable(new: &Value, old: &Value, path: &Path<'_>, field: &str, errors: &mut Errors) {
    if !same(new.get(field), old.get(field)) {
        errors.invalid(&path.child(field), new.get(field).unwrap_or(&Value::Null), IMMUTABLE_FIELD);
    }
}

/// A field of a structure that must stay as it is: the refusal shows it as the real server does.
pub(crate) fn immutable_of(
    type_name: &str,
    new: &Value,
    old: &Value,
    path: &Path<'_>,
    field: &str,
    errors: &mut Errors,
) {
    if !same(new.get(field), old.get(field)) {
        let shown = get(new, field).map_or(Value::Null, |value| inner::shown(type_name, value));
        errors.invalid(&path.child(field), &shown, IMMUTABLE_FIELD);
    }
}

/// What is said of fields that may not change.
pub(crate) const IMMUTABLE_FIELD: &str = "field is immutable";
/// What is said of negative numbers.
pub(crate) const NOT_NEGATIVE: &str = "must be greater than or equal to 0";

const IMMUTABLE: [&str; 6] =
    ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"];

fn owners(metadata: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("ownerReferences");
    let mut controller: Option<String> = None;
    for reference in list(metadata, "ownerReferences") {
        let version = text(reference, "apiVersion");
        if version.is_empty() || version.ends_with('/') {
            errors.invalid(&path.child("apiVersion"), &json!(version), "version must not be empty");
        }
        for field in ["kind", "name", "uid"] {
            if text(reference, field).is_empty() {
                errors.invalid(&path.child(field), &json!(""), "must not be empty");
            }
        }
        if (version, text(reference, "kind")) == ("v1", "Event") {
            errors.invalid(&path, reference, "/v1, Kind=Event is disallowed from being an owner");
        }
        if flag(reference, "controller") {
            let name = format!("{}/{}", text(reference, "kind"), text(reference, "name"));
            match &controller {
                None => controller = Some(name),
                Some(first) => {
                    let detail = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {name}"
                    );
                    errors.invalid(&path, &metadata["ownerReferences"], &detail);
                }
            }
        }
    }
}

fn finalizers(metadata: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("finalizers");
    let all = list(metadata, "finalizers").iter().filter_map(Value::as_str).collect::<Vec<_>>();
    for name in &all {
        for fault in names::label_key(name) {
            errors.invalid(&path, &json!(name), &fault);
        }
    }
    if all.contains(&"orphan") && all.contains(&"foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.invalid(&path, &metadata["finalizers"], detail);
    }
}

/// Built-in kinds take only finalizers that are fully qualified.
fn qualified_finalizers(metadata: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("finalizers");
    for (index, name) in list(metadata, "finalizers").iter().filter_map(Value::as_str).enumerate() {
        if !name.contains('/') && !["kubernetes", "orphan", "foregroundDeletion"].contains(&name) {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.invalid(&path.index(index), &json!(name), detail);
        }
    }
}

/// A generated name gets more characters, so that a dash at its end does no harm.
fn without_trailing_dash(prefix: &str) -> String {
    match prefix.strip_suffix('-') {
        // What is no letter of a name, stays: it is what is wrong.
        Some(rest) if rest.ends_with(|c: char| c.is_ascii()) => format!("{}a", &rest[..rest.len() - 1]),
        _ => prefix.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(object: Value, namespaced: bool) -> Vec<String> {
        let mut errors = Errors::default();
        validate_create(&object, namespaced, true, names::dns_subdomain, &mut errors);
        errors.0.iter().map(|error| format!("{} {}", error.reason.as_str(), error.field)).collect()
    }

    #[test]
    fn scope_and_name_are_checked() {
        let ok = json!({"metadata": {"name": "a", "namespace": "b"}});
        assert_eq!(faults(ok.clone(), true), [""; 0]);
        assert_eq!(faults(ok, false), ["FieldValueForbidden metadata.namespace"]);
        assert_eq!(
            faults(json!({"metadata": {}}), true),
            ["FieldValueRequired metadata.name", "FieldValueRequired metadata.namespace"]
        );
    }

    #[test]
    fn a_generated_name_may_end_in_a_dash() {
        assert_eq!(faults(json!({"metadata": {"name": "a-x", "generateName": "a-"}}), false), [""; 0]);
        assert_eq!(
            faults(json!({"metadata": {"name": "a", "generateName": "A_b-"}}), false),
            ["FieldValueInvalid metadata.generateName"]
        );
    }

    #[test]
    fn while_deleting_no_finalizer_comes_new() {
        let old = json!({"metadata": {"name": "a", "deletionTimestamp": "t", "finalizers": ["a/b", "a/c"]}});
        let mut errors = Errors::default();
        let mut new = old.clone();
        new["metadata"]["finalizers"] = json!(["a/c"]);
        validate_update(&new, &old, true, &mut errors);
        assert_eq!(errors, Errors::default());
        new["metadata"]["finalizers"] = json!(["a/c", "a/d"]);
        validate_update(&new, &old, true, &mut errors);
        assert_eq!(errors.0[0].field, "metadata.finalizers");
    }

    #[test]
    fn owners_that_stand_twice_are_dropped_with_a_warning() {
        let owner = json!({"uid": "1"});
        let mut object = json!({"metadata": {"ownerReferences": [owner, owner]}});
        assert!(dedup_owner_references(&mut object).unwrap().ends_with("observed: 1"));
        assert_eq!(object, json!({"metadata": {"ownerReferences": [{"uid": "1"}]}}));
        assert_eq!(dedup_owner_references(&mut object), None);
    }
}
