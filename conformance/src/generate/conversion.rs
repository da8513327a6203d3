//! Kinds whose versions a webhook converts: `v1` has a host and a port, `v2`, which is stored, one address.

use serde_json::{Value, json};

use super::custom::{DEFINITION, DEFINITIONS};
use crate::rng::Rng;
use crate::sequence::Step;

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const METADATA: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

pub(super) fn things(version: &str) -> String {
    format!("/apis/{{id}}.example.com/{version}/namespaces/{{ns}}/things")
}

fn version(name: &str, fields: &[&str]) -> Value {
    let spec: serde_json::Map<String, Value> =
        fields.iter().map(|field| ((*field).to_owned(), json!({"type": "string"}))).collect();
    let status = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "name": name, "served": true, "storage": name == "v2", "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": spec}, "status": status,
        }}},
        "additionalPrinterColumns": [{"name": "First", "type": "string", "jsonPath": format!(".spec.{}", fields[0])}],
    })
}

/// A definition that is converted at this path, and nothing else of it.
fn definition(path: &str) -> Value {
    let client = json!({"url": format!("{{hook}}{path}"), "caBundle": "{authority}"});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.{id}.example.com"},
        "spec": {
            "group": "{id}.example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [version("v1", &["host", "port"]), version("v2", &["address"])],
            "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client}},
        },
    })
}

pub(super) fn with(path: &str, steps: Vec<Step>) -> Vec<Step> {
    let mut out = vec![
        // Its body holds an address that is another one each time.
        Step::with("POST", DEFINITIONS, definition(path)).quiet(),
        Step::new("GET", things("v1")).until(200).quiet(),
        Step::new("GET", things("v2")).until(200).quiet(),
    ];
    out.extend(steps);
    out.push(Step::new("DELETE", DEFINITION).quiet());
    out
}

pub(super) fn spec(rng: &mut Rng, version: &str) -> Value {
    match version {
        "v1" if rng.chance(20) => json!({"host": rng.pick(&["h", "i"]), "nosuch": "x"}),
        "v1" => json!({"host": rng.pick(&["h", "i"]), "port": rng.pick(&["1", "22"])}),
        _ => json!({"address": rng.pick(&["h:1", "i:22", "j:3"])}),
    }
}

pub(super) fn thing(rng: &mut Rng, version: &str, name: &str) -> Value {
    let mut tree = json!({
        "apiVersion": format!("{{id}}.example.com/{version}"), "kind": "Thing",
        "metadata": {"name": name}, "spec": spec(rng, version),
    });
    if rng.chance(30) {
        tree["metadata"]["labels"] = json!({"tier": rng.pick(&["web", "db"])});
    }
    if rng.chance(15) {
        tree["metadata"]["finalizers"] = json!(["example.com/waits"]);
    }
    tree
}

fn step(rng: &mut Rng) -> Step {
    let version = rng.pick(&["v1", "v1", "v2"]);
    let name = rng.pick(&["a", "b"]);
    let (all, one) = (things(version), format!("{}/{name}", things(version)));
    match rng.below(14) {
        0..=3 => Step::with("POST", all, thing(rng, version, name)),
        4 => Step::new("GET", one),
        5 => Step::new("GET", all),
        6 => Step::new("GET", all).header("accept", TABLE),
        7 => Step::new("GET", all).header("accept", METADATA),
        8 => Step::patch("merge", one, json!({"spec": spec(rng, version)})),
        9 => Step::patch("merge", one, json!({"metadata": {"annotations": {"note": rng.pick(&["x", "y"])}}})),
        10 => Step::patch("merge", format!("{one}/status"), json!({"status": {"ok": rng.chance(50)}})),
        11 => Step::patch("merge", one, json!({"metadata": {"finalizers": null}})),
        12 => Step::new("GET", format!("{all}?labelSelector=tier%3Dweb")),
        _ => Step::new("DELETE", one),
    }
}

/// Objects that are written and read in both versions.
pub fn converted(rng: &mut Rng) -> Vec<Step> {
    let path = rng.pick(&["/convert", "/convert", "/convert-label"]);
    let count = 6 + rng.below(8);
    let steps = (0..count).flat_map(|_| {
        let step = step(rng);
        // kube-apiserver applies a patch to what its cache of the version still holds, and warns of what is wrong with it;
        // that the object is gone, it finds out afterwards. A list waits for the cache.
        let seen =
            (step.method == "DELETE").then(|| ["v1", "v2"].map(|version| Step::new("GET", things(version))));
        std::iter::once(step).chain(seen.into_iter().flatten())
    });
    with(path, steps.collect())
}

/// Webhooks that convert wrongly, or not at all. What is stored can be read as it is.
pub fn failed(rng: &mut Rng) -> Vec<Step> {
    let path = rng.pick(&[
        "/convert-refuse",
        "/convert-other-uid",
        "/convert-none",
        "/convert-rename",
        "/convert-retype",
        "/convert-no-response",
        "/garbage",
        "/empty",
        "/code-500",
        "/close",
    ]);
    let (v1, v2) = (things("v1"), things("v2"));
    let steps = vec![
        Step::with("POST", v1.clone(), thing(rng, "v1", "a")),
        Step::with("POST", v2.clone(), thing(rng, "v2", "a")),
        Step::new("GET", format!("{v1}/a")),
        Step::patch("merge", format!("{v1}/a"), json!({"spec": spec(rng, "v1")})),
        Step::patch("merge", format!("{v2}/a"), json!({"spec": spec(rng, "v2")})),
        Step::new("GET", format!("{v2}/a")),
        Step::new("GET", v2),
    ];
    with(path, steps)
}
