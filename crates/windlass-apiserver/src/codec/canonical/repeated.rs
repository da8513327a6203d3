//! Keys that stand twice in an object: Go reads every occurrence, each on top of what was there.

use serde_json::{Map, Value, map};

use super::Decoder;
use crate::codec::{DecodeError, path::Path};
use crate::json::Repeated;
use crate::schema::{Type, TypeId, Types};

/// Reads all occurrences of all keys. Returns the tree that Go ends with, to be made canonical, and adds to `problems`
/// what a strict reader says, in the order of the document.
///
/// # Errors
/// A value of the wrong type, even if a later one of the same key is right.
pub(in crate::codec) fn settle(
    types: &Types,
    id: TypeId,
    value: Value,
    repeated: &[Repeated],
    problems: &mut Vec<String>,
) -> Result<Value, DecodeError> {
    let mut unknown = Vec::new();
    let mut decoder = Decoder::new(types, &mut unknown);
    decoder.twice = Twice { left: repeated.to_vec(), named: Vec::new(), some: true };
    decoder.whole(id, value.clone(), &Path::Root)?;
    let named = std::mem::take(&mut decoder.twice.named);
    let mut named = named.into_iter().peekable();
    // Go says each thing once.
    let mut say = |problem: String| {
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    };
    for (index, path) in unknown.iter().enumerate() {
        while let Some((_, path)) = named.next_if(|(before, _)| *before <= index) {
            say(format!("duplicate field {path:?}"));
        }
        say(format!("unknown field {path:?}"));
    }
    named.for_each(|(_, path)| say(format!("duplicate field {path:?}")));
    let mut twice = Twice { left: repeated.to_vec(), ..Twice::default() };
    Ok(fold(types, Some(&Type::Struct(id)), value, &mut twice, &Path::Root))
}

/// The objects that have keys twice and were not met yet, and the keys that were named.
#[derive(Default)]
pub(super) struct Twice {
    left: Vec<Repeated>,
    /// Each with the number of unknown fields that were named before it.
    named: Vec<(usize, String)>,
    some: bool,
}

impl Twice {
    /// Whether there are any in this body.
    pub fn are_some(&self) -> bool {
        self.some
    }

    /// The entries of the object at `path`, in the order of the document.
    pub fn entries(&mut self, path: &Path<'_>, map: Map<String, Value>) -> Entries {
        if self.left.is_empty() {
            return Entries::Once(map.into_iter());
        }
        let path = path.to_string();
        match self.left.iter().position(|repeated| repeated.is_of(&path, &map)) {
            Some(index) => Entries::All(self.left.remove(index).entries(map).into_iter()),
            None => Entries::Once(map.into_iter()),
        }
    }
}

/// The entries of an object.
pub(super) enum Entries {
    Once(map::IntoIter),
    All(std::vec::IntoIter<(String, Value)>),
}

impl Iterator for Entries {
    type Item = (String, Value);

    fn next(&mut self) -> Option<(String, Value)> {
        match self {
            Entries::Once(entries) => entries.next(),
            Entries::All(entries) => entries.next(),
        }
    }
}

/// The fields of a structure that were met.
#[derive(Default)]
pub(super) struct Seen(Vec<usize>);

impl Seen {
    /// Whether the field was met before.
    pub fn again(&mut self, field: usize) -> bool {
        let again = self.0.contains(&field);
        if !again {
            self.0.push(field);
        }
        again
    }
}

impl Decoder<'_> {
    /// Remembers that the key at `path` stood twice.
    pub(super) fn name_twice(&mut self, path: &Path<'_>) {
        if let Some(unknown) = &self.unknown {
            self.twice.named.push((unknown.len(), path.to_string()));
        }
    }
}

/// The tree with all occurrences of all keys put on top of each other.
fn fold(types: &Types, ty: Option<&Type>, value: Value, twice: &mut Twice, path: &Path<'_>) -> Value {
    match value {
        Value::Object(map) => {
            let mut out = Map::with_capacity(map.len());
            for (key, value) in twice.entries(path, map) {
                let field = match ty {
                    Some(Type::Struct(id)) => types.get(*id).field(&key),
                    _ => None,
                };
                let inner = match ty {
                    Some(Type::Map(element)) => Some(&**element),
                    _ => field.map(|field| &field.ty),
                };
                let value = fold(types, inner, value, twice, &path.key(&key));
                let value = match (out.get_mut(&key), field) {
                    (Some(old), Some(field)) => overlay(types, &field.ty, field.ptr, old.take(), value),
                    _ => value,
                };
                out.insert(key, value);
            }
            Value::Object(out)
        }
        Value::Array(list) => {
            let element = match ty {
                Some(Type::List(element)) => Some(&**element),
                _ => None,
            };
            let fold = |(index, value)| fold(types, element, value, twice, &path.index(index));
            Value::Array(list.into_iter().enumerate().map(fold).collect())
        }
        other => other,
    }
}

/// What a Go value of type `ty` is after both were read into it. Structures keep the fields that `new` does not have,
/// maps their other keys; elements of lists are read into those that are there.
fn overlay(types: &Types, ty: &Type, ptr: bool, old: Value, new: Value) -> Value {
    match (ty, old, new) {
        (
            Type::Struct(_) | Type::String | Type::Bool | Type::Int32 | Type::Int64 | Type::Float64,
            old,
            Value::Null,
        ) if !ptr => old,
        (Type::Struct(id), Value::Object(mut old), Value::Object(new)) => {
            for (key, value) in new {
                let value = match (old.get_mut(&key), types.get(*id).field(&key)) {
                    (Some(old), Some(field)) => overlay(types, &field.ty, field.ptr, old.take(), value),
                    _ => value,
                };
                old.insert(key, value);
            }
            Value::Object(old)
        }
        (Type::Map(_), Value::Object(mut old), Value::Object(new)) => {
            old.extend(new);
            Value::Object(old)
        }
        (Type::List(element), Value::Array(old), Value::Array(new)) => {
            let mut old = old.into_iter();
            let over = |new| match old.next() {
                Some(old) => overlay(types, element, false, old, new),
                None => new,
            };
            Value::Array(new.into_iter().map(over).collect())
        }
        (_, _, new) => new,
    }
}
