//! What server-side apply sees of the type table: scalars, lists and maps, and which of them are one value.

use serde_json::Value;

use super::element::PathElement;
use crate::schema::{Field, ListType, Str, Struct, Type, TypeId, Types};

/// The type of an object, for field ownership.
#[derive(Clone, Copy)]
pub struct Schema<'a> {
    /// The structures that `root` refers to.
    pub types: &'a Types,
    /// The type of the object itself.
    pub root: TypeId,
    /// Whether the kind comes from a custom resource definition. Such objects have no fields of zero value when
    /// they are new, and keep their keys sorted. Their types declare `metadata` with all its fields.
    pub custom: bool,
    /// The versions in which the kind exists, such as `apps/v1`: what was owned in others is forgotten. If the list
    /// is empty, everything is kept.
    pub versions: &'a [&'a str],
}

/// Where the type of a value is written down.
#[derive(Clone, Copy)]
pub(super) enum Ref<'a> {
    Struct(TypeId),
    Field(&'a Field),
    Type(&'a Type),
    /// Of no type, and one value.
    Untyped,
    /// Of no type: maps are granular, lists are one value.
    Deduced,
}

/// What a value is to be treated as.
#[derive(Clone, Copy)]
pub(super) enum Shape<'a> {
    Scalar(Scalar),
    List(List<'a>),
    Map(Map<'a>),
    /// Whatever the value turns out to be; `atomic` says whether maps are one value.
    Any {
        atomic: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scalar {
    Numeric,
    String,
    Boolean,
    Untyped,
}

#[derive(Clone, Copy)]
pub(super) struct List<'a> {
    pub relation: Relation<'a>,
    pub element: Ref<'a>,
}

#[derive(Clone, Copy)]
pub(super) enum Relation<'a> {
    Atomic,
    Set,
    /// By these key fields; one that comes from a patch merge key has a single one.
    Keys(&'a [Str]),
}

#[derive(Clone, Copy)]
pub(super) struct Map<'a> {
    pub atomic: bool,
    pub fields: Option<&'a Struct>,
    /// The type of what is not a declared field; `None` if there may be nothing else.
    pub element: Option<Ref<'a>>,
}

impl<'a> Map<'a> {
    pub fn declares(&self, name: &str) -> bool {
        self.fields.is_some_and(|fields| fields.position(name).is_some())
    }

    pub fn child(&self, name: &str) -> Option<Ref<'a>> {
        self.fields.and_then(|fields| fields.field(name)).map(Ref::Field).or(self.element)
    }

    /// As [`Map::child`], for values that are known to be there.
    pub fn child_or_deduced(&self, name: &str) -> Ref<'a> {
        self.child(name).unwrap_or(Ref::Deduced)
    }
}

impl<'a> Schema<'a> {
    /// The schema of a built-in kind.
    pub fn builtin(types: &'a Types, root: TypeId) -> Schema<'a> {
        Schema { types, root, custom: false, versions: &[] }
    }

    /// The schema of a custom kind.
    pub fn custom(types: &'a Types, root: TypeId) -> Schema<'a> {
        Schema { types, root, custom: true, versions: &[] }
    }

    /// Where the walks begin.
    pub(super) fn start(&self) -> Ref<'a> {
        Ref::Struct(self.root)
    }

    pub(super) fn shape(&self, at: Ref<'a>) -> Shape<'a> {
        match at {
            Ref::Struct(id) => self.structure(id, false),
            Ref::Type(ty) => self.of_type(ty, None),
            Ref::Field(field) => self.of_type(&field.ty, Some(field)),
            Ref::Untyped => Shape::Any { atomic: true },
            Ref::Deduced => Shape::Any { atomic: false },
        }
    }

    /// The shape of a value that is there: [`Shape::Any`] becomes what the value is, and null becomes a map, which
    /// is what structured-merge-diff tries first.
    pub(super) fn shape_of(&self, at: Ref<'a>, value: &Value) -> Shape<'a> {
        match self.shape(at) {
            Shape::Any { atomic } => match value {
                Value::Number(_) | Value::String(_) | Value::Bool(_) => Shape::Scalar(Scalar::Untyped),
                Value::Array(_) => Shape::List(List { relation: Relation::Atomic, element: Ref::Untyped }),
                Value::Object(_) | Value::Null => {
                    let element = Some(if atomic { Ref::Untyped } else { Ref::Deduced });
                    Shape::Map(Map { atomic, fields: None, element })
                }
            },
            shape => shape,
        }
    }

    fn of_type(&self, ty: &'a Type, field: Option<&'a Field>) -> Shape<'a> {
        let atomic = field.is_some_and(|field| field.atomic);
        match ty {
            Type::String | Type::Bytes | Type::Duration => Shape::Scalar(Scalar::String),
            Type::Bool => Shape::Scalar(Scalar::Boolean),
            Type::Int32 | Type::Int64 | Type::Float64 => Shape::Scalar(Scalar::Numeric),
            Type::Time | Type::MicroTime | Type::Quantity => Shape::Scalar(Scalar::Untyped),
            Type::Raw => Shape::Any { atomic: true },
            Type::FieldsV1 => Shape::Map(Map { atomic: false, fields: None, element: Some(Ref::Deduced) }),
            // Their schemas name no type, so that anything passes here.
            Type::Any
            | Type::IntOrString
            | Type::SchemaOrBool
            | Type::SchemaOrArray
            | Type::SchemaOrStrings => Shape::Any { atomic },
            Type::List(element) => {
                let relation = field.map_or(Relation::Atomic, relation);
                Shape::List(List { relation, element: Ref::Type(element) })
            }
            Type::Map(value) => Shape::Map(Map { atomic, fields: None, element: Some(Ref::Type(value)) }),
            Type::Struct(id) => self.structure(*id, atomic),
        }
    }

    fn structure(&self, id: TypeId, atomic: bool) -> Shape<'a> {
        let fields = self.types.get(id);
        // An object without properties is free-form.
        let open = fields.preserve_unknown || fields.fields.is_empty();
        let element = open.then_some(Ref::Deduced);
        Shape::Map(Map { atomic: atomic || fields.atomic, fields: Some(fields), element })
    }

    /// Which item of its list a value is.
    pub(super) fn item(&self, list: &List<'a>, item: &Value) -> Result<PathElement, String> {
        match list.relation {
            Relation::Atomic => Err("invalid indexing of non-associative list".to_owned()),
            Relation::Keys(keys) => self.keyed_item(list, keys, item),
            Relation::Set => match item {
                Value::Object(_) => {
                    Err("associative list without keys has an element that's a map type".to_owned())
                }
                Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
                Value::Null => {
                    Err("associative list without keys has an element that's an explicit null".to_owned())
                }
                scalar => Ok(PathElement::Value(Box::new(scalar.clone()))),
            },
        }
    }

    fn keyed_item(&self, list: &List<'a>, keys: &[Str], item: &Value) -> Result<PathElement, String> {
        let map = match item {
            Value::Object(map) => map,
            Value::Null => {
                return Err("associative list with keys may not have a null element".to_owned());
            }
            _ => return Err("associative list with keys may not have non-map elements".to_owned()),
        };
        let declared = match self.shape(list.element) {
            Shape::Map(map) => map.fields,
            _ => None,
        };
        let default = |key: &str| declared?.field(key)?.default.as_ref();
        let mut fields: Vec<(String, Value)> = keys
            .iter()
            .filter_map(|key| {
                let value = map.get(key.as_ref()).or_else(|| default(key))?;
                Some((key.to_string(), value.clone()))
            })
            .collect();
        if fields.is_empty() && !keys.is_empty() {
            let names = keys.iter().map(|key| format!("{key:?}")).collect::<Vec<_>>().join(" ");
            return Err(format!(
                "associative list with keys has an element that omits all key fields [{names}] \
                 (and doesn't have default values for any key fields)"
            ));
        }
        fields.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Ok(PathElement::Key(fields))
    }
}

/// How a list merges: by its list type or, where it has none, by its patch strategy.
fn relation(field: &Field) -> Relation<'_> {
    match &field.list {
        Some(ListType::Map(keys)) => Relation::Keys(keys),
        Some(ListType::Set) => Relation::Set,
        Some(ListType::Atomic) => Relation::Atomic,
        None => match field.patch_strategy.as_ref() {
            "merge" | "merge,retainKeys" if field.merge_key.is_empty() => Relation::Set,
            "merge" | "merge,retainKeys" => Relation::Keys(std::slice::from_ref(&field.merge_key)),
            _ => Relation::Atomic,
        },
    }
}
