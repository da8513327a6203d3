//! Filling in defaults, and dropping nulls that a field may not hold.

use serde_json::Value;

use super::props::{Additional, Props};

/// Drops nulls of fields that are not nullable and have no default, then fills in defaults.
///
/// A null of a field that is not nullable and has a default becomes the default.
pub(super) fn apply(props: &Props, value: &mut Value) {
    drop_nulls(Some(props), value);
    fill(props, value);
}

fn drop_nulls(props: Option<&Props>, value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, value| {
                let schema = props.and_then(|props| props.child(key));
                !(value.is_null() && schema.is_some_and(|s| !s.nullable && s.default.is_none()))
            });
            for (key, value) in map.iter_mut() {
                drop_nulls(props.and_then(|props| props.child(key)), value);
            }
        }
        Value::Array(list) => {
            let items = props.and_then(|props| props.items.as_deref());
            list.iter_mut().for_each(|value| drop_nulls(items, value));
        }
        _ => {}
    }
}

/// Fills in defaults without dropping nulls.
pub(super) fn fill(props: &Props, value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (key, schema) in &props.properties {
                let Some(default) = &schema.default else { continue };
                let missing = map.get(key).is_none_or(|value| value.is_null() && !schema.nullable);
                if missing {
                    map.insert(key.clone(), default.clone());
                }
            }
            for (key, value) in map.iter_mut() {
                if let Some(schema) = props.properties.get(key) {
                    fill(schema, value);
                } else if let Some(Additional::Schema(schema)) = &props.additional {
                    fill_element(schema, value);
                }
            }
        }
        Value::Array(list) => {
            if let Some(items) = &props.items {
                list.iter_mut().for_each(|value| fill_element(items, value));
            }
        }
        _ => {}
    }
}

fn fill_element(schema: &Props, value: &mut Value) {
    if let Some(default) = schema.default.as_ref().filter(|_| value.is_null() && !schema.nullable) {
        *value = default.clone();
    }
    fill(schema, value);
}
