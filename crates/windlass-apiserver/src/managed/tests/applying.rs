use serde_json::json;

use super::*;
use crate::status::Status;

#[test]
fn an_apply_makes_the_object_and_owns_what_it_says() {
    let world = World::new();
    let object = world.apply_new("m", thing(json!({"data": {"x": "1"}, "spec": {"ports": [{"port": 80}]}})));
    assert_eq!(object["data"], json!({"x": "1"}));
    let expected = json!([["m/Apply@1", {
        "f:data": {"f:x": {}},
        "f:spec": {"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}}
    }]]);
    assert_eq!(json!(owners(&object)), expected);
}

#[test]
fn equal_values_are_shared_and_different_ones_conflict() {
    let world = World::new();
    let live = world.apply_new("m1", thing(json!({"data": {"a": "1"}})));
    let shared = world.apply("m2", 2, &live, thing(json!({"data": {"a": "1"}})));
    assert_eq!(
        json!(owners(&shared)),
        json!([["m2/Apply@-", {"f:data": {"f:a": {}}}], ["m1/Apply@1", {"f:data": {"f:a": {}}}]])
    );
    let error = world.try_apply("m2", 2, &live, thing(json!({"data": {"a": "2"}}))).unwrap_err();
    let status = Status::from(error);
    assert_eq!((status.code, &*status.reason), (409, "Conflict"));
    assert_eq!(status.message, "Apply failed with 1 conflict: conflict with \"m1\": .data.a");
    let details = json!({"causes": [
        {"reason": "FieldManagerConflict", "message": "conflict with \"m1\"", "field": ".data.a"}
    ]});
    assert_eq!(status.to_value()["details"], details);
    let forced = world.force("m2", &live, thing(json!({"data": {"a": "2"}})));
    assert_eq!(forced["data"]["a"], "2");
    assert_eq!(json!(owners(&forced)), json!([["m2/Apply@9", {"f:data": {"f:a": {}}}]]));
}

#[test]
fn many_conflicts_are_listed_by_manager() {
    let world = World::new();
    let live =
        world.create("u", thing(json!({"data": {"a": "1"}, "spec": {"named": [{"name": "x", "port": 1}]}})));
    let live = world.apply("m", 2, &live, thing(json!({"data": {"b": "1"}})));
    let config = thing(json!({"data": {"a": "2", "b": "2"}, "spec": {"named": [{"name": "x", "port": 2}]}}));
    let error = world.try_apply("n", 3, &live, config).unwrap_err();
    let expected = "Apply failed with 3 conflicts: conflicts with \"m\":\n- .data.b\n\
                    conflicts with \"u\" using v1:\n- .data.a\n- .spec.named[name=\"x\"].port";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn what_is_no_longer_applied_goes_unless_somebody_owns_it() {
    let world = World::new();
    let live = world.apply_new("m1", thing(json!({"data": {"a": "1", "b": "1", "c": "1"}})));
    let live = world.apply("m2", 2, &live, thing(json!({"data": {"b": "1"}})));
    let live = world.update("u", 3, &live, |object| object["data"]["d"] = json!("1"));
    let live = world.apply("m1", 4, &live, thing(json!({"data": {"a": "1"}})));
    assert_eq!(live["data"], json!({"a": "1", "b": "1", "d": "1"}));
    let live = world.apply("m1", 5, &live, thing(json!({})));
    assert_eq!(live["data"], json!({"b": "1", "d": "1"}));
    assert_eq!(owned_by(&live, "m1"), json!(null));
}

#[test]
fn an_item_goes_with_what_is_below_it_unless_somebody_owns_the_item() {
    let world = World::new();
    let item = |rest: Value| {
        let mut item = json!({"name": "x"});
        merge(&mut item, rest);
        thing(json!({"spec": {"named": [item]}}))
    };
    let live = world.apply_new("m1", item(json!({"port": 1})));
    let defaulted =
        world.update("u", 2, &live, |object| object["spec"]["named"][0]["protocol"] = json!("UDP"));
    let gone = world.apply("m1", 3, &defaulted, thing(json!({})));
    assert_eq!(gone["spec"].get("named").filter(|named| !named.is_null()), None);

    let shared = world.apply("m2", 2, &live, item(json!({"target": "t"})));
    let kept = world.apply("m1", 3, &shared, thing(json!({})));
    assert_eq!(kept["spec"]["named"], json!([{"name": "x", "target": "t"}]));
}

#[test]
fn items_stand_in_the_order_of_the_configuration_around_those_of_others() {
    let world = World::new();
    let set = |items: &[&str]| thing(json!({"spec": {"set": items}}));
    let check = |live: &[&str], config: &[&str], expected: &[&str]| {
        let live = world.create("u", set(live));
        let object = world.apply("m", 2, &live, set(config));
        assert_eq!(object["spec"]["set"], json!(expected), "{config:?}");
    };
    check(&["a", "b", "c"], &["c", "a"], &["b", "c", "a"]);
    check(&["a", "b"], &["c"], &["a", "b", "c"]);
    check(&["a", "b", "c"], &["a", "x", "c"], &["a", "b", "x", "c"]);
    check(&["a", "b", "c", "d"], &["d", "b"], &["a", "c", "d", "b"]);
    check(&[], &["b", "a"], &["b", "a"]);
}

#[test]
fn atomic_values_are_replaced_as_a_whole() {
    let world = World::new();
    let spec = |args: Value, selector: Value, any: Value| {
        thing(json!({"spec": {"args": args, "selector": {"match": selector}, "any": any}}))
    };
    let live = world.apply_new("m", spec(json!(["a"]), json!({"a": "1"}), json!({"a": {"x": 1}, "l": [1]})));
    let object =
        world.apply("m", 2, &live, spec(json!(["b"]), json!({"b": "1"}), json!({"a": {"y": 1}, "l": [2]})));
    assert_eq!(object["spec"]["args"], json!(["b"]));
    assert_eq!(object["spec"]["selector"], json!({"match": {"b": "1"}}));
    assert_eq!(object["spec"]["any"], json!({"a": {"y": 1}, "l": [2]}));
}

#[test]
fn a_value_of_no_type_may_change_its_class() {
    let world = World::new();
    let any = |value: Value| thing(json!({"spec": {"any": value}}));
    let mut live = world.apply_new("m", any(json!({"a": 1})));
    for next in [json!("s"), json!([1]), json!({"b": {}}), json!(null), json!(3)] {
        live = world.apply("m", 2, &live, any(next.clone()));
        assert_eq!(live["spec"]["any"], next);
    }
}

#[test]
fn apply_and_update_by_one_name_are_two_managers() {
    let world = World::new();
    let live = world.create("m", thing(json!({"data": {"a": "1"}})));
    let object = world.apply("m", 2, &live, thing(json!({"data": {"a": "1", "b": "1"}})));
    let names: Vec<_> = owners(&object).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["m/Apply@2", "m/Update@1"]);
    assert!(world.try_apply("m", 3, &live, thing(json!({"data": {"a": "2"}}))).is_err());
}

#[test]
fn an_apply_that_changes_nothing_keeps_its_time() {
    let world = World::new();
    let live = world.apply_new("m", thing(json!({"data": {"a": "1"}})));
    let again = world.apply("m", 5, &live, thing(json!({"data": {"a": "1"}})));
    assert_eq!(again, live);
}

#[test]
fn configurations_that_are_not_of_the_type_are_refused() {
    let world = World::new();
    let schema = world.schema();
    let check = |config: Value, code: u16, message: &str| {
        let error = apply(&schema, None, &config, &write("m", 1), false).unwrap_err();
        let status = Status::from(error);
        assert_eq!((status.code, status.message.as_str()), (code, message));
    };
    let typed =
        |message: &str| format!("failed to create typed patch object (n/a; /v1, Kind=Thing): {message}");
    check(thing(json!({"spec": {"oops": 1}})), 500, &typed(".spec.oops: field not declared in schema"));
    check(
        thing(json!({"spec": {"named": [{"port": 1}]}})),
        500,
        &typed(
            ".spec.named: element 0: associative list with keys has an element that omits all key fields [\"name\"] \
             (and doesn't have default values for any key fields)",
        ),
    );
    check(
        thing(json!({"spec": {"ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]}})),
        500,
        &typed(".spec.ports: duplicate entries for key [port=1,protocol=\"TCP\"]"),
    );
    check(
        thing(json!({"spec": {"set": ["a", "a"]}})),
        500,
        &typed(".spec.set: duplicate entries for key [=\"a\"]"),
    );
    check(
        thing(json!({"spec": {"replicas": "x", "paused": "y"}})),
        500,
        &typed(
            "errors:\n  .spec.replicas: expected numeric (int or float), got string\n  \
             .spec.paused: expected boolean, got &{y}",
        ),
    );
    check(
        thing(json!({"data": {"a": 1}})),
        500,
        &typed(".data.a: expected string, got &value.valueUnstructured{Value:1}"),
    );
    check(thing(json!({"spec": []})), 500, &typed(".spec: expected map, got &{[]}"));
    check(thing(json!({"metadata": {"managedFields": []}})), 400, "metadata.managedFields must be nil");
    check(json!({"apiVersion": "g/v2", "kind": "X"}), 400, "invalid object type: g/v2, Kind=X");
}

#[test]
fn kubectl_takes_over_what_it_applied_on_its_own_side() {
    let world = World::new();
    const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
    let mut live = thing(json!({"data": {"a": "1", "b": "1"}}));
    let last = json!({"apiVersion": "v1", "kind": "Thing", "data": {"a": "1", "b": "0"}}).to_string();
    live["metadata"]["annotations"] = json!({ANNOTATION: last});
    let live = world.create("kubectl-client-side-apply", live);
    let object = world.apply("kubectl", 2, &live, thing(json!({"data": {"a": "2"}})));
    assert_eq!(object["data"], json!({"a": "2", "b": "1"}));
    let expected = "{\"apiVersion\":\"v1\",\"data\":{\"a\":\"2\"},\"kind\":\"Thing\",\"metadata\":{\"name\":\"a\",\"namespace\":\"n\"}}\n";
    assert_eq!(object["metadata"]["annotations"][ANNOTATION], expected);
    let error =
        world.try_apply("kubectl", 2, &live, thing(json!({"data": {"a": "2", "b": "2"}}))).unwrap_err();
    let ApplyError::Conflicts(conflicts) = error else { panic!("{error}") };
    let paths: Vec<_> = conflicts.iter().map(|conflict| conflict.path.as_str()).collect();
    assert_eq!(paths, [".data.b"], "it is not as it was applied");
    assert!(world.try_apply("other", 2, &live, thing(json!({"data": {"a": "2"}}))).is_err());
}

#[test]
fn items_that_stand_twice_in_the_live_object_are_replaced() {
    let world = World::new();
    let live = world.create(
        "u",
        thing(
            json!({"spec": {"ports": [{"port": 1, "target": "t"}, {"port": 1, "name": "x"}, {"port": 2}]}}),
        ),
    );
    let object = world.force("m", &live, thing(json!({"spec": {"ports": [{"port": 1, "name": "y"}]}})));
    assert_eq!(object["spec"]["ports"], json!([{"port": 1, "name": "y"}, {"port": 2}]));
}

/// A test of shape, not of speed: with anything quadratic in the fields or in the managers it would take minutes.
#[test]
fn large_objects_take_time_in_proportion() {
    let world = World::new();
    let keys: Vec<String> = (0..20_000u64).map(|i| format!("k{}", i * 7919 % 1_000_003)).collect();
    let all = |value: &str| -> Value { keys.iter().map(|key| (key.clone(), json!(value))).collect() };
    let ports: Vec<Value> = (0..5000).map(|i| json!({"port": i * 7919 % 1_000_003})).collect();
    let mut live = thing(json!({"data": all("1"), "spec": {"ports": ports}, "metadata": {"uid": "u"}}));
    let entries = keys.iter().take(2000).map(|key| {
        json!({"manager": key, "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {format!("f:{key}"): {}}}})
    });
    live["metadata"]["managedFields"] = entries.collect();
    let reversed: Vec<&Value> = ports.iter().rev().collect();
    let config = thing(json!({"data": all("2"), "spec": {"ports": reversed}}));
    let object = world.force("m", &live, config);
    assert_eq!(owners(&object).len(), 1);
    assert_eq!(object["spec"]["ports"][0], ports[4999]);
    let pruned = world.force("m", &object, thing(json!({"data": {"k0": "2"}})));
    assert_eq!(pruned["data"], json!({"k0": "2"}));
    assert_eq!(pruned["spec"].get("ports").filter(|ports| !ports.is_null()), None);
}
