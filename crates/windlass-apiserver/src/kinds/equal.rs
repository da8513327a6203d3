//! Whether two objects are the same to Go's semantic comparison, by the types of their fields.

use serde_json::Value;

use super::tree::{is_zero, same};
use crate::schema::{Type, TypeId, Types};

/// Whether what a JSON pointer through fields leads to is the same in two objects of a type.
///
/// Empty lists and maps are as good as none, and so is the zero value of a plain field; a pointer to something empty
/// is something.
pub(super) fn equal_at(types: &Types, root: TypeId, pointer: &str, a: &Value, b: &Value) -> bool {
    let (mut ty, mut a, mut b) = (&Type::Struct(root), Some(a), Some(b));
    let mut pointed = false;
    for key in pointer.split('/').skip(1) {
        let Type::Struct(id) = ty else { return same(a, b) };
        let Some(field) = types.get(*id).field(key) else { return same(a, b) };
        (a, b) = (child(a, key), child(b, key));
        (ty, pointed) = (&field.ty, field.ptr);
    }
    equal(types, ty, pointed, a, b)
}

fn equal<'a>(types: &Types, ty: &Type, pointed: bool, a: Option<&'a Value>, b: Option<&'a Value>) -> bool {
    let (a, b) = (a.filter(|a| !a.is_null()), b.filter(|b| !b.is_null()));
    if pointed && a.is_some() != b.is_some() {
        return false;
    }
    match ty {
        Type::Struct(id) => types.get(*id).fields.iter().all(|field| {
            let (a, b) = (child(a, &field.name), child(b, &field.name));
            equal(types, &field.ty, field.ptr, a, b)
        }),
        Type::List(element) => {
            let len = |list: Option<&Value>| list.and_then(Value::as_array).map_or(0, Vec::len);
            let item = |list: Option<&'a Value>, i: usize| list.and_then(|list| list.get(i));
            len(a) == len(b) && (0..len(a)).all(|i| equal(types, element, false, item(a, i), item(b, i)))
        }
        Type::Map(element) => {
            let len = |map: Option<&Value>| map.and_then(Value::as_object).map_or(0, |map| map.len());
            let mut entries = a.and_then(Value::as_object).into_iter().flatten();
            len(a) == len(b)
                && entries.all(|(key, value)| {
                    child(b, key).is_some_and(|b| equal(types, element, false, Some(value), Some(b)))
                })
        }
        _ => same(a, b) || (!pointed && is_zero(a) && is_zero(b)),
    }
}

fn child<'a>(value: Option<&'a Value>, key: &str) -> Option<&'a Value> {
    value.and_then(|value| value.get(key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;
    use serde_json::json;

    #[test]
    fn a_pointer_to_nothing_is_something_and_an_empty_list_is_not() {
        let types = schema::builtin();
        let id = types.id("io.k8s.api.policy.v1.PodDisruptionBudget").unwrap();
        let equal =
            |a: Value, b: Value| equal_at(types, id, "/spec", &json!({"spec": a}), &json!({"spec": b}));
        assert!(!equal(json!({"selector": {}}), json!({})));
        assert!(!equal(json!({"minAvailable": 0}), json!({})));
        assert!(equal(
            json!({"selector": {"matchLabels": {}}}),
            json!({"selector": {"matchExpressions": []}})
        ));
        assert!(!equal(json!({"selector": {"matchLabels": {"a": "b"}}}), json!({"selector": {}})));
        assert!(equal(json!({"minAvailable": 1}), json!({"minAvailable": 1, "maxUnavailable": null})));
    }
}
