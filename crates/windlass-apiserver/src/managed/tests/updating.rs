use serde_json::json;

use super::super::{Operation, ReplicasPath, from_scale, to_scale};
use super::*;

#[test]
fn a_create_owns_what_it_says_but_not_what_every_object_has() {
    let world = World::new();
    let object = world.create(
        "m",
        thing(json!({
            "metadata": {"labels": {"app": "x"}, "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {
                "ports": [{"port": 80}, {"port": 80, "protocol": "UDP"}],
                "set": ["b", "a"], "args": ["x"], "selector": {"match": {"a": "b"}}, "flat": {"a": "b"},
                "raw": {"a": {"b": 1}}, "any": {"a": {"b": 1}, "l": [1]}, "open": {"known": "x", "other": {"y": 1}},
                "replicas": 1
            },
            "status": {}
        })),
    );
    let expected = json!([["m/Update@1", {
        "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
        "f:spec": {
            "f:any": {".": {}, "f:a": {".": {}, "f:b": {}}, "f:l": {}},
            "f:args": {},
            "f:flat": {},
            "f:open": {"f:known": {}, "f:other": {".": {}, "f:y": {}}},
            "f:ports": {
                "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}},
                "k:{\"port\":80,\"protocol\":\"UDP\"}": {".": {}, "f:port": {}, "f:protocol": {}},
            },
            "f:raw": {},
            "f:replicas": {},
            "f:selector": {},
            "f:set": {".": {}, "v:\"a\"": {}, "v:\"b\"": {}},
        }
    }]]);
    assert_eq!(json!(owners(&object)), expected);
    let text = object["metadata"]["managedFields"][0].to_string();
    assert!(text.starts_with(
        r#"{"manager":"m","operation":"Update","apiVersion":"v1","time":"1970-01-01T00:00:01Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":"#
    ));
}

#[test]
fn a_custom_object_owns_its_structures_too_and_keeps_keys_sorted() {
    let world = World::new();
    let schema = Schema::custom(&world.types, world.root);
    let mut object = json!({"apiVersion": "v1", "kind": "Thing",
        "metadata": {"labels": {"b": "c"}, "name": "a"}, "spec": {"ports": [{"port": 9}, {"port": 10}]}});
    update(&schema, None, &mut object, &write("m", 1));
    let keys: Vec<_> = object["metadata"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["labels", "managedFields", "name"]);
    let expected = r#"{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{".":{},"f:b":{}}},"f:spec":{".":{},"f:ports":{".":{},"k:{\"port\":10,\"protocol\":\"TCP\"}":{".":{},"f:port":{}},"k:{\"port\":9,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}},"manager":"m","operation":"Update","time":"1970-01-01T00:00:01Z"}"#;
    assert_eq!(object["metadata"]["managedFields"][0].to_string(), expected);
}

#[test]
fn an_update_takes_what_it_changes_and_gives_up_what_it_removes() {
    let world = World::new();
    let live = world.create("a", thing(json!({"data": {"x": "1", "y": "1", "z": "1"}})));
    let live = world.update("b", 2, &live, |object| {
        object["data"]["x"] = json!("2");
        object["data"].as_object_mut().unwrap().shift_remove("z");
        object["data"]["new"] = json!("2");
    });
    assert_eq!(owned_by(&live, "a"), json!({"f:data": {".": {}, "f:y": {}}}));
    assert_eq!(owned_by(&live, "b"), json!({"f:data": {"f:new": {}, "f:x": {}}}));
    let live = world.update("b", 3, &live, |object| object["data"]["y"] = json!("2"));
    let expected = json!([
        ["a/Update@1", {"f:data": {}}],
        ["b/Update@3", {"f:data": {"f:new": {}, "f:x": {}, "f:y": {}}}]
    ]);
    assert_eq!(json!(owners(&live)), expected);
    let live = world.update("c", 4, &live, |object| object["data"] = json!({}));
    assert_eq!(json!(owners(&live)), json!([["a/Update@1", {"f:data": {}}]]));
}

#[test]
fn an_update_that_changes_nothing_changes_nothing() {
    let world = World::new();
    let live = world.create("a", thing(json!({"data": {"x": "1"}, "spec": {"ports": [{"port": 1}]}})));
    let live = world.apply("b", 2, &live, thing(json!({"data": {"y": "1"}})));
    let same = world.update("c", 3, &live, |object| object["metadata"]["resourceVersion"] = json!("7"));
    assert_eq!(live["metadata"]["managedFields"].to_string(), same["metadata"]["managedFields"].to_string());
}

#[test]
fn subresources_have_entries_of_their_own_and_reset_fields_are_nobodys() {
    let world = World::new();
    let mut live = thing(json!({"data": {"x": "1"}, "status": {"ready": 1}}));
    let main = Write { reset: Reset::Exclude(&[&["status"]]), ..write("m", 1) };
    update(&world.schema(), None, &mut live, &main);
    assert_eq!(owned_by(&live, "m"), json!({"f:data": {".": {}, "f:x": {}}}));
    let mut object = live.clone();
    object["status"]["ready"] = json!(2);
    object["metadata"]["managedFields"] = json!([]);
    let status =
        Write { subresource: "status", reset: Reset::Exclude(&[&["spec"], &["data"]]), ..write("m", 2) };
    update(&world.schema(), Some(&live), &mut object, &status);
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(entries.len(), 2, "a subresource cannot forget owners");
    assert_eq!(entries[1]["subresource"], "status");
    assert_eq!(entries[1]["fieldsV1"], json!({"f:status": {"f:ready": {}}}));
}

#[test]
fn an_endpoint_may_let_only_some_fields_be_owned() {
    let world = World::new();
    let live = world.create("a", thing(json!({"spec": {"named": [{"name": "x", "port": 1}]}})));
    let mut object = live.clone();
    object["spec"]["named"][0]["port"] = json!(2);
    object["data"] = json!({"z": "1"});
    let only: &[&[&str]] = &[&["spec", "named", "*", "port"]];
    update(&world.schema(), Some(&live), &mut object, &Write { reset: Reset::Only(only), ..write("b", 2) });
    assert_eq!(
        owned_by(&object, "b"),
        json!({"f:spec": {"f:named": {"k:{\"name\":\"x\"}": {"f:port": {}}}}})
    );
}

#[test]
fn clients_may_write_managed_fields() {
    let world = World::new();
    let live = world.create("a", thing(json!({"data": {"x": "1"}})));
    let entry = |manager: &str| {
        json!({"manager": manager, "operation": "Apply", "apiVersion": "v1", "time": "1970-01-01T00:00:05Z",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:x": {}}}})
    };
    let sent =
        |value: Value| world.update("b", 2, &live, |object| object["metadata"]["managedFields"] = value);
    assert_eq!(sent(json!([entry("z")]))["metadata"]["managedFields"], json!([entry("z")]));
    for kept in [json!(null), json!([{"manager": "z"}]), json!([{"manager": "z", "operation": "Delete"}])] {
        assert_eq!(sent(kept)["metadata"]["managedFields"], live["metadata"]["managedFields"]);
    }
    for reset in [json!([]), json!([{}])] {
        assert_eq!(sent(reset)["metadata"].get("managedFields"), None);
    }
}

#[test]
fn ownership_forgotten_is_not_tracked_until_the_next_apply() {
    let world = World::new();
    let live = world.create("a", thing(json!({"data": {"x": "1"}})));
    let live = world.update("a", 2, &live, |object| object["metadata"]["managedFields"] = json!([]));
    let live = world.update("a", 3, &live, |object| object["data"]["x"] = json!("2"));
    assert_eq!(live["metadata"].get("managedFields"), None);
    let live = world.apply("m", 4, &live, thing(json!({"data": {"y": "1"}})));
    let expected = json!([
        ["m/Apply@4", {"f:data": {"f:y": {}}}],
        ["before-first-apply/Update@4", {"f:data": {".": {}, "f:x": {}}}]
    ]);
    assert_eq!(json!(owners(&live)), expected);
}

#[test]
fn the_oldest_updaters_become_one() {
    let world = World::new();
    let mut live = world.create("m0", thing(json!({"data": {"k0": "1"}})));
    for i in 1..12 {
        live = world
            .update(&format!("m{i}"), i + 1, &live, |object| object["data"][format!("k{i}")] = json!("1"));
    }
    let owners = owners(&live);
    assert_eq!(owners.len(), 10);
    assert_eq!(owners[0].0, "ancient-changes/Update@3");
    assert_eq!(owners[0].1, json!({"f:data": {".": {}, "f:k0": {}, "f:k1": {}, "f:k2": {}}}));
    assert_eq!(owners[1].0, "m3/Update@4");
}

#[test]
fn entries_are_sorted_by_operation_time_and_name() {
    let world = World::new();
    let live = world.create("z", thing(json!({"data": {"a": "1"}})));
    let live = world.update("b", 1, &live, |object| object["data"]["b"] = json!("1"));
    let live = world.apply("y", 5, &live, thing(json!({"data": {"c": "1"}})));
    let live = world.apply("x", 4, &live, thing(json!({"data": {"d": "1"}})));
    let names: Vec<_> = owners(&live).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["x/Apply@4", "y/Apply@5", "b/Update@1", "z/Update@1"]);
}

#[test]
fn items_that_stand_twice_are_tolerated() {
    let world = World::new();
    let live = world.create("a", thing(json!({"spec": {"ports": [{"port": 1}, {"port": 1, "name": "x"}]}})));
    let item = json!({"f:spec": {"f:ports": {"k:{\"port\":1,\"protocol\":\"TCP\"}": {}}}});
    assert_eq!(owned_by(&live, "a"), item);
    let same = world.update("b", 2, &live, |_| {});
    assert_eq!(same, live);
    let changed = world.update("b", 2, &live, |object| object["spec"]["ports"][1]["name"] = json!("y"));
    assert_eq!(owned_by(&changed, "b"), item);
    assert_eq!(owned_by(&changed, "a"), json!(null));
    let single = world.update("b", 2, &live, |object| {
        object["spec"]["ports"].as_array_mut().unwrap().pop();
    });
    let below =
        json!({"f:spec": {"f:ports": {"k:{\"port\":1,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}}});
    assert_eq!(owned_by(&single, "b"), below);
}

#[test]
fn what_is_not_of_its_type_has_no_owners() {
    let world = World::new();
    let live = world.create("a", thing(json!({"data": {"x": "1"}})));
    let odd = world.update("b", 2, &live, |object| object["unheard"] = json!(1));
    assert_eq!(odd["metadata"].get("managedFields"), None);
}

#[test]
fn sets_follow_a_type_that_became_one_value_and_lose_versions_that_are_gone() {
    let world = World::new();
    let mut live = world.create("a", thing(json!({"spec": {"flat": {"a": "b"}}})));
    live["metadata"]["managedFields"] = json!([
        {"manager": "a", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
         "fieldsV1": {"f:spec": {"f:flat": {".": {}, "f:a": {}}, "f:args": {"i:0": {}}}}},
        {"manager": "b", "operation": "Update", "apiVersion": "v0", "fieldsType": "FieldsV1",
         "fieldsV1": {"f:spec": {"f:flat": {}}}}
    ]);
    let mut object = live.clone();
    object["data"] = json!({"x": "1"});
    let schema = Schema { versions: &["v1"], ..world.schema() };
    update(&schema, Some(&live), &mut object, &write("c", 2));
    assert_eq!(owned_by(&object, "a"), json!({"f:spec": {"f:args": {}, "f:flat": {}}}));
    assert_eq!(owned_by(&object, "b"), json!(null));
}

#[test]
fn times_go_back_when_nothing_else_changed() {
    let world = World::new();
    let live = world.create("a", thing(json!({"data": {"x": "1"}})));
    let mut same = live.clone();
    same["metadata"]["managedFields"][0]["time"] = json!("1970-01-01T00:00:09Z");
    settle(&live, &mut same);
    assert_eq!(same, live);
    let mut changed = live.clone();
    changed["metadata"]["managedFields"][0]["time"] = json!("1970-01-01T00:00:09Z");
    changed["data"]["x"] = json!("2");
    let expected = changed.clone();
    settle(&live, &mut changed);
    assert_eq!(changed, expected);
}

#[test]
fn the_scale_subresource_owns_the_replicas_of_its_object() {
    let paths = [ReplicasPath { api_version: "v1", path: Some(&["spec", "replicas"]) }];
    let entry = |manager: &str, version: &str, fields: Value| {
        json!({"manager": manager, "operation": "Update", "apiVersion": version, "time": "1970-01-01T00:00:01Z",
            "fieldsType": "FieldsV1", "fieldsV1": fields})
    };
    let parent = vec![
        entry("a", "v1", json!({"f:spec": {"f:paused": {}, "f:replicas": {}}})),
        entry("b", "v1", json!({"f:data": {}})),
    ];
    let scale = to_scale(&parent, &paths).unwrap();
    assert_eq!(scale, [entry("a", "autoscaling/v1", json!({"f:spec": {"f:replicas": {}}}))]);
    // An updater is told apart by its version, so kube-apiserver parts its entry in two: seen on 1.36.4.
    let parted = from_scale(&parent, &scale, "v1", &paths).unwrap();
    assert_eq!(parted.len(), 3);
    assert_eq!(parted[0]["fieldsV1"], json!({"f:spec": {"f:replicas": {}}}));
    assert_eq!((parted[0].get("time"), &parted[1]["fieldsV1"]), (None, &json!({"f:spec": {"f:paused": {}}})));

    let mut taken = entry("c", "autoscaling/v1", json!({"f:spec": {"f:replicas": {}}}));
    taken["subresource"] = json!("scale");
    let after = from_scale(&parent, &[taken], "v1", &paths).unwrap();
    let names: Vec<_> = after.iter().map(|entry| entry["manager"].as_str().unwrap()).collect();
    assert_eq!(names, ["c", "a", "b"], "kube-apiserver gives the new entry no time");
    assert_eq!(after[0]["apiVersion"], "v1");
    assert_eq!(after[0]["subresource"], "scale");
    assert_eq!(after[1]["fieldsV1"], json!({"f:spec": {"f:paused": {}}}));
    assert!(Operation::Apply < Operation::Update);
}
