//! Create, read, update, patch, delete.

use crate::world::World;
use serde_json::{Value, json};
use windlass_apiserver::api::write_yaml;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[test]
fn an_object_lives_and_dies() {
    let mut world = World::new();
    let made = world.post(MAPS, &json!({"metadata": {"name": "a"}, "data": {"k": "v"}})).expect(201);
    assert_eq!(made["metadata"]["namespace"], "default");
    assert_eq!(made["metadata"]["creationTimestamp"], "2026-11-15T12:00:00Z");
    assert_eq!(world.get(&format!("{MAPS}/a")).expect(200), made);
    assert_eq!(world.post(MAPS, &json!({"metadata": {"name": "a"}})).expect(409)["reason"], "AlreadyExists");
    let mut next = made.clone();
    next["data"]["k"] = json!("w");
    let updated = world.put(&format!("{MAPS}/a"), &next).expect(200);
    assert_ne!(updated["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);
    let stale = world.put(&format!("{MAPS}/a"), &next).expect(409);
    assert_eq!((&stale["reason"], &stale["details"]["kind"]), (&json!("Conflict"), &json!("configmaps")));
    let gone = world.delete(&format!("{MAPS}/a")).expect(200);
    assert_eq!(gone["details"]["uid"], made["metadata"]["uid"]);
    assert_eq!(world.get(&format!("{MAPS}/a")).expect(404)["reason"], "NotFound");
}

#[test]
fn a_write_that_changes_nothing_keeps_the_revision() {
    let mut world = World::new();
    let made = world.post(MAPS, &json!({"metadata": {"name": "a"}, "data": {"k": "v"}})).expect(201);
    world.pass(60);
    let same = world.patch("merge", &format!("{MAPS}/a"), &json!({"data": {"k": "v"}})).expect(200);
    assert_eq!(same, made);
}

#[test]
fn a_deployment_gets_its_defaults_and_counts_its_generations() {
    let mut world = World::new();
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}});
    let body = json!({"metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template}});
    let made = world.post(path, &body).expect(201);
    assert_eq!(made["spec"]["replicas"], 1);
    assert_eq!(made["spec"]["strategy"]["rollingUpdate"]["maxSurge"], "25%");
    assert_eq!(made["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"], "Always");
    assert_eq!(made["metadata"]["generation"], 1);
    let scaled =
        world.patch("merge", &format!("{path}/web/scale"), &json!({"spec": {"replicas": 3}})).expect(200);
    assert_eq!((&scaled["kind"], &scaled["spec"]["replicas"]), (&json!("Scale"), &json!(3)));
    assert_eq!(world.get(&format!("{path}/web")).expect(200)["metadata"]["generation"], 2);
    let status = world.patch(
        "merge",
        &format!("{path}/web/status"),
        &json!({"spec": {"replicas": 9}, "status": {"replicas": 2}}),
    );
    let status = status.expect(200);
    assert_eq!((&status["spec"]["replicas"], &status["status"]["replicas"]), (&json!(3), &json!(2)));
    assert_eq!(status["metadata"]["generation"], 2);
}

#[test]
fn finalizers_hold_an_object_until_they_are_gone() {
    let mut world = World::new();
    world.post(MAPS, &json!({"metadata": {"name": "a", "finalizers": ["x.io/y"]}})).expect(201);
    let held = world.delete(&format!("{MAPS}/a")).expect(200);
    assert_eq!(held["metadata"]["deletionTimestamp"], "2026-11-15T12:00:00Z");
    world.patch("merge", &format!("{MAPS}/a"), &json!({"metadata": {"finalizers": null}})).expect(200);
    world.get(&format!("{MAPS}/a")).expect(404);
}

#[test]
fn lists_page_through_one_snapshot() {
    let mut world = World::new();
    for name in ["a", "b", "c"] {
        world.post(MAPS, &json!({"metadata": {"name": name, "labels": {"n": name}}})).expect(201);
    }
    let first = world.get(&format!("{MAPS}?limit=2")).expect(200);
    assert_eq!(
        (&first["items"][1]["metadata"]["name"], &first["metadata"]["remainingItemCount"]),
        (&json!("b"), &json!(1))
    );
    world.delete(&format!("{MAPS}/c")).expect(200);
    let token = first["metadata"]["continue"].as_str().unwrap();
    let second = world.get(&format!("{MAPS}?limit=2&continue={token}")).expect(200);
    assert_eq!(second["items"][0]["metadata"]["name"], "c");
    assert_eq!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    let selected = world.get(&format!("{MAPS}?labelSelector=n%20in%20(a,z)")).expect(200);
    assert_eq!(selected["items"].as_array().unwrap().len(), 1);
    assert_eq!(world.get(&format!("{MAPS}?resourceVersion=99999")).expect(504)["reason"], "Timeout");
}

/// Long lists are written piece by piece, in every form, so that nobody waits for them: what is between two pieces must
/// not show.
#[test]
fn lists_of_every_form_are_whole() {
    let forms = [
        ("items", "application/json"),
        ("items", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"),
        ("rows", "application/json;as=Table;g=meta.k8s.io;v=v1"),
    ];
    let mut world = World::new();
    for count in [0, 1, 800] {
        for n in world.get(MAPS).expect(200)["items"].as_array().unwrap().len()..count {
            let map = json!({"metadata": {"name": format!("m{n:03}")}, "data": {"k": "v".repeat(1500)}});
            world.post(MAPS, &map).expect(201);
        }
        for (list, accept) in forms {
            let [dense, pretty] = ["", "?pretty=1"].map(|query| {
                let answer = world.ask("GET", &format!("{MAPS}{query}"), &[("accept", accept)], "");
                assert_eq!(answer.pieces > 1, count == 800, "{accept}");
                (answer.expect(200), answer.text)
            });
            assert_eq!(dense.0, pretty.0);
            assert_eq!(dense.1, format!("{}\n", dense.0));
            assert_eq!(pretty.1, serde_json::to_string_pretty(&pretty.0).unwrap());
            let yaml = world.ask("GET", MAPS, &[("accept", &accept.replace("json", "yaml"))], "");
            assert_eq!(yaml.pieces > 1, count == 800, "{accept}");
            assert_eq!(yaml.text.into_bytes(), write_yaml(&dense.0));
            let name = |item: &Value| match list {
                "rows" => item["cells"][0].clone(),
                _ => item["metadata"]["name"].clone(),
            };
            let names: Vec<Value> = dense.0[list].as_array().into_iter().flatten().map(name).collect();
            assert_eq!(names, (0..count).map(|n| json!(format!("m{n:03}"))).collect::<Vec<_>>(), "{accept}");
        }
    }
}

#[test]
fn unknown_and_duplicate_fields_are_warned_of_or_refused() {
    let mut world = World::new();
    let body = r#"{"metadata":{"name":"a"},"data":{"k":"1","k":"2"},"nope":1}"#;
    let made = world.ask("POST", MAPS, &[("content-type", "application/json")], body);
    assert_eq!(made.code, 201);
    assert_eq!(
        made.warnings(),
        [r#"299 - "duplicate field \"data.k\"""#, r#"299 - "unknown field \"nope\"""#]
    );
    let strict = world.ask(
        "POST",
        &format!("{MAPS}?fieldValidation=Strict"),
        &[("content-type", "application/json")],
        body,
    );
    assert!(
        strict.expect(400)["message"].as_str().unwrap().contains("strict decoding error: duplicate field")
    );
}

#[test]
fn apply_tells_who_owns_what() {
    let mut world = World::new();
    let apply = |world: &mut World, manager: &str, value: &str, force: &str| {
        let body =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": value}});
        world.patch("apply", &format!("{MAPS}/a?fieldManager={manager}{force}"), &body)
    };
    apply(&mut world, "m1", "1", "").expect(201);
    let conflict = apply(&mut world, "m2", "2", "").expect(409);
    assert_eq!(conflict["details"]["causes"][0]["field"], ".data.k");
    let forced = apply(&mut world, "m2", "2", "&force=true").expect(200);
    assert_eq!(forced["data"]["k"], "2");
    assert_eq!(forced["metadata"]["managedFields"].as_array().unwrap().len(), 1);
}

#[test]
fn a_fork_goes_its_own_way() {
    let mut world = World::new();
    world.post(MAPS, &json!({"metadata": {"name": "a"}})).expect(201);
    let before = world.server.fork();
    world.delete(&format!("{MAPS}/a")).expect(200);
    world.server = before;
    world.get(&format!("{MAPS}/a")).expect(200);
}

/// kube-rs' `Entry` sends what a dry run answered: a revision in it would make the create fail.
#[test]
fn a_dry_run_shows_what_would_be_and_leaves_nothing_behind() {
    let mut world = World::new();
    let shown = world.post(&format!("{MAPS}?dryRun=All"), &json!({"metadata": {"name": "a"}})).expect(201);
    assert!(
        shown["metadata"]["uid"].is_string() && shown["metadata"].get("resourceVersion").is_none(),
        "{shown}"
    );
    world.get(&format!("{MAPS}/a")).expect(404);
    let made = world.post(MAPS, &json!({"metadata": {"name": "a"}})).expect(201);
    let shown =
        world.patch("merge", &format!("{MAPS}/a?dryRun=All"), &json!({"data": {"k": "v"}})).expect(200);
    assert_eq!(
        (&shown["data"]["k"], &shown["metadata"]["resourceVersion"]),
        (&json!("v"), &made["metadata"]["resourceVersion"])
    );
    assert_eq!(world.get(&format!("{MAPS}/a")).expect(200), made);
}

#[test]
fn an_empty_list_of_managers_forgets_who_owned_what() {
    let mut world = World::new();
    world
        .post(&format!("{MAPS}?fieldManager=m1"), &json!({"metadata": {"name": "a"}, "data": {"k": "v"}}))
        .expect(201);
    let reset = world.patch(
        "merge",
        &format!("{MAPS}/a?fieldManager=m2"),
        &json!({"metadata": {"managedFields": []}}),
    );
    assert!(reset.expect(200)["metadata"].get("managedFields").is_none());
}

/// Found by fuzzing: an event under such a name was kept, and could not be read.
#[test]
fn names_that_no_path_can_hold_are_refused() {
    let mut world = World::new();
    let path = "/api/v1/namespaces/default/events";
    let body = json!({"metadata": {"name": "x/y"}, "involvedObject": {"namespace": "default", "kind": "Pod", "name": "p"}});
    assert_eq!(world.post(path, &body).expect(422)["details"]["causes"][0]["field"], "metadata.name");
}

/// Found by fuzzing: a binding was kept, though nobody could read it. It is acted on, and here there is no such pod.
#[test]
fn what_cannot_be_read_is_not_kept() {
    let mut world = World::new();
    let before = world.server.store().revision();
    let binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
    world.post("/api/v1/namespaces/default/bindings", &binding).expect(404);
    assert_eq!(world.server.store().revision(), before);
}
