//! Types of expressions.

use std::fmt;
use std::sync::Arc;

use super::decl::{Decl, Shape};

/// The type of an expression.
#[derive(Clone, Debug)]
pub(super) enum Ty {
    /// Of something that is wrong: it fits everywhere, so that one fault is reported once.
    Error,
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
    Type(Option<Arc<Ty>>),
    List(Arc<Ty>),
    Map(Arc<Ty>, Arc<Ty>),
    Optional(Arc<Ty>),
    /// An object with the fields of a schema.
    Object(Arc<Decl>),
    /// A type of which expressions make objects: `Object.spec`.
    Made(Arc<str>),
    /// A type of the library that has fields, if only it told: `kubernetes.Quantity`.
    Struct(&'static str),
    /// A type of the library that nobody can look into: `net.IP`.
    Opaque(&'static str),
    /// A type that is found out later.
    Param(u32),
}

/// Where the numbers of parameters with a letter for a name begin: those that stand in signatures.
pub(super) const LETTERS: u32 = 1 << 30;

impl Ty {
    pub(super) fn list(element: Ty) -> Ty {
        Ty::List(Arc::new(element))
    }

    pub(super) fn map(key: Ty, value: Ty) -> Ty {
        Ty::Map(Arc::new(key), Arc::new(value))
    }

    pub(super) fn optional(inner: Ty) -> Ty {
        Ty::Optional(Arc::new(inner))
    }

    /// The type that a name stands for.
    pub(super) fn named(name: &str) -> Option<Ty> {
        let letter = |c: char| Ty::Param(LETTERS + u32::from(c));
        Some(match name {
            "bool" => Ty::Bool,
            "bytes" => Ty::Bytes,
            "double" => Ty::Double,
            "int" => Ty::Int,
            "uint" => Ty::UInt,
            "string" => Ty::Text,
            "null_type" => Ty::Null,
            "type" => Ty::Type(None),
            "list" => Ty::list(letter('A')),
            "map" => Ty::map(letter('A'), letter('B')),
            "duration" | "google.protobuf.Duration" => Ty::Duration,
            "timestamp" | "google.protobuf.Timestamp" => Ty::Timestamp,
            _ => return None,
        })
    }

    /// Its name where it is declared, which is longer than the one that faults have.
    pub(super) fn in_full(&self) -> String {
        match self {
            Ty::Null => "null_type".to_owned(),
            Ty::Duration => "google.protobuf.Duration".to_owned(),
            Ty::Timestamp => "google.protobuf.Timestamp".to_owned(),
            Ty::List(element) => format!("list({})", element.in_full()),
            Ty::Map(key, value) => format!("map({}, {})", key.in_full(), value.in_full()),
            Ty::Optional(inner) => format!("optional_type({})", inner.in_full()),
            other => other.to_string(),
        }
    }

    pub(super) fn is_dyn(&self) -> bool {
        matches!(self, Ty::Dyn)
    }

    pub(super) fn is_dyn_or_error(&self) -> bool {
        matches!(self, Ty::Dyn | Ty::Error)
    }

    /// What an optional holds, and whether it is one.
    pub(super) fn unwrap_optional(&self) -> (&Ty, bool) {
        match self {
            Ty::Optional(inner) => (inner, true),
            other => (other, false),
        }
    }

    /// Whether values are always of one size.
    pub(super) fn is_scalar(&self) -> bool {
        match self {
            Ty::Bool | Ty::Double | Ty::Duration | Ty::Int | Ty::Timestamp | Ty::UInt => true,
            Ty::Optional(inner) => inner.is_scalar(),
            _ => false,
        }
    }

    /// Whether it is the same type.
    pub(super) fn same(&self, other: &Ty) -> bool {
        match (self, other) {
            (Ty::Type(None), Ty::Type(None)) => true,
            (Ty::Type(Some(a)), Ty::Type(Some(b))) => a.same(b),
            (Ty::List(a), Ty::List(b)) | (Ty::Optional(a), Ty::Optional(b)) => a.same(b),
            (Ty::Map(key, value), Ty::Map(other_key, other)) => key.same(other_key) && value.same(other),
            (Ty::Object(a), Ty::Object(b)) => a.name() == b.name(),
            (Ty::Struct(a), Ty::Struct(b)) | (Ty::Opaque(a), Ty::Opaque(b)) => a == b,
            (Ty::Made(a), Ty::Made(b)) => a == b,
            (Ty::Param(a), Ty::Param(b)) => a == b,
            (Ty::Type(_), _) | (_, Ty::Type(_)) => false,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    /// Whether nothing can stand for a value of the type.
    pub(super) fn is_nullable(&self) -> bool {
        matches!(
            self,
            Ty::Null
                | Ty::Optional(_)
                | Ty::Opaque(_)
                | Ty::Object(_)
                | Ty::Struct(_)
                | Ty::Made(_)
                | Ty::Duration
                | Ty::Timestamp
        )
    }
}

impl From<&Arc<Decl>> for Ty {
    fn from(decl: &Arc<Decl>) -> Ty {
        match &decl.shape {
            Shape::Plain(ty) => ty.clone(),
            Shape::List(element) => Ty::list(element.into()),
            Shape::Map(value) => Ty::map(Ty::Text, value.into()),
            Shape::Object { .. } => Ty::Object(decl.clone()),
        }
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ty::Error => "!error!",
            Ty::Dyn => "dyn",
            Ty::Null => "null",
            Ty::Bool => "bool",
            Ty::Int => "int",
            Ty::UInt => "uint",
            Ty::Double => "double",
            Ty::Text => "string",
            Ty::Bytes => "bytes",
            Ty::Duration => "duration",
            Ty::Timestamp => "timestamp",
            Ty::Type(None) => "type",
            Ty::Type(Some(ty)) => return write!(f, "type({ty})"),
            Ty::List(element) => return write!(f, "list({element})"),
            Ty::Map(key, value) => return write!(f, "map({key}, {value})"),
            Ty::Optional(inner) => return write!(f, "optional_type({inner})"),
            Ty::Object(decl) => decl.name(),
            Ty::Struct(name) | Ty::Opaque(name) => name,
            Ty::Made(name) => name,
            Ty::Param(number) => {
                return match number.checked_sub(LETTERS).and_then(char::from_u32) {
                    Some(letter) => write!(f, "{letter}"),
                    None => write!(f, "_var{number}"),
                };
            }
        })
    }
}
