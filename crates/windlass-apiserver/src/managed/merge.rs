//! An applied configuration laid over the live object.

use std::collections::BTreeMap;

use serde_json::Value;

use super::element::PathElement;
use super::shape::{List, Map, Ref, Relation, Schema, Shape};

/// The live object with everything that the configuration says. Nothing is removed.
pub(super) fn objects(schema: &Schema<'_>, live: &Value, config: &Value) -> Value {
    merge(schema, schema.start(), Some(live), Some(config)).unwrap_or(Value::Null)
}

fn merge<'a>(
    schema: &Schema<'a>,
    at: Ref<'a>,
    live: Option<&Value>,
    config: Option<&Value>,
) -> Option<Value> {
    let Some(config) = config else { return live.cloned() };
    match schema.shape_of(at, config) {
        Shape::Map(map) if !map.atomic => {
            let ours = live.and_then(Value::as_object);
            let theirs = config.as_object();
            let empty = |map: Option<&serde_json::Map<String, Value>>| map.is_none_or(|map| map.is_empty());
            // Two empty ones are a leaf, so that `{}` and null stay apart.
            if empty(ours) && empty(theirs) { Some(config.clone()) } else { maps(schema, map, ours, theirs) }
        }
        Shape::List(list) if !matches!(list.relation, Relation::Atomic) => {
            let items = |value: Option<&Value>| -> Vec<Value> {
                value.and_then(Value::as_array).cloned().unwrap_or_default()
            };
            let (ours, theirs) = (items(live), items(Some(config)));
            if ours.is_empty() && theirs.is_empty() {
                Some(config.clone())
            } else {
                lists(schema, list, &ours, &theirs)
            }
        }
        _ => Some(config.clone()),
    }
}

fn maps<'a>(
    schema: &Schema<'a>,
    map: Map<'a>,
    live: Option<&serde_json::Map<String, Value>>,
    config: Option<&serde_json::Map<String, Value>>,
) -> Option<Value> {
    let mut out = serde_json::Map::new();
    for (name, ours) in live.into_iter().flatten() {
        let theirs = config.and_then(|config| config.get(name));
        if let Some(value) = merge(schema, map.child_or_deduced(name), Some(ours), theirs) {
            out.insert(name.clone(), value);
        }
    }
    for (name, theirs) in config.into_iter().flatten() {
        if live.is_some_and(|live| live.contains_key(name)) {
            continue;
        }
        if let Some(value) = merge(schema, map.child_or_deduced(name), None, Some(theirs)) {
            out.insert(name.clone(), value);
        }
    }
    (!out.is_empty()).then_some(Value::Object(out))
}

/// The items of both lists. Those of the configuration stand in its order, those of the live list alone stay
/// between them where they were.
fn lists<'a>(schema: &Schema<'a>, list: List<'a>, live: &[Value], config: &[Value]) -> Option<Value> {
    // Both lists were validated: every item has an element, and those of the configuration are unique.
    let elements = |items: &[Value]| -> Vec<PathElement> {
        items.iter().filter_map(|item| schema.item(&list, item).ok()).collect()
    };
    let (left, right) = (elements(live), elements(config));
    let theirs: BTreeMap<&PathElement, &Value> = right.iter().zip(config).collect();
    // An item that stands more than once in the live list is replaced, not merged with.
    let mut ours: BTreeMap<&PathElement, Option<&Value>> = BTreeMap::new();
    for (element, item) in left.iter().zip(live) {
        ours.entry(element).and_modify(|value| *value = None).or_insert(Some(item));
    }
    let mut shared = right.iter().filter(|element| ours.contains_key(element)).peekable();
    let mut taken = std::collections::BTreeSet::new();
    let mut out = Vec::with_capacity(live.len().max(config.len()));
    let both = |element: &PathElement| {
        let before = ours.get(element).map(|value| value.unwrap_or(&Value::Null));
        merge(schema, list.element, before, theirs.get(element).copied())
    };
    let (mut l, mut r) = (0, 0);
    while l < left.len() || r < right.len() {
        if l < left.len() && r < right.len() {
            let element = &left[l];
            if *element == right[r] {
                taken.insert(element);
                out.extend(both(element));
                l += 1;
                r += 1;
                shared.next();
                continue;
            }
            if theirs.contains_key(element) && shared.peek().is_some_and(|next| *next != element) {
                // Shared, but it is another one's turn.
                l += 1;
                continue;
            }
        }
        if l < left.len() {
            let element = &left[l];
            if !theirs.contains_key(element) {
                out.extend(merge(schema, list.element, Some(&live[l]), None));
                l += 1;
                continue;
            }
            if taken.contains(element) {
                l += 1;
            }
        }
        if r < right.len() {
            let element = &right[r];
            taken.insert(element);
            out.extend(both(element));
            r += 1;
            shared.next_if(|next| *next == element);
        }
    }
    (!out.is_empty()).then_some(Value::Array(out))
}
