//! Protobuf bodies, as typed Go clients send them for built-in kinds: straight to the canonical tree.
//!
//! The type table gives the field numbers. Go's encoder always writes scalars that are not pointers, zero or not,
//! and leaves out what is nil, so what stands on the wire is exactly what a Go structure holds, and the rules of
//! omission are those of [`super::canonical`].

mod special;
mod wire;

use serde_json::{Map, Value};

use super::DecodeError;
use super::canonical::{Go, Slots, float, zero};
use crate::schema::{Field, Type, TypeId, Types, Wire};
use wire::{Item, Reader};

/// The deepest nesting of messages that is read, the same as for JSON.
const DEPTH_MAX: usize = 128;

/// What every Kubernetes protobuf body begins with.
const MAGIC: &[u8] = b"k8s\0";

/// The wrapper of a protobuf body (`runtime.Unknown`): what it holds, and the message itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// `apps/v1`; empty if the sender left it to the path.
    pub api_version: String,
    /// `Deployment`; empty if the sender left it to the path.
    pub kind: String,
    /// The message.
    pub raw: &'a [u8],
}

/// Opens the wrapper of a protobuf body.
///
/// # Errors
/// A body that is not Kubernetes protobuf.
pub fn envelope(body: &[u8]) -> Result<Envelope<'_>, DecodeError> {
    if body.is_empty() {
        return Err(DecodeError::new("empty data"));
    }
    let Some(unknown) = body.strip_prefix(MAGIC) else {
        let message =
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]";
        return Err(DecodeError::new(message));
    };
    if unknown.is_empty() {
        return Err(DecodeError::new("empty body"));
    }
    let mut out = Envelope::default();
    let mut reader = Reader::new(unknown);
    while let Some((number, item)) = reader.next()? {
        match number {
            1 => {
                let mut meta = Reader::new(item.bytes("TypeMeta")?);
                while let Some((number, item)) = meta.next()? {
                    match number {
                        1 => out.api_version = item.text("APIVersion")?,
                        2 => out.kind = item.text("Kind")?,
                        _ => {}
                    }
                }
            }
            2 => out.raw = item.bytes("Raw")?,
            _ => {}
        }
    }
    Ok(out)
}

/// The canonical tree of a message of type `id`, with the `kind` and `apiVersion` of its wrapper.
///
/// # Errors
/// A message that is cut short or does not fit the type.
pub fn decode_proto(types: &Types, id: TypeId, envelope: &Envelope<'_>) -> Result<Value, DecodeError> {
    let decoder = Decoder { types };
    let mut value = decoder.structure(id, envelope.raw, DEPTH_MAX)?.json;
    super::set_type(&mut value, &envelope.api_version, &envelope.kind);
    Ok(value)
}

struct Decoder<'a> {
    types: &'a Types,
}

impl Decoder<'_> {
    /// A message as a structure. `depth` is how many levels may still be opened.
    fn structure(&self, id: TypeId, bytes: &[u8], depth: usize) -> Result<Go, DecodeError> {
        let mut slots = Slots::new(self.types, id, 0);
        self.message(id, bytes, &mut slots, depth)?;
        slots.sort_maps();
        Ok(slots.finish(self.types))
    }

    /// Reads the fields of message `id` into `slots`, which belong to the same structure or to one that has it inline.
    fn message(
        &self,
        id: TypeId,
        bytes: &[u8],
        slots: &mut Slots<'_>,
        depth: usize,
    ) -> Result<(), DecodeError> {
        let depth = depth.checked_sub(1).ok_or_else(|| DecodeError::new("exceeded max depth"))?;
        let structure = self.types.get(id);
        let mut reader = Reader::new(bytes);
        while let Some((number, item)) = reader.next()? {
            match structure.wire.get(&number) {
                None => {}
                Some(Wire::Inline(inner)) => self.message(*inner, item.bytes("inline")?, slots, depth)?,
                Some(Wire::Field(index)) => {
                    let field = &structure.fields[*index];
                    if let Some(slot) = slots.named(&field.name) {
                        self.field(field, item, slot, depth)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// One occurrence of a field: lists and maps grow by it, anything else is set.
    fn field(
        &self,
        field: &Field,
        item: Item<'_>,
        slot: &mut Option<Go>,
        depth: usize,
    ) -> Result<(), DecodeError> {
        match &field.ty {
            Type::List(element) => {
                let list = slot.get_or_insert_with(|| Go {
                    json: Value::Array(Vec::new()),
                    zero: false,
                    empty: true,
                });
                let Value::Array(values) = &mut list.json else { return Ok(()) };
                self.elements(field, element, item, values, depth)?;
                list.empty = values.is_empty();
            }
            Type::Map(element) => {
                let (key, value) = self.entry(element, item.bytes(&field.name)?, &field.name, depth)?;
                let map = slot.get_or_insert_with(|| Go {
                    json: Value::Object(Map::new()),
                    zero: false,
                    empty: false,
                });
                if let Value::Object(entries) = &mut map.json {
                    entries.insert(key, value);
                }
            }
            ty => *slot = Some(self.value(ty, item, &field.name, depth)?),
        }
        Ok(())
    }

    /// One element, or many if they are numbers that are packed together.
    fn elements(
        &self,
        field: &Field,
        element: &Type,
        item: Item<'_>,
        out: &mut Vec<Value>,
        depth: usize,
    ) -> Result<(), DecodeError> {
        let packed = match (element, item) {
            (Type::Int32 | Type::Int64 | Type::Bool | Type::Float64, Item::Bytes(bytes)) => bytes,
            _ => {
                out.push(self.value(element, item, &field.name, depth)?.json);
                return Ok(());
            }
        };
        let mut reader = Reader::new(packed);
        while !reader.is_empty() {
            let item = match element {
                Type::Float64 => Item::Fixed64(reader.fixed64()?),
                _ => Item::Varint(reader.varint()?),
            };
            out.push(self.value(element, item, &field.name, depth)?.json);
        }
        Ok(())
    }

    /// A map entry is a message of key (1) and value (2).
    fn entry(
        &self,
        ty: &Type,
        bytes: &[u8],
        name: &str,
        depth: usize,
    ) -> Result<(String, Value), DecodeError> {
        let depth = depth.checked_sub(1).ok_or_else(|| DecodeError::new("exceeded max depth"))?;
        let (mut key, mut value) = (String::new(), None);
        let mut reader = Reader::new(bytes);
        while let Some((number, item)) = reader.next()? {
            match number {
                1 => key = item.text(name)?,
                2 => value = Some(self.value(ty, item, name, depth)?),
                _ => {}
            }
        }
        Ok((key, value.unwrap_or_else(|| zero(self.types, ty)).json))
    }

    fn value(&self, ty: &Type, item: Item<'_>, name: &str, depth: usize) -> Result<Go, DecodeError> {
        match ty {
            Type::Struct(id) => self.structure(*id, item.bytes(name)?, depth),
            Type::String => {
                let text = item.text(name)?;
                let empty = text.is_empty();
                Ok(Go::scalar(Value::String(text), empty))
            }
            Type::Bool => {
                let value = item.varint(name)? != 0;
                Ok(Go::scalar(Value::Bool(value), !value))
            }
            // Negative numbers are written with all 64 bits; the upper half says nothing more.
            Type::Int32 => {
                let value = item.varint(name)? as i32;
                Ok(Go::scalar(Value::Number(value.into()), value == 0))
            }
            Type::Int64 => {
                let value = item.varint(name)? as i64;
                Ok(Go::scalar(Value::Number(value.into()), value == 0))
            }
            Type::Float64 => {
                let Item::Fixed64(bits) = item else { return Err(item.wrong(name)) };
                let value = f64::from_bits(bits);
                let number = float(value);
                let number =
                    number.ok_or_else(|| DecodeError::new(format!("json: unsupported value: {value}")))?;
                Ok(Go::scalar(Value::Number(number), value == 0.0))
            }
            // The only lists that are values of maps are wrapped in a message of their own, `items = 1`.
            Type::List(element) => {
                let mut list = Vec::new();
                let mut reader = Reader::new(item.bytes(name)?);
                while let Some((number, item)) = reader.next()? {
                    if number == 1 {
                        list.push(self.value(element, item, name, depth)?.json);
                    }
                }
                let empty = list.is_empty();
                Ok(Go { json: Value::Array(list), zero: false, empty })
            }
            Type::Map(_) => Err(item.wrong(name)),
            _ => self.special(ty, item.bytes(name)?, depth),
        }
    }
}
