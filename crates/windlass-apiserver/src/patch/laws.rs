//! Laws that hold for all patches, on random ones.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::strategic::tests::{pod, types};
use super::{PatchError, json_patch, merge_patch, strategic};

/// Any tree, with keys and texts that collide and that look like paths and directives.
fn tree() -> impl Strategy<Value = Value> {
    let text =
        prop::sample::select(vec!["a", "b", "name", "spec", "containers", "delete", "replace", "", "0"]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2i64..3).prop_map(Value::from),
        Just(json!(1.5)),
        text.prop_map(Value::from),
    ];
    let key = prop::sample::select(vec![
        "a",
        "b",
        "name",
        "metadata",
        "spec",
        "containers",
        "volumes",
        "finalizers",
        "env",
        "labels",
        "strategy",
        "$patch",
        "$retainKeys",
        "$setElementOrder/containers",
        "$setElementOrder/finalizers",
        "$setElementOrder",
        "$deleteFromPrimitiveList/finalizers",
        "$deleteFromPrimitiveList",
    ]);
    leaf.prop_recursive(5, 40, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..4).prop_map(|entries| Value::Object(
                entries.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()
            )),
        ]
    })
}

fn operations() -> impl Strategy<Value = Value> {
    let path = prop::collection::vec(prop::sample::select(vec!["a", "b", "0", "1", "-", "-1", "spec"]), 0..4)
        .prop_map(|segments| segments.iter().map(|segment| format!("/{segment}")).collect::<String>());
    let op = prop::sample::select(vec!["add", "remove", "replace", "move", "copy", "test"]);
    let operation = (op, path.clone(), path, tree())
        .prop_map(|(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value}));
    prop::collection::vec(operation, 0..6).prop_map(Value::from)
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.values().any(has_null),
        Value::Array(list) => list.iter().any(has_null),
        _ => false,
    }
}

/// The merge patch that leads from `old` to `new`, if `new` holds no null.
fn merge_diff(old: &Value, new: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return new.clone() };
    let mut patch = Map::new();
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in new {
        match old.get(key) {
            Some(before) if before == value => {}
            Some(before) => {
                patch.insert(key.clone(), merge_diff(before, value));
            }
            None => {
                patch.insert(key.clone(), value.clone());
            }
        }
    }
    Value::Object(patch)
}

/// Containers with distinct names, each with an image, arguments and variables that may be absent.
fn containers() -> impl Strategy<Value = Value> {
    let name = prop::sample::select(vec!["a", "b", "c", "d", "e", "f"]);
    let variables =
        prop::collection::btree_map(name.clone(), prop::option::of("[xyz]"), 0..4).prop_map(|variables| {
            let variable = |(name, value): (&str, Option<String>)| match value {
                Some(value) => json!({"name": name, "value": value}),
                None => json!({"name": name}),
            };
            Value::from(variables.into_iter().map(variable).collect::<Vec<_>>())
        });
    let container = ("[xyz]", prop::option::of(prop::collection::vec("[ab]", 0..3)), variables);
    let containers = prop::collection::btree_map(name, container, 0..5);
    containers.prop_map(|containers| containers.into_iter().collect::<Vec<_>>()).prop_shuffle().prop_map(
        |containers| {
            let container = |(name, (image, args, env)): (&str, (String, Option<Vec<String>>, Value))| {
                let mut container = json!({"name": name, "image": image, "env": env});
                if let Some(args) = args {
                    container["args"] = json!(args);
                }
                container
            };
            Value::from(containers.into_iter().map(container).collect::<Vec<_>>())
        },
    )
}

/// The strategic patch of a list that is merged by name: what differs, what goes, and the order of all.
fn list_diff(old: &Value, new: &Value, element_diff: fn(&Value, &Value) -> Value) -> (Value, Value) {
    let (old, new) = (old.as_array().expect("a list"), new.as_array().expect("a list"));
    let find = |list: &[Value], name: &Value| list.iter().find(|element| element["name"] == *name).cloned();
    let mut patch = Vec::new();
    for element in new {
        match find(old, &element["name"]) {
            Some(before) if before == *element => {}
            Some(before) => {
                let mut difference = element_diff(&before, element);
                difference["name"] = element["name"].clone();
                patch.push(difference);
            }
            None => patch.push(element.clone()),
        }
    }
    for element in old.iter().filter(|element| find(new, &element["name"]).is_none()) {
        patch.push(json!({"name": element["name"], "$patch": "delete"}));
    }
    let order = new.iter().map(|element| json!({"name": element["name"]})).collect::<Vec<_>>();
    (Value::from(patch), Value::from(order))
}

fn container_diff(old: &Value, new: &Value) -> Value {
    let mut patch = merge_diff(old, new);
    if old["env"] != new["env"] {
        let (variables, order) = list_diff(&old["env"], &new["env"], merge_diff);
        patch["env"] = variables;
        patch["$setElementOrder/env"] = order;
    }
    patch
}

proptest! {
    #[test]
    fn a_merge_patch_is_idempotent(target in tree(), patch in tree()) {
        let mut once = target;
        merge_patch(&mut once, patch.clone());
        let mut twice = once.clone();
        merge_patch(&mut twice, patch.clone());
        prop_assume!(patch.is_object());
        // Lists are taken as they are where they replace an object, and are then no longer objects.
        prop_assume!(!has_null(&once));
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn an_empty_merge_patch_changes_nothing(target in tree()) {
        prop_assume!(target.is_object());
        let mut result = target.clone();
        merge_patch(&mut result, json!({}));
        prop_assert_eq!(result, target);
    }

    #[test]
    fn the_difference_as_a_merge_patch_leads_there(old in tree(), new in tree()) {
        prop_assume!(!has_null(&new));
        let mut result = old.clone();
        merge_patch(&mut result, merge_diff(&old, &new));
        prop_assert_eq!(result, new);
    }

    #[test]
    fn the_difference_of_containers_as_a_strategic_patch_leads_there(old in containers(), new in containers()) {
        let (containers, order) = list_diff(&old, &new, container_diff);
        let patch = json!({"spec": {"containers": containers, "$setElementOrder/containers": order}});
        let mut result = json!({"spec": {"containers": old}});
        let outcome = strategic(&types(), pod(), &mut result, patch.clone());
        // Upstream has no order for a list that neither side has elements of.
        prop_assume!(!(old == json!([]) && new == json!([])));
        prop_assert_eq!(outcome, Ok(()), "{}", patch);
        prop_assert_eq!(&result["spec"]["containers"], &new, "{}", patch);
    }

    #[test]
    fn nothing_panics(target in tree(), patch in tree(), operations in operations()) {
        for patch in [&patch, &operations] {
            let _ = json_patch(&mut target.clone(), patch);
            merge_patch(&mut target.clone(), patch.clone());
            let _ = strategic(&types(), pod(), &mut target.clone(), patch.clone());
        }
    }

    #[test]
    fn what_was_added_can_be_tested_for_and_removed(target in tree(), value in tree()) {
        prop_assume!(target.is_object() && target.get("new").is_none());
        let mut result = target.clone();
        let patch = json!([
            {"op": "add", "path": "/new", "value": value},
            {"op": "test", "path": "/new", "value": value},
            {"op": "move", "from": "/new", "path": "/other"},
            {"op": "copy", "from": "/other", "path": "/new"},
            {"op": "remove", "path": "/other"},
            {"op": "remove", "path": "/new"},
        ]);
        prop_assert_eq!(json_patch(&mut result, &patch), Ok::<(), PatchError>(()));
        prop_assert_eq!(result, target);
    }
}
