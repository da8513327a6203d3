//! The set of fields that a manager owns, as `fieldsV1` writes it.

use serde_json::{Map, Value};

/// A place in the set. Its members are `f:name` for a field, `k:{…}` for the item of a list with these key fields,
/// `v:…` for an item that is that value, and `.` for the place itself.
#[derive(Clone, Copy)]
pub(super) struct Node<'a>(&'a Map<String, Value>);

/// What the set says of the value at a place.
pub(super) enum Fields<'a> {
    /// It is one value: a scalar, something that is replaced as a whole, or something empty.
    Whole,
    /// An object, of which we own fields.
    Members,
    /// A list whose items are told apart by key fields.
    Keyed(Vec<Keyed<'a>>),
    /// A list in which each value is once.
    Set(Vec<Value>),
}

/// An item of a list, by its key fields.
pub(super) struct Keyed<'a> {
    /// Names and values of the key fields.
    pub keys: Map<String, Value>,
    /// What we own of it.
    pub node: Node<'a>,
}

impl<'a> Node<'a> {
    pub fn of(set: &'a Value) -> Option<Node<'a>> {
        set.as_object().map(Node)
    }

    pub fn member(self, name: &str) -> Option<Node<'a>> {
        self.0.get(&format!("f:{name}")).and_then(Node::of)
    }

    /// The names of the fields that the set has here.
    pub fn members(self) -> impl Iterator<Item = &'a str> {
        self.0.keys().filter_map(|key| key.strip_prefix("f:"))
    }

    pub fn fields(self) -> Fields<'a> {
        match self.0.keys().find(|key| *key != ".") {
            None => Fields::Whole,
            Some(key) if key.starts_with("k:") => Fields::Keyed(self.keyed()),
            Some(key) if key.starts_with("v:") => Fields::Set(self.values()),
            Some(_) => Fields::Members,
        }
    }

    fn keyed(self) -> Vec<Keyed<'a>> {
        let keyed = |(key, node): (&String, &'a Value)| {
            let keys = serde_json::from_str(key.strip_prefix("k:")?).ok()?;
            Some(Keyed { keys, node: Node::of(node)? })
        };
        self.0.iter().filter_map(keyed).collect()
    }

    fn values(self) -> Vec<Value> {
        let value = |key: &String| serde_json::from_str(key.strip_prefix("v:")?).ok();
        self.0.keys().filter_map(value).collect()
    }
}
