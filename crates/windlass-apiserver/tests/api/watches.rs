//! Watches.

use crate::world::World;
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn shape(events: &[Value]) -> Vec<String> {
    let name = |event: &Value| event["object"]["metadata"]["name"].as_str().unwrap_or("-").to_owned();
    events.iter().map(|event| format!("{} {}", event["type"].as_str().unwrap(), name(event))).collect()
}

#[test]
fn a_watch_tells_what_happens_in_order() {
    let mut world = World::new();
    world.post(MAPS, &json!({"metadata": {"name": "a"}})).expect(201);
    let mut watch = world.watch(&format!("{MAPS}?watch=1"));
    assert_eq!(shape(&world.events(&mut watch)), ["ADDED a"]);
    world.post(MAPS, &json!({"metadata": {"name": "b"}})).expect(201);
    world.patch("merge", &format!("{MAPS}/b"), &json!({"data": {"k": "v"}})).expect(200);
    world.delete(&format!("{MAPS}/b")).expect(200);
    let events = world.events(&mut watch);
    assert_eq!(shape(&events), ["ADDED b", "MODIFIED b", "DELETED b"]);
    let revisions: Vec<u64> = events
        .iter()
        .map(|e| e["object"]["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap())
        .collect();
    assert!(revisions.is_sorted() && revisions[2] > revisions[1], "{revisions:?}");
    assert_eq!(events[2]["object"]["data"]["k"], "v");
}

#[test]
fn selectors_turn_changes_into_comings_and_goings() {
    let mut world = World::new();
    let mut watch = world.watch(&format!("{MAPS}?watch=1&labelSelector=on%3Dyes"));
    assert!(world.events(&mut watch).is_empty());
    world.post(MAPS, &json!({"metadata": {"name": "a"}})).expect(201);
    world.patch("merge", &format!("{MAPS}/a"), &json!({"metadata": {"labels": {"on": "yes"}}})).expect(200);
    world.patch("merge", &format!("{MAPS}/a"), &json!({"metadata": {"labels": {"on": "no"}}})).expect(200);
    assert_eq!(shape(&world.events(&mut watch)), ["ADDED a", "DELETED a"]);
}

#[test]
fn a_watch_list_ends_its_beginning_with_a_bookmark() {
    let mut world = World::new();
    world.post(MAPS, &json!({"metadata": {"name": "a"}})).expect(201);
    let query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = world.watch(&format!("{MAPS}?{query}"));
    let events = world.events(&mut watch);
    assert_eq!(shape(&events), ["ADDED a", "BOOKMARK -"]);
    assert_eq!(events[1]["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    let refused = world.get(&format!("{MAPS}?watch=1&sendInitialEvents=true"));
    assert_eq!(refused.expect(422)["details"]["causes"][0]["field"], "resourceVersionMatch");
}

#[test]
fn quiet_watches_get_bookmarks_and_end_in_time() {
    let mut world = World::new();
    let mut watch =
        world.watch(&format!("{MAPS}?watch=1&resourceVersion=1&allowWatchBookmarks=1&timeoutSeconds=90"));
    world.events(&mut watch);
    world.pass(61);
    assert_eq!(shape(&world.events(&mut watch)), ["BOOKMARK -"]);
    world.pass(30);
    assert!(world.events(&mut watch).is_empty());
}

#[test]
fn what_is_forgotten_is_gone() {
    let mut world = World::new();
    world.post(MAPS, &json!({"metadata": {"name": "a"}})).expect(201);
    world.server.tick(world.now);
    world.pass(400);
    world.post(MAPS, &json!({"metadata": {"name": "b"}})).expect(201);
    world.server.tick(world.now);
    let mut watch = world.watch(&format!("{MAPS}?watch=1&resourceVersion=1"));
    let events = world.events(&mut watch);
    assert_eq!((&events[0]["type"], &events[0]["object"]["code"]), (&json!("ERROR"), &json!(410)));
}
