//! Streams that are right, and streams with one thing wrong.

use serde_json::{Value, json};

use super::*;

fn object(name: &str, revision: u64, colour: &str) -> Value {
    let labels = json!({"colour": colour});
    json!({"kind": "ConfigMap", "apiVersion": "v1",
        "metadata": {"name": name, "namespace": "n", "resourceVersion": revision.to_string(), "labels": labels}})
}

fn red(object: &Value) -> bool {
    object["metadata"]["labels"]["colour"] == "red"
}

fn all(_: &Value) -> bool {
    true
}

/// `a` is there at 10; `b` is created, `a` becomes blue, `b` is changed and deleted, `a` becomes red again.
fn truth() -> Truth {
    let commit =
        |revision, previous: Option<Value>, object: Option<Value>| Commit { revision, previous, object };
    let (a, b) = (object("a", 5, "red"), object("b", 11, "red"));
    Truth {
        state: [("n/a".to_owned(), a.clone())].into(),
        commits: vec![
            commit(11, None, Some(b.clone())),
            commit(13, Some(a), Some(object("a", 13, "blue"))),
            commit(14, Some(b), Some(object("b", 14, "red"))),
            commit(17, Some(object("b", 14, "red")), None),
            commit(18, Some(object("a", 13, "blue")), Some(object("a", 18, "red"))),
        ],
    }
}

fn event(kind: EventKind, revision: u64, object: Value) -> Event {
    Event { kind, revision, object }
}

fn bookmark(revision: u64) -> Event {
    event(EventKind::Bookmark, revision, json!({"metadata": {"resourceVersion": revision.to_string()}}))
}

/// What a right server sends from 10 on.
fn right() -> Vec<Event> {
    use EventKind::{Added, Deleted, Modified};
    vec![
        event(Added, 11, object("b", 11, "red")),
        event(Modified, 13, object("a", 13, "blue")),
        event(Modified, 14, object("b", 14, "red")),
        event(Deleted, 17, object("b", 17, "red")),
        event(Modified, 18, object("a", 18, "red")),
    ]
}

/// The same, for a client that asked for what is red.
fn right_in_red() -> Vec<Event> {
    use EventKind::{Added, Deleted, Modified};
    vec![
        event(Added, 11, object("b", 11, "red")),
        event(Deleted, 13, object("a", 13, "red")),
        event(Modified, 14, object("b", 14, "red")),
        event(Deleted, 17, object("b", 17, "red")),
        event(Added, 18, object("a", 18, "red")),
    ]
}

fn stream(start: (u64, u64), initial: bool, events: Vec<Event>) -> Stream {
    Stream { request: "/watch".into(), start, initial, events }
}

fn broken(stream: &Stream, selects: &dyn Fn(&Value) -> bool) -> Vec<Property> {
    verify(stream, &truth(), selects).into_iter().map(|violation| violation.property).collect()
}

/// The first promise that is broken when `spoil` has had its way with a right stream from 10 on.
fn spoilt(spoil: impl FnOnce(&mut Vec<Event>)) -> Property {
    let mut events = right();
    spoil(&mut events);
    broken(&stream((10, 10), false, events), &all)[0]
}

#[test]
fn right_streams_are_right_however_far_they_got() {
    for length in 0..=5 {
        let events = right()[..length].to_vec();
        assert_eq!(broken(&stream((10, 10), false, events), &all), [], "{length} events");
        let events = right_in_red()[..length].to_vec();
        assert_eq!(broken(&stream((10, 10), false, events), &red), [], "{length} events of red things");
    }
    assert_eq!(broken(&stream((13, 13), false, right()[2..].to_vec()), &all), []);
}

#[test]
fn bookmarks_may_be_anywhere_where_they_are_true() {
    let mut events = right();
    events.insert(5, bookmark(25));
    events.insert(2, bookmark(13));
    events.insert(0, bookmark(10));
    assert_eq!(broken(&stream((10, 10), false, events), &all), []);
}

#[test]
fn a_watch_that_starts_with_the_state_is_explained_by_some_start() {
    let state = event(EventKind::Added, 5, object("a", 5, "red"));
    let mut events = vec![state.clone(), bookmark(10)];
    events.extend(right());
    assert_eq!(broken(&stream((10, 18), true, events), &all), []);
    // Started at 11: b is part of the state.
    let mut events = vec![state, event(EventKind::Added, 11, object("b", 11, "red")), bookmark(12)];
    events.extend(right()[1..].to_vec());
    assert_eq!(broken(&stream((10, 18), true, events), &all), []);
}

#[test]
fn metadata_alone_is_enough() {
    let events = right().into_iter().map(|mut event| {
        event.object["kind"] = "PartialObjectMetadata".into();
        event.object["apiVersion"] = "meta.k8s.io/v1".into();
        event
    });
    assert_eq!(broken(&stream((10, 10), false, events.collect()), &all), []);
}

#[test]
fn an_error_ends_a_watch() {
    let gone = event(EventKind::Error, 0, json!({"kind": "Status", "code": 410}));
    assert_eq!(broken(&stream((10, 10), false, vec![right().remove(0), gone]), &all), []);
}

#[test]
fn out_of_order_is_noticed() {
    assert_eq!(spoilt(|events| events.swap(3, 4)), Property::Reliable);
    let mut events = right();
    events.swap(3, 4);
    assert!(broken(&stream((10, 10), false, events), &all).contains(&Property::Ordered));
}

#[test]
fn twice_is_noticed() {
    assert_eq!(spoilt(|events| events.insert(2, events[1].clone())), Property::Unique);
    let state = event(EventKind::Added, 5, object("a", 5, "red"));
    assert_eq!(broken(&stream((10, 10), true, vec![state.clone(), state]), &all), [Property::Unique]);
}

#[test]
fn two_objects_under_one_revision_are_noticed() {
    let other = event(EventKind::Modified, 13, object("c", 13, "red"));
    assert_eq!(spoilt(|events| events.insert(2, other)), Property::Atomic);
}

#[test]
fn a_lost_event_is_noticed() {
    assert_eq!(spoilt(|events| drop(events.remove(2))), Property::Reliable);
    let events = vec![bookmark(10)];
    assert_eq!(
        broken(&stream((10, 10), true, events), &all),
        [Property::Reliable],
        "a lost object of the state"
    );
}

#[test]
fn a_wrong_start_is_noticed() {
    assert_eq!(spoilt(|events| drop(events.remove(0))), Property::Resumable);
    let early = event(EventKind::Added, 9, object("c", 9, "red"));
    assert_eq!(spoilt(|events| events.insert(0, early)), Property::Resumable);
}

#[test]
fn a_bookmark_too_early_or_too_late_is_noticed() {
    assert_eq!(spoilt(|events| events.insert(1, bookmark(13))), Property::Bookmarkable);
    assert_eq!(spoilt(|events| events.insert(2, bookmark(12))), Property::Bookmarkable);
    assert_eq!(spoilt(|events| events.insert(0, bookmark(20))), Property::Bookmarkable);
}

#[test]
fn what_was_not_asked_for_is_noticed() {
    let mut events = right_in_red();
    events[1] = event(EventKind::Modified, 13, object("a", 13, "blue"));
    assert_eq!(broken(&stream((10, 10), false, events), &red), [Property::Faithful]);
    let blue = |object: &Value| !red(object);
    let events = vec![event(EventKind::Added, 11, object("b", 11, "red"))];
    assert_eq!(broken(&stream((10, 10), false, events), &blue), [Property::Filter]);
    let state = vec![event(EventKind::Added, 5, object("a", 5, "red"))];
    assert_eq!(broken(&stream((10, 10), true, state), &blue), [Property::Filter]);
}

#[test]
fn a_wrong_last_state_is_noticed() {
    assert_eq!(spoilt(|events| events[3].object = object("b", 17, "green")), Property::PreviousValue);
    assert_eq!(spoilt(|events| events[3].object = object("b", 14, "red")), Property::PreviousValue);
}

#[test]
fn new_taken_for_changed_is_noticed() {
    assert_eq!(spoilt(|events| events[0].kind = EventKind::Modified), Property::IsCreate);
    assert_eq!(spoilt(|events| events[1].kind = EventKind::Added), Property::IsCreate);
}

#[test]
fn what_was_never_committed_is_noticed() {
    assert_eq!(spoilt(|events| events[1].object = object("a", 13, "green")), Property::Faithful);
    let made_up = event(EventKind::Added, 12, object("c", 12, "red"));
    assert_eq!(spoilt(|events| events.insert(1, made_up)), Property::Faithful);
}
