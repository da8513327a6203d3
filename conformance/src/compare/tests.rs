use serde_json::json;

use super::*;

const UID_1: &str = "00000000-0000-0000-0000-000000000001";
const UID_2: &str = "00000000-0000-0000-0000-000000000002";
const UID_3: &str = "00000000-0000-0000-0000-000000000003";

fn seconds(time: &str) -> i64 {
    time.parse::<jiff::Timestamp>().unwrap().as_second()
}

fn transcript(started: &str, bodies: Vec<Value>) -> Transcript {
    let answers = bodies
        .into_iter()
        .map(|tree| Some(Answer { status: 200, body: Body::Tree(tree), ..Answer::default() }));
    Transcript { started: seconds(started), answers: answers.collect(), ..Transcript::default() }
}

fn check(a: Vec<Value>, b: Vec<Value>) -> Vec<String> {
    let comparison = compare(&transcript("2026-01-01T00:00:00Z", a), &transcript("2026-06-01T00:00:00Z", b));
    comparison.differences.iter().map(|d| d.place.clone()).collect()
}

fn object(uid: &str, rv: &str, time: &str) -> Value {
    json!({"kind": "ConfigMap", "metadata": {"name": "a", "uid": uid, "resourceVersion": rv, "creationTimestamp": time}})
}

#[test]
fn identities_versions_and_times_need_only_correspond() {
    let a = vec![object(UID_1, "5", "2026-01-01T00:00:01Z"), object(UID_1, "9", "2026-01-01T00:00:01Z")];
    let b = vec![object(UID_2, "70", "2026-06-01T00:00:02Z"), object(UID_2, "71", "2026-06-01T00:00:02Z")];
    assert_eq!(check(a, b), Vec::<String>::new());
}

#[test]
fn a_uid_that_changes_on_one_side_is_a_difference() {
    let time = "2026-01-01T00:00:01Z";
    let a = vec![object(UID_1, "5", time), object(UID_1, "6", time)];
    let b = vec![object(UID_2, "5", "2026-06-01T00:00:01Z"), object(UID_3, "6", "2026-06-01T00:00:01Z")];
    let places = check(a, b);
    assert!(places[0].starts_with("/metadata/uid"), "{places:?}");
}

#[test]
fn a_version_that_moves_on_one_side_only_is_a_difference() {
    let time = "2026-01-01T00:00:01Z";
    let a = vec![object(UID_1, "5", time), object(UID_1, "5", time)];
    let b = vec![object(UID_1, "5", "2026-06-01T00:00:01Z"), object(UID_1, "6", "2026-06-01T00:00:01Z")];
    let places = check(a, b);
    assert!(places[0].starts_with("/metadata/resourceVersion (its order with step 0"), "{places:?}");
}

#[test]
fn a_list_may_be_newer_than_its_items_but_not_older() {
    let list = |rv: &str, item: &str| {
        json!({"kind": "ConfigMapList", "metadata": {"resourceVersion": rv},
            "items": [{"metadata": {"name": "a", "resourceVersion": item}}]})
    };
    assert_eq!(check(vec![list("5", "5")], vec![list("80", "70")]), Vec::<String>::new());
    assert_eq!(check(vec![list("5", "5")], vec![list("60", "70")]).len(), 1);
}

#[test]
fn a_time_long_after_the_start_is_not_the_time_of_the_start() {
    let a = vec![object(UID_1, "5", "2026-01-01T00:00:01Z")];
    let b = vec![object(UID_1, "5", "2026-01-01T00:00:02Z")];
    assert_eq!(check(a, b), ["/metadata/creationTimestamp"]);
}

#[test]
fn what_was_there_before_is_as_old_as_the_server() {
    let compared = |time: &str| {
        let old = vec![object(UID_1, "5", "2026-01-01T00:00:00Z")];
        let reference = Transcript { age: 600, ..transcript("2026-01-01T00:10:00Z", old) };
        let ours = transcript("2026-01-02T00:00:00Z", vec![object(UID_1, "5", time)]);
        compare(&reference, &ours).differences.len()
    };
    assert_eq!(compared("2026-01-02T00:00:00Z"), 0);
    assert_eq!(compared("2026-01-02T00:01:00Z"), 1, "it was made later");
    assert_eq!(compared("2026-01-01T23:00:00Z"), 1, "it is older than the server");
    let shown = |age: &str| {
        let row = |age: &str| vec![json!({"kind": "Table", "rows": [{"cells": ["a", age]}]})];
        let reference = Transcript { age: 600, ..transcript("2026-01-01T00:10:00Z", row("10m")) };
        compare(&reference, &transcript("2026-01-02T00:00:00Z", row(age))).differences.len()
    };
    assert_eq!([shown("0s"), shown("9m40s"), shown("2m11s"), shown("<unknown>")], [0, 0, 1, 1]);
}

#[test]
fn ports_of_nodes_are_drawn_and_others_are_not() {
    let compared = |ours: &str| {
        let row = |ports: &str| vec![json!({"kind": "Table", "rows": [{"cells": ["a", ports]}]})];
        check(row("80:30485/TCP"), row(ours)).len()
    };
    let places = ["80:30000/TCP", "80/TCP", "81:30000/TCP", "80:30000/UDP", "80:8080/TCP"].map(compared);
    assert_eq!(places, [0, 1, 1, 1, 1]);
}

#[test]
fn messages_are_wording_but_reasons_are_not() {
    let status = |message: &str, reason: &str| {
        json!({"kind": "Status", "message": message, "reason": reason,
        "details": {"causes": [{"field": "spec", "reason": "FieldValueRequired", "message": message}]}})
    };
    let a = transcript("2026-01-01T00:00:00Z", vec![status("a", "Invalid")]);
    let b = transcript("2026-01-01T00:00:00Z", vec![status("b", "Conflict")]);
    let comparison = compare(&a, &b);
    assert_eq!(comparison.differences.len(), 1);
    assert_eq!(comparison.differences[0].place, "/reason");
    assert_eq!(comparison.wording.len(), 2);
}

#[test]
fn a_message_of_a_condition_is_not_wording() {
    let a = json!({"kind": "X", "status": {"conditions": [{"message": "a"}]}});
    let b = json!({"kind": "X", "status": {"conditions": [{"message": "b"}]}});
    assert_eq!(check(vec![a], vec![b]), ["/status/conditions/0/message"]);
}

#[test]
fn generated_names_differ_by_their_suffix_only() {
    let named = |name: &str| json!({"metadata": {"generateName": "a-", "name": name}});
    assert_eq!(check(vec![named("a-bcdfg")], vec![named("a-xz245")]), Vec::<String>::new());
    assert_eq!(check(vec![named("a-bcdfg")], vec![named("a-aeiou")]), ["/metadata/name"]);
}

#[test]
fn tokens_are_compared_by_what_they_say() {
    let list = |token: &str| {
        let token = base64::Engine::encode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, token);
        json!({"kind": "PodList", "metadata": {"continue": token, "resourceVersion": "5"}, "items": []})
    };
    let one = list(r#"{"v":"meta.k8s.io/v1","rv":5,"start":"a\u0000"}"#);
    let two = list(r#"{"v":"meta.k8s.io/v1","rv":9,"start":"a\u0000"}"#);
    let other = list(r#"{"v":"meta.k8s.io/v1","rv":5,"start":"b\u0000"}"#);
    assert_eq!(check(vec![one.clone()], vec![two]), Vec::<String>::new());
    assert_eq!(check(vec![one], vec![other]), ["/metadata/continue token start"]);
}

#[test]
fn events_are_compared_in_order_and_by_type() {
    let stream = |types: &[&str]| {
        let events =
            types.iter().map(|t| json!({"type": t, "object": {"metadata": {"name": "a"}}})).collect();
        let answer = Answer { body: Body::Events(events, true), ..Answer::default() };
        Transcript {
            started: seconds("2026-01-01T00:00:00Z"),
            answers: vec![Some(answer)],
            ..Transcript::default()
        }
    };
    assert_eq!(
        compare(&stream(&["ADDED", "DELETED"]), &stream(&["ADDED", "DELETED"])),
        Comparison::default()
    );
    assert_eq!(compare(&stream(&["ADDED", "DELETED"]), &stream(&["ADDED", "MODIFIED"])).differences.len(), 1);
    assert_eq!(compare(&stream(&["ADDED", "DELETED"]), &stream(&["ADDED"])).differences.len(), 1);
}

#[test]
fn bytes_are_compared_where_they_were_kept() {
    let raw = |text: &str| {
        let answer = Answer { status: 200, raw: text.into(), ..Answer::default() };
        Transcript {
            started: seconds("2026-01-01T00:00:00Z"),
            answers: vec![Some(answer)],
            ..Transcript::default()
        }
    };
    let a = raw(r#"{"kind":"A","metadata":{"resourceVersion":"5"}}"#);
    assert_eq!(
        compare(&a, &raw(r#"{"kind":"A","metadata":{"resourceVersion":"77"}}"#)),
        Comparison::default()
    );
    assert_eq!(compare(&a, &raw(r#"{"metadata":{"resourceVersion":"5"},"kind":"A"}"#)).differences.len(), 1);
}

#[test]
fn uids_in_keys_and_labels_correspond() {
    let object = |uid: &str| json!({"metadata": {"uid": uid, "labels": {"controller-uid": uid}}, "f": {format!("k:{{\"uid\":\"{uid}\"}}"): {}}});
    assert_eq!(check(vec![object(UID_1)], vec![object(UID_2)]), Vec::<String>::new());
    let other = json!({"metadata": {"uid": UID_2, "labels": {"controller-uid": UID_3}}, "f": {}});
    assert_eq!(check(vec![object(UID_1)], vec![other]).len(), 2);
}

#[test]
fn a_bookmark_needs_only_be_new_enough() {
    let stream = |rv: &str, bookmark: &str| {
        let events = vec![
            json!({"type": "ADDED", "object": {"kind": "ConfigMap", "metadata": {"name": "a", "resourceVersion": rv}}}),
            json!({"type": "BOOKMARK", "object": {"kind": "ConfigMap", "metadata": {"resourceVersion": bookmark}}}),
        ];
        let answer = Answer { body: Body::Events(events, true), ..Answer::default() };
        Transcript { started: 0, answers: vec![Some(answer)], ..Transcript::default() }
    };
    assert_eq!(compare(&stream("5", "5"), &stream("7", "9")), Comparison::default());
    assert_eq!(compare(&stream("5", "5"), &stream("7", "6")).differences.len(), 1);
}
