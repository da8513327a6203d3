//! One step of a path into an object, and the order of steps.

use std::cmp::Ordering;
use std::fmt;

use serde_json::{Number, Value};

/// One step of a path: which child of a value is meant.
#[derive(Clone, Debug)]
pub enum PathElement {
    /// A field of a structure, or a key of a map (`f:`).
    Field(String),
    /// An item of a list that is a map, by its key fields, sorted by name (`k:`).
    Key(Vec<(String, Value)>),
    /// An item of a list that is a set, by its value (`v:`).
    Value(Box<Value>),
    /// An item of a list, by its position (`i:`).
    Index(i64),
}

impl PathElement {
    /// Reads the text that stands in a `fieldsV1` tree. `Ok(None)` is a class of element that is not known, and
    /// which is to be ignored.
    pub fn parse(text: &str) -> Result<Option<PathElement>, String> {
        let Some((class, rest)) = text.as_bytes().get(..2).map(|_| text.split_at_checked(2)).unwrap_or(None)
        else {
            return Err("key must be 2 characters long:".to_owned());
        };
        let class = class.strip_suffix(':').ok_or_else(|| format!("missing colon: {text}"))?;
        let element = match class {
            "f" => PathElement::Field(rest.to_owned()),
            "v" => PathElement::Value(Box::new(serde_json::from_str(rest).map_err(|e| e.to_string())?)),
            "k" => {
                let fields: serde_json::Map<String, Value> =
                    serde_json::from_str(rest).map_err(|e| e.to_string())?;
                let mut fields: Vec<_> = fields.into_iter().collect();
                fields.sort_unstable_by(|a, b| a.0.cmp(&b.0));
                PathElement::Key(fields)
            }
            "i" => PathElement::Index(rest.parse().map_err(|_| format!("not an index: {rest}"))?),
            _ => return Ok(None),
        };
        Ok(Some(element))
    }

    /// The text that stands in a `fieldsV1` tree.
    pub fn to_text(&self) -> String {
        match self {
            PathElement::Field(name) => {
                let mut text = String::with_capacity(name.len() + 2);
                text.push_str("f:");
                text.push_str(name);
                text
            }
            PathElement::Key(fields) => {
                let mut text = String::from("k:{");
                for (i, (name, value)) in fields.iter().enumerate() {
                    if i > 0 {
                        text.push(',');
                    }
                    go_json_string(name, &mut text);
                    text.push(':');
                    go_json(value, &mut text);
                }
                text.push('}');
                text
            }
            PathElement::Value(value) => {
                let mut text = String::from("v:");
                go_json(value, &mut text);
                text
            }
            PathElement::Index(index) => format!("i:{index}"),
        }
    }

    fn class(&self) -> u8 {
        match self {
            PathElement::Field(_) => 0,
            PathElement::Key(_) => 1,
            PathElement::Value(_) => 2,
            PathElement::Index(_) => 3,
        }
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (PathElement::Field(a), PathElement::Field(b)) => a.cmp(b),
            (PathElement::Key(a), PathElement::Key(b)) => compare_fields(a, b),
            (PathElement::Value(a), PathElement::Value(b)) => compare_values(a, b),
            (PathElement::Index(a), PathElement::Index(b)) => a.cmp(b),
            _ => self.class().cmp(&other.class()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for PathElement {}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathElement::Field(name) => write!(f, ".{name}"),
            PathElement::Key(fields) => {
                f.write_str("[")?;
                for (i, (name, value)) in fields.iter().enumerate() {
                    let comma = if i > 0 { "," } else { "" };
                    write!(f, "{comma}{name}={}", Shown(value))?;
                }
                f.write_str("]")
            }
            PathElement::Value(value) => write!(f, "[={}]", Shown(value)),
            PathElement::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// A value as paths show it.
struct Shown<'a>(&'a Value);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::String(text) => write!(f, "{text:?}"),
            Value::Array(items) => {
                f.write_str("[")?;
                for (i, item) in items.iter().enumerate() {
                    let comma = if i > 0 { "," } else { "" };
                    write!(f, "{comma}{}", Shown(item))?;
                }
                f.write_str("]")
            }
            Value::Object(map) => map.iter().try_for_each(|(key, value)| write!(f, "{key}={}", Shown(value))),
            other => write!(f, "{other}"),
        }
    }
}

/// Whether two values are the same: numbers by their value, objects whatever the order of their keys.
pub fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b) == Ordering::Equal,
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}

fn compare_values(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let unequal = a.iter().zip(b).map(|(a, b)| compare_values(a, b)).find(|o| o.is_ne());
            unequal.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => {
            let sorted = |map: &serde_json::Map<String, Value>| {
                let mut fields: Vec<_> = map.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
                fields.sort_unstable_by(|a, b| a.0.cmp(&b.0));
                fields
            };
            compare_fields(&sorted(a), &sorted(b))
        }
        (a, b) => rank(a).cmp(&rank(b)),
    }
}

fn compare_fields(a: &[(String, Value)], b: &[(String, Value)]) -> Ordering {
    let pairs = a.iter().zip(b);
    let unequal =
        pairs.map(|(a, b)| a.0.cmp(&b.0).then_with(|| compare_values(&a.1, &b.1))).find(|o| o.is_ne());
    unequal.unwrap_or_else(|| a.len().cmp(&b.len()))
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

/// Compares exactly, so that the order is total however large the numbers are: sorting depends on it.
fn compare_numbers(a: &Number, b: &Number) -> Ordering {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(a), None) => compare_integer(a, float(b)),
        (None, Some(b)) => compare_integer(b, float(a)).reverse(),
        (None, None) => float(a).total_cmp(&float(b)),
    }
}

fn compare_integer(integer: i64, float: f64) -> Ordering {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if float >= LIMIT {
        return Ordering::Less;
    }
    if float < -LIMIT {
        return Ordering::Greater;
    }
    // In range, so the cast is exact.
    integer.cmp(&(float.trunc() as i64)).then_with(|| 0.0_f64.total_cmp(&(float.fract() + 0.0)))
}

fn float(number: &Number) -> f64 {
    // Negative zero is zero here.
    number.as_f64().unwrap_or_default() + 0.0
}

/// JSON as Go's encoder writes it: keys sorted, and `<`, `>`, `&` and the line separators escaped.
pub fn go_json(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => go_json_string(text, out),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                go_json(item, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            let mut keys: Vec<_> = map.iter().collect();
            keys.sort_unstable_by_key(|(key, _)| *key);
            out.push('{');
            for (i, (key, value)) in keys.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                go_json_string(key, out);
                out.push(':');
                go_json(value, out);
            }
            out.push('}');
        }
        // An integral float is written without a fraction.
        Value::Number(number) => match number.as_i64() {
            None if float(number).fract() == 0.0 && float(number).abs() < 1e15 => {
                out.push_str(&(float(number) as i64).to_string());
            }
            _ => out.push_str(&number.to_string()),
        },
        other => out.push_str(&other.to_string()),
    }
}

fn go_json_string(text: &str, out: &mut String) {
    use fmt::Write as _;
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                write!(out, "\\u{:04x}", c as u32).expect("a String takes all");
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn elements_read_as_they_are_written() {
        for text in [
            "f:a.b/c",
            "k:{\"containerPort\":80,\"protocol\":\"TCP\"}",
            "v:\"x\"",
            "v:1",
            "v:true",
            "v:null",
            "i:3",
            r#"v:"a\u003cb""#,
        ] {
            let element = PathElement::parse(text).unwrap().unwrap();
            assert_eq!(element.to_text(), text);
        }
        assert_eq!(PathElement::parse("x:1"), Ok(None));
        assert!(PathElement::parse("f").is_err());
        assert!(PathElement::parse("fx").is_err());
        assert!(PathElement::parse("i:a").is_err());
        assert!(PathElement::parse("v:{").is_err());
        assert!(PathElement::parse("é:").is_err());
    }

    #[test]
    fn paths_print_as_kubernetes_prints_them() {
        let key = PathElement::Key(vec![("port".into(), json!(80)), ("protocol".into(), json!("TCP"))]);
        assert_eq!(key.to_string(), "[port=80,protocol=\"TCP\"]");
        assert_eq!(PathElement::Value(Box::new(json!("a"))).to_string(), "[=\"a\"]");
        assert_eq!(PathElement::Field("a/b".into()).to_string(), ".a/b");
        assert_eq!(PathElement::Index(2).to_string(), "[2]");
    }

    #[test]
    fn numbers_compare_by_value_and_exactly() {
        assert!(same(&json!(1), &json!(1.0)));
        assert!(same(&json!({"a": 1, "b": 2}), &json!({"b": 2, "a": 1.0})));
        assert!(!same(&json!(1), &json!("1")));
        let number = |value: Value| value.as_number().cloned().unwrap();
        let (below, float, above) = (json!(1i64 << 53), json!((1u64 << 53) as f64), json!((1i64 << 53) + 1));
        assert_eq!(compare_numbers(&number(below), &number(float.clone())), Ordering::Equal);
        assert_eq!(compare_numbers(&number(float), &number(above)), Ordering::Less);
        assert_eq!(compare_numbers(&number(json!(-0.0)), &number(json!(0))), Ordering::Equal);
    }
}
