//! Whether a value is of its type, as far as field ownership has to know.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use super::element::PathElement;
use super::shape::{List, Map, Ref, Relation, Scalar, Schema, Shape};
use crate::patch::go;

/// All that is wrong with a value.
#[derive(Debug, Default)]
pub(super) struct Faults(Vec<Fault>);

#[derive(Debug)]
struct Fault {
    /// The steps to the value, innermost first, since they are known on the way out.
    path: Vec<String>,
    message: String,
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [fault] = self.0.as_slice() {
            return write!(f, "{fault}");
        }
        f.write_str("errors:")?;
        self.0.iter().try_for_each(|fault| write!(f, "\n  {fault}"))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.iter().rev().try_for_each(|step| f.write_str(step))?;
        let colon = if self.path.is_empty() { "" } else { ": " };
        write!(f, "{colon}{}", self.message)
    }
}

/// Checks an object. Items that stand twice in a set or a list with keys are a fault, unless they are allowed.
pub(super) fn object(schema: &Schema<'_>, object: &Value, duplicates: bool) -> Result<(), Faults> {
    let mut faults = Faults::default();
    Walk { schema, duplicates, faults: &mut faults }.value(schema.start(), object);
    if faults.0.is_empty() { Ok(()) } else { Err(faults) }
}

struct Walk<'s, 'a> {
    schema: &'s Schema<'a>,
    duplicates: bool,
    faults: &'s mut Faults,
}

impl<'a> Walk<'_, 'a> {
    fn value(&mut self, at: Ref<'a>, value: &Value) {
        if value.is_null() {
            return;
        }
        match self.schema.shape(at) {
            Shape::Scalar(scalar) => {
                if let Some(message) = scalar_fault(scalar, value) {
                    self.fault(message);
                }
            }
            Shape::List(list) => match value {
                Value::Array(items) => self.list(list, items),
                other => self.fault(format!("expected list, got &{{{}}}", go_value(other))),
            },
            Shape::Map(map) => match value {
                Value::Object(fields) => self.map(map, fields),
                other => self.fault(format!("expected map, got &{{{}}}", go_value(other))),
            },
            Shape::Any { .. } => {}
        }
    }

    fn list(&mut self, list: List<'a>, items: &[Value]) {
        if matches!(list.relation, Relation::Atomic) {
            for (index, item) in items.iter().enumerate() {
                self.below(|walk| walk.value(list.element, item), || format!("[{index}]"));
            }
            return;
        }
        let mut seen = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            let element = match self.schema.item(&list, item) {
                Ok(element) => element,
                Err(message) => return self.fault(format!("element {index}: {message}")),
            };
            if !self.duplicates && seen.contains(&element) {
                self.fault(format!("duplicate entries for key {element}"));
            }
            self.below(|walk| walk.value(list.element, item), || element.to_string());
            seen.insert(element);
        }
    }

    fn map(&mut self, map: Map<'a>, fields: &serde_json::Map<String, Value>) {
        for (name, value) in fields {
            let step = || PathElement::Field(name.clone()).to_string();
            match map.child(name) {
                Some(at) => self.below(|walk| walk.value(at, value), step),
                None => {
                    self.below(|walk| walk.fault("field not declared in schema".to_owned()), step);
                    return;
                }
            }
        }
    }

    fn below(&mut self, visit: impl FnOnce(&mut Self), step: impl Fn() -> String) {
        let before = self.faults.0.len();
        visit(self);
        for fault in &mut self.faults.0[before..] {
            fault.path.push(step());
        }
    }

    fn fault(&mut self, message: String) {
        self.faults.0.push(Fault { path: Vec::new(), message });
    }
}

/// What is wrong with a scalar; the texts carry Go's way of printing values.
fn scalar_fault(scalar: Scalar, value: &Value) -> Option<String> {
    match scalar {
        Scalar::Numeric if !value.is_number() => {
            Some(format!("expected numeric (int or float), got {}", go::type_of(value)))
        }
        Scalar::String if !value.is_string() => {
            Some(format!("expected string, got &value.valueUnstructured{{Value:{}}}", go_syntax(value)))
        }
        Scalar::Boolean if !value.is_boolean() => {
            Some(format!("expected boolean, got &{{{}}}", go_value(value)))
        }
        Scalar::Untyped if value.is_array() || value.is_object() => {
            Some(format!("expected any scalar, got &{{{}}}", go_value(value)))
        }
        _ => None,
    }
}

/// `%v` of a decoded value.
fn go_value(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(go_value).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let mut fields: Vec<_> = map.iter().map(|(key, value)| (key, go_value(value))).collect();
            fields.sort_unstable();
            let fields: Vec<_> = fields.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
            format!("map[{}]", fields.join(" "))
        }
        other => other.to_string(),
    }
}

/// `%#v` of a decoded value.
fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => format!("{text:?}"),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(go_syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(map) => {
            let mut fields: Vec<_> = map.iter().map(|(key, value)| (key, go_syntax(value))).collect();
            fields.sort_unstable();
            let fields: Vec<_> = fields.into_iter().map(|(key, value)| format!("{key:?}:{value}")).collect();
            format!("map[string]interface {{}}{{{}}}", fields.join(", "))
        }
        other => other.to_string(),
    }
}
