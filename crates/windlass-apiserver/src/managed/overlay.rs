//! A configuration laid over an object by somebody who owns nothing: a mutating admission policy.

use serde_json::Value;

use super::shape::{Ref, Relation, Schema, Shape};
use super::{merge, validate};

/// The object with everything that the configuration says.
///
/// # Errors
/// When one of them is not of the kind's type, or the configuration has a part of something that is one value: all else of
/// it would be gone, which nobody wants who writes a part.
pub fn overlay(schema: &Schema<'_>, live: &Value, config: &Value) -> Result<Value, String> {
    validate::object(schema, config, false)
        .map_err(|faults| format!("failed to convert patch object to typed object: {faults}"))?;
    let mut whole = Vec::new();
    find(schema, schema.start(), config, "", &mut whole);
    if !whole.is_empty() {
        let places = whole.join(", ");
        return Err(format!(
            "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {places}"
        ));
    }
    validate::object(schema, live, true)
        .map_err(|faults| format!("failed to convert original object to typed object: {faults}"))?;
    Ok(merge::objects(schema, live, config))
}

/// The places of lists and maps that are one value.
fn find<'a>(schema: &Schema<'a>, at: Ref<'a>, value: &Value, path: &str, out: &mut Vec<String>) {
    match (schema.shape_of(at, value), value) {
        (Shape::Map(map), Value::Object(entries)) => {
            if map.atomic {
                out.push(path.to_owned());
            }
            for (key, value) in entries.iter().filter(|(key, _)| map.declares(key)) {
                find(schema, map.child_or_deduced(key), value, &format!("{path}.{key}"), out);
            }
        }
        (Shape::List(list), Value::Array(items)) => {
            if matches!(list.relation, Relation::Atomic) {
                out.push(path.to_owned());
            }
            for (index, item) in items.iter().enumerate() {
                find(schema, list.element, item, &format!("{path}[{index}]"), out);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema;

    fn laid(live: Value, config: Value) -> Result<Value, String> {
        let types = schema::builtin();
        let root = types.id("io.k8s.api.apps.v1.Deployment").unwrap();
        overlay(&Schema::builtin(types, root), &live, &config)
    }

    #[test]
    fn lists_with_keys_are_merged_and_what_is_one_value_is_refused() {
        let containers = |list: Value| json!({"spec": {"template": {"spec": {"containers": list}}}});
        let live = containers(json!([{"name": "a", "image": "x"}, {"name": "b", "image": "y"}]));
        let made = laid(live.clone(), containers(json!([{"name": "b", "image": "z"}]))).unwrap();
        assert_eq!(made, containers(json!([{"name": "a", "image": "x"}, {"name": "b", "image": "z"}])));
        let refused = laid(live.clone(), containers(json!([{"name": "b", "args": ["x"]}]))).unwrap_err();
        assert!(refused.ends_with("structs: .spec.template.spec.containers[0].args"), "{refused}");
        assert!(
            laid(live, json!({"spec": {"nothing": 1}})).unwrap_err().contains("field not declared in schema")
        );
    }
}
