//! `/scale` needs numbers where the definition says that they are.

use serde_json::Value;

use super::Scale;
use crate::field::{Error, Errors, Reason};
use crate::patch::go;

/// Checks what `/scale` would read. On an update of the status, `spec` is left alone.
pub(super) fn check(scale: Option<&Scale>, object: &Value, with_spec: bool, errors: &mut Errors) {
    let Some(scale) = scale else { return };
    if with_spec {
        check_replicas(&scale.spec_path, object, errors);
    }
    check_replicas(&scale.status_path, object, errors);
    let Some(path) = &scale.selector_path else { return };
    match find(path, object) {
        Err(fault) => push(errors, path, &"".into(), &fault),
        Ok(Some(value)) if !value.is_string() => {
            push(errors, path, &"".into(), &mistyped(path, value, "string"))
        }
        Ok(_) => {}
    }
}

fn check_replicas(path: &str, object: &Value, errors: &mut Errors) {
    let value = match find(path, object) {
        Ok(Some(value)) => value,
        Ok(None) => return,
        Err(fault) => return push(errors, path, &0.into(), &fault),
    };
    match value.as_i64() {
        None => push(errors, path, &0.into(), &mistyped(path, value, "int64")),
        Some(replicas) if replicas < 0 => push(errors, path, value, "should be a non-negative integer"),
        Some(replicas) if replicas > i64::from(i32::MAX) => {
            push(errors, path, value, &format!("should be less than or equal to {}", i32::MAX));
        }
        Some(_) => {}
    }
}

/// What stands at a path of fields; an error if something on the way is no object. Below a null there is nothing.
fn find<'a>(path: &str, object: &'a Value) -> Result<Option<&'a Value>, String> {
    let mut value = object;
    for key in path.trim_start_matches('.').split('.') {
        let below = match value {
            Value::Object(map) => map.get(key),
            Value::Null => None,
            _ => return Err(mistyped(path, value, "map[string]interface{}")),
        };
        match below {
            Some(below) => value = below,
            None => return Ok(None),
        }
    }
    Ok(Some(value))
}

fn mistyped(path: &str, value: &Value, wanted: &str) -> String {
    let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    format!("{path} accessor error: {shown} is of the type {}, expected {wanted}", go::type_of(value))
}

fn push(errors: &mut Errors, path: &str, value: &Value, detail: &str) {
    let message = format!("Invalid value: {value}: {detail}");
    errors.0.push(Error { reason: Reason::Invalid, field: path.to_owned(), message });
}
