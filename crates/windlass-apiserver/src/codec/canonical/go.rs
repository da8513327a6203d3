//! Values as Go holds them: what is zero, what is empty, what of a structure is written.

use serde_json::{Map, Number, Value};

use crate::schema::{Field, Omit, Struct, Type, TypeId, Types};

/// A decoded value: its JSON, and whether Go would call it zero or empty.
pub(in crate::codec) struct Go {
    /// What `json.Marshal` writes.
    pub json: Value,
    /// Zero in the sense of reflection: an empty list that is not nil is not zero.
    pub zero: bool,
    /// What `omitempty` leaves out; structures never are.
    pub empty: bool,
}

impl Go {
    /// A scalar: zero is empty.
    pub fn scalar(json: Value, zero: bool) -> Go {
        Go { json, zero, empty: zero }
    }

    /// A structure, or a type that Go represents by one: never empty.
    pub fn structure(json: Value, zero: bool) -> Go {
        Go { json, zero, empty: false }
    }
}

/// The zero value of a type, as it is written when nothing leaves it out.
pub(in crate::codec) fn zero(types: &Types, ty: &Type) -> Go {
    match ty {
        Type::String => Go::scalar(Value::String(String::new()), true),
        Type::Bool => Go::scalar(Value::Bool(false), true),
        Type::Int32 | Type::Int64 | Type::Float64 => Go::scalar(Value::Number(0.into()), true),
        Type::Bytes | Type::List(_) | Type::Map(_) => Go::scalar(Value::Null, true),
        Type::Time | Type::MicroTime | Type::Raw | Type::FieldsV1 | Type::Any => {
            Go::structure(Value::Null, true)
        }
        Type::SchemaOrArray | Type::SchemaOrStrings => Go::structure(Value::Null, true),
        Type::SchemaOrBool => Go::structure(Value::Bool(false), true),
        Type::Duration => Go::structure(Value::String("0s".into()), true),
        Type::Quantity => Go::structure(Value::String("0".into()), true),
        Type::IntOrString => Go::structure(Value::Number(0.into()), true),
        Type::Struct(id) => Slots::new(types, *id, 0).finish(types),
    }
}

/// A float as it reads back once Go has written it: a whole one is an integer. `None` if JSON cannot say it.
pub(in crate::codec) fn float(value: f64) -> Option<Number> {
    let whole = value.fract() == 0.0 && value.abs() < i64::MAX as f64;
    if whole { Some((value as i64).into()) } else { Number::from_f64(value) }
}

/// The fields of a structure while it is being filled: only those that came, since most structures have many more.
pub(in crate::codec) struct Slots<'a> {
    structure: &'a Struct,
    filled: Vec<Slot>,
}

struct Slot {
    index: usize,
    /// The key that came with the body, to be used again; empty if none did.
    key: String,
    value: Option<Go>,
}

impl<'a> Slots<'a> {
    /// Room for so many fields.
    pub fn new(types: &'a Types, id: TypeId, capacity: usize) -> Slots<'a> {
        Slots { structure: types.get(id), filled: Vec::with_capacity(capacity) }
    }

    /// Sets a field, whose key came with the body.
    pub fn set(&mut self, index: usize, key: String, value: Go) {
        *self.slot(index) = Slot { index, key, value: Some(value) };
    }

    /// Where the value of the field of this name goes.
    pub fn named(&mut self, name: &str) -> Option<&mut Option<Go>> {
        let index = self.structure.position(name)?;
        Some(&mut self.slot(index).value)
    }

    fn slot(&mut self, index: usize) -> &mut Slot {
        // Stored objects come in order, and so do most that clients send.
        let at = match self.filled.last() {
            Some(last) if last.index >= index => self.filled.binary_search_by_key(&index, |slot| slot.index),
            _ => Err(self.filled.len()),
        };
        let at = at.unwrap_or_else(|at| {
            self.filled.insert(at, Slot { index, key: String::new(), value: None });
            at
        });
        &mut self.filled[at]
    }

    /// Sorts maps that were filled entry by entry.
    pub fn sort_maps(&mut self) {
        for slot in &mut self.filled {
            let ty = &self.structure.fields[slot.index].ty;
            if let (Type::Map(_), Some(Go { json: Value::Object(map), .. })) = (ty, &mut slot.value) {
                map.sort_keys();
            }
        }
    }

    /// The structure as Go writes it.
    pub fn finish(self, types: &Types) -> Go {
        let mut json = Map::with_capacity(self.filled.len());
        let mut all_zero = true;
        let mut filled = self.filled.into_iter().peekable();
        for (index, field) in self.structure.fields.iter().enumerate() {
            let slot = filled.next_if(|slot| slot.index == index);
            let (key, value) = slot.map_or((String::new(), None), |slot| (slot.key, slot.value));
            all_zero &= value.as_ref().is_none_or(|go| go.zero && !field.ptr);
            if let Some(value) = written(types, field, value) {
                json.insert(if key.is_empty() { field.name.clone().into_owned() } else { key }, value);
            }
        }
        Go::structure(Value::Object(json), all_zero)
    }
}

/// What is written for a field, if anything.
fn written(types: &Types, field: &Field, value: Option<Go>) -> Option<Value> {
    match (value, field.omit) {
        (Some(go), _) if field.ptr => Some(go.json),
        (Some(go), Omit::Empty) => (!go.empty).then_some(go.json),
        (Some(go), Omit::Zero) => (!go.empty && !go.zero).then_some(go.json),
        (Some(go), Omit::Never) => Some(go.json),
        (None, Omit::Zero) => None,
        (None, Omit::Empty) if field.ptr => None,
        (None, Omit::Never) if field.ptr => Some(Value::Null),
        (None, Omit::Empty) => {
            let go = zero(types, &field.ty);
            (!go.empty).then_some(go.json)
        }
        (None, Omit::Never) => Some(zero(types, &field.ty).json),
    }
}
