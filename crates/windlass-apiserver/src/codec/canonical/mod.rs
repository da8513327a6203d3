//! What kube-apiserver does by decoding JSON into a Go structure and encoding it again, done on the tree.
//!
//! Fields come out in the order of the structure, zero values are left out or written as Go's tags say, scalars get
//! their canonical text, and what the structure does not know is dropped and named.

mod go;
mod leaf;
mod message;
mod repeated;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

use super::{DecodeError, path::Path};
use crate::schema::{Type, TypeId, Types};
pub(super) use go::{Go, Slots, float, zero};
use message::{Place, go_name};
pub(super) use repeated::settle;
use repeated::{Seen, Twice};

/// The OpenAPI name of the schema type, at which `additionalProperties` and its like begin again.
pub(super) const SCHEMA: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

/// The OpenAPI name of the metadata of every object.
pub(super) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// How many unknown fields are named, as in Go.
const UNKNOWN_MAX: usize = 100;

/// The canonical tree of `value` as an object of type `id`. Paths of unknown fields are added to `unknown`, in the
/// order of the body.
///
/// # Errors
/// A value of the wrong type, with the message that Go's decoder gives.
pub fn canonical(
    types: &Types,
    id: TypeId,
    value: Value,
    unknown: &mut Vec<String>,
) -> Result<Value, DecodeError> {
    let mut decoder = Decoder::new(types, unknown);
    decoder.whole(id, value, &Path::Root)
}

/// The same of a tree that is canonical but for what the server has changed in it. Its times stay as they are: one of
/// the last hours of the year 9999 may be of the year 10000 in UTC, which cannot be read.
///
/// # Errors
/// A value of the wrong type.
pub fn canonical_again(types: &Types, id: TypeId, value: Value) -> Result<Value, DecodeError> {
    let mut unknown = Vec::new();
    let mut decoder = Decoder { timed: true, ..Decoder::new(types, &mut unknown) };
    decoder.whole(id, value, &Path::Root)
}

/// Makes the metadata of a custom object canonical, in place; the rest is left alone. `parent` is the path of the
/// object, empty at the root and `spec.template` or the like for embedded ones.
///
/// Custom objects are written with sorted keys, so the metadata is, too.
///
/// # Errors
/// Metadata of the wrong shape.
pub fn canonical_meta(
    types: &Types,
    parent: &str,
    value: &mut Value,
    unknown: &mut Vec<String>,
) -> Result<(), DecodeError> {
    let Some(meta) = value.as_object_mut().and_then(|object| object.get_mut("metadata")) else {
        return Ok(());
    };
    let id = types.id(OBJECT_META).expect("the table has ObjectMeta");
    let mut decoder = Decoder::new(types, unknown);
    let root = if parent.is_empty() { Path::Root } else { Path::Key(&Path::Root, parent) };
    let path = root.key("metadata");
    *meta = decoder.whole(id, meta.take(), &path)?;
    meta.sort_all_objects();
    Ok(())
}

/// Drops the fields of an object's metadata that are not of their type.
pub fn drop_malformed_meta(types: &Types, value: &mut Value) {
    let Some(metadata) = value.get_mut("metadata") else { return };
    let Some(fields) = metadata.as_object_mut() else { return *metadata = Value::Object(Map::new()) };
    fields.retain(|key, field| {
        let mut alone = json!({"metadata": {key: field.clone()}});
        canonical_meta(types, "", &mut alone, &mut Vec::new()).is_ok()
    });
}

struct Decoder<'a> {
    types: &'a Types,
    /// `None` inside values whose decoder of their own does not look for unknown fields.
    unknown: Option<&'a mut Vec<String>>,
    /// The first value of a wrong type. Go reads on, and anything that a type's own reader refuses comes first.
    saved: Option<DecodeError>,
    /// Keys that stood twice, if any did.
    twice: Twice,
    /// Whether times are canonical already.
    timed: bool,
}

impl<'a> Decoder<'a> {
    fn new(types: &'a Types, unknown: &'a mut Vec<String>) -> Decoder<'a> {
        Decoder { types, unknown: Some(unknown), saved: None, twice: Twice::default(), timed: false }
    }

    fn whole(&mut self, id: TypeId, value: Value, path: &Path<'_>) -> Result<Value, DecodeError> {
        let go = self.value(&Type::Struct(id), value, &Place { path, holder: None })?;
        match self.saved.take() {
            Some(error) => Err(error),
            None => Ok(go.json),
        }
    }

    /// Remembers a mistake and goes on with the zero value.
    fn save(&mut self, ty: &Type, error: DecodeError) -> Go {
        self.saved.get_or_insert(error);
        zero(self.types, ty)
    }

    fn value(&mut self, ty: &Type, value: Value, at: &Place<'_>) -> Result<Go, DecodeError> {
        if value.is_null() {
            return self.null(ty);
        }
        match ty {
            Type::Struct(id) => match value {
                Value::Object(map) => self.structure(*id, map, at),
                other => Ok(self.save(ty, self.mismatch(ty, &other, at))),
            },
            Type::List(element) => match value {
                Value::Array(list) => {
                    let mut out = Vec::with_capacity(list.len());
                    for (index, value) in list.into_iter().enumerate() {
                        let path = at.path.index(index);
                        out.push(inside(element, self.value(element, value, &Place { path: &path, ..*at })?));
                    }
                    let empty = out.is_empty();
                    Ok(Go { json: Value::Array(out), zero: false, empty })
                }
                other => Ok(self.save(ty, self.mismatch(ty, &other, at))),
            },
            Type::Map(element) => match value {
                Value::Object(map) => {
                    let mut out = Map::with_capacity(map.len());
                    for (key, value) in self.twice.entries(at.path, map) {
                        let path = at.path.key(&key);
                        if out.contains_key(&key) {
                            self.name_twice(&path);
                        }
                        let go = self.value(element, value, &Place { path: &path, ..*at })?;
                        out.insert(key, inside(element, go));
                    }
                    out.sort_keys();
                    let empty = out.is_empty();
                    Ok(Go { json: Value::Object(out), zero: false, empty })
                }
                other => Ok(self.save(ty, self.mismatch(ty, &other, at))),
            },
            Type::SchemaOrBool | Type::SchemaOrArray | Type::SchemaOrStrings => self.schema_or(ty, value, at),
            Type::Raw | Type::FieldsV1 | Type::Any => Ok(Go::structure(value, false)),
            _ => self.scalar(ty, value, at),
        }
    }

    /// `null` leaves a value as it was, which is zero; only durations refuse it.
    fn null(&self, ty: &Type) -> Result<Go, DecodeError> {
        match ty {
            // Go reads null as an empty text, which is not a duration.
            Type::Duration => Err(DecodeError::new("time: invalid duration \"\"")),
            Type::SchemaOrBool => Err(DecodeError::new("boolean or JSON schema expected")),
            _ => Ok(zero(self.types, ty)),
        }
    }

    fn structure(&mut self, id: TypeId, map: Map<String, Value>, at: &Place<'_>) -> Result<Go, DecodeError> {
        let types = self.types;
        let structure = types.get(id);
        let holder = Some(go_name(structure));
        let mut slots = Slots::new(types, id, map.len());
        let mut seen = Seen::default();
        for (key, value) in self.twice.entries(at.path, map) {
            let path = at.path.key(&key);
            let Some(index) = structure.position(&key) else {
                if let Some(unknown) = self.unknown.as_mut().filter(|unknown| unknown.len() < UNKNOWN_MAX) {
                    unknown.push(path.to_string());
                }
                continue;
            };
            if self.twice.are_some() && seen.again(index) {
                self.name_twice(&path);
            }
            let field = &structure.fields[index];
            if !(value.is_null() && (field.ptr || field.ty != Type::Duration)) {
                let path = at.path.field(&key);
                let go = self.value(&field.ty, value, &Place { path: &path, holder })?;
                slots.set(index, key, go);
            }
        }
        Ok(slots.finish(types))
    }

    /// The three types that are a schema or something else. Unknown fields inside are dropped silently.
    fn schema_or(&mut self, ty: &Type, value: Value, at: &Place<'_>) -> Result<Go, DecodeError> {
        let mut quiet = Decoder {
            types: self.types,
            unknown: None,
            saved: None,
            twice: Twice::default(),
            timed: self.timed,
        };
        let schema = || Type::Struct(self.types.id(SCHEMA).expect("the table has JSONSchemaProps"));
        let json = match (ty, value) {
            (_, value @ Value::Object(_)) => quiet.value(&schema(), value, at)?.json,
            (Type::SchemaOrBool, Value::Bool(allowed)) => Value::Bool(allowed),
            (Type::SchemaOrBool, _) => return Err(DecodeError::new("boolean or JSON schema expected")),
            // An empty list, and what is neither object nor list, is nothing: Go writes null.
            (Type::SchemaOrArray, value @ Value::Array(_)) => {
                non_empty(quiet.value(&list_of(schema()), value, at)?)
            }
            (_, value @ Value::Array(_)) => non_empty(quiet.value(&list_of(Type::String), value, at)?),
            _ => Value::Null,
        };
        match quiet.saved {
            Some(error) => Err(error),
            None => Ok(Go::structure(json, false)),
        }
    }
}

/// An element of a list or map. Bytes that are not there are empty bytes there: once stored, Go cannot tell.
fn inside(ty: &Type, go: Go) -> Value {
    match go.json {
        Value::Null if *ty == Type::Bytes => Value::String(String::new()),
        json => json,
    }
}

fn list_of(element: Type) -> Type {
    Type::List(Box::new(element))
}

fn non_empty(go: Go) -> Value {
    if go.empty { Value::Null } else { go.json }
}
