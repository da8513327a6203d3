//! The order of keys between a patch and the type.

use serde_json::Value;

/// Sorts the keys of objects that a patch touched: upstream opens those as maps and leaves the rest as text. Objects
/// that are new are opened by merge patches alone, to drop nulls.
pub fn sort_touched(old: Option<&Value>, new: &mut Value, open_new: bool) {
    match (old, new) {
        (Some(old), new) if old == new => {}
        (None, new) if open_new => new.sort_all_objects(),
        (Some(old), Value::Object(map)) => {
            map.sort_keys();
            for (key, value) in map {
                sort_touched(old.get(key), value, open_new);
            }
        }
        (Some(old), Value::Array(list)) => {
            for (index, value) in list.iter_mut().enumerate() {
                sort_touched(old.get(index), value, open_new);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_was_touched_is_sorted() {
        let old = json!({"z": {"b": 1, "a": 1}, "m": {"b": 1, "a": 1}});
        let mut new = json!({"z": {"b": 1, "a": 1}, "m": {"b": 1, "a": 2}, "n": {"b": 1, "a": 1}});
        let mut raw = new.clone();
        sort_touched(Some(&old), &mut new, true);
        assert_eq!(new.to_string(), r#"{"m":{"a":2,"b":1},"n":{"a":1,"b":1},"z":{"b":1,"a":1}}"#);
        sort_touched(Some(&old), &mut raw, false);
        assert_eq!(raw.to_string(), r#"{"m":{"a":2,"b":1},"n":{"b":1,"a":1},"z":{"b":1,"a":1}}"#);
    }
}
