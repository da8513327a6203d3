//! Kinds of two versions that differ in more than their name and that nobody converts: each has fields and defaults of its own.

use serde_json::{Value, json};

use super::conversion::things;
use super::custom::{DEFINITION, DEFINITIONS};
use crate::rng::Rng;
use crate::sequence::{Collect, Step, Until, accept};

/// A version with its own defaults, and a field that the other one does not have.
fn version(name: &str, default: &str) -> Value {
    let inner = json!({"type": "object", "properties": {"x": {"type": "string", "default": default}}});
    let kept =
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"in": inner}});
    let mut spec = json!({
        "a": {"type": "string", "default": default},
        "o": inner,
        "l": {"type": "array", "items": inner},
        "kept": kept,
    });
    spec[format!("only-{name}")] = json!({"type": "integer", "default": 1});
    let status = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}});
    json!({
        "name": name, "served": true, "storage": name == "v1", "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": spec}, "status": status,
        }}},
        "additionalPrinterColumns": [{"name": "Own", "type": "integer", "jsonPath": format!(".spec.only-{name}")}],
    })
}

/// The definition of a kind of which `v1` is stored.
pub(super) fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.{id}.example.com"},
        "spec": {
            "group": "{id}.example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [version("v1", "one"), version("v2", "two")],
        },
    })
}

pub(super) fn thing(rng: &mut Rng, version: &str, name: &str) -> Value {
    let spec = [
        json!({}),
        json!({"a": "said"}),
        json!({"a": "said", "o": {}, "l": [{}, {"x": "y"}]}),
        json!({"o": {"x": "said"}, "kept": {"any": [1], "in": {}}}),
        json!({"only-v1": 5, "l": []}),
        json!({"only-v2": 7, "a": "said"}),
    ];
    json!({
        "apiVersion": format!("{{id}}.example.com/{version}"), "kind": "Thing",
        "metadata": {"name": name}, "spec": spec[rng.below(spec.len())],
    })
}

/// A request; a write in one of these versions. Who owns what in which version is another question, which apply asks: it is for
/// one version alone.
fn step(rng: &mut Rng, written: &[&str]) -> Step {
    let reads = rng.chance(35);
    let version = if reads { rng.pick(&["v1", "v2"]) } else { rng.pick(written) };
    let name = rng.pick(&["a", "b"]);
    let (all, one) = (things(version), format!("{}/{name}", things(version)));
    let query = rng.pick(&["", "", "", "?dryRun=All"]);
    if reads {
        return match rng.below(4) {
            0 => Step::new("GET", all).header("accept", &accept(rng.pick(&["table", "partials", "yaml"]))),
            1 => Step::new("GET", format!("{all}?labelSelector=tier%3Dx")),
            _ => Step::new("GET", one),
        };
    }
    match rng.below(11) {
        0..=2 => Step::with("POST", format!("{all}{query}"), thing(rng, version, name)),
        3 => Step::with("PUT", format!("{one}{query}"), thing(rng, version, name)),
        4 => Step::patch("merge", format!("{one}{query}"), json!({"spec": {"a": rng.pick(&["v", "w"])}})),
        5 => Step::patch("merge", one, json!({"metadata": {"labels": {"tier": rng.pick(&["x", "y"])}}})),
        6 => Step::patch("merge", format!("{one}/status{query}"), json!({"status": {"ok": rng.chance(50)}})),
        7 => Step::patch("merge", one, json!({"spec": {"only-v1": null, "only-v2": null}})),
        8 if written.len() == 1 => {
            Step::patch("apply", format!("{one}?fieldManager=me&force=true"), thing(rng, version, name))
        }
        9 => {
            let finalizers = if rng.chance(50) { json!(["example.com/waits"]) } else { Value::Null };
            Step::patch("merge", one, json!({"metadata": {"finalizers": finalizers}}))
        }
        _ => Step::new("DELETE", one),
    }
}

/// Makes the other version the stored one, and waits until it is.
fn swapped(steps: &mut Vec<Step>) {
    let mut versions = [version("v1", "one"), version("v2", "two")];
    for version in &mut versions {
        version["storage"] = json!(version["name"] == "v2");
        version["additionalPrinterColumns"][0]["name"] = json!("Swapped");
    }
    steps.push(Step::patch("merge", DEFINITION, json!({"spec": {"versions": versions}})));
    let known = Until { status: 200, at: "/columnDefinitions/0/name".into(), is: json!("Swapped") };
    let table = Step::new("GET", things("v2")).header("accept", &accept("table"));
    steps.push(Step { until: Some(known), ..table }.quiet());
}

/// What is written in one version and read in the other; in some sequences the other one is stored from then on.
pub fn differing(rng: &mut Rng) -> Vec<Step> {
    let mut steps = vec![
        Step::with("POST", DEFINITIONS, definition()).quiet(),
        Step::new("GET", things("v1")).until(200).quiet(),
        Step::new("GET", things("v2")).until(200).quiet(),
    ];
    let written: &[&str] = [&["v1", "v2"][..], &["v1"], &["v2"]][rng.below(3)];
    let is_watched = rng.chance(40);
    if is_watched {
        let path = format!("{}?watch=1", things(rng.pick(&["v1", "v2"])));
        steps.push(Step::watch("w", path).header("accept", &accept(rng.pick(&["json", "json", "table"]))));
    }
    let before = 3 + rng.below(5);
    (0..before).for_each(|_| steps.push(step(rng, written)));
    if is_watched {
        let version = rng.pick(written);
        steps.push(Step::with("POST", things(version), thing(rng, version, "last")));
        steps.push(Step::collect("w", Collect::Name("last".into())));
    } else if rng.chance(50) {
        swapped(&mut steps);
        let after = 3 + rng.below(5);
        (0..after).for_each(|_| steps.push(step(rng, written)));
        steps.push(Step::new("GET", DEFINITION));
    }
    if rng.chance(30) {
        steps.push(Step::new("DELETE", things(rng.pick(written))));
    }
    steps.extend(["v1", "v2"].map(|version| Step::new("GET", things(version))));
    steps.push(Step::new("DELETE", DEFINITION).quiet());
    steps
}
