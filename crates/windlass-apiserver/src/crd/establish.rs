//! A definition is served once its names are its own: the conditions `NamesAccepted` and `Established`, and what is told
//! of its approval.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{Names, approval};
use crate::json::object_entry;

/// Whether a condition of a definition is `True`.
pub fn is_condition_true(crd: &Value, condition: &str) -> bool {
    let conditions = crd["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|c| c["type"] == condition && c["status"] == "True")
}

/// Accepts the names of a definition as far as no other definition of its group has them, and establishes it.
///
/// `others` are the accepted names of the other definitions of the same group. Once established, a definition
/// stays so, as in kube-apiserver.
pub fn establish(crd: &mut Value, others: &[&Names], now: Timestamp) {
    let resources: BTreeSet<&str> = others
        .iter()
        .flat_map(|names| [&names.plural, &names.singular].into_iter().chain(&names.short_names))
        .map(String::as_str)
        .collect();
    let kinds: BTreeSet<&str> =
        others.iter().flat_map(|names| [names.kind.as_str(), names.list_kind.as_str()]).collect();
    let requested = crd["spec"]["names"].clone();
    let mut accepted = crd["status"]["acceptedNames"].as_object().cloned().unwrap_or_default();
    let mut conflict: Option<(&str, String)> = None;
    let mut claim = |accepted: &mut Map<String, Value>, key: &str, taken: &BTreeSet<&str>, reason| {
        let name = requested[key].as_str().unwrap_or_default();
        let held = accepted.get(key).and_then(Value::as_str).unwrap_or_default();
        if name != held && taken.contains(name) {
            conflict = Some((reason, format!("{name:?} is already in use")));
        } else if !name.is_empty() {
            accepted.insert(key.into(), name.into());
        }
    };
    claim(&mut accepted, "plural", &resources, "PluralConflict");
    claim(&mut accepted, "singular", &resources, "SingularConflict");
    claim(&mut accepted, "kind", &kinds, "KindConflict");
    claim(&mut accepted, "listKind", &kinds, "ListKindConflict");
    if let Some(found) = claim_short_names(&requested, &mut accepted, &resources) {
        conflict = conflict.filter(|(reason, _)| reason.contains("Kind")).or(Some(found));
    }
    match requested.get("categories") {
        Some(categories) => drop(accepted.insert("categories".into(), categories.clone())),
        None => drop(accepted.shift_remove("categories")),
    }
    let was_established = is_condition_true(crd, "Established");
    let approval = approval::condition(crd);
    let Some(root) = crd.as_object_mut() else { return };
    let status = object_entry(root, "status");
    status.insert("acceptedNames".into(), in_order(accepted));
    match &conflict {
        None => {
            set_condition(status, now, "NamesAccepted", true, "NoConflicts", "no conflicts found");
            if !was_established {
                let message = "the initial names have been accepted";
                set_condition(status, now, "Established", true, "InitialNamesAccepted", message);
            }
        }
        Some((reason, message)) => {
            set_condition(status, now, "NamesAccepted", false, reason, message);
            if !was_established {
                let message = "not all names are accepted";
                set_condition(status, now, "Established", false, "NotAccepted", message);
            }
        }
    }
    if let Some((is_conformant, reason, message)) = approval {
        let name = "KubernetesAPIApprovalPolicyConformant";
        set_condition(status, now, name, is_conformant, reason, &message);
    }
}

fn claim_short_names(
    requested: &Value,
    accepted: &mut Map<String, Value>,
    taken: &BTreeSet<&str>,
) -> Option<(&'static str, String)> {
    let names = |value: Option<&Value>| -> Vec<String> {
        let list = value.and_then(Value::as_array).into_iter().flatten();
        list.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let (wanted, held) = (names(requested.get("shortNames")), names(accepted.get("shortNames")));
    let conflicts: Vec<String> = wanted
        .iter()
        .filter(|name| !held.contains(name) && taken.contains(name.as_str()))
        .map(|name| format!("{name:?} is already in use"))
        .collect();
    match conflicts.as_slice() {
        [] if wanted.is_empty() => drop(accepted.shift_remove("shortNames")),
        [] => drop(accepted.insert("shortNames".into(), json!(wanted))),
        [one] => return Some(("ShortNamesConflict", one.clone())),
        many => return Some(("ShortNamesConflict", format!("[{}]", many.join(", ")))),
    }
    None
}

/// The names in the order in which Go writes them.
fn in_order(mut names: Map<String, Value>) -> Value {
    let mut out = Map::new();
    for key in ["plural", "singular", "shortNames", "kind", "listKind", "categories"] {
        if let Some(value) = names.shift_remove(key) {
            out.insert(key.into(), value);
        }
    }
    Value::Object(out)
}

fn set_condition(
    status: &mut Map<String, Value>,
    now: Timestamp,
    name: &str,
    is_true: bool,
    reason: &str,
    message: &str,
) {
    let conditions = status.entry("conditions").or_insert(Value::Null);
    if !conditions.is_array() {
        *conditions = Value::Array(Vec::new());
    }
    let list = conditions.as_array_mut().expect("made a list above");
    let text = if is_true { "True" } else { "False" };
    let existing = list.iter().position(|condition| condition["type"] == name);
    let kept = existing.map(|i| &list[i]).filter(|condition| condition["status"] == text);
    let since = kept.map_or_else(
        || json!(now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
        |c| c["lastTransitionTime"].clone(),
    );
    let condition = json!({"type": name, "status": text, "lastTransitionTime": since, "reason": reason, "message": message});
    match existing {
        Some(i) => list[i] = condition,
        None => list.push(condition),
    }
}
