//! Merge patch, RFC 7386, as evanphx/json-patch applies it.

use serde_json::{Map, Value};

use super::{PatchError, go};

/// Whether the body is a merge patch at all: a JSON object.
pub fn check_merge_patch(patch: &Value) -> Result<(), PatchError> {
    let message = match patch {
        Value::Object(_) => return Ok(()),
        Value::Null => "Invalid JSON Patch".to_owned(),
        other => {
            let kind = go::json_kind(other);
            format!(
                "error decoding patch: json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
            )
        }
    };
    Err(PatchError::Malformed(message))
}

/// Merges the patch into the target: `null` removes a member, objects merge, everything else replaces.
///
/// It goes beyond the RFC in one point, as upstream does: nulls are also dropped from objects inside a list when
/// that list does not take the place of an object.
pub fn merge_patch(target: &mut Value, patch: Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => merge_objects(target, patch),
        (target @ Value::Object(_), patch) => *target = patch,
        (target, mut patch) => {
            prune_nulls(&mut patch);
            *target = patch;
        }
    }
}

fn merge_objects(target: &mut Map<String, Value>, patch: Map<String, Value>) {
    for (key, value) in patch {
        if value.is_null() {
            target.swap_remove(&key);
        } else {
            merge_patch(target.entry(key).or_insert(Value::Null), value);
        }
    }
}

fn prune_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(prune_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(prune_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(target: Value, patch: Value, expected: Value) {
        let mut result = target.clone();
        merge_patch(&mut result, patch.clone());
        assert_eq!(result, expected, "{target} with {patch}");
    }

    #[test]
    fn the_examples_of_rfc_7386() {
        check(json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"}));
        check(json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"}));
        check(json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"}));
        check(json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"}));
        check(json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]}));
        check(json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}}));
        check(json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1}));
        check(json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"}));
        check(json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}}));
    }

    #[test]
    fn nulls_inside_lists_follow_upstream() {
        check(json!({}), json!({"a": [{"b": null}, null]}), json!({"a": [{}, null]}));
        check(json!({"a": {"x": 1}}), json!({"a": [{"b": null}]}), json!({"a": [{"b": null}]}));
    }
}
