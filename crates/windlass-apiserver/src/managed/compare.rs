//! What changed between two objects.

use std::collections::BTreeMap;

use serde_json::Value;

use super::element::{PathElement, same};
use super::set::{Node, Set};
use super::shape::{List, Map, Ref, Relation, Schema, Shape};

/// The fields that differ between two objects.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    pub removed: Set,
    pub modified: Set,
    pub added: Set,
}

impl Comparison {
    /// Compares two objects of the schema's type.
    pub fn of(schema: &Schema<'_>, old: &Value, new: &Value) -> Comparison {
        compare(schema, schema.start(), Some(old), Some(new)).children.finish()
    }

    /// Applies a filter to all three sets.
    pub fn map(self, mut filter: impl FnMut(Set) -> Set) -> Comparison {
        Comparison {
            removed: filter(self.removed),
            modified: filter(self.modified),
            added: filter(self.added),
        }
    }
}

/// What became of a value: of itself, and of what is below it.
#[derive(Default)]
struct Difference {
    removed: bool,
    modified: bool,
    added: bool,
    children: Nodes,
}

#[derive(Default)]
struct Nodes {
    removed: Vec<Node>,
    modified: Vec<Node>,
    added: Vec<Node>,
}

impl Nodes {
    fn finish(self) -> Comparison {
        Comparison {
            removed: Set::from_nodes(self.removed),
            modified: Set::from_nodes(self.modified),
            added: Set::from_nodes(self.added),
        }
    }

    /// Hangs a child's difference in; the element is made only if there is one.
    fn push(&mut self, difference: Difference, element: impl Fn() -> PathElement) {
        let Difference { removed, modified, added, children } = difference;
        for (list, member, nodes) in [
            (&mut self.removed, removed, children.removed),
            (&mut self.modified, modified, children.modified),
            (&mut self.added, added, children.added),
        ] {
            if member || !nodes.is_empty() {
                list.push(Node { element: element(), member, children: Set::from_nodes(nodes) });
            }
        }
    }
}

/// One side may be absent, not both.
fn compare<'a>(schema: &Schema<'a>, at: Ref<'a>, old: Option<&Value>, new: Option<&Value>) -> Difference {
    let mut difference = Difference::default();
    let old_shape = old.map(|old| schema.shape_of(at, old));
    let new_shape = new.map(|new| schema.shape_of(at, new));
    let mut leaf = false;
    match (old_shape, new_shape) {
        (Some(shape), None) | (None, Some(shape)) => {
            leaf = visit(schema, shape, old, new, &mut difference);
        }
        (Some(before), Some(after)) => {
            // A value of no type may have turned from one class into another: both count.
            if std::mem::discriminant(&before) != std::mem::discriminant(&after) {
                leaf = visit(schema, before, old, new, &mut difference);
            }
            leaf |= visit(schema, after, old, new, &mut difference);
        }
        (None, None) => {}
    }
    if !leaf {
        difference.added = old.is_none();
        difference.removed = new.is_none();
    }
    difference
}

/// Compares two values as if both were of this shape; says whether they are compared as a whole.
fn visit<'a>(
    schema: &Schema<'a>,
    shape: Shape<'a>,
    old: Option<&Value>,
    new: Option<&Value>,
    difference: &mut Difference,
) -> bool {
    match shape {
        Shape::Map(map) => {
            let (before, after) = (old.and_then(Value::as_object), new.and_then(Value::as_object));
            let filled =
                |map: Option<&serde_json::Map<String, Value>>| map.is_some_and(|map| !map.is_empty());
            if !map.atomic && (filled(before) || filled(after)) {
                compare_maps(schema, map, before, after, &mut difference.children);
                return false;
            }
        }
        Shape::List(list) => {
            let items =
                |value: Option<&'_ Value>| -> usize { value.and_then(Value::as_array).map_or(0, Vec::len) };
            let granular = !matches!(list.relation, Relation::Atomic);
            if granular && items(old) + items(new) > 0 {
                compare_lists(schema, list, old, new, &mut difference.children);
                return false;
            }
        }
        Shape::Scalar(_) | Shape::Any { .. } => {}
    }
    match (old, new) {
        (None, _) => difference.added = true,
        (_, None) => difference.removed = true,
        (Some(old), Some(new)) => difference.modified |= !same(old, new),
    }
    true
}

fn compare_maps<'a>(
    schema: &Schema<'a>,
    map: Map<'a>,
    old: Option<&serde_json::Map<String, Value>>,
    new: Option<&serde_json::Map<String, Value>>,
    out: &mut Nodes,
) {
    let mut visit = |name: &String, before: Option<&Value>, after: Option<&Value>| {
        let difference = compare(schema, map.child_or_deduced(name), before, after);
        out.push(difference, || PathElement::Field(name.clone()));
    };
    for (name, after) in new.into_iter().flatten() {
        visit(name, old.and_then(|old| old.get(name)), Some(after));
    }
    for (name, before) in old.into_iter().flatten() {
        if !new.is_some_and(|new| new.contains_key(name)) {
            visit(name, Some(before), None);
        }
    }
}

fn compare_lists<'a>(
    schema: &Schema<'a>,
    list: List<'a>,
    old: Option<&Value>,
    new: Option<&Value>,
    out: &mut Nodes,
) {
    let mut items: BTreeMap<PathElement, [Vec<&Value>; 2]> = BTreeMap::new();
    for (side, value) in [old, new].into_iter().enumerate() {
        for item in value.and_then(Value::as_array).into_iter().flatten() {
            // The values were validated, so each item has an element.
            if let Ok(element) = schema.item(&list, item) {
                items.entry(element).or_default()[side].push(item);
            }
        }
    }
    for (element, [before, after]) in items {
        let difference = match (before.as_slice(), after.as_slice()) {
            ([] | [_], [] | [_]) => {
                compare(schema, list.element, before.first().copied(), after.first().copied())
            }
            // Items that stand more than once are compared as one value.
            ([_, _, ..], [_, _, ..]) => {
                let equal = before.len() == after.len() && before.iter().zip(&after).all(|(a, b)| same(a, b));
                Difference { modified: !equal, ..Difference::default() }
            }
            ([_, _, ..], _) => {
                let mut difference = match after.first() {
                    Some(item) => compare(schema, list.element, None, Some(item)),
                    None => Difference::default(),
                };
                difference.removed = true;
                difference
            }
            (_, _) => {
                let mut difference = match before.first() {
                    Some(item) => compare(schema, list.element, Some(item), None),
                    None => Difference::default(),
                };
                difference.added = true;
                difference
            }
        };
        out.push(difference, || element.clone());
    }
}
