//! Server-side apply, and who owns what.

use serde_json::{Value, json};

use super::kinds::{self, Kind};
use super::mutate;
use crate::rng::Rng;
use crate::sequence::Step;

fn cheap(rng: &mut Rng) -> &'static Kind {
    loop {
        let kind = kinds::any(rng);
        if !kind.expensive {
            return kind;
        }
    }
}

fn apply(kind: &Kind, manager: &str, force: bool, body: Value) -> Step {
    let force = if force { "&force=true" } else { "" };
    Step::patch("apply", format!("{}?fieldManager={manager}{force}", kind.item("a")), body)
}

/// Only what identifies an object, with labels.
fn bare(kind: &Kind, labels: Value) -> Value {
    json!({"apiVersion": kind.object["apiVersion"], "kind": kind.object["kind"],
        "metadata": {"name": kind.name("a"), "labels": labels}})
}

/// A part of an object: some of its values and nothing that it needs.
fn part(rng: &mut Rng, kind: &Kind) -> Value {
    let mut body = bare(kind, mutate::labels(rng));
    let (pointer, value) = kind.change(rng);
    if !pointer.contains("/0") {
        mutate::set(&mut body, pointer, value.clone());
    }
    body
}

pub fn create(rng: &mut Rng) -> Vec<Step> {
    let kind = cheap(rng);
    let count = rng.below(3);
    let mut body = kind.varied(rng, "a", count);
    mutate::metadata(rng, &mut body);
    let mut steps = vec![apply(kind, "m1", rng.chance(20), body)];
    if rng.chance(50) {
        let again = kind.varied(rng, "a", 1);
        steps.push(apply(kind, "m1", false, again));
    }
    steps
}

pub fn conflict(rng: &mut Rng) -> Vec<Step> {
    let kind = cheap(rng);
    let mut steps = Vec::new();
    if rng.chance(50) {
        steps.push(apply(kind, "m1", false, kind.varied(rng, "a", 1)));
    } else {
        steps.push(Step::with("POST", format!("{}?fieldManager=u", kind.path), kind.varied(rng, "a", 1)));
    }
    for _ in 0..=rng.below(3) {
        let manager = rng.pick(&["m1", "m2", "u"]);
        let body = if rng.chance(50) { part(rng, kind) } else { kind.varied(rng, "a", 1) };
        steps.push(apply(kind, manager, rng.chance(40), body));
    }
    steps
}

pub fn remove(rng: &mut Rng) -> Vec<Step> {
    let kind = cheap(rng);
    let mut full = kind.varied(rng, "a", 2);
    mutate::set(&mut full, "/metadata/labels", mutate::labels(rng));
    let mut steps = vec![apply(kind, "m1", false, full.clone())];
    if rng.chance(50) {
        steps.push(apply(kind, "m2", rng.chance(50), part(rng, kind)));
    }
    if rng.chance(30) {
        let (pointer, value) = kind.change(rng);
        steps.push(Step::patch(
            "merge",
            format!("{}?fieldManager=u", kind.item("a")),
            mutate::only(pointer, value),
        ));
    }
    let less = if rng.chance(70) { kind.plain("a") } else { bare(kind, json!({})) };
    steps.push(apply(kind, "m1", rng.chance(30), less));
    steps.push(apply(kind, "m2", false, bare(kind, json!({}))));
    steps
}

/// Containers, ports, variables and more: lists by key, sets and atomic lists.
pub fn lists(rng: &mut Rng) -> Vec<Step> {
    let kind = kinds::named(rng.pick(&["deployments", "podtemplates", "statefulsets"]));
    let template = if kind.path.ends_with("podtemplates") { "/template" } else { "/spec/template" };
    let mut steps = vec![apply(kind, "m1", false, kind.plain("a"))];
    for _ in 0..3 {
        let manager = rng.pick(&["m1", "m2", "m3"]);
        let mut body = if manager == "m1" { kind.plain("a") } else { bare(kind, json!({})) };
        let mut container = json!({"name": rng.pick(&["c", "d"])});
        if manager == "m1" || container["name"] == "d" || rng.chance(30) {
            container["image"] = json!(rng.pick(&["i", "j"]));
        }
        for _ in 0..2 {
            match rng.below(6) {
                0 => container["ports"] = json!([{"containerPort": 80}]),
                1 => {
                    container["ports"] = json!([{"containerPort": 80, "protocol": rng.pick(&["TCP", "UDP"]), "name": rng.pick(&["p", "q"])}])
                }
                2 => {
                    container["env"] =
                        json!([{"name": rng.pick(&["A", "B"]), "value": rng.pick(&["1", "2"])}])
                }
                3 => container["args"] = json!([rng.pick(&["x", "y"])]),
                4 => container["resources"] = json!({"limits": {"cpu": rng.pick(&["1", "1000m", "2"])}}),
                _ => container["volumeMounts"] = json!([{"name": "v", "mountPath": rng.pick(&["/a", "/b"])}]),
            }
        }
        mutate::set(&mut body, &format!("{template}/spec/containers"), json!([container]));
        if rng.chance(40) {
            mutate::set(
                &mut body,
                &format!("{template}/spec/volumes"),
                json!([{"name": "v", "emptyDir": {}}]),
            );
        }
        if rng.chance(30) {
            mutate::set(&mut body, "/metadata/finalizers", json!([rng.pick(&["x/a", "x/b"])]));
        }
        steps.push(apply(kind, manager, rng.chance(40), body));
    }
    steps
}

pub fn tracked(rng: &mut Rng) -> Vec<Step> {
    let kind = cheap(rng);
    let mut steps = vec![Step::with("POST", format!("{}?fieldManager=m0", kind.path), kind.plain("a"))];
    for _ in 0..4 {
        let path = format!("{}?fieldManager={}", kind.item("a"), rng.pick(&["m0", "m1", "m2"]));
        let (pointer, value) = kind.change(rng);
        steps.push(match rng.below(4) {
            0 => Step::with("PUT", path, kind.varied(rng, "a", 1)),
            1 => Step::patch("merge", path, json!({"metadata": {"labels": mutate::labels(rng)}})),
            2 => Step::patch(
                "strategic",
                path,
                json!({"metadata": {"annotations": {"k": rng.pick(&["1", "2"])}}}),
            ),
            _ => Step::patch("merge", path, mutate::only(pointer, value)),
        });
    }
    steps
}

pub fn rewritten(rng: &mut Rng) -> Vec<Step> {
    let kind = cheap(rng);
    let version = kind.object["apiVersion"].clone();
    let fields = rng.pick(&[
        r#"{"f:metadata":{"f:labels":{"f:x":{}}}}"#,
        r#"{"f:spec":{}}"#,
        "{}",
        r#"{"f:metadata":{"f:labels":{".":{}}}}"#,
    ]);
    let fields: Value = serde_json::from_str(fields).expect("fields");
    let entry = json!({"manager": "w", "operation": rng.pick(&["Apply", "Update"]), "apiVersion": version,
        "time": "2020-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields});
    let entries = if rng.chance(70) { json!([entry]) } else { json!([{}]) };
    let patch = json!([{"op": "replace", "path": "/metadata/managedFields", "value": entries}]);
    vec![
        Step::with("POST", kind.path.clone(), kind.plain("a")),
        Step::patch("json", kind.item("a"), patch),
        apply(kind, "w", rng.chance(50), bare(kind, mutate::labels(rng))),
    ]
}
