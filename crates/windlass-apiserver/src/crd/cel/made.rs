//! Objects that an expression makes: `Object{spec: Object.spec{replicas: 3}}`, `JSONPatch{op: 'remove', path: '/x'}`.
//!
//! They are what mutating admission policies give. The names of their types are the paths of their fields.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::types::Ty;
use super::value::{Key, Val};

/// The type of a step of a JSON patch.
pub(super) const PATCH: &str = "JSONPatch";
/// The type of an object; those of its parts have paths behind it.
pub(super) const OBJECT: &str = "Object";

/// An object that was made.
#[derive(Clone, Debug)]
pub(super) struct Made<'a> {
    pub name: String,
    pub fields: BTreeMap<String, Val<'a>>,
}

/// Whether a name is that of a type of which objects can be made.
pub(super) fn is_type(name: &str) -> bool {
    name == PATCH || name == OBJECT || name.strip_prefix(OBJECT).is_some_and(|rest| rest.starts_with('.'))
}

/// What a field of such a type is.
pub(super) fn field(name: &str, field: &str) -> Ty {
    match (name, field) {
        (PATCH, "op" | "path" | "from") => Ty::Text,
        _ => Ty::Dyn,
    }
}

impl<'a> Made<'a> {
    /// Whether another one is of the same type and has the same fields.
    pub(super) fn equals(&self, other: &Made<'a>) -> super::value::Result<bool> {
        if self.name != other.name || !self.fields.keys().eq(other.fields.keys()) {
            return Ok(false);
        }
        for (a, b) in self.fields.values().zip(other.fields.values()) {
            if !a.equals(b)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Made<'_> {
    /// The object as JSON; the error says which part has a type that is not its place.
    pub(super) fn to_json(&self) -> Result<Value, String> {
        let mut faults = Vec::new();
        self.check(&self.name, &mut faults);
        if !faults.is_empty() {
            return Err(format!("type mismatch: {}", faults.join("\n")));
        }
        Ok(self.fields_to_json()?.into())
    }

    fn fields_to_json(&self) -> Result<Map<String, Value>, String> {
        self.fields.iter().map(|(name, value)| Ok((name.clone(), to_json(value)?))).collect()
    }

    /// The step of a JSON patch.
    pub(super) fn to_step(&self) -> Result<Value, String> {
        let text = |name: &str| match self.fields.get(name) {
            Some(Val::Text(text)) => text.to_string(),
            _ => String::new(),
        };
        let mut step = json!({"op": text("op"), "path": text("path")});
        let from = text("from");
        if !from.is_empty() {
            step["from"] = json!(from);
        }
        if let Some(value) = self.fields.get("value") {
            step["value"] = match value {
                Val::Made(made) => made.to_json()?,
                value => to_json(value)?,
            };
        }
        Ok(step)
    }

    fn check(&self, path: &str, faults: &mut Vec<String>) {
        if self.name != path {
            faults.push(format!(
                "unexpected type name {:?}, expected {path:?}, which matches field name path from root Object type",
                self.name
            ));
        }
        for (name, value) in &self.fields {
            check(value, &format!("{path}.{name}"), faults);
        }
    }
}

fn check(value: &Val<'_>, path: &str, faults: &mut Vec<String>) {
    match value {
        Val::Made(made) => made.check(path, faults),
        Val::List(list) => list.iter().for_each(|value| check(value, path, faults)),
        Val::Map(map) => map.values().for_each(|value| check(value, path, faults)),
        _ => {}
    }
}

fn to_json(value: &Val<'_>) -> Result<Value, String> {
    Ok(match value {
        Val::Null => Value::Null,
        Val::Bool(value) => json!(value),
        Val::Int(value) => json!(value),
        Val::UInt(value) => json!(value),
        Val::Double(value) => json!(value),
        Val::Text(text) => json!(&**text),
        Val::Bytes(bytes) => json!(STANDARD.encode(bytes)),
        Val::Node(node) => node.value.clone(),
        Val::List(list) | Val::Merged(list, _) => list.iter().map(to_json).collect::<Result<_, _>>()?,
        Val::Map(map) => {
            let entry = |(key, value): (&Key, &Val<'_>)| match key {
                Key::Text(key) => Ok((key.to_string(), to_json(value)?)),
                other => Err(format!("map key {other:?} is not a string")),
            };
            map.iter().map(entry).collect::<Result<Map<_, _>, String>>()?.into()
        }
        Val::Made(made) => made.fields_to_json()?.into(),
        other => return Err(format!("{} cannot be part of an object", other.type_name())),
    })
}
