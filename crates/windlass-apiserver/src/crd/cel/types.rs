//! Types of expressions, as far as a schema gives them.

use std::fmt;

use super::escape;
use crate::crd::props::Props;

/// The type of an expression.
#[derive(Clone, Debug)]
pub(super) enum Ty<'p> {
    /// Not known before it is run.
    Dyn,
    Null,
    Bool,
    Int,
    UInt,
    Double,
    Text,
    Bytes,
    Duration,
    Timestamp,
    Type,
    List(Box<Ty<'p>>),
    Map(Box<Ty<'p>>, Box<Ty<'p>>),
    Optional(Box<Ty<'p>>),
    /// An object with these fields; whether it has `apiVersion`, `kind` and `metadata`.
    Object(&'p Props, bool),
    /// `metadata` of an object: its name.
    Meta,
    /// A type of the library, such as `net.IP`.
    Library(&'static str),
}

impl<'p> Ty<'p> {
    /// The type that a schema gives; `None` where there is no telling, which hides the field from rules.
    pub(super) fn of(props: &'p Props, is_resource: bool) -> Option<Ty<'p>> {
        if props.int_or_string {
            return Some(Ty::Dyn);
        }
        Some(match props.ty.as_str() {
            "array" => {
                let items = props.items.as_deref()?;
                Ty::List(Box::new(Ty::of(items, items.embedded)?))
            }
            "object" => match props.additional_schema() {
                Some(schema) => Ty::Map(Box::new(Ty::Text), Box::new(Ty::of(schema, schema.embedded)?)),
                None => Ty::Object(props, is_resource || props.embedded),
            },
            "string" => match props.format.as_str() {
                "byte" => Ty::Bytes,
                "duration" => Ty::Duration,
                "date" | "date-time" => Ty::Timestamp,
                _ => Ty::Text,
            },
            "boolean" => Ty::Bool,
            "number" => Ty::Double,
            "integer" => Ty::Int,
            _ => return None,
        })
    }

    /// The type of a field: `Err` if the type has no fields, `Ok(None)` if it has no such field.
    pub(super) fn field(&self, name: &str) -> Result<Option<Ty<'p>>, ()> {
        match self {
            Ty::Dyn => Ok(Some(Ty::Dyn)),
            Ty::Map(_, value) => Ok(Some((**value).clone())),
            Ty::Meta => Ok(matches!(name, "name" | "generateName").then_some(Ty::Text)),
            Ty::Object(props, is_resource) => {
                if *is_resource {
                    match name {
                        "apiVersion" | "kind" => return Ok(Some(Ty::Text)),
                        "metadata" => return Ok(Some(Ty::Meta)),
                        _ => {}
                    }
                }
                // Words that CEL keeps for itself may also be written as they are.
                let property = escape::unescape(name)
                    .filter(|own| escape::escape(own).as_deref() == Some(name) || own == name);
                let schema = property.and_then(|property| props.properties.get(&property));
                Ok(schema.and_then(|schema| Ty::of(schema, schema.embedded)))
            }
            Ty::Optional(inner) => {
                inner.field(name).map(|field| field.map(|field| Ty::Optional(Box::new(field))))
            }
            _ => Err(()),
        }
    }

    /// Whether values of the two types can be the same thing.
    pub(super) fn fits(&self, other: &Ty<'_>) -> bool {
        match (self, other) {
            (Ty::Dyn, _) | (_, Ty::Dyn) => true,
            // Objects, lists and the like can be compared with null; scalars cannot.
            (Ty::Null, other) | (other, Ty::Null) => !matches!(
                other,
                Ty::Bool | Ty::Int | Ty::UInt | Ty::Double | Ty::Text | Ty::Bytes | Ty::List(_) | Ty::Map(..)
            ),
            (Ty::List(a), Ty::List(b)) | (Ty::Optional(a), Ty::Optional(b)) => a.fits(b),
            (Ty::Map(key_a, a), Ty::Map(key_b, b)) => key_a.fits(key_b) && a.fits(b),
            (Ty::Object(a, _), Ty::Object(b, _)) => std::ptr::eq(*a, *b),
            (Ty::Library(a), Ty::Library(b)) => a == b,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    /// The type of what either of two expressions gives.
    pub(super) fn join(self, other: Ty<'p>) -> Ty<'p> {
        match (self, other) {
            (Ty::List(a), Ty::List(b)) => Ty::List(Box::new(a.join(*b))),
            (Ty::Optional(a), Ty::Optional(b)) => Ty::Optional(Box::new(a.join(*b))),
            (Ty::Dyn | Ty::Null, other) | (other, Ty::Dyn | Ty::Null) => other,
            (a, _) => a,
        }
    }

    pub(super) fn is(&self, other: &Ty<'_>) -> bool {
        matches!(self, Ty::Dyn) || self.fits(other)
    }
}

impl fmt::Display for Ty<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ty::Dyn => "dyn",
            Ty::Null => "null",
            Ty::Bool => "bool",
            Ty::Int => "int",
            Ty::UInt => "uint",
            Ty::Double => "double",
            Ty::Text => "string",
            Ty::Bytes => "bytes",
            Ty::Duration => "google.protobuf.Duration",
            Ty::Timestamp => "google.protobuf.Timestamp",
            Ty::Type => "type",
            Ty::List(element) => return write!(f, "list({element})"),
            Ty::Map(key, value) => return write!(f, "map({key}, {value})"),
            Ty::Optional(inner) => return write!(f, "optional_type({inner})"),
            Ty::Object(..) | Ty::Meta => "object",
            Ty::Library(name) => name,
        })
    }
}
