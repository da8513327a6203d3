//! Filling in defaults, and dropping nulls that a field may not hold.

use serde_json::Value;

use super::props::{Additional, Props};

/// Drops nulls of fields that are not nullable and have no default, then fills in defaults.
///
/// A null of a field that is not nullable and has a default becomes the default. Whether anything was done.
pub(super) fn apply(props: &Props, value: &mut Value) -> bool {
    let dropped = drop_nulls(Some(props), value);
    fill(props, value) || dropped
}

fn drop_nulls(props: Option<&Props>, value: &mut Value) -> bool {
    match value {
        Value::Object(map) => {
            let before = map.len();
            map.retain(|key, value| {
                let schema = props.and_then(|props| props.child(key));
                !(value.is_null() && schema.is_some_and(|s| !s.nullable && s.default.is_none()))
            });
            let mut dropped = map.len() != before;
            for (key, value) in map.iter_mut() {
                dropped |= drop_nulls(props.and_then(|props| props.child(key)), value);
            }
            dropped
        }
        Value::Array(list) => {
            let items = props.and_then(|props| props.items.as_deref());
            list.iter_mut().fold(false, |dropped, value| drop_nulls(items, value) | dropped)
        }
        _ => false,
    }
}

/// Fills in defaults without dropping nulls. Whether there was anything to fill in.
pub(super) fn fill(props: &Props, value: &mut Value) -> bool {
    match value {
        Value::Object(map) => {
            let mut filled = false;
            for (key, schema) in &props.properties {
                let Some(default) = &schema.default else { continue };
                let missing = map.get(key).is_none_or(|value| value.is_null() && !schema.nullable);
                if missing {
                    map.insert(key.clone(), default.clone());
                    filled = true;
                }
            }
            for (key, value) in map.iter_mut() {
                if let Some(schema) = props.properties.get(key) {
                    filled |= fill(schema, value);
                } else if let Some(Additional::Schema(schema)) = &props.additional {
                    filled |= fill_element(schema, value);
                }
            }
            filled
        }
        Value::Array(list) => match &props.items {
            Some(items) => list.iter_mut().fold(false, |filled, value| fill_element(items, value) | filled),
            None => false,
        },
        _ => false,
    }
}

fn fill_element(schema: &Props, value: &mut Value) -> bool {
    let default = schema.default.as_ref().filter(|_| value.is_null() && !schema.nullable);
    if let Some(default) = default {
        *value = default.clone();
    }
    fill(schema, value) || default.is_some()
}
