//! The columns that a custom resource definition declares.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::age;
use super::json_path::{JsonPath, json_path};
use crate::json;
use crate::patch::go;

/// A column beside the name.
#[derive(Clone, Debug, PartialEq)]
pub struct CustomColumn {
    /// Its entry of the table's `columnDefinitions`.
    pub definition: Value,
    path: JsonPath,
}

/// The columns of a version's `additionalPrinterColumns`, without the name that every table begins with. Without a
/// declaration there is the age. A path that cannot be read ends the list, as upstream.
pub fn custom_columns(declared: &[Value]) -> Vec<CustomColumn> {
    let age = json!({
        "name": "Age",
        "type": "date",
        "jsonPath": ".metadata.creationTimestamp",
        "description": CREATION_TIMESTAMP,
    });
    let declared = if declared.is_empty() { std::slice::from_ref(&age) } else { declared };
    declared.iter().map_while(column).collect()
}

/// The first column of every table.
pub fn name_column() -> Value {
    json!({"name": "Name", "type": "string", "format": "name", "description": NAME, "priority": 0})
}

/// The cells of the object's row: its name, and what the paths lead to.
pub fn custom_cells(columns: &[CustomColumn], object: &Value, now: Timestamp) -> Vec<Value> {
    let mut cells = vec![json!(json::str_at(object, &["metadata", "name"]))];
    cells.extend(columns.iter().map(|column| cell(column, object, now).unwrap_or_default()));
    cells
}

fn column(declared: &Value) -> Option<CustomColumn> {
    let text = |key: &str| json::str_at(declared, &[key]);
    let path = text("jsonPath");
    let description = match text("description") {
        "" => format!("Custom resource definition column (in JSONPath format): {path}"),
        description => description.to_owned(),
    };
    let definition = json!({
        "name": text("name"),
        "type": text("type"),
        "format": text("format"),
        "description": description,
        "priority": declared.get("priority").and_then(Value::as_i64).unwrap_or(0),
    });
    Some(CustomColumn { definition, path: json_path(path).ok()? })
}

/// `None` where the path leads nowhere, or to a value of another type.
fn cell(column: &CustomColumn, object: &Value, now: Timestamp) -> Option<Value> {
    let found = column.path.find(object).ok()?;
    let value = found.first()?.as_ref();
    match json::str_at(&column.definition, &["type"]) {
        "string" => Some(Value::String(printed(value))),
        "integer" => value.as_i64().or_else(|| value.as_f64().map(go_integer)).map(Value::from),
        "number" => value.as_f64().map(go_number),
        "boolean" => value.as_bool().map(Value::from),
        "date" => value.as_str().map(|text| Value::String(date(text, now))),
        _ => None,
    }
}

/// A float without a fraction is an integer in Go's JSON.
fn go_number(float: f64) -> Value {
    if float.fract() == 0.0 && fits_integer(float) { json!(float as i64) } else { json!(float) }
}

/// Go's conversion, on the machines it is used on: what does not fit becomes the least integer.
fn go_integer(float: f64) -> i64 {
    if fits_integer(float) { float as i64 } else { i64::MIN }
}

fn fits_integer(float: f64) -> bool {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    (-LIMIT..LIMIT).contains(&float)
}

fn date(text: &str, now: Timestamp) -> String {
    match text {
        "" | "null" => "<unknown>".to_owned(),
        text => text.parse().map_or_else(|_| "<invalid>".to_owned(), |then| age::between(then, now)),
    }
}

/// A value as text: JSON for lists and objects, Go's plain form for scalars.
fn printed(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".to_owned(),
        Value::Array(_) | Value::Object(_) => {
            let mut out = String::new();
            write_json(&mut out, value);
            out
        }
        scalar => go::value(scalar),
    }
}

/// JSON as Go writes it: sorted keys, no fraction where there is none, and nothing that HTML could take for markup.
fn write_json(out: &mut String, value: &Value) {
    match value {
        Value::Object(map) => write_object(out, map),
        Value::Array(list) => {
            out.push('[');
            for (i, value) in list.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_json(out, value);
            }
            out.push(']');
        }
        Value::String(text) => write_string(out, text),
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(float) => write!(out, "{}", go_number(float)).expect("a String takes all"),
            None => write!(out, "{number}").expect("a String takes all"),
        },
        other => write!(out, "{other}").expect("a String takes all"),
    }
}

fn write_object(out: &mut String, map: &Map<String, Value>) {
    let mut entries = map.iter().collect::<Vec<_>>();
    entries.sort_unstable_by_key(|(key, _)| *key);
    out.push('{');
    for (i, (key, value)) in entries.into_iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        write_string(out, key);
        out.push(':');
        write_json(out, value);
    }
    out.push('}');
}

fn write_string(out: &mut String, text: &str) {
    for c in Value::from(text).to_string().chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                write!(out, "\\u{:04x}", u32::from(c)).expect("a String takes all");
            }
            c => out.push(c),
        }
    }
}

const NAME: &str = "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

const CREATION_TIMESTAMP: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";
