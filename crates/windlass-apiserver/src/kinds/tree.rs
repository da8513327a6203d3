//! Small tools for reading and filling trees in the manner of Go structures, where absent and zero are the same.

use serde_json::{Map, Value};

pub(crate) use windlass_core::tree::{at, entries, flag, get, int, list, text, text_at};

/// Whether a value is what Go would call zero: absent, null, empty or 0.
pub(crate) fn is_zero(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::Bool(flag)) => !flag,
        Some(Value::Number(number)) => number.as_f64() == Some(0.0),
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(map)) => map.is_empty(),
    }
}

/// Whether two values are the same to Go's semantic comparison, which holds nil and empty for equal.
pub(crate) fn same(a: Option<&Value>, b: Option<&Value>) -> bool {
    match (a, b) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let keys = |x: &Map<String, Value>, y: &Map<String, Value>| {
                x.iter().all(|(key, value)| same(Some(value), y.get(key)))
            };
            keys(a, b) && keys(b, a)
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(Some(a), Some(b)))
        }
        (a, b) => {
            let nil = |value: Option<&Value>| match value {
                None | Some(Value::Null) => true,
                Some(Value::Array(items)) => items.is_empty(),
                Some(Value::Object(map)) => map.is_empty(),
                _ => false,
            };
            a == b || (nil(a) && nil(b))
        }
    }
}

/// The structure `key`, made if it is absent.
pub(crate) fn sub<'a>(object: &'a mut Value, key: &str) -> &'a mut Value {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let map = object.as_object_mut().expect("made an object above");
    let slot = map.entry(key).or_insert(Value::Null);
    if slot.is_null() {
        *slot = Value::Object(Map::new());
    }
    slot
}

/// The structure `key`, if it is there.
pub(crate) fn existing<'a>(object: &'a mut Value, key: &str) -> Option<&'a mut Value> {
    object.get_mut(key).filter(|value| value.is_object())
}

/// Sets `key`.
pub(crate) fn set(object: &mut Value, key: &str, value: impl Into<Value>) {
    if let Some(map) = object.as_object_mut() {
        map.insert(key.to_owned(), value.into());
    }
}

/// Removes `key` without disturbing the order of the others.
pub(crate) fn remove(object: &mut Value, key: &str) -> Option<Value> {
    object.as_object_mut().and_then(|map| map.shift_remove(key))
}

/// Sets `key` to that of `from`, or removes it if `from` has none.
pub(crate) fn restore(object: &mut Value, from: &Value, key: &str) {
    match from.get(key) {
        Some(value) => set(object, key, value.clone()),
        None => {
            remove(object, key);
        }
    }
}

/// Fills a pointer field: only if it is absent.
pub(crate) fn fill(object: &mut Value, key: &str, value: impl Into<Value>) {
    if get(object, key).is_none() {
        set(object, key, value);
    }
}

/// Fills a plain field: if it is absent or has its zero value.
pub(crate) fn fill_zero(object: &mut Value, key: &str, value: impl Into<Value>) {
    if is_zero(object.get(key)) {
        set(object, key, value);
    }
}

/// Does something to every element of the list `key`.
pub(crate) fn each(object: &mut Value, key: &str, mut act: impl FnMut(&mut Value)) {
    if let Some(items) = object.get_mut(key).and_then(Value::as_array_mut) {
        items.iter_mut().for_each(&mut act);
    }
}

/// A structure as refusals print it: Go writes the fields of the server's inner types in full, by their Go names.
/// `fields` are those names, each with the one in JSON.
pub(crate) fn go_struct(object: &Value, fields: &[(&str, &str)]) -> Value {
    let value = |json: &str| object.get(json).cloned().unwrap_or_default();
    Value::Object(fields.iter().map(|(go, json)| ((*go).to_owned(), value(json))).collect())
}

/// Whether there is an empty list or an empty map of labels anywhere: the maps in what asks are those of selectors.
pub(crate) fn has_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty() || items.iter().any(has_empty),
        Value::Object(map) => map.iter().any(|(key, value)| match value {
            Value::Object(labels) if key == "matchLabels" => labels.is_empty(),
            value => has_empty(value),
        }),
        _ => false,
    }
}

/// Makes empty lists null: the real server stores protobuf, which does not tell an empty list from none.
pub(crate) fn forget_empty_lists(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(forget_empty_lists),
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                // What is behind these is stored as it came.
                if matches!(key.as_str(), "managedFields" | "data" | "parameters") {
                    continue;
                }
                if value.as_array().is_some_and(Vec::is_empty) {
                    *value = Value::Null;
                }
                forget_empty_lists(value);
            }
        }
        _ => {}
    }
}

/// A time as `metav1.Time` prints it: RFC 3339 in seconds.
pub(crate) fn seconds(time: jiff::Timestamp) -> String {
    jiff::Timestamp::from_second(time.as_second()).map_or_else(|_| String::new(), |time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nil_and_empty_are_the_same_but_zero_is_not_absent() {
        assert!(same(Some(&json!({"a": {}, "b": [1]})), Some(&json!({"b": [1]}))));
        assert!(!same(Some(&json!({"a": 0})), Some(&json!({}))));
        assert!(!same(Some(&json!({"a": [1, 2]})), Some(&json!({"a": [2, 1]}))));
    }

    #[test]
    fn filling_respects_what_is_there() {
        let mut object = json!({"a": 0, "b": null});
        fill(&mut object, "a", 5);
        fill(&mut object, "b", 5);
        assert_eq!(object, json!({"a": 0, "b": 5}));
        fill_zero(&mut object, "a", 5);
        assert_eq!(object, json!({"a": 5, "b": 5}));
    }
}
