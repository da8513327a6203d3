//! The store, without a server.

mod model;

use super::*;
use crate::cache::index::Index;
use k8s_openapi::api::core::v1::ConfigMap;

type Signals = Vec<Signal<ConfigMap>>;

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("default", name)
}

fn object(name: &str, uid: &str, version: u64) -> Incoming<ConfigMap> {
    let mut object = ConfigMap::default();
    object.metadata.name = Some(name.to_owned());
    object.metadata.namespace = Some("default".to_owned());
    object.metadata.uid = Some(uid.to_owned());
    object.metadata.resource_version = Some(version.to_string());
    let object = Arc::new(object);
    Incoming {
        key: key(name),
        object,
        version,
        managed: None,
        mark: Mark::default(),
        alone: false,
        ours_since: None,
    }
}

/// The same object, last written by our own manager at this time.
fn ours(new: Incoming<ConfigMap>, seconds: u32) -> Incoming<ConfigMap> {
    Incoming { mark: Mark::at(seconds), ..new }
}

fn us() -> Origin {
    Origin { controller: "test".into(), key: key("parent") }
}

/// What subscribers hear, in words: `+` for new, `~` for changed, `-` for gone.
fn words(signals: &Signals) -> Vec<String> {
    let word = |signal: &Signal<ConfigMap>| match signal {
        Signal::Own { key, version, .. } => format!("own {} {version}", key.name()),
        Signal::Changed(delta) => {
            let sign = match (&delta.old, &delta.new) {
                (None, _) => '+',
                (Some(_), Some(_)) => '~',
                (Some(_), None) => '-',
            };
            let by = if delta.origin.is_some() { " by us" } else { "" };
            let initial = if delta.initial { " initial" } else { "" };
            format!("{sign}{} {}{by}{initial}", delta.key.name(), delta.version)
        }
    };
    signals.iter().map(word).collect()
}

/// A store that has listed these, at version 10.
fn listed(objects: impl IntoIterator<Item = Incoming<ConfigMap>>) -> Store<ConfigMap> {
    let mut store = Store::new();
    store.set_spans([Span::ALL]);
    store.list_begins(&Span::ALL);
    for object in objects {
        store.applied(&Span::ALL, object);
    }
    store.list_ends(&Span::ALL, 10);
    store
}

#[test]
fn a_list_is_initial_once() {
    let mut store = Store::new();
    store.set_spans([Span::ALL]);
    store.list_begins(&Span::ALL);
    assert_eq!(words(&store.applied(&Span::ALL, object("a", "u", 3))), ["+a 3 initial"]);
    assert_eq!(store.list_ends(&Span::ALL, 10).0, Listed::Done);
    assert_eq!(words(&store.applied(&Span::ALL, object("a", "u", 11))), ["~a 11"]);
    store.list_begins(&Span::ALL);
    assert_eq!(words(&store.applied(&Span::ALL, object("b", "w", 12))), ["+b 12"]);
}

#[test]
fn what_a_later_list_does_not_name_is_gone() {
    let mut store = listed([object("a", "u", 3), object("b", "w", 4)]);
    store.list_begins(&Span::ALL);
    assert_eq!(words(&store.applied(&Span::ALL, object("b", "w", 4))), [] as [&str; 0]);
    let (listed, signals) = store.list_ends(&Span::ALL, 20);
    assert_eq!((listed, words(&signals)), (Listed::Done, vec!["-a 20".to_owned()]));
}

#[test]
fn a_list_that_is_older_than_an_answer_takes_nothing_away() {
    let mut store = listed([]);
    store.list_begins(&Span::ALL);
    assert_eq!(words(&store.absorbed(object("a", "u", 21), Some(&us()))), ["+a 21 by us"]);
    assert_eq!(words(&store.list_ends(&Span::ALL, 20).1), [] as [&str; 0]);
    assert_eq!(words(&store.applied(&Span::ALL, object("a", "u", 21))), [] as [&str; 0]);
    assert_eq!(store.version(&key("a")), Some(21));
}

#[test]
fn an_answer_comes_before_its_event() {
    let mut store = listed([object("a", "u", 3)]);
    assert_eq!(words(&store.absorbed(object("a", "u", 11), Some(&us()))), ["~a 11 by us"]);
    assert_eq!(words(&store.absorbed(object("a", "u", 12), Some(&us()))), ["~a 12 by us"]);
    assert_eq!(words(&store.applied(&Span::ALL, object("a", "u", 11))), [] as [&str; 0]);
    assert_eq!(words(&store.applied(&Span::ALL, object("a", "u", 12))), [] as [&str; 0]);
    assert_eq!(words(&store.applied(&Span::ALL, object("a", "u", 13))), ["~a 13"]);
}

#[test]
fn an_event_comes_before_its_answer() {
    let mut store = listed([object("a", "u", 3)]);
    assert_eq!(words(&store.applied(&Span::ALL, ours(object("a", "u", 11), 1))), ["~a 11"]);
    assert_eq!(words(&store.absorbed(ours(object("a", "u", 11), 1), Some(&us()))), ["own a 11"]);
    // A write that changes nothing is answered with the version that is there.
    assert_eq!(words(&store.absorbed(ours(object("a", "u", 11), 1), Some(&us()))), [] as [&str; 0]);
}

#[test]
fn an_answer_to_nothing_does_not_take_back_what_somebody_else_did() {
    let mut store = listed([ours(object("a", "u", 3), 1)]);
    assert_eq!(words(&store.applied(&Span::ALL, ours(object("a", "u", 11), 1))), ["~a 11"]);
    assert_eq!(words(&store.absorbed(ours(object("a", "u", 11), 1), Some(&us()))), [] as [&str; 0]);
}

#[test]
fn a_change_that_an_answer_has_overtaken_is_told_when_it_comes() {
    let mut store = listed([object("a", "u", 3)]);
    store.absorbed(object("a", "u", 12), Some(&us()));
    let signals = store.applied(&Span::ALL, object("a", "u", 11));
    assert_eq!(words(&signals), ["~a 11"]);
    let Signal::Changed(delta) = &signals[0] else { unreachable!("the word says so") };
    let version = |object: &Option<Arc<ConfigMap>>| object.as_ref()?.metadata.resource_version.clone();
    assert_eq!((version(&delta.old), version(&delta.new)), (Some("3".into()), Some("12".into())));
    assert_eq!(words(&store.applied(&Span::ALL, object("a", "u", 12))), [] as [&str; 0]);
}

#[test]
fn an_answer_does_not_bring_back_what_was_deleted_meanwhile() {
    let mut store = listed([object("a", "u", 3)]);
    store.applied(&Span::ALL, object("a", "u", 11));
    assert_eq!(words(&store.deleted(&Span::ALL, &key("a"), Some("u"), 12)), ["-a 12"]);
    assert_eq!(words(&store.absorbed(object("a", "u", 11), Some(&us()))), [] as [&str; 0]);
    assert!(store.get(&key("a")).is_none());
}

#[test]
fn what_we_deleted_does_not_come_back_by_an_older_event() {
    let mut store = listed([object("a", "u", 3)]);
    assert_eq!(words(&store.removed(&key("a"), "u", Some(&us()))), ["-a 3 by us"]);
    assert_eq!(words(&store.applied(&Span::ALL, object("a", "u", 11))), [] as [&str; 0]);
    assert_eq!(words(&store.deleted(&Span::ALL, &key("a"), Some("u"), 12)), [] as [&str; 0]);
    assert_eq!(words(&store.applied(&Span::ALL, object("a", "w", 13))), ["+a 13"]);
}

#[test]
fn a_deletion_of_ours_whose_event_came_first_is_taken_back() {
    let mut store = listed([object("a", "u", 3)]);
    assert_eq!(words(&store.deleted(&Span::ALL, &key("a"), Some("u"), 12)), ["-a 12"]);
    assert_eq!(words(&store.removed(&key("a"), "u", Some(&us()))), ["own a 12"]);
}

#[test]
fn the_answer_that_removes_the_last_finalizer_is_a_deletion() {
    let mut store = listed([object("a", "u", 3)]);
    let mut last = object("a", "u", 3);
    let metadata = &mut Arc::get_mut(&mut last.object).expect("nobody else has it").metadata;
    metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(jiff::Timestamp::UNIX_EPOCH));
    metadata.deletion_grace_period_seconds = Some(0);
    assert_eq!(words(&store.absorbed(last, Some(&us()))), ["-a 3 by us"]);
}

#[test]
fn another_object_of_the_same_name_is_another_object() {
    let mut store = listed([object("a", "u", 3)]);
    assert_eq!(words(&store.absorbed(object("a", "w", 12), Some(&us()))), ["-a 11", "+a 12 by us"]);
    assert_eq!(words(&store.deleted(&Span::ALL, &key("a"), Some("u"), 11)), [] as [&str; 0]);
    assert_eq!(store.version(&key("a")), Some(12));
}

#[test]
fn an_object_that_does_not_decode_keeps_its_last_state() {
    let mut store = listed([object("a", "u", 3)]);
    store.skipped(&Span::ALL, key("a"), 11);
    assert_eq!((store.version(&key("a")), store.undecodable(&Span::ALL)), (Some(3), 1));
    store.list_begins(&Span::ALL);
    store.skipped(&Span::ALL, key("a"), 11);
    assert_eq!(words(&store.list_ends(&Span::ALL, 20).1), [] as [&str; 0]);
    assert_eq!(words(&store.applied(&Span::ALL, object("a", "u", 21))), ["~a 21"]);
    assert_eq!(store.undecodable(&Span::ALL), 0);
}

#[test]
fn a_server_that_went_back_is_listed_again() {
    let mut store = listed([object("a", "u", 9), object("b", "w", 8)]);
    store.list_begins(&Span::ALL);
    store.applied(&Span::ALL, object("a", "u", 2));
    assert_eq!(store.list_ends(&Span::ALL, 5).0, Listed::WentBack);
    store.list_begins(&Span::ALL);
    assert_eq!(words(&store.applied(&Span::ALL, object("a", "u", 2))), ["~a 2"]);
    assert_eq!(words(&store.list_ends(&Span::ALL, 5).1), ["-b 5"]);
}

#[test]
fn namespaces_come_and_go() {
    let mut store = listed([object("a", "u", 3)]);
    let spans = ["default", "other"].map(|name| Span::of(Some(name)));
    assert_eq!(words(&store.set_spans(spans.clone())), [] as [&str; 0], "it is still covered");
    store.list_begins(&spans[0]);
    store.applied(&spans[0], object("a", "u", 3));
    assert_eq!(words(&store.list_ends(&spans[0], 12).1), [] as [&str; 0]);
    assert_eq!(words(&store.absorbed(object("a", "u", 12), Some(&us()))), [] as [&str; 0], "it has passed");
    assert_eq!(words(&store.set_spans([spans[1].clone()])), ["-a 3"]);
    assert_eq!(words(&store.applied(&spans[0], object("a", "u", 14))), [] as [&str; 0]);
    assert_eq!(words(&store.absorbed(object("a", "u", 14), Some(&us()))), [] as [&str; 0]);
}

#[test]
fn indexes_follow_the_objects() {
    let mut store = listed([object("a", "u", 3)]);
    let by_name = Index::new("name", |map: &ConfigMap| vec![map.metadata.name.clone().unwrap_or_default()]);
    let (indexes, objects) = store.indexes_mut();
    let objects: Vec<_> = objects.collect();
    indexes.add(by_name, objects.into_iter());
    let panics = Index::new("panics", |_: &ConfigMap| panic!("what a panic in an index looks like"));
    store.indexes_mut().0.add(panics, std::iter::empty());
    let find = |store: &Store<ConfigMap>, value| store.indexes().find("name", value).map(Iterator::count);
    assert_eq!(find(&store, "a"), Some(1));
    store.applied(&Span::ALL, object("b", "w", 11));
    assert_eq!(find(&store, "b"), Some(1));
    store.deleted(&Span::ALL, &key("a"), Some("u"), 12);
    assert_eq!(find(&store, "a"), Some(0));
    assert!(store.indexes().find("nothing", "a").is_none());
}
