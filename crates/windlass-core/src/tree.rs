//! Reading trees in the manner of Go structures, where absent and zero are the same.

use serde_json::Value;

/// The value of `key`, or nothing if it is absent or null.
pub fn get<'a>(object: &'a Value, key: &str) -> Option<&'a Value> {
    object.get(key).filter(|value| !value.is_null())
}

/// The value at a path of keys, or nothing if it is absent or null.
pub fn at<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, key| get(value, key))
}

/// The text of `key`; empty if there is none.
pub fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    get(object, key).and_then(Value::as_str).unwrap_or("")
}

/// The text at a path of keys; empty if there is none.
pub fn text_at<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    at(object, path).and_then(Value::as_str).unwrap_or("")
}

/// The number of `key`, if it is there.
pub fn int(object: &Value, key: &str) -> Option<i64> {
    get(object, key).and_then(Value::as_i64)
}

/// Whether `key` holds `true`.
pub fn flag(object: &Value, key: &str) -> bool {
    get(object, key).and_then(Value::as_bool).unwrap_or(false)
}

/// The elements of the list `key`; none if it is absent.
pub fn list<'a>(object: &'a Value, key: &str) -> &'a [Value] {
    get(object, key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The entries of the map `key`; none if it is absent.
pub fn entries<'a>(object: &'a Value, key: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    get(object, key).and_then(Value::as_object).into_iter().flatten()
}
