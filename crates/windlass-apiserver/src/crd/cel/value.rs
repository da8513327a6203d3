//! Values of expressions. Parts of objects stay the JSON that they are, with their schema, until they are looked at.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

use base64::Engine as _;
use cel::objects::{Key as CelKey, Map as CelMap, OptionalValue};
use serde_json::Value;

use super::authorizer::Check;
use super::escape;
use super::library;
use super::link;
use super::made::Made;
use crate::crd::duration;
use crate::crd::props::Props;

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Fault {
    /// No operator or function takes these operands.
    NoOverload,
    /// More work than one rule may cause.
    Cost,
    /// What makes the real server give up on the expression as a whole, whatever stands beside it.
    Broken(String),
    /// Anything else, in CEL's words: `no such key: x`, `division by zero`.
    Other(String),
}

impl Fault {
    pub(super) fn other(text: impl Into<String>) -> Fault {
        Fault::Other(text.into())
    }

    /// Whether no operator or function took what it was given.
    pub(super) fn is_overload(&self) -> bool {
        match self {
            Fault::NoOverload => true,
            Fault::Cost | Fault::Broken(_) => false,
            Fault::Other(why) => why.starts_with("no such overload"),
        }
    }

    /// What CEL says of it.
    pub(super) fn in_words(self) -> String {
        match self {
            Fault::NoOverload => "no such overload".to_owned(),
            Fault::Cost => "operation cancelled: actual cost limit exceeded".to_owned(),
            Fault::Broken(why) => format!("internal error: {why}"),
            Fault::Other(why) => why,
        }
    }

    /// Whether nothing in the expression can make up for it.
    pub(super) fn is_final(&self) -> bool {
        matches!(self, Fault::Cost | Fault::Broken(_))
    }
}

pub(super) type Result<T> = std::result::Result<T, Fault>;

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Val<'a> {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Double(f64),
    Text(Text<'a>),
    Bytes(Rc<[u8]>),
    /// A list or an object of the custom resource.
    Node(Node<'a>),
    List(Rc<Vec<Val<'a>>>),
    /// What came of adding to a list that is a set or a map: it still is one.
    Merged(Rc<Vec<Val<'a>>>, &'a Props),
    Map(Rc<BTreeMap<Key, Val<'a>>>),
    Optional(Option<Rc<Val<'a>>>),
    /// The name of a type, as `type(x)` gives it.
    Type(&'static str),
    /// A URL.
    Url(Rc<str>),
    /// A format by its name.
    Format(&'static str),
    /// An object that the expression made.
    Made(Rc<Made<'a>>),
    /// A question about who may do what.
    Check(Rc<Check>),
    /// Values with names that are found out when they are asked for: `variables`.
    Composed,
    /// Times, durations, quantities, addresses: what only the function library looks into.
    Foreign(cel::Value),
    /// A quantity that came of adding or subtracting. kube-apiserver [cannot tell](Val::cannot_tell) whether a quantity is
    /// equal to it, since it holds such a one by reference.
    Sum(cel::Value),
}

/// A string, borrowed from the object or shared.
#[derive(Clone, Debug)]
pub(super) enum Text<'a> {
    Borrowed(&'a str),
    Shared(Rc<str>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Text::Borrowed(text) => text,
            Text::Shared(text) => text,
        }
    }
}

/// What a map can be indexed with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Bool(bool),
    Int(i64),
    Text(Rc<str>),
}

/// A list or an object, and what its schema says of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node<'a> {
    pub value: &'a Value,
    pub props: Option<&'a Props>,
    /// Whether it is an object with `apiVersion`, `kind` and `metadata`.
    pub is_resource: bool,
}

impl<'a> Val<'a> {
    /// A string that was made here.
    pub(super) fn text(text: impl AsRef<str>) -> Val<'a> {
        Val::Text(Text::Shared(Rc::from(text.as_ref())))
    }

    /// A list that was made here.
    pub(super) fn list(list: Vec<Val<'a>>) -> Val<'a> {
        Val::List(Rc::new(list))
    }

    /// The value of a part of an object. The schema decides: a `number` is a double even when it is written `1`.
    pub(super) fn read(value: &'a Value, props: Option<&'a Props>, is_resource: bool) -> Result<Val<'a>> {
        let ty = props.filter(|props| !props.int_or_string).map_or("", |props| props.ty.as_str());
        Ok(match value {
            Value::Null => Val::Null,
            Value::Bool(value) => Val::Bool(*value),
            Value::Number(number) => match (ty, number.as_i64(), number.as_f64()) {
                ("number", _, Some(double)) => Val::Double(double),
                (_, Some(int), _) => Val::Int(int),
                #[expect(clippy::cast_possible_truncation, reason = "it is whole, as the schema asks for")]
                ("integer", None, Some(double)) => Val::Int(double as i64),
                (_, None, Some(double)) => Val::Double(double),
                (_, None, None) => return Err(Fault::NoOverload),
            },
            Value::String(text) => match (ty, props.map_or("", |props| props.format.as_str())) {
                ("string", "byte") => {
                    let decoded = base64::engine::general_purpose::STANDARD.decode(text);
                    Val::Bytes(decoded.map_err(|e| Fault::other(e.to_string()))?.into())
                }
                ("string", "duration") => {
                    let nanos = duration::parse_format(text);
                    let nanos = nanos.ok_or_else(|| Fault::other(format!("invalid duration {text:?}")))?;
                    library::duration(nanos)?
                }
                ("string", "date") => library::timestamp(&format!("{text}T00:00:00Z"))?,
                ("string", "date-time") => library::timestamp(text)?,
                _ => Val::Text(Text::Borrowed(text)),
            },
            Value::Array(_) | Value::Object(_) => Val::Node(Node { value, props, is_resource }),
        })
    }

    /// The name of the value's type in CEL.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Val::Null => "null_type",
            Val::Bool(_) => "bool",
            Val::Int(_) => "int",
            Val::UInt(_) => "uint",
            Val::Double(_) => "double",
            Val::Text(_) => "string",
            Val::Bytes(_) => "bytes",
            Val::Node(node) if node.value.is_array() => "list",
            Val::List(_) | Val::Merged(..) => "list",
            Val::Node(_) | Val::Map(_) => "map",
            Val::Optional(_) => "optional_type",
            Val::Type(_) => "type",
            Val::Format(_) => "kubernetes.NamedFormat",
            Val::Url(_) => "kubernetes.URL",
            Val::Foreign(cel::Value::Duration(_)) => "google.protobuf.Duration",
            Val::Foreign(cel::Value::Timestamp(_)) => "google.protobuf.Timestamp",
            Val::Foreign(cel::Value::Opaque(opaque)) => match opaque.runtime_type_name() {
                "kubernetes.Quantity" => "kubernetes.Quantity",
                "kubernetes.Semver" => "kubernetes.Semver",
                "net.IP" => "net.IP",
                "net.CIDR" => "net.CIDR",
                _ => "object",
            },
            Val::Foreign(_) => "object",
            Val::Sum(_) => "kubernetes.Quantity",
            Val::Made(_) => "object",
            Val::Check(check) => check.type_name(),
            Val::Composed => "kubernetes.variables",
        }
    }

    /// The elements of a list.
    pub(super) fn elements(&self) -> Result<Vec<Val<'a>>> {
        match self {
            Val::List(list) | Val::Merged(list, _) => Ok(list.to_vec()),
            Val::Node(Node { value: Value::Array(list), props, .. }) => {
                let items = props.and_then(|props| props.items.as_deref());
                let embedded = items.is_some_and(|items| items.embedded);
                list.iter().map(|value| Val::read(value, items, embedded)).collect()
            }
            _ => Err(Fault::NoOverload),
        }
    }

    /// The keys of a map, or of an object that is one.
    pub(super) fn keys(&self) -> Result<Vec<Val<'a>>> {
        match self {
            Val::Map(map) => Ok(map.keys().map(Key::to_val).collect()),
            Val::Node(Node { value: Value::Object(map), .. }) => {
                Ok(map.keys().map(|key| Val::Text(Text::Borrowed(key))).collect())
            }
            _ => Err(Fault::NoOverload),
        }
    }

    /// How many elements, entries, characters or bytes there are.
    pub(super) fn size(&self) -> Result<usize> {
        match self {
            Val::Text(text) => Ok(text.chars().count()),
            Val::Bytes(bytes) => Ok(bytes.len()),
            Val::List(list) | Val::Merged(list, _) => Ok(list.len()),
            Val::Map(map) => Ok(map.len()),
            Val::Node(node) => Ok(node.len()),
            _ => Err(Fault::NoOverload),
        }
    }

    /// The field of this name, as an expression writes it; `None` if there is none.
    pub(super) fn field(&self, name: &str) -> Result<Option<Val<'a>>> {
        match self {
            Val::Node(node) => node.field(name),
            Val::Map(map) => Ok(map.get(&Key::Text(name.into())).cloned()),
            Val::Made(made) => Ok(made.fields.get(name).cloned()),
            Val::List(_) | Val::Merged(..) => Err(unsupported_index("string")),
            _ => Err(Fault::NoOverload),
        }
    }

    /// Whether two values are equal. Numbers are compared as numbers, whatever their type.
    pub(super) fn equals(&self, other: &Val<'a>) -> Result<bool> {
        if let (Some(_), Some(_)) = (self.number(), other.number()) {
            return Ok(self.compare(other) == Some(Ordering::Equal));
        }
        Ok(match (self, other) {
            (Val::Null, Val::Null) => true,
            (Val::Bool(a), Val::Bool(b)) => a == b,
            (Val::Text(a), Val::Text(b)) => **a == **b,
            (Val::Bytes(a), Val::Bytes(b)) => a == b,
            (Val::Type(a), Val::Type(b)) | (Val::Format(a), Val::Format(b)) => a == b,
            (Val::Url(a), Val::Url(b)) => link::same(a, b),
            (Val::Foreign(a) | Val::Sum(a), Val::Foreign(b) | Val::Sum(b)) => a == b,
            (Val::Made(a), Val::Made(b)) => a.equals(b)?,
            (Val::Optional(None), Val::Optional(None)) => true,
            (Val::Optional(Some(a)), Val::Optional(Some(b))) => a.equals(b)?,
            _ if self.type_name() == "list" && other.type_name() == "list" => self.same_list(other)?,
            _ if self.type_name() == "map" && other.type_name() == "map" => self.same_map(other)?,
            _ => false,
        })
    }

    /// Whether kube-apiserver fails to compare these: the types of its own library know only themselves, and of quantities
    /// no [sum](Val::Sum).
    pub(super) fn cannot_tell(&self, other: &Val<'a>) -> bool {
        let own = ["kubernetes.Quantity", "kubernetes.Semver", "kubernetes.URL", "net.CIDR", "net.IP"];
        let name = self.type_name();
        let knows = matches!(other, Val::Null) || other.type_name() == name && !matches!(other, Val::Sum(_));
        own.contains(&name) && !knows
    }

    /// Whether this is found at an element of a list. What cannot be told is not found.
    pub(super) fn is_at(&self, element: &Val<'a>) -> Result<bool> {
        Ok(!self.cannot_tell(element) && self.equals(element)?)
    }

    /// The schema of a list, if it has one.
    pub(super) fn list_props(&self) -> Option<&'a Props> {
        match self {
            Val::Node(node) => node.props,
            Val::Merged(_, props) => Some(props),
            _ => None,
        }
    }

    /// Lists that are sets or maps are compared without regard to order.
    fn same_list(&self, other: &Val<'a>) -> Result<bool> {
        let (a, b) = (self.elements()?, other.elements()?);
        if a.len() != b.len() {
            return Ok(false);
        }
        let unordered = |val: &Val<'_>| {
            val.list_props().is_some_and(|props| props.is_list("set") || props.is_list("map"))
        };
        if unordered(self) || unordered(other) {
            for a in &a {
                let mut found = false;
                for b in &b {
                    found = found || a.equals(b)?;
                }
                if !found {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        for (a, b) in a.iter().zip(&b) {
            if !a.equals(b)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn same_map(&self, other: &Val<'a>) -> Result<bool> {
        if self.size()? != other.size()? {
            return Ok(false);
        }
        for key in self.keys()? {
            match (self.index(&key)?, other.index(&key)?) {
                (Some(a), Some(b)) if a.equals(&b)? => {}
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    /// What stands at a key or an index; `None` if nothing does.
    pub(super) fn index(&self, key: &Val<'a>) -> Result<Option<Val<'a>>> {
        if let (Val::Node(Node { value: Value::Object(map), .. }), Val::Text(name)) = (self, key) {
            let Val::Node(node) = self else { return Err(Fault::NoOverload) };
            return map.get(&**name).map(|value| node.child(name, value)).transpose();
        }
        match self {
            // No key is a number with a fraction.
            Val::Map(_) if matches!(key, Val::Double(number) if number.fract() != 0.0) => Ok(None),
            Val::Map(map) => Ok(map.get(&key.key()?).cloned()),
            _ => {
                let place = match key {
                    Val::Int(place) => usize::try_from(*place).ok(),
                    Val::UInt(place) => usize::try_from(*place).ok(),
                    Val::Double(place) if place.fract() != 0.0 && self.type_name() == "list" => {
                        return Err(Fault::other(format!("unsupported index value {place} in list")));
                    }
                    Val::Double(place) if place.fract() == 0.0 && *place >= 0.0 =>
                    {
                        #[expect(
                            clippy::cast_possible_truncation,
                            clippy::cast_sign_loss,
                            reason = "checked above"
                        )]
                        Some(*place as usize)
                    }
                    _ if self.type_name() == "list" => return Err(unsupported_index(key.type_name())),
                    _ => return Err(Fault::NoOverload),
                };
                let Some(place) = place else { return Ok(None) };
                match self {
                    Val::List(list) | Val::Merged(list, _) => Ok(list.get(place).cloned()),
                    Val::Node(Node { value: Value::Array(list), props, .. }) => {
                        let items = props.and_then(|props| props.items.as_deref());
                        let embedded = items.is_some_and(|items| items.embedded);
                        list.get(place).map(|value| Val::read(value, items, embedded)).transpose()
                    }
                    _ => Err(Fault::NoOverload),
                }
            }
        }
    }

    /// The value as a key of a map.
    pub(super) fn key(&self) -> Result<Key> {
        Ok(match self {
            Val::Bool(value) => Key::Bool(*value),
            Val::Int(value) => Key::Int(*value),
            Val::UInt(value) => Key::Int(i64::try_from(*value).map_err(|_| Fault::NoOverload)?),
            Val::Text(text) => Key::Text(Rc::from(&**text)),
            _ => return Err(Fault::NoOverload),
        })
    }

    #[expect(clippy::cast_precision_loss, reason = "as CEL compares numbers of different types")]
    fn number(&self) -> Option<f64> {
        match self {
            Val::Int(value) => Some(*value as f64),
            Val::UInt(value) => Some(*value as f64),
            Val::Double(value) => Some(*value),
            _ => None,
        }
    }

    /// How two values are ordered; `None` if they are not.
    pub(super) fn compare(&self, other: &Val<'a>) -> Option<Ordering> {
        match (self, other) {
            (Val::Int(a), Val::Int(b)) => Some(a.cmp(b)),
            (Val::UInt(a), Val::UInt(b)) => Some(a.cmp(b)),
            (Val::Bool(a), Val::Bool(b)) => Some(a.cmp(b)),
            (Val::Text(a), Val::Text(b)) => Some((**a).cmp(&**b)),
            (Val::Bytes(a), Val::Bytes(b)) => Some(a.cmp(b)),
            (Val::Foreign(a), Val::Foreign(b)) => a.partial_cmp(b),
            _ => self.number()?.partial_cmp(&other.number()?),
        }
    }

    /// The value as the function library takes it.
    pub(super) fn to_library(&self) -> Result<cel::Value> {
        Ok(match self {
            Val::Null => cel::Value::Null,
            Val::Bool(value) => cel::Value::Bool(*value),
            Val::Int(value) => cel::Value::Int(*value),
            Val::UInt(value) => cel::Value::UInt(*value),
            Val::Double(value) => cel::Value::Float(*value),
            Val::Text(text) => cel::Value::String(Arc::new(text.to_string())),
            Val::Bytes(bytes) => cel::Value::Bytes(Arc::new(bytes.to_vec())),
            Val::Foreign(value) | Val::Sum(value) => value.clone(),
            Val::Type(name) => cel::Value::String(Arc::new((*name).to_owned())),
            Val::Optional(None) => cel::Value::Opaque(Arc::new(OptionalValue::none())),
            Val::Optional(Some(value)) => {
                cel::Value::Opaque(Arc::new(OptionalValue::of(value.to_library()?)))
            }
            _ if self.type_name() == "list" => {
                let list: Result<Vec<_>> = self.elements()?.iter().map(Val::to_library).collect();
                cel::Value::List(Arc::new(list?))
            }
            _ => {
                let mut map = std::collections::HashMap::new();
                for key in self.keys()? {
                    let value = self.index(&key)?.unwrap_or(Val::Null);
                    map.insert(key.key()?.to_library(), value.to_library()?);
                }
                cel::Value::Map(CelMap { map: Arc::new(map) })
            }
        })
    }

    /// What the function library gave.
    pub(super) fn from_library(value: cel::Value) -> Val<'a> {
        match value {
            cel::Value::Null => Val::Null,
            cel::Value::Bool(value) => Val::Bool(value),
            cel::Value::Int(value) => Val::Int(value),
            cel::Value::UInt(value) => Val::UInt(value),
            cel::Value::Float(value) => Val::Double(value),
            cel::Value::String(text) => Val::text(text.as_str()),
            cel::Value::Bytes(bytes) => Val::Bytes(bytes.as_slice().into()),
            cel::Value::List(list) => Val::list(list.iter().cloned().map(Val::from_library).collect()),
            cel::Value::Map(map) => {
                let entries = map.map.iter();
                let entries =
                    entries.map(|(key, value)| (Key::from_library(key), Val::from_library(value.clone())));
                Val::Map(Rc::new(entries.collect()))
            }
            cel::Value::Opaque(opaque) => match opaque.downcast_ref::<OptionalValue>() {
                Some(optional) => {
                    Val::Optional(optional.value().map(|v| Rc::new(Val::from_library(v.clone()))))
                }
                None => Val::Foreign(cel::Value::Opaque(opaque)),
            },
            other => Val::Foreign(other),
        }
    }
}

fn unsupported_index(name: &str) -> Fault {
    Fault::other(format!("unsupported index type '{name}' in list"))
}

impl<'a> Node<'a> {
    fn len(&self) -> usize {
        match self.value {
            Value::Array(list) => list.len(),
            Value::Object(map) => map.len(),
            _ => 0,
        }
    }

    fn child(&self, name: &str, value: &'a Value) -> Result<Val<'a>> {
        let props = self.props.and_then(|props| props.child(name));
        let embedded = props.is_some_and(|props| props.embedded);
        Val::read(value, props, embedded)
    }

    /// An object's field is written escaped, a map's key as it is.
    fn field(&self, name: &str) -> Result<Option<Val<'a>>> {
        let Value::Object(map) = self.value else { return Err(unsupported_index("string")) };
        let is_map = self.props.is_some_and(|props| props.additional_schema().is_some());
        let name = if is_map { Some(name.to_owned()) } else { escape::unescape(name) };
        let Some((name, value)) = name.and_then(|name| map.get_key_value(&name)) else { return Ok(None) };
        if self.is_resource && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
            return Val::read(value, None, false).map(Some);
        }
        self.child(name, value).map(Some)
    }
}

impl Key {
    fn to_val<'a>(&self) -> Val<'a> {
        match self {
            Key::Bool(value) => Val::Bool(*value),
            Key::Int(value) => Val::Int(*value),
            Key::Text(text) => Val::Text(Text::Shared(text.clone())),
        }
    }

    fn to_library(&self) -> CelKey {
        match self {
            Key::Bool(value) => CelKey::Bool(*value),
            Key::Int(value) => CelKey::Int(*value),
            Key::Text(text) => CelKey::String(Arc::new(text.to_string())),
        }
    }

    fn from_library(key: &CelKey) -> Key {
        match key {
            CelKey::Bool(value) => Key::Bool(*value),
            CelKey::Int(value) => Key::Int(*value),
            CelKey::Uint(value) => Key::Int(i64::try_from(*value).unwrap_or(i64::MAX)),
            CelKey::String(text) => Key::Text(Rc::from(text.as_str())),
        }
    }
}
