//! The set of all fields of a value.

use std::collections::BTreeMap;

use serde_json::Value;

use super::element::PathElement;
use super::set::{Node, Set};
use super::shape::{List, Ref, Relation, Schema, Shape};

/// Every leaf and every list item or map entry that the object mentions.
pub(super) fn of(schema: &Schema<'_>, object: &Value) -> Set {
    walk(schema, schema.start(), object).1
}

/// The set with every declared field that has members below it as a member too.
pub(super) fn with_named_fields(schema: &Schema<'_>, set: Set) -> Set {
    named(schema, Some(schema.start()), set)
}

/// Whether the value is a member by itself, and what is below it.
fn walk<'a>(schema: &Schema<'a>, at: Ref<'a>, value: &Value) -> (bool, Set) {
    match schema.shape_of(at, value) {
        Shape::Scalar(_) | Shape::Any { .. } => (true, Set::default()),
        Shape::List(List { relation: Relation::Atomic, .. }) => (true, Set::default()),
        Shape::List(list) => {
            let items = value.as_array().map_or(&[][..], Vec::as_slice);
            (false, list_items(schema, list, items))
        }
        Shape::Map(map) if map.atomic => (true, Set::default()),
        Shape::Map(map) => {
            let mut nodes = Vec::new();
            for (name, value) in value.as_object().into_iter().flatten() {
                let (member, children) = walk(schema, map.child_or_deduced(name), value);
                let empty = value.is_null() || value.as_object().is_some_and(|map| map.is_empty());
                let member = member || empty || !map.declares(name);
                if member || !children.is_empty() {
                    nodes.push(Node { element: PathElement::Field(name.clone()), member, children });
                }
            }
            (false, Set::from_nodes(nodes))
        }
    }
}

/// Items are members; those that stand more than once are so without what is below them.
fn list_items<'a>(schema: &Schema<'a>, list: List<'a>, items: &[Value]) -> Set {
    let mut by_element: BTreeMap<PathElement, (usize, &Value)> = BTreeMap::new();
    for item in items {
        if let Ok(element) = schema.item(&list, item) {
            by_element.entry(element).or_insert((0, item)).0 += 1;
        }
    }
    let nodes = by_element.into_iter().map(|(element, (count, item))| match count {
        1 => Node { element, member: true, children: walk(schema, list.element, item).1 },
        _ => Node::leaf(element),
    });
    Set::from_nodes(nodes.collect())
}

fn named<'a>(schema: &Schema<'a>, at: Option<Ref<'a>>, set: Set) -> Set {
    let shape = at.map(|at| schema.shape(at));
    let nodes = set.into_nodes().into_iter().map(|mut node| {
        if node.children.is_empty() {
            return node;
        }
        let below = match (&node.element, &shape) {
            (PathElement::Field(name), Some(Shape::Map(map))) => {
                node.member |= map.declares(name);
                map.child(name)
            }
            (PathElement::Field(_), Some(Shape::Any { atomic })) => {
                Some(if *atomic { Ref::Untyped } else { Ref::Deduced })
            }
            (PathElement::Key(_), Some(Shape::List(list))) => Some(list.element),
            _ => None,
        };
        node.children = named(schema, below, node.children);
        node
    });
    Set::from_nodes(nodes.collect())
}
