//! Taking fields out of an object.

use serde_json::Value;

use super::element::PathElement;
use super::set::Set;
use super::shape::{Ref, Relation, Schema, Shape};

/// The object without the members of the set. What loses all it had becomes null.
pub(super) fn items(schema: &Schema<'_>, object: Value, gone: &Set) -> Value {
    remove(schema, schema.start(), object, gone)
}

fn remove<'a>(schema: &Schema<'a>, at: Ref<'a>, value: Value, gone: &Set) -> Value {
    match (schema.shape_of(at, &value), value) {
        (Shape::Scalar(_), value) => value,
        (Shape::List(list), Value::Array(items)) if !matches!(list.relation, Relation::Atomic) => {
            let kept: Vec<Value> = items
                .into_iter()
                .filter_map(|item| {
                    let node = schema.item(&list, &item).ok().and_then(|element| gone.get(&element));
                    match node {
                        None => Some(item),
                        Some(node) if node.member => None,
                        Some(node) => Some(remove(schema, list.element, item, &node.children)),
                    }
                })
                .collect();
            if kept.is_empty() { Value::Null } else { Value::Array(kept) }
        }
        (Shape::Map(map), Value::Object(fields)) if !map.atomic => {
            let kept: serde_json::Map<String, Value> = fields
                .into_iter()
                .filter_map(|(name, value)| match gone.get(&PathElement::Field(name.clone())) {
                    None => Some((name, value)),
                    Some(node) if node.member => None,
                    Some(node) => {
                        let value = remove(schema, map.child_or_deduced(&name), value, &node.children);
                        Some((name, value))
                    }
                })
                .collect();
            if kept.is_empty() { Value::Null } else { Value::Object(kept) }
        }
        // One value, or not of its type: nothing is left of it.
        _ => Value::Null,
    }
}
