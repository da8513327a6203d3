//! Writes that change nothing.

use serde_json::Value;

use super::element::same;
use super::entries;

/// Takes the times of the live object's `managedFields` back, if nothing else was changed: an apply that says what
/// is already so must not make a new revision. Call it when the object is otherwise ready to be stored.
pub fn settle(live: &Value, new: &mut Value) {
    let (Some(before), Some(after)) = (entries::of(live), entries::of(new)) else { return };
    let without_time = |entry: &Value| {
        let mut entry = entry.clone();
        if let Some(map) = entry.as_object_mut() {
            map.shift_remove("time");
        }
        entry
    };
    let same_entries = before.len() == after.len()
        && before.iter().zip(after).all(|(a, b)| same(&without_time(a), &without_time(b)));
    if same_entries && same_besides(live, new, &["metadata", "managedFields"]) {
        let before = before.clone();
        if let Some(slot) = new.get_mut("metadata").and_then(|metadata| metadata.get_mut("managedFields")) {
            *slot = Value::Array(before);
        }
    }
}

fn same_besides(a: &Value, b: &Value, path: &[&str]) -> bool {
    let Some((ignored, below)) = path.split_first() else { return true };
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, a)| {
                    b.get(key)
                        .is_some_and(|b| if key == ignored { same_besides(a, b, below) } else { same(a, b) })
                })
        }
        (a, b) => same(a, b),
    }
}
