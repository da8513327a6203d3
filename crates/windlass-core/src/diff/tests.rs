//! One question each, with sets as a real server gave them.

use serde_json::{Value, json};

use super::*;

fn found(desired: Value, live: Value, owned: Value) -> Vec<String> {
    differences(&desired, &live, Some(&owned)).iter().map(ToString::to_string).collect()
}

#[test]
fn what_was_applied_is_the_same() {
    let live = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a", "uid": "1", "labels": {"x": "1", "other": "2"}},
        "data": {"k": "v", "not": "ours"},
    });
    let owned = json!({"f:metadata": {"f:labels": {"f:x": {}}}, "f:data": {"f:k": {}}});
    let desired = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "default", "labels": {"x": "1"}, "annotations": null},
        "data": {"k": "v"},
    });
    assert_eq!(found(desired, live, owned), [""; 0]);
}

#[test]
fn values_differ_leave_and_become_ours() {
    let live = json!({"spec": {"replicas": 3, "paused": true, "old": 1}, "metadata": {}});
    let owned = json!({"f:spec": {"f:replicas": {}, "f:old": {}}});
    let desired =
        json!({"spec": {"replicas": 5, "paused": true, "new": "x"}, "metadata": {"labels": {"a.b/c": "d"}}});
    assert_eq!(
        found(desired, live, owned),
        [
            "spec.replicas: 3 → 5",
            "spec.paused: ours from now on",
            r#"spec.new: added "x""#,
            "spec.old: removed",
            r#"metadata.labels: added {"a.b/c":"d"}"#,
        ]
    );
}

#[test]
fn what_nobody_applied_differs_field_by_field() {
    let desired = json!({"kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "1", "b": "2"}});
    let live = json!({"metadata": {"name": "a"}, "data": {"a": "1", "b": "3"}});
    let found: Vec<_> = differences(&desired, &live, None).iter().map(ToString::to_string).collect();
    assert_eq!(found, ["data.a: ours from now on", r#"data.b: "3" → "2""#]);
}

#[test]
fn items_are_told_apart_by_their_keys() {
    let live = json!({"containers": [
        {"name": "injected", "image": "x"},
        {"name": "app", "image": "a:1", "imagePullPolicy": "Always"},
        {"name": "old", "image": "o"},
    ]});
    let owned = json!({"f:containers": {
        "k:{\"name\":\"app\"}": {".": {}, "f:name": {}, "f:image": {}},
        "k:{\"name\":\"old\"}": {".": {}, "f:name": {}, "f:image": {}},
    }});
    let desired = json!({"containers": [{"name": "app", "image": "a:2"}, {"name": "new", "image": "n"}]});
    assert_eq!(
        found(desired, live, owned),
        [
            r#"containers[name=app].image: "a:1" → "a:2""#,
            r#"containers[name=new]: added {"name":"new","image":"n"}"#,
            "containers[name=old]: removed",
        ]
    );
}

#[test]
fn a_key_may_be_left_to_the_server() {
    let live = json!({"ports": [
        {"containerPort": 80, "protocol": "TCP"},
        {"containerPort": 80, "protocol": "UDP"},
    ]});
    let owned = json!({"f:ports": {
        "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}},
        "k:{\"containerPort\":80,\"protocol\":\"UDP\"}": {".": {}, "f:containerPort": {}, "f:protocol": {}},
    }});
    let both = json!({"ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}]});
    assert_eq!(found(both, live.clone(), owned.clone()), [""; 0]);

    let ambiguous = json!({"ports": [{"containerPort": 80}]});
    let found = found(ambiguous, live, owned);
    assert!(found.iter().any(|line| line == "ports[containerPort=80,protocol=UDP]: removed"), "{found:?}");
}

#[test]
fn a_default_key_does_not_stand_for_another_protocol() {
    let live = json!({"ports": [{"containerPort": 80, "protocol": "UDP"}]});
    let owned = json!({"f:ports": {
        "k:{\"containerPort\":80,\"protocol\":\"UDP\"}": {".": {}, "f:containerPort": {}, "f:protocol": {}},
    }});
    let desired = json!({"ports": [{"containerPort": 80}]});
    assert_eq!(found(desired, live, owned), ["ports[containerPort=80,protocol=UDP].protocol: removed"]);
}

#[test]
fn order_counts_among_our_own_items_only() {
    let live = json!({"env": [{"name": "B"}, {"name": "X"}, {"name": "A"}]});
    let owned = json!({"f:env": {
        "k:{\"name\":\"A\"}": {".": {}, "f:name": {}},
        "k:{\"name\":\"B\"}": {".": {}, "f:name": {}},
    }});
    let wanted = |first: &str, second: &str| json!({"env": [{"name": first}, {"name": second}]});
    assert_eq!(found(wanted("B", "A"), live.clone(), owned.clone()), [""; 0]);
    assert_eq!(found(wanted("A", "B"), live, owned), ["env: reordered"]);
}

#[test]
fn sets_hold_values() {
    let live = json!({"finalizers": ["a/x", "b/y", "c/z"]});
    let owned = json!({"f:finalizers": {"v:\"a/x\"": {}, "v:\"b/y\"": {}}});
    let desired = json!({"finalizers": ["a/x", "c/z", "d/w"]});
    assert_eq!(
        found(desired, live, owned),
        [
            r#"finalizers["c/z"]: ours from now on"#,
            r#"finalizers["d/w"]: added "d/w""#,
            r#"finalizers["b/y"]: removed"#,
        ]
    );
}

#[test]
fn a_list_that_is_one_value_is_compared_as_one() {
    let owned = json!({"f:args": {}});
    let args = |args: &[&str]| json!({"args": args});
    assert_eq!(found(args(&["a", "b"]), args(&["a", "b"]), owned.clone()), [""; 0]);
    assert_eq!(found(args(&["a"]), args(&["a", "b"]), owned), [r#"args: ["a","b"] → ["a"]"#]);
}

#[test]
fn empty_values_that_the_server_left_out_are_there() {
    let owned = json!({"f:hostNetwork": {}, "f:tolerations": {}, "f:minReadySeconds": {}, "f:subdomain": {}});
    let desired = json!({"hostNetwork": false, "tolerations": [], "minReadySeconds": 0, "subdomain": ""});
    assert_eq!(found(desired.clone(), json!({}), owned), [""; 0]);
    // Without an entry in the set we cannot know that the server has taken them.
    assert_eq!(found(desired, json!({}), json!({})).len(), 4);
}

#[test]
fn an_empty_map_of_labels_says_nothing_of_the_labels_of_others() {
    let owned = json!({"f:metadata": {"f:annotations": {}}, "f:nodeSelector": {}});
    let live = json!({"metadata": {"annotations": {"a": "b"}}, "nodeSelector": {"a": "b"}});
    let desired = json!({"metadata": {"annotations": {}}, "nodeSelector": {}});
    assert_eq!(found(desired, live, owned), [r#"nodeSelector: {"a":"b"} → {}"#]);
}

#[test]
fn numbers_are_the_same_by_value_and_nulls_are_nothing() {
    let owned = json!({"f:n": {}, "f:whole": {}});
    let live = json!({"n": 1, "whole": {"a": [2.0], "gone": null}});
    assert_eq!(found(json!({"n": 1.0, "whole": {"a": [2]}, "nothing": null}), live, owned), [""; 0]);
}

#[test]
fn nulls_are_taken_out_of_objects_and_left_in_lists() {
    let mut value = json!({"a": null, "b": {"c": null, "d": 1}, "e": [null, {"f": null}]});
    without_nulls(&mut value);
    assert_eq!(value, json!({"b": {"d": 1}, "e": [null, {}]}));
}

#[test]
fn secrets_are_not_told() {
    let found = differences(&json!({"data": {"a": "c2VjcmV0"}}), &json!({"data": {"a": "b2xk"}}), None);
    let lines: Vec<_> = found.into_iter().map(|found| found.redacted().to_string()).collect();
    assert_eq!(lines, [r#"data.a: "(hidden)" → "(hidden)""#]);
}

#[test]
fn long_values_are_cut() {
    let found = differences(&json!({"a": "é".repeat(200)}), &json!({}), None);
    assert!(found[0].to_string().chars().count() < 100, "{}", found[0]);
}
