//! Lists that are sets or maps hold nothing twice.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::props::Props;
use super::text;
use crate::field::{Errors, Path, Reason};

/// Reports every element of a set, and every key of a map, that stands twice.
pub(super) fn check(props: &Props, value: &Value, path: &Path<'_>, errors: &mut Errors) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                if let Some(schema) = props.properties.get(key) {
                    check(schema, value, &path.child(key), errors);
                }
                if let Some(schema) = props.additional_schema() {
                    check(schema, value, &path.key(key), errors);
                }
            }
        }
        Value::Array(list) => {
            match props.list_type.as_deref() {
                Some("set") => {
                    for i in repeated(list.iter().map(|value| text::sorted(value).to_string())) {
                        duplicate(errors, &path.index(i), &list[i]);
                    }
                }
                Some("map") => check_keys(props, list, path, errors),
                _ => {}
            }
            if let Some(items) = &props.items {
                for (i, value) in list.iter().enumerate() {
                    check(items, value, &path.index(i), errors);
                }
            }
        }
        _ => {}
    }
}

fn check_keys(props: &Props, list: &[Value], path: &Path<'_>, errors: &mut Errors) {
    if let Some(i) = list.iter().position(|value| !value.is_object() && !value.is_null()) {
        let message = format!(
            "Invalid value: {}: must be an object for an array of list-type map",
            text::value(&list[i])
        );
        errors.push(Reason::Invalid, &path.index(i), message);
        return;
    }
    let keys: Vec<Value> = list
        .iter()
        .map(|value| {
            let pick = |key: &String| Some((key.clone(), value.as_object()?.get(key)?.clone()));
            text::sorted(&Value::Object(props.list_map_keys.iter().filter_map(pick).collect::<Map<_, _>>()))
        })
        .collect();
    for i in repeated(keys.iter().map(Value::to_string)) {
        duplicate(errors, &path.index(i), &keys[i]);
    }
}

/// The places where something stands for the second time; a third time is not reported.
fn repeated(texts: impl Iterator<Item = String>) -> Vec<usize> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut found = Vec::new();
    for (i, text) in texts.enumerate() {
        let times = seen.entry(text).or_default();
        *times += 1;
        if *times == 2 {
            found.push(i);
        }
    }
    found
}

fn duplicate(errors: &mut Errors, path: &Path<'_>, value: &Value) {
    errors.push(Reason::Duplicate, path, format!("Duplicate value: {}", text::value(value)));
}
