//! Values and types as Go prints them: upstream's messages are made of them.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// `fmt.Sprintf("%v", value)`.
pub(crate) fn value(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value);
    out
}

/// `fmt.Sprintf("%s", value)` for scalars, which complains of all but strings.
pub(super) fn value_as_string(scalar: &Value) -> String {
    match scalar {
        Value::Null => type_as_string(scalar).to_owned(),
        Value::Bool(_) | Value::Number(_) => format!("%!s({}={})", type_of(scalar), value(scalar)),
        other => value(other),
    }
}

/// `fmt.Sprintf("%v", map)`.
pub(super) fn object(map: &Map<String, Value>) -> String {
    let mut out = String::new();
    write_map(&mut out, map);
    out
}

/// `fmt.Sprintf("%v", list)`.
pub(super) fn list(list: &[Value]) -> String {
    let mut out = String::new();
    write_list(&mut out, list);
    out
}

/// `fmt.Sprintf("%s", reflect.TypeOf(value))`, which complains of what has no type.
pub(super) fn type_as_string(value: &Value) -> &'static str {
    if value.is_null() { "%!s(<nil>)" } else { type_of(value) }
}

/// `fmt.Sprintf("%T", value)`. Numbers that are too large for an integer are none.
pub(crate) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// What encoding/json calls the value when it has to refuse it.
pub(super) fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn write(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("<nil>"),
        Value::Bool(value) => write!(out, "{value}").expect("a String takes all"),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => out.push_str(&float_text(float)),
            _ => write!(out, "{number}").expect("a String takes all"),
        },
        Value::String(text) => out.push_str(text),
        Value::Array(list) => write_list(out, list),
        Value::Object(map) => write_map(out, map),
    }
}

fn write_list(out: &mut String, list: &[Value]) {
    out.push('[');
    for (i, item) in list.iter().enumerate() {
        if i > 0 {
            out.push(' ');
        }
        write(out, item);
    }
    out.push(']');
}

fn write_map(out: &mut String, map: &Map<String, Value>) {
    let mut entries = map.iter().collect::<Vec<_>>();
    entries.sort_unstable_by_key(|(key, _)| *key);
    out.push_str("map[");
    for (i, (key, item)) in entries.into_iter().enumerate() {
        if i > 0 {
            out.push(' ');
        }
        out.push_str(key);
        out.push(':');
        write(out, item);
    }
    out.push(']');
}

/// Go's `%v` of a float: the shortest digits, with an exponent below 1e-4 and from 1e21 on.
fn float_text(float: f64) -> String {
    let size = float.abs();
    if float == 0.0 || (1e-4..1e21).contains(&size) {
        return format!("{float}");
    }
    let text = format!("{float:e}");
    let (digits, exponent) = text.split_once('e').expect("{:e} writes an exponent");
    let exponent = exponent.parse::<i32>().expect("{:e} writes a number after the e");
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_print_as_in_go() {
        let tree = json!({"b": [1, "x y", null, true], "a": {"c": 1.5, "d": 1e21, "e": 1e-7}});
        assert_eq!(value(&tree), "map[a:map[c:1.5 d:1e+21 e:1e-07] b:[1 x y <nil> true]]");
    }
}
