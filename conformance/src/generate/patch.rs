//! Patches of the four kinds.

use serde_json::{Value, json};

use super::kinds::{self, Kind};
use super::mutate;
use crate::rng::Rng;
use crate::sequence::Step;

fn create(kind: &Kind, body: Value) -> Step {
    Step::with("POST", kind.path.clone(), body)
}

/// A kind of which there is no shortage.
fn cheap(rng: &mut Rng) -> &'static Kind {
    loop {
        let kind = kinds::any(rng);
        if !kind.expensive {
            return kind;
        }
    }
}

pub fn json(rng: &mut Rng) -> Vec<Step> {
    let kind = cheap(rng);
    let body = kind.varied(rng, "a", 1);
    let pointers: Vec<String> = mutate::pointers(&body)
        .into_iter()
        .filter(|p| !p.starts_with("/metadata") && !p.starts_with("/kind"))
        .collect();
    let mut operations = Vec::new();
    for _ in 0..=rng.below(3) {
        let mut path = pointers[rng.below(pointers.len())].clone();
        if rng.chance(20) {
            path.push_str(rng.pick(&["/x", "/-", "/0", "/99", "x"]));
        }
        let value = rng.pick(&["\"v\"", "5", "null", "{}", "[]", "true", "{\"name\":\"n\"}"]);
        let value: Value = serde_json::from_str(value).expect("a value");
        operations.push(match rng.below(8) {
            0 => json!({"op": "remove", "path": path}),
            1 => json!({"op": "replace", "path": path, "value": value}),
            2 => json!({"op": "add", "path": path, "value": value}),
            3 => json!({"op": "test", "path": path, "value": body.pointer(&path).cloned().unwrap_or(value)}),
            4 => json!({"op": "copy", "from": path, "path": "/metadata/annotations"}),
            5 => json!({"op": "add", "path": "/metadata/labels", "value": {"x": "z"}}),
            6 => json!({"op": "move", "from": path, "path": "/metadata/labels/moved"}),
            _ => json!({"op": "add", "path": "/metadata/annotations", "value": {"a/b": "c"}}),
        });
    }
    vec![create(kind, body), Step::patch("json", kind.item("a"), Value::from(operations))]
}

pub fn merge(rng: &mut Rng) -> Vec<Step> {
    let kind = cheap(rng);
    let mut steps = vec![create(kind, kind.plain("a"))];
    for _ in 0..=rng.below(3) {
        let (pointer, value) = kind.change(rng);
        let mut patch = mutate::only(pointer, value);
        if rng.chance(30) {
            patch["metadata"] = json!({"labels": {"x": rng.pick(&["1", "2"])}, "annotations": null});
        }
        if rng.chance(10) {
            mutate::unknown(rng, &mut patch);
        }
        steps.push(Step::patch("merge", kind.item("a"), patch));
    }
    steps
}

pub fn strategic(rng: &mut Rng) -> Vec<Step> {
    let kind = kinds::named(rng.pick(&[
        "deployments",
        "statefulsets",
        "daemonsets",
        "pods",
        "replicasets",
        "jobs",
        "podtemplates",
    ]));
    let template = match kind.path.rsplit('/').next() {
        Some("pods") => "",
        Some("podtemplates") => "/template",
        _ => "/spec/template",
    };
    let mut body = kind.plain("a");
    let containers = json!([
        {"name": "c", "image": "i", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
            "ports": [{"containerPort": 80, "name": "p"}, {"containerPort": 81, "protocol": "UDP"}], "args": ["x"],
            "volumeMounts": [{"name": "v", "mountPath": "/v"}]},
        {"name": "d", "image": "j"}]);
    mutate::set(&mut body, &format!("{template}/spec/containers"), containers);
    mutate::set(&mut body, &format!("{template}/spec/volumes"), json!([{"name": "v", "emptyDir": {}}]));
    mutate::set(&mut body, "/metadata/finalizers", json!(["x/a", "x/b"]));
    let mut steps = vec![create(kind, body)];
    for _ in 0..=rng.below(2) {
        let (place, patch) = match rng.below(16) {
            0 => ("/spec/containers", json!([{"name": "c", "image": "k"}])),
            1 => ("/spec/containers", json!([{"name": "c", "env": [{"name": "A", "$patch": "delete"}]}])),
            2 => (
                "/spec/containers",
                json!([{"name": "c", "env": [{"name": "C", "value": "3"}], "$setElementOrder/env": [{"name": "C"}, {"name": "A"}, {"name": "B"}]}]),
            ),
            3 => ("/spec/containers", json!([{"name": "d", "$patch": "delete"}])),
            4 => ("/spec/containers", json!([{"$patch": "replace"}, {"name": "e", "image": "l"}])),
            5 => {
                ("/spec/containers", json!([{"name": "c", "ports": [{"containerPort": 80, "hostPort": 90}]}]))
            }
            6 => ("/spec/containers", json!([{"name": "c", "args": ["y", "z"]}])),
            7 => ("/spec/volumes", json!([{"name": "w", "configMap": {"name": "x"}}])),
            8 => (
                "/spec/volumes",
                json!([{"name": "v", "$retainKeys": ["name", "secret"], "secret": {"secretName": "s"}}]),
            ),
            9 => ("/spec", json!({"$setElementOrder/containers": [{"name": "d"}, {"name": "c"}]})),
            10 => ("/spec/tolerations", json!([{"key": "k", "operator": "Exists"}])),
            11 => ("/spec/containers", json!([{"image": "nameless"}])),
            12 => ("/metadata/labels", json!({"$patch": "replace", "n": "w"})),
            13 => (
                "/spec/containers",
                json!([{"name": "c", "volumeMounts": [{"mountPath": "/v", "$patch": "delete"}]}]),
            ),
            14 => ("/spec/securityContext", json!({"$patch": "delete"})),
            _ => ("/spec/hostAliases", json!([{"ip": "1.2.3.4", "hostnames": ["h"]}])),
        };
        let mut patch = mutate::only(&format!("{template}{place}"), &patch);
        if rng.chance(25) {
            patch["metadata"] =
                json!({"finalizers": ["x/c"], "$deleteFromPrimitiveList/finalizers": ["x/a"]});
        }
        steps.push(Step::patch("strategic", kind.item("a"), patch));
    }
    steps
}

pub fn types(rng: &mut Rng) -> Vec<Step> {
    let kind = cheap(rng);
    let media_type = rng.pick(&[
        "application/json",
        "application/merge-patch+json;charset=UTF-8",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
        "application/yaml",
        "text/plain",
        "application/MERGE-PATCH+json",
        "application/merge-patch+json, application/json",
    ]);
    let path = format!(
        "{}{}",
        kind.item("a"),
        rng.pick(&["", "?fieldManager=m", "?force=true", "?force=true&fieldManager=m"])
    );
    let patch = Step::with("PATCH", path, json!({"metadata": {"labels": {"a": "b"}}}))
        .header("content-type", media_type);
    vec![create(kind, kind.plain("a")), patch]
}

pub fn conflict(rng: &mut Rng) -> Vec<Step> {
    let kind = cheap(rng);
    let sort = rng.pick(&["merge", "strategic", "apply"]);
    let first = create(kind, kind.plain("a")).capture("rv", "/metadata/resourceVersion");
    let touch = Step::patch("merge", kind.item("a"), json!({"metadata": {"labels": {"x": "1"}}}))
        .capture("now", "/metadata/resourceVersion");
    let version = rng.pick(&["{rv}", "{now}", "1", "x"]);
    let mut body = json!({"apiVersion": kind.object["apiVersion"], "kind": kind.object["kind"]});
    body["metadata"] = json!({"name": kind.name("a"), "resourceVersion": version, "annotations": {"k": "v"}});
    vec![first, touch, Step::patch(sort, format!("{}?fieldManager=m", kind.item("a")), body)]
}
