//! Finding, for a part of an object, what stood there before the update.

use serde_json::{Map, Value};

use super::props::Props;

/// What stood at a place before, and the schema of that place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Old<'a> {
    value: &'a Value,
    props: &'a Props,
}

impl<'a> Old<'a> {
    /// The old object as a whole.
    pub(super) fn new(value: &'a Value, props: &'a Props) -> Old<'a> {
        Old { value, props }
    }

    /// The field or map entry `name`, if the schema knows it and it was there.
    pub(super) fn field(self, name: &str) -> Option<Old<'a>> {
        let value = self.value.as_object()?.get(name)?;
        Some(Old { value, props: self.props.child(name)? })
    }

    /// The element of the old list that has the keys of `item`; only lists that are maps have one.
    pub(super) fn item(self, item: &Value) -> Option<Old<'a>> {
        let value = find(self.props, self.value.as_array()?, item)?;
        Some(Old { value, props: self.props.items.as_deref()? })
    }

    /// Whether the old value and the new one are the same, lists that are maps compared by their keys.
    pub(super) fn equals(self, value: &Value) -> bool {
        match (self.value, value) {
            (Value::Array(old), Value::Array(new)) if self.props.is_list("map") => {
                let found = |item| self.item(item).is_some_and(|old| old.equals(item));
                old.len() == new.len() && new.iter().all(found)
            }
            (Value::Object(old), Value::Object(new)) => {
                let found = |(key, value): (&String, &Value)| match self.field(key) {
                    Some(field) => field.equals(value),
                    None => false,
                };
                old.len() == new.len() && new.iter().all(found)
            }
            (old, new) => old == new,
        }
    }
}

/// The first element of `list` that has the same keys as `item`.
pub(super) fn find<'a>(props: &Props, list: &'a [Value], item: &Value) -> Option<&'a Value> {
    if !props.is_list("map") || props.list_map_keys.is_empty() {
        return None;
    }
    let wanted = keys(props, item.as_object()?)?;
    list.iter().find(|old| old.as_object().and_then(|old| keys(props, old)).as_ref() == Some(&wanted))
}

/// The keys of an element of a list that is a map; all must be there and be scalars.
fn keys<'a>(props: &Props, item: &'a Map<String, Value>) -> Option<Vec<&'a Value>> {
    let scalar = |value: &&Value| matches!(value, Value::Bool(_) | Value::Number(_) | Value::String(_));
    props.list_map_keys.iter().map(|key| item.get(key).filter(scalar)).collect()
}
