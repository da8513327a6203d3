//! What a schema tells of the values that fit it: their types, and how large they can be.
//!
//! Sizes are kube-apiserver's guesses. A request has 3 MiB at most, so a list without `maxItems` has as many items as
//! fit into one when each is as short as its schema allows.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::escape;
use super::types::Ty;
use crate::crd::props::Props;

/// How large a request can be.
const REQUEST_BYTES_MAX: u64 = 3 * 1024 * 1024;

/// The type of what a schema describes.
#[derive(Debug)]
pub(super) struct Decl {
    pub shape: Shape,
    /// How many elements, entries, characters or bytes there are at most.
    pub elements_max: u64,
    /// How short it can be written in JSON.
    bytes_min: u64,
}

#[derive(Debug)]
pub(super) enum Shape {
    Plain(Ty),
    List(Arc<Decl>),
    Map(Arc<Decl>),
    Object { name: String, fields: BTreeMap<String, Arc<Decl>> },
}

impl Decl {
    /// What a schema describes; `None` where there is no telling, which hides the field from rules. `name` is what
    /// faults call it.
    pub(super) fn of(props: &Props, is_resource: bool, name: &str) -> Option<Decl> {
        if props.int_or_string {
            return Some(Decl::plain(Ty::Dyn, text_max(props), 1));
        }
        Some(match props.ty.as_str() {
            "array" => {
                let items = props.items.as_deref()?;
                let items = Decl::of(items, items.embedded, &format!("{name}.@idx"))?;
                let most = limit(props.max_items, (REQUEST_BYTES_MAX - 2) / (items.bytes_min + 1));
                Decl { shape: Shape::List(Arc::new(items)), elements_max: most, bytes_min: 2 }
            }
            "object" => match props.additional_schema() {
                Some(schema) => {
                    let value = Decl::of(schema, schema.embedded, &format!("{name}.@elem"))?;
                    // A key of no characters, its quotes, a colon and a comma take six bytes.
                    let most = limit(props.max_properties, (REQUEST_BYTES_MAX - 2) / (value.bytes_min + 6));
                    Decl { shape: Shape::Map(Arc::new(value)), elements_max: most, bytes_min: 2 }
                }
                None => Decl::object(props, is_resource, name),
            },
            "string" => match props.format.as_str() {
                "byte" => Decl::plain(Ty::Bytes, limit(props.max_length, REQUEST_BYTES_MAX - 2), 2),
                "duration" => Decl::plain(Ty::Duration, 32, 3),
                "date" => Decl::plain(Ty::Timestamp, 12, 12),
                "date-time" => Decl::plain(Ty::Timestamp, 32, 21),
                _ => Decl::plain(Ty::Text, text_max(props), 2),
            },
            "boolean" => Decl::plain(Ty::Bool, 0, 4),
            "number" => Decl::plain(Ty::Double, 0, 1),
            "integer" => Decl::plain(Ty::Int, 0, 1),
            _ => return None,
        })
    }

    /// A type with these fields, of which nobody knows how large they are.
    pub(super) fn declared<'a>(name: &str, fields: impl IntoIterator<Item = (&'a str, Ty)>) -> Arc<Decl> {
        let field = |(name, ty): (&str, Ty)| (name.to_owned(), Arc::new(Decl::plain(ty, 0, 0)));
        let fields = fields.into_iter().map(field).collect();
        let shape = Shape::Object { name: name.to_owned(), fields };
        Arc::new(Decl { shape, elements_max: 0, bytes_min: 0 })
    }

    fn plain(ty: Ty, elements_max: u64, bytes_min: u64) -> Decl {
        Decl { shape: Shape::Plain(ty), elements_max, bytes_min }
    }

    fn object(props: &Props, is_resource: bool, name: &str) -> Decl {
        let mut fields = BTreeMap::new();
        let mut bytes_min = 2;
        let given = is_resource && !names_itself(props);
        for (property, schema) in &props.properties {
            if given && matches!(property.as_str(), "apiVersion" | "kind" | "metadata") {
                continue;
            }
            let escaped = escape::escape(property);
            let path = format!("{name}.{}", escaped.as_deref().unwrap_or_default());
            let Some(field) = Decl::of(schema, schema.embedded, &path) else { continue };
            if props.required.contains(property) && schema.default.is_none() {
                bytes_min += property.len() as u64 + field.bytes_min + 4;
            }
            if let Some(escaped) = escaped {
                fields.insert(escaped, Arc::new(field));
            }
        }
        if given {
            let text = || Arc::new(Decl::plain(Ty::Text, REQUEST_BYTES_MAX - 2, 2));
            let names = ["generateName", "name"].map(|name| (name.to_owned(), text()));
            let path = format!("{name}.metadata");
            let shape = Shape::Object { name: path, fields: names.into() };
            let metadata = Arc::new(Decl { shape, elements_max: 0, bytes_min: 2 });
            for (property, field) in [("apiVersion", text()), ("kind", text()), ("metadata", metadata)] {
                if props.required.iter().any(|name| name == property) {
                    bytes_min += property.len() as u64 + field.bytes_min + 4;
                }
                fields.insert(property.to_owned(), field);
            }
        }
        let shape = Shape::Object { name: name.to_owned(), fields };
        Decl { shape, elements_max: 0, bytes_min }
    }

    /// What faults call an object.
    pub(super) fn name(&self) -> &str {
        match &self.shape {
            Shape::Object { name, .. } => name,
            _ => "",
        }
    }

    /// A field of an object, as an expression writes it. Words that CEL keeps for itself may be written as they are.
    pub(super) fn field(&self, name: &str) -> Option<&Arc<Decl>> {
        let Shape::Object { fields, .. } = &self.shape else { return None };
        fields
            .get(name)
            .or_else(|| escape::is_keyword(name).then(|| fields.get(&format!("__{name}__"))).flatten())
    }

    /// How often it can stand in one request.
    pub(super) fn cardinality_max(&self) -> u64 {
        REQUEST_BYTES_MAX / (self.bytes_min + 1)
    }
}

/// Whether a schema says of which type something is.
pub(in crate::crd) fn is_declared(props: &Props) -> bool {
    Decl::of(props, false, "").is_some()
}

/// What says of which type the elements are of what a schema describes; `None` if that has none.
pub(in crate::crd) fn element_of(props: &Props) -> Option<&Props> {
    match props.ty.as_str() {
        _ if props.int_or_string => None,
        "array" => props.items.as_deref(),
        "object" => props.additional_schema(),
        _ => None,
    }
}

/// What says of which type a property is, if rules see it at all.
pub(in crate::crd) fn property_of<'p>(props: &'p Props, name: &str) -> Option<&'p Props> {
    let is_object = props.ty == "object" && !props.int_or_string && props.additional_schema().is_none();
    let seen = |schema: &&Props| escape::escape(name).is_some() && is_declared(schema);
    props.properties.get(name).filter(|_| is_object).filter(seen)
}

/// Whether the schema itself says all that is given for objects with `apiVersion` and `kind`.
fn names_itself(props: &Props) -> bool {
    let is = |props: &Props, name: &str, ty: &str| props.properties.get(name).is_some_and(|p| p.ty == ty);
    let names = |metadata: &Props| is(metadata, "name", "string") && is(metadata, "generateName", "string");
    is(props, "kind", "string")
        && is(props, "apiVersion", "string")
        && is(props, "metadata", "object")
        && props.properties.get("metadata").is_some_and(names)
}

fn limit(set: Option<i64>, otherwise: u64) -> u64 {
    set.map_or(otherwise, |set| u64::try_from(set).unwrap_or_default())
}

/// How long a string can be. A character takes up to four bytes.
fn text_max(props: &Props) -> u64 {
    match (props.max_length, props.enumeration.is_empty() || props.int_or_string) {
        (Some(length), _) => u64::try_from(length).unwrap_or_default().saturating_mul(4),
        (None, true) => REQUEST_BYTES_MAX - 2,
        (None, false) => {
            let lengths = props.enumeration.iter().filter_map(Value::as_str).map(str::len);
            lengths.max().unwrap_or_default() as u64
        }
    }
}
