//! What kube-apiserver does by decoding JSON into a Go structure and encoding it again, done on the tree.
//!
//! Fields come out in the order of the structure, zero values are left out or written as Go's tags say, scalars get
//! their canonical text, and what the structure does not know is dropped and named.

use base64::DecodeError as Base64Error;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value};

use super::scalar::{duration, quantity, time};
use super::{DecodeError, path::Path};
use crate::schema::{Field, Omit, Struct, Type, TypeId, Types};

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
    let mut decoder = Decoder { types, unknown: Some(unknown), saved: None };
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
    let mut decoder = Decoder { types, unknown: Some(unknown), saved: None };
    let root = if parent.is_empty() { Path::Root } else { Path::Key(&Path::Root, parent) };
    let path = root.key("metadata");
    *meta = decoder.whole(id, meta.take(), &path)?;
    meta.sort_all_objects();
    Ok(())
}

/// A decoded value: its JSON, and whether Go would call it zero or empty.
pub(super) struct Go {
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
pub(super) fn zero(types: &Types, ty: &Type) -> Go {
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
        Type::Struct(id) => Slots::new(types, *id).finish(types),
    }
}

/// A float as it reads back once Go has written it: a whole one is an integer. `None` if JSON cannot say it.
pub(super) fn float(value: f64) -> Option<Number> {
    let whole =
        value.fract() == 0.0 && value.abs() < i64::MAX as f64 && !(value == 0.0 && value.is_sign_negative());
    if whole { Some((value as i64).into()) } else { Number::from_f64(value) }
}

/// The fields of a structure while it is being filled.
pub(super) struct Slots<'a> {
    structure: &'a Struct,
    values: Vec<Option<Go>>,
    /// Keys that came with the body, to be used again; those of other fields are empty.
    keys: Vec<String>,
}

impl<'a> Slots<'a> {
    pub fn new(types: &'a Types, id: TypeId) -> Slots<'a> {
        let structure = types.get(id);
        let count = structure.fields.len();
        let values = std::iter::repeat_with(|| None).take(count).collect();
        Slots { structure, values, keys: vec![String::new(); count] }
    }

    fn set(&mut self, index: usize, key: String, value: Go) {
        self.values[index] = Some(value);
        self.keys[index] = key;
    }

    /// Where the value of the field of this name goes.
    pub fn named(&mut self, name: &str) -> Option<&mut Option<Go>> {
        self.structure.position(name).map(|index| &mut self.values[index])
    }

    /// Sorts maps that were filled entry by entry.
    pub fn sort_maps(&mut self) {
        for (field, value) in self.structure.fields.iter().zip(&mut self.values) {
            if let (Type::Map(_), Some(Go { json: Value::Object(map), .. })) = (&field.ty, value) {
                map.sort_keys();
            }
        }
    }

    /// The structure as Go writes it.
    pub fn finish(self, types: &Types) -> Go {
        let mut json = Map::with_capacity(self.values.iter().flatten().count());
        let mut all_zero = true;
        for ((field, key), value) in self.structure.fields.iter().zip(self.keys).zip(self.values) {
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

/// Where a value stands: its path, and the structure that holds it, for messages.
#[derive(Clone, Copy)]
struct Place<'a> {
    path: &'a Path<'a>,
    holder: Option<&'a str>,
}

struct Decoder<'a> {
    types: &'a Types,
    /// `None` inside values whose decoder of their own does not look for unknown fields.
    unknown: Option<&'a mut Vec<String>>,
    /// The first value of a wrong type. Go reads on, and anything that a type's own reader refuses comes first.
    saved: Option<DecodeError>,
}

impl Decoder<'_> {
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
                        out.push(self.value(element, value, &Place { path: &path, ..*at })?.json);
                    }
                    let empty = out.is_empty();
                    Ok(Go { json: Value::Array(out), zero: false, empty })
                }
                other => Ok(self.save(ty, self.mismatch(ty, &other, at))),
            },
            Type::Map(element) => match value {
                Value::Object(map) => {
                    let mut out = Map::with_capacity(map.len());
                    for (key, value) in map {
                        let path = at.path.key(&key);
                        let go = self.value(element, value, &Place { path: &path, ..*at })?;
                        out.insert(key, go.json);
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
        let mut slots = Slots::new(types, id);
        for (key, value) in map {
            let path = at.path.key(&key);
            let Some(index) = structure.position(&key) else {
                if let Some(unknown) = self.unknown.as_mut().filter(|unknown| unknown.len() < UNKNOWN_MAX) {
                    unknown.push(path.to_string());
                }
                continue;
            };
            let field = &structure.fields[index];
            if !(value.is_null() && (field.ptr || field.ty != Type::Duration)) {
                let path = at.path.field(&key);
                let go = self.value(&field.ty, value, &Place { path: &path, holder })?;
                slots.set(index, key, go);
            }
        }
        Ok(slots.finish(types))
    }

    fn scalar(&mut self, ty: &Type, value: Value, at: &Place<'_>) -> Result<Go, DecodeError> {
        match (ty, value) {
            (Type::String, Value::String(text)) => {
                let empty = text.is_empty();
                Ok(Go::scalar(Value::String(text), empty))
            }
            (Type::Bool, Value::Bool(value)) => Ok(Go::scalar(Value::Bool(value), !value)),
            (Type::Int32, Value::Number(number))
                if number.as_i64().is_some_and(|n| i32::try_from(n).is_ok()) =>
            {
                let zero = number.as_i64() == Some(0);
                Ok(Go::scalar(Value::Number(number), zero))
            }
            (Type::Int64, Value::Number(number)) if number.as_i64().is_some() => {
                let zero = number.as_i64() == Some(0);
                Ok(Go::scalar(Value::Number(number), zero))
            }
            (Type::Float64, Value::Number(number)) => {
                let value = number.as_f64().unwrap_or_default();
                Ok(Go::scalar(float(value).map_or(Value::Null, Value::Number), value == 0.0))
            }
            (Type::Bytes, Value::String(text)) => match decode_base64(&text) {
                Ok(bytes) => Ok(bytes_value(&bytes)),
                Err(error) => Ok(self.save(ty, error)),
            },
            // Go takes a list of small numbers, too.
            (Type::Bytes, Value::Array(list)) => {
                let mut bytes = Vec::with_capacity(list.len());
                for value in list {
                    match value.as_u64().and_then(|n| u8::try_from(n).ok()) {
                        Some(byte) => bytes.push(byte),
                        None if value.is_null() => bytes.push(0),
                        None => return Ok(self.save(ty, wrong("uint8", &value, value.is_number(), at))),
                    }
                }
                Ok(bytes_value(&bytes))
            }
            (Type::Time, Value::String(text)) => stamp(&text, time::Precision::Seconds),
            (Type::MicroTime, Value::String(text)) => stamp(&text, time::Precision::Micros),
            (Type::Duration, Value::String(text)) => {
                let nanos = duration::parse(&text).map_err(DecodeError::new)?;
                Ok(Go::structure(Value::String(duration::format(nanos)), nanos == 0))
            }
            (Type::Quantity, value) => amount(&value),
            (Type::IntOrString, Value::String(text)) => Ok(Go::structure(Value::String(text), false)),
            (Type::IntOrString, Value::Number(number))
                if number.as_i64().is_some_and(|n| i32::try_from(n).is_ok()) =>
            {
                let zero = number.as_i64() == Some(0);
                Ok(Go::structure(Value::Number(number), zero))
            }
            // These have readers of their own, whose refusal ends it.
            (Type::Time | Type::MicroTime | Type::Duration | Type::IntOrString, other) => {
                Err(self.mismatch(ty, &other, at))
            }
            (_, other) => Ok(self.save(ty, self.mismatch(ty, &other, at))),
        }
    }

    /// The three types that are a schema or something else. Unknown fields inside are dropped silently.
    fn schema_or(&mut self, ty: &Type, value: Value, at: &Place<'_>) -> Result<Go, DecodeError> {
        let mut quiet = Decoder { types: self.types, unknown: None, saved: None };
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

    fn mismatch(&self, ty: &Type, value: &Value, at: &Place<'_>) -> DecodeError {
        let integer = matches!(ty, Type::Int32 | Type::Int64 | Type::IntOrString);
        wrong(&self.type_name(ty), value, integer, at)
    }

    fn type_name(&self, ty: &Type) -> String {
        match ty {
            Type::Bool => "bool".to_owned(),
            Type::Int32 | Type::IntOrString => "int32".to_owned(),
            Type::Int64 => "int64".to_owned(),
            Type::Float64 => "float64".to_owned(),
            Type::Bytes => "[]uint8".to_owned(),
            Type::List(element) => format!("[]{}", self.type_name(element)),
            // The only maps of quantities there are.
            Type::Map(element) if **element == Type::Quantity => "v1.ResourceList".to_owned(),
            Type::Map(element) => format!("map[string]{}", self.type_name(element)),
            Type::Struct(id) => {
                let structure = self.types.get(*id);
                let package = structure.name.rsplit('.').nth(1).unwrap_or_default();
                format!("{package}.{}", go_name(structure))
            }
            Type::Quantity => "resource.Quantity".to_owned(),
            Type::Any => "v1.JSON".to_owned(),
            Type::FieldsV1 => "v1.FieldsV1".to_owned(),
            Type::Raw => "runtime.RawExtension".to_owned(),
            Type::SchemaOrArray => "v1.JSONSchemaPropsOrArray".to_owned(),
            Type::SchemaOrBool => "v1.JSONSchemaPropsOrBool".to_owned(),
            Type::SchemaOrStrings => "v1.JSONSchemaPropsOrStringArray".to_owned(),
            // Times and durations are read through a string of their own.
            Type::String | Type::Time | Type::MicroTime | Type::Duration => "string".to_owned(),
        }
    }
}

/// Go's message for a value of the wrong type. The literal is named where a number was wanted, but not this one.
fn wrong(wanted: &str, value: &Value, integer: bool, at: &Place<'_>) -> DecodeError {
    let found = match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::String(_) => "string".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
        Value::Number(number) if integer => format!("number {number}"),
        Value::Number(_) => "number".to_owned(),
    };
    DecodeError::new(match at.holder {
        Some(holder) => {
            let fields = at.path.fields();
            format!("json: cannot unmarshal {found} into Go struct field {holder}.{fields} of type {wanted}")
        }
        None => format!("json: cannot unmarshal {found} into Go value of type {wanted}"),
    })
}

fn bytes_value(bytes: &[u8]) -> Go {
    Go { json: Value::String(STANDARD.encode(bytes)), zero: false, empty: bytes.is_empty() }
}

fn list_of(element: Type) -> Type {
    Type::List(Box::new(element))
}

fn non_empty(go: Go) -> Value {
    if go.empty { Value::Null } else { go.json }
}

/// The Go name of a structure: the last part of its OpenAPI name.
fn go_name(structure: &Struct) -> &str {
    structure.name.rsplit('.').next().unwrap_or_default()
}

fn stamp(text: &str, precision: time::Precision) -> Result<Go, DecodeError> {
    Ok(match time::canonical(text, precision).map_err(DecodeError::new)? {
        Some(text) => Go::structure(Value::String(text), false),
        None => Go::structure(Value::Null, true),
    })
}

/// A quantity, which may be written as a number too.
fn amount(value: &Value) -> Result<Go, DecodeError> {
    let canonical = match value {
        Value::String(text) => quantity::canonical(text.trim()),
        Value::Number(number) => quantity::canonical(&number.to_string()),
        _ => Err(quantity::Error::Format),
    };
    let text = canonical.map_err(DecodeError::new)?;
    let zero = text == "0";
    Ok(Go::structure(Value::String(text), zero))
}

/// Standard base64 as Go reads it: line breaks are skipped, bits after the end are ignored.
fn decode_base64(text: &str) -> Result<Vec<u8>, DecodeError> {
    use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &base64::alphabet::STANDARD,
        GeneralPurposeConfig::new()
            .with_decode_padding_mode(DecodePaddingMode::RequireCanonical)
            .with_decode_allow_trailing_bits(true),
    );
    let stripped;
    let text = if text.contains(['\r', '\n']) {
        stripped = text.replace(['\r', '\n'], "");
        &stripped
    } else {
        text
    };
    LENIENT.decode(text).map_err(|error| {
        let offset = match error {
            Base64Error::InvalidByte(offset, _) | Base64Error::InvalidLastSymbol(offset, _) => offset,
            Base64Error::InvalidLength(_) | Base64Error::InvalidPadding => text.len() / 4 * 4,
        };
        DecodeError::new(format!("illegal base64 data at input byte {offset}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A table of three structures in which every field is `name type [omit] [ptr]`.
    fn table() -> (Types, TypeId) {
        fn field(text: &str) -> Field {
            let mut words = text.split(' ');
            let name = words.next().unwrap().to_owned();
            let ty = match words.next().unwrap() {
                "string" => Type::String,
                "bool" => Type::Bool,
                "int32" => Type::Int32,
                "float64" => Type::Float64,
                "bytes" => Type::Bytes,
                "time" => Type::Time,
                "duration" => Type::Duration,
                "intorstring" => Type::IntOrString,
                "raw" => Type::Raw,
                "strings" => Type::List(Box::new(Type::String)),
                "quantities" => Type::Map(Box::new(Type::Quantity)),
                "inner" => Type::Struct(TypeId(0)),
                "inners" => Type::List(Box::new(Type::Struct(TypeId(0)))),
                other => panic!("{other}"),
            };
            let rest: Vec<&str> = words.collect();
            let omit = match () {
                () if rest.contains(&"empty") => Omit::Empty,
                () if rest.contains(&"zero") => Omit::Zero,
                () => Omit::Never,
            };
            Field {
                name: name.into(),
                ty,
                pb: 0,
                ptr: rest.contains(&"ptr"),
                omit,
                required: false,
                list: None,
                atomic: false,
                patch_strategy: "".into(),
                merge_key: "".into(),
                default: None,
                enumeration: Vec::new(),
            }
        }
        let mut types = Types::default();
        let fields = ["name string", "on bool empty", "list strings empty"].map(field).to_vec();
        types.add(Struct::new("x.v1.Inner".into(), fields));
        let fields = [
            "never string",
            "text string empty",
            "pointer string empty ptr",
            "count int32 empty ptr",
            "plain int32 empty",
            "share float64 empty",
            "bytes bytes empty",
            "time time empty ptr",
            "stamp time",
            "wait duration",
            "port intorstring empty",
            "raw raw empty ptr",
            "strings strings",
            "some strings empty",
            "amounts quantities empty",
            "inner inner empty",
            "maybe inner empty ptr",
            "zero inner zero",
            "inners inners empty",
        ];
        let id = types.add(Struct::new("x.v1.Outer".into(), fields.map(field).to_vec()));
        (types, id)
    }

    fn run(value: Value) -> Result<(Value, Vec<String>), String> {
        let (types, id) = table();
        let mut unknown = Vec::new();
        let value = canonical(&types, id, value, &mut unknown).map_err(|e| e.to_string())?;
        Ok((value, unknown))
    }

    /// The fields that are written for an empty object, with `more` put over them.
    #[track_caller]
    fn check(input: Value, more: Value) {
        let mut want = json!({"never": "", "stamp": null, "wait": "0s", "port": 0, "strings": null, "inner": {"name": ""}});
        for (key, value) in more.as_object().unwrap() {
            want[key] = value.clone();
        }
        assert_eq!(run(input).unwrap().0, want);
    }

    #[test]
    fn zero_values_follow_the_tags() {
        check(json!({}), json!({}));
        check(
            json!({"text": "", "plain": 0, "bytes": "", "some": [], "amounts": {}, "share": 0.0}),
            json!({}),
        );
        check(json!({"pointer": "", "count": 0}), json!({"pointer": "", "count": 0}));
        check(
            json!({"pointer": null, "strings": null, "some": null, "maybe": null, "never": null}),
            json!({}),
        );
        check(json!({"strings": [], "maybe": {}}), json!({"strings": [], "maybe": {"name": ""}}));
        check(json!({"zero": {}}), json!({}));
        check(json!({"zero": {"list": []}}), json!({"zero": {"name": ""}}));
        check(json!({"strings": ["a", null]}), json!({"strings": ["a", ""]}));
        check(json!({"time": "0001-01-01T00:00:00Z"}), json!({"time": null}));
    }

    #[test]
    fn scalars_get_their_canonical_text() {
        check(
            json!({"amounts": {"b": "1000m", "a": 0.5, "c": null}, "stamp": "2026-01-02T03:04:05+01:00", "wait": "90s",
                "bytes": [104, 105], "port": "http", "raw": {"z": 1, "a": [null]}, "share": 1.0}),
            json!({"amounts": {"a": "500m", "b": "1", "c": "0"}, "stamp": "2026-01-02T02:04:05Z", "wait": "1m30s",
                "bytes": "aGk=", "port": "http", "raw": {"z": 1, "a": [null]}, "share": 1}),
        );
    }

    #[test]
    fn the_order_is_that_of_the_structure_and_maps_are_sorted() {
        let body = json!({"amounts": {"b": "1", "a": "2"}, "text": "t", "never": "n"});
        let (value, _) = run(body).unwrap();
        assert_eq!(
            value.to_string(),
            r#"{"never":"n","text":"t","stamp":null,"wait":"0s","port":0,"strings":null,"amounts":{"a":"2","b":"1"},"inner":{"name":""}}"#
        );
    }

    #[test]
    fn unknown_fields_are_named_in_the_order_of_the_body() {
        let body =
            json!({"b": 1, "inners": [{"name": "a"}, {"Name": "x", "foo": {"bar": 1}}], "a": 1, "Text": 1});
        let (_, unknown) = run(body).unwrap();
        assert_eq!(unknown, ["b", "inners[1].Name", "inners[1].foo", "a", "Text"]);
    }

    #[test]
    fn mismatches_read_as_gos() {
        for (body, want) in [
            (
                json!({"count": "x"}),
                "json: cannot unmarshal string into Go struct field Outer.count of type int32",
            ),
            (
                json!({"count": 3.5}),
                "json: cannot unmarshal number 3.5 into Go struct field Outer.count of type int32",
            ),
            (
                json!({"count": 3_000_000_000_i64}),
                "json: cannot unmarshal number 3000000000 into Go struct field Outer.count of type int32",
            ),
            (
                json!({"inner": []}),
                "json: cannot unmarshal array into Go struct field Outer.inner of type v1.Inner",
            ),
            (
                json!({"inners": {}}),
                "json: cannot unmarshal object into Go struct field Outer.inners of type []v1.Inner",
            ),
            (
                json!({"inners": [{"name": 1}]}),
                "json: cannot unmarshal number into Go struct field Inner.inners.name of type string",
            ),
            (
                json!({"amounts": 1}),
                "json: cannot unmarshal number into Go struct field Outer.amounts of type v1.ResourceList",
            ),
            (
                json!({"time": 1}),
                "json: cannot unmarshal number into Go struct field Outer.time of type string",
            ),
            (
                json!({"port": true}),
                "json: cannot unmarshal bool into Go struct field Outer.port of type int32",
            ),
            (json!({"bytes": "!!"}), "illegal base64 data at input byte 0"),
            (
                json!({"bytes": [1, "x"]}),
                "json: cannot unmarshal string into Go struct field Outer.bytes of type uint8",
            ),
            (json!({"bytes": "aGk"}), "illegal base64 data at input byte 0"),
            (json!({"wait": "1"}), r#"time: missing unit in duration "1""#),
            (json!({"wait": null}), r#"time: invalid duration """#),
            (json!({"count": "x", "wait": "1"}), r#"time: missing unit in duration "1""#),
            (
                json!({"count": "x", "never": 1}),
                "json: cannot unmarshal string into Go struct field Outer.count of type int32",
            ),
            (json!([]), "json: cannot unmarshal array into Go value of type v1.Outer"),
        ] {
            assert_eq!(run(body.clone()).unwrap_err(), want, "{body}");
        }
    }
}
