//! Sets that were written when a type was granular and is now one value.

use super::element::PathElement;
use super::set::Set;
use super::shape::{Ref, Relation, Schema, Shape};

/// The set with everything below an atomic field replaced by the field itself.
pub(super) fn set(schema: &Schema<'_>, set: Set) -> Set {
    reconcile(schema, schema.shape(schema.start()), set)
}

fn reconcile<'a>(schema: &Schema<'a>, shape: Shape<'a>, set: Set) -> Set {
    let nodes = set.into_nodes().into_iter().map(|mut node| {
        if node.children.is_empty() {
            return node;
        }
        let Some(at) = child(&shape, &node.element) else { return node };
        let below = schema.shape(at);
        if is_atomic(&below) {
            node.member = true;
            node.children = Set::default();
        } else {
            node.children = reconcile(schema, below, std::mem::take(&mut node.children));
        }
        node
    });
    Set::from_nodes(nodes.collect())
}

fn child<'a>(shape: &Shape<'a>, element: &PathElement) -> Option<Ref<'a>> {
    match (shape, element) {
        (Shape::Map(map), PathElement::Field(name)) => map.child(name),
        (Shape::Map(map), _) => map.element,
        (Shape::List(list), _) => Some(list.element),
        // What has no type was never anything else.
        (Shape::Scalar(_) | Shape::Any { .. }, _) => None,
    }
}

fn is_atomic(shape: &Shape<'_>) -> bool {
    match shape {
        Shape::Map(map) => map.atomic,
        Shape::List(list) => matches!(list.relation, Relation::Atomic),
        Shape::Any { atomic } => *atomic,
        Shape::Scalar(_) => false,
    }
}
