use proptest::prelude::*;
use serde_json::{Map, json};

use super::super::Set;
use super::*;

/// Small alphabets, so that trees meet.
fn names() -> impl Strategy<Value = String> {
    "[ab]{1,2}"
}

fn fields_v1() -> impl Strategy<Value = Value> {
    let element = prop_oneof![
        names().prop_map(|name| format!("f:{name}")),
        (0..3, names()).prop_map(|(n, name)| format!("k:{{\"n\":{n},\"s\":\"{name}\"}}")),
        (0..3).prop_map(|n| format!("v:{n}")),
        (0..3).prop_map(|n| format!("i:{n}")),
        Just(".".to_owned()),
    ];
    let leaf = Just(json!({}));
    leaf.prop_recursive(4, 40, 4, move |inner| {
        prop::collection::vec((element.clone(), inner), 0..4)
            .prop_map(|pairs| Value::Object(pairs.into_iter().collect::<Map<_, _>>()))
    })
}

fn sets() -> impl Strategy<Value = Set> {
    fields_v1().prop_map(|tree| Set::from_fields_v1(&tree).unwrap())
}

fn strings() -> impl Strategy<Value = Value> {
    prop::collection::btree_map(names(), "[01]", 0..4).prop_map(|map| json!(map))
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (0..3).prop_map(Value::from),
        names().prop_map(Value::from),
        Just(json!(1.5))
    ];
    leaf.prop_recursive(3, 20, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(names(), inner, 0..3).prop_map(|map| json!(map)),
        ]
    })
}

fn ports() -> impl Strategy<Value = Value> {
    let port = (1..4, prop::option::of(prop_oneof![Just("TCP"), Just("UDP")]), prop::option::of(names()));
    prop::collection::vec(port, 0..4).prop_map(|ports| {
        let mut seen = std::collections::BTreeSet::new();
        let ports =
            ports.into_iter().filter(|(port, protocol, _)| seen.insert((*port, protocol.unwrap_or("TCP"))));
        let port = |(port, protocol, name): (i32, Option<&str>, Option<String>)| {
            let mut item = json!({"port": port});
            if let Some(protocol) = protocol {
                item["protocol"] = json!(protocol);
            }
            if let Some(name) = name {
                item["name"] = json!(name);
            }
            item
        };
        ports.map(port).collect()
    })
}

/// Objects of the kind, with some of their fields.
fn things() -> impl Strategy<Value = Value> {
    let set = prop::collection::btree_set("[abc]", 0..3).prop_map(|set| json!(set)).prop_shuffle_items();
    let parts = (
        prop::option::of(strings()),
        prop::option::of(strings()),
        prop::option::of(ports()),
        prop::option::of(set),
        prop::option::of(prop::collection::vec("[ab]", 0..3).prop_map(Value::from)),
        prop::option::of(any_json()),
        prop::option::of(strings()),
        prop::option::of(any_json()),
    );
    parts.prop_map(|(data, labels, ports, set, args, any, flat, raw)| {
        let mut object = thing(json!({"spec": {}}));
        let put = |object: &mut Value, key: &str, value: Option<Value>| {
            if let Some(value) = value {
                object[key] = value;
            }
        };
        put(&mut object, "data", data);
        put(&mut object["metadata"], "labels", labels);
        for (key, value) in
            [("ports", ports), ("set", set), ("args", args), ("any", any), ("flat", flat), ("raw", raw)]
        {
            put(&mut object["spec"], key, value);
        }
        object
    })
}

/// Shuffles the items of a list.
trait ShuffleItems: Strategy<Value = Value> + Sized {
    fn prop_shuffle_items(self) -> impl Strategy<Value = Value> {
        self.prop_flat_map(|list| {
            Just(list.as_array().cloned().unwrap_or_default()).prop_shuffle().prop_map(Value::from)
        })
    }
}

impl<S: Strategy<Value = Value>> ShuffleItems for S {}

/// The object as the codec would leave it: no nulls, no empty structures of ours.
fn clean(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().map(|(key, value)| (key.clone(), clean(value)));
            Value::Object(
                kept.filter(|(_, value)| !value.is_null() && *value != json!({}) && *value != json!([]))
                    .collect(),
            )
        }
        other => other.clone(),
    }
}

fn unowned(mut object: Value) -> Value {
    object["metadata"].as_object_mut().unwrap().shift_remove("managedFields");
    object
}

proptest! {
    #[test]
    fn a_set_reads_as_it_is_written(set in sets()) {
        prop_assert_eq!(Set::from_fields_v1(&set.to_fields_v1()).unwrap(), set);
    }

    #[test]
    fn sets_obey_their_laws(a in sets(), b in sets(), c in sets()) {
        let union = a.clone().union(b.clone());
        prop_assert_eq!(&union, &b.clone().union(a.clone()));
        prop_assert!(a.is_subset(&union) && b.is_subset(&union));
        prop_assert_eq!(a.clone().union(b.clone()).union(c.clone()), a.clone().union(b.clone().union(c.clone())));
        let both = a.clone().intersection(&b);
        prop_assert_eq!(&both, &b.clone().intersection(&a));
        let only = a.clone().difference(&b);
        prop_assert!(only.clone().intersection(&b).is_empty());
        prop_assert_eq!(only.union(both.clone()), a.clone());
        prop_assert_eq!(both, a.clone().difference(&a.clone().difference(&b)));
        prop_assert!(a.clone().recursive_difference(&b).is_subset(&a.clone().difference(&b)));
        prop_assert!(a.clone().difference(&a).is_empty());
        let count = union.paths().len();
        prop_assert_eq!(count, a.paths().len() + b.clone().difference(&a).paths().len());
        for path in union.paths() {
            prop_assert!(a.contains(&path) || b.contains(&path));
        }
    }

    #[test]
    fn an_update_owns_its_changes_and_a_second_one_has_none(old in things(), new in things()) {
        let world = World::new();
        let live = world.create("a", old);
        let object = world.update("b", 2, &live, |object| {
            let (entries, uid) = (object["metadata"]["managedFields"].clone(), object["metadata"]["uid"].clone());
            *object = new.clone();
            object["metadata"]["managedFields"] = entries;
            object["metadata"]["uid"] = uid;
        });
        let again = world.update("c", 3, &object, |_| {});
        prop_assert_eq!(again, object);
    }

    #[test]
    fn applying_twice_is_applying_once(base in things(), config in things()) {
        let world = World::new();
        // Somebody owns something, or else the second apply is the first one to look for owners.
        let mut base = base;
        base["spec"]["replicas"] = json!(1);
        let live = world.create("u", base);
        let once = world.force("m", &live, config.clone());
        let twice = world.force("m", &once, config.clone());
        prop_assert_eq!(&twice, &once);
        prop_assert!(world.try_apply("m", 9, &once, config).is_ok());
    }

    #[test]
    fn force_always_wins_and_the_configuration_holds(base in things(), first in things(), config in things()) {
        let world = World::new();
        let live = world.create("u", base);
        let live = world.force("m1", &live, first);
        let object = world.force("m2", &live, config.clone());
        for (key, value) in config.get("data").and_then(Value::as_object).into_iter().flatten() {
            prop_assert_eq!(&object["data"][key], value);
        }
        let again = world.try_apply("m2", 9, &object, config);
        prop_assert!(again.is_ok(), "{again:?}");
    }

    #[test]
    fn disjoint_managers_never_conflict(mine in strings(), theirs in strings(), spec in things()) {
        let world = World::new();
        let live = world.apply_new("m1", thing(json!({"data": mine})));
        let mut config = spec;
        config.as_object_mut().unwrap().shift_remove("data");
        config["metadata"]["labels"] = theirs;
        let both = world.try_apply("m2", 2, &live, config);
        prop_assert!(both.is_ok(), "{both:?}");
        let again = world.try_apply("m1", 3, &both.unwrap(), thing(json!({"data": mine})));
        prop_assert!(again.is_ok(), "{again:?}");
    }

    #[test]
    fn what_only_you_own_goes_when_you_drop_it(base in things(), config in things()) {
        let world = World::new();
        let live = world.create("u", thing(json!({"spec": {"replicas": 1}})));
        let with = world.force("m", &live, config);
        let without = world.force("m", &with, thing(json!({})));
        prop_assert_eq!(clean(&without), clean(&live));
        // Nothing but what was dropped goes where others own the rest.
        let live = world.create("u", base);
        let with = world.force("m", &live, thing(json!({"data": {"only-mine": "1"}})));
        let without = world.force("m", &with, thing(json!({})));
        prop_assert_eq!(clean(&unowned(without)), clean(&unowned(live)));
    }

    #[test]
    fn nothing_panics_on_any_tree(a in any_json(), b in any_json(), c in any_json()) {
        let world = World::new();
        for schema in [world.schema(), Schema::custom(&world.types, world.root)] {
            let (a, b) = (thing(json!({"spec": a.clone(), "data": c.clone()})), thing(json!({"spec": b.clone()})));
            let mut object = b.clone();
            update(&schema, Some(&a), &mut object, &write("m", 1));
            let _ = apply(&schema, Some(&a), &b, &write("m", 1), true);
            let _ = apply(&schema, None, &a, &write("m", 1), false);
            let mut bare = c.clone();
            update(&schema, None, &mut bare, &write("m", 1));
            settle(&a, &mut bare);
        }
    }
}
