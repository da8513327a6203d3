//! Custom kinds.

use crate::world::World;
use serde_json::{Value, json};
use windlass_apiserver::api::WatchPoll;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const FOOS: &str = "/apis/example.com/v1/namespaces/default/foos";

fn definition() -> Value {
    let spec = json!({"type": "object", "required": ["size"], "properties": {
        "size": {"type": "integer", "minimum": 1},
        "color": {"type": "string", "default": "red"},
    }});
    let schema = json!({"type": "object", "properties": {"spec": spec, "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "foos", "singular": "foo", "kind": "Foo", "shortNames": ["fo"]},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}},
                "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]}],
        },
    })
}

#[test]
fn a_definition_is_served_at_once() {
    let mut world = World::new();
    world.get(FOOS).code.eq(&404).then_some(()).expect("not there yet");
    world.post(DEFINITIONS, &definition()).expect(201);
    let stored = world.get(&format!("{DEFINITIONS}/foos.example.com")).expect(200);
    let established = stored["status"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .any(|c| c["type"] == "Established" && c["status"] == "True");
    assert!(established, "{stored}");
    let made = world.post(FOOS, &json!({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "f"}, "spec": {"size": 2, "nope": 1}}));
    assert_eq!(made.warnings(), [r#"299 - "unknown field \"spec.nope\"""#]);
    let made = made.expect(201);
    assert_eq!(made["spec"], json!({"color": "red", "size": 2}));
    assert_eq!(made["metadata"]["generation"], 1);
    let bad = world.post(FOOS, &json!({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "g"}, "spec": {"size": 0}}));
    assert_eq!(bad.expect(422)["details"]["causes"][0]["field"], "spec.size");
    let status = world
        .patch("merge", &format!("{FOOS}/f/status"), &json!({"status": {"ok": true}, "spec": {"size": 7}}))
        .expect(200);
    assert_eq!((&status["status"]["ok"], &status["spec"]["size"]), (&json!(true), &json!(2)));
    let accept = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    let table = world.ask("GET", FOOS, &accept, "").expect(200);
    assert_eq!(table["rows"][0]["cells"], json!(["f", 2]));
    let listed = world.get(FOOS).expect(200);
    assert_eq!(listed["items"][0]["kind"], "Foo");
}

/// Such objects were taken for what the path says; kube-apiserver refuses them.
#[test]
fn a_custom_object_says_what_it_is() {
    let mut world = World::new();
    world.post(DEFINITIONS, &definition()).expect(201);
    let whole = json!({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "f"}, "spec": {"size": 2}});
    let unversioned = "does not match the expected API version (example.com/v1)";
    for (field, value, code, words) in [
        ("kind", Value::Null, 400, "Object 'Kind' is missing in"),
        ("kind", json!(""), 400, "Object 'Kind' is missing in"),
        (
            "kind",
            json!("Bar"),
            422,
            "Bar.example.com \"f\" is invalid: kind: Invalid value: \"Bar\": must be Foo",
        ),
        ("apiVersion", json!(""), 400, unversioned),
        ("apiVersion", json!("example.com/v2"), 400, unversioned),
        (
            "apiVersion",
            Value::Null,
            400,
            ".apiVersion accessor error: <nil> is of the type <nil>, expected string",
        ),
    ] {
        let mut tree = whole.clone();
        tree[field] = value;
        let said = world.post(FOOS, &tree).expect(code);
        assert!(said["message"].as_str().unwrap().contains(words), "{tree}: {said}");
    }
    let mut bare = whole.clone();
    bare.as_object_mut().unwrap().remove("apiVersion");
    assert!(world.post(FOOS, &bare).expect(400)["message"].as_str().unwrap().contains(unversioned));
    world.post(FOOS, &whole).expect(201);
}

/// A client would otherwise wait for minutes to learn that there is nothing to wait for.
#[test]
fn deleting_a_definition_ends_the_watches_of_its_kind() {
    let mut world = World::new();
    world.post(DEFINITIONS, &definition()).expect(201);
    let body = json!({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "f"}, "spec": {"size": 2}});
    world.post(FOOS, &body).expect(201);
    let mut watch = world.watch(&format!("{FOOS}?watch=1"));
    assert_eq!(world.events(&mut watch).len(), 1);
    assert!(matches!(watch.poll(world.server.store(), world.now), WatchPoll::Idle(_)));
    world.delete(&format!("{DEFINITIONS}/foos.example.com")).expect(200);
    let events = world.events(&mut watch);
    assert_eq!((events.len(), &events[0]["type"]), (1, &json!("DELETED")), "the objects go first");
    assert!(matches!(watch.poll(world.server.store(), world.now), WatchPoll::End));
    // Another one of that name is another one.
    world.post(DEFINITIONS, &definition()).expect(201);
    assert!(matches!(watch.poll(world.server.store(), world.now), WatchPoll::End));
}

#[test]
fn deleting_a_definition_takes_its_objects_along() {
    let mut world = World::new();
    world.post(DEFINITIONS, &definition()).expect(201);
    let body = json!({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "f", "finalizers": ["x.io/y"]}, "spec": {"size": 2}});
    world.post(FOOS, &body).expect(201);
    world.delete(&format!("{DEFINITIONS}/foos.example.com")).expect(200);
    let held = world.get(&format!("{DEFINITIONS}/foos.example.com")).expect(200);
    assert_eq!(held["metadata"]["finalizers"], json!(["customresourcecleanup.apiextensions.k8s.io"]));
    world.patch("merge", &format!("{FOOS}/f"), &json!({"metadata": {"finalizers": null}})).expect(200);
    world.get(&format!("{DEFINITIONS}/foos.example.com")).expect(404);
    assert_eq!(world.get(FOOS).code, 404);
}
