//! Webhooks and policies that change objects of a custom kind: with fields that no schema knows, with what is not of the type,
//! without what has a default. Who is asked next, sees what the last one left.

use serde_json::{Value, json};

use super::super::conversion::things;
use super::super::custom::{DEFINITION, DEFINITIONS};
use super::super::versions::{definition, thing};
use super::here;
use super::mutations::{binding, forgotten, known, laid, policy};
use super::webhooks::{Kind, configured, hook, released};
use crate::rng::Rng;
use crate::sequence::{Step, Until};

/// What changes them. Most of it twice, so that what is refused is not all.
const CHANGES: [&str; 25] = [
    "/spec-unknown",
    "/spec-unknown",
    "/spec-deep",
    "/spec-deep",
    "/spec-bare",
    "/spec-bare",
    "/spec-null",
    "/spec-gone",
    "/spec-wrong",
    "/spec-kept",
    "/unknown-field",
    "/unknown-field",
    "/metadata-unknown",
    "/metadata-wrong",
    "/metadata-gone",
    "/metadata-text",
    "/metadata-odd",
    "/nosuch-version",
    "/no-version",
    "/no-kind-left",
    "/other-group",
    "/other-version",
    "/other-kind",
    "/label",
    "/status",
];

/// Steps of patches that policies make.
const PATCHES: [&str; 16] = [
    "{op: 'add', path: '/spec/nosuch', value: 'x'}",
    "{op: 'add', path: '/spec/o', value: {'nosuch': 'x'}}",
    "{op: 'add', path: '/spec/kept', value: {'z': 'y', 'in': 'x'}}",
    "{op: 'add', path: '/spec/l', value: [{'nosuch': 'x'}]}",
    "{op: 'add', path: '/spec/a', value: 5}",
    "{op: 'remove', path: '/spec/a'}",
    "{op: 'remove', path: '/spec'}",
    "{op: 'add', path: '/status', value: {'ok': true}}",
    "{op: 'add', path: '/nosuch', value: 5}",
    "{op: 'add', path: '/metadata/nosuch', value: 5}",
    "{op: 'add', path: '/metadata/labels', value: {'a': 5}}",
    "{op: 'add', path: '/metadata/labels', value: {'patched': 'yes'}}",
    "{op: 'remove', path: '/metadata'}",
    "{op: 'remove', path: '/kind'}",
    "{op: 'replace', path: '/kind', value: 'Other'}",
    "{op: 'replace', path: '/apiVersion', value: object.apiVersion + '7'}",
];

/// What policies lay over objects.
const LAID: [&str; 8] = [
    "Object{spec: Object.spec{a: 'laid'}}",
    "Object{spec: Object.spec{o: Object.spec.o{x: 'laid'}}}",
    "Object{spec: Object.spec{l: [Object.spec.l{x: 'laid'}]}}",
    "Object{spec: Object.spec{kept: Object.spec.kept{z: 'laid'}}}",
    "Object{spec: Object.spec{nosuch: 'laid'}}",
    "Object{spec: Object.spec{a: 5}}",
    "Object{status: Object.status{ok: false}}",
    "Object{metadata: Object.metadata{labels: {'laid': string(has(object.spec.nosuch))}}}",
];

fn writes(rng: &mut Rng) -> Vec<Step> {
    let version = rng.pick(&["v1", "v1", "v2"]);
    let mut steps = Vec::new();
    for _ in 0..4 {
        let name = rng.pick(&["a", "b"]);
        let (all, one) = (things(version), format!("{}/{name}", things(version)));
        let query = rng.pick(&["", "", "", "?dryRun=All", "?fieldValidation=Strict"]);
        let body = thing(rng, version, name);
        steps.push(match rng.below(9) {
            0..=3 => Step::with("POST", format!("{all}{query}"), body),
            4 => Step::with("PUT", format!("{one}{query}"), body),
            5 => Step::patch("merge", format!("{one}{query}"), json!({"spec": {"a": rng.pick(&["v", "w"])}})),
            6 => Step::patch(
                "merge",
                format!("{one}/status{query}"),
                json!({"status": {"ok": rng.chance(50)}}),
            ),
            7 => Step::patch("apply", format!("{one}?fieldManager=me"), body),
            _ => Step::new("DELETE", format!("{one}{query}")),
        });
        if rng.chance(50) {
            steps.push(Step::new("GET", format!("{}/{name}", things(rng.pick(&["v1", "v2"])))));
        }
    }
    steps
}

fn rule(rng: &mut Rng) -> Value {
    let versions: [&[&str]; 4] = [&["*"], &["*"], &["v1"], &["v2"]];
    let resources: [&[&str]; 3] = [&["things"], &["things"], &["*/*"]];
    json!([{
        "apiGroups": ["{id}.example.com"], "apiVersions": rng.pick(&versions), "resources": rng.pick(&resources),
        "operations": ["CREATE", "UPDATE"],
    }])
}

/// Hooks one after the other, of which the last tells what it sees, and perhaps one that only looks.
pub fn changed(rng: &mut Rng) -> Vec<Step> {
    let mut paths: Vec<&str> = (0..=rng.below(2)).map(|_| rng.pick(&CHANGES)).collect();
    paths.push("/warn-told");
    let hooks = paths.iter().enumerate().map(|(index, path)| {
        let mut hook = hook(&format!("h{index}"), path);
        hook["rules"] = rule(rng);
        if rng.chance(30) {
            hook["reinvocationPolicy"] = json!("IfNeeded");
        }
        hook
    });
    let mut steps = vec![
        Step::with("POST", DEFINITIONS, definition()).quiet(),
        Step::new("GET", things("v1")).until(200).quiet(),
        Step::new("GET", things("v2")).until(200).quiet(),
    ];
    let hooks = hooks.collect();
    steps.extend(configured(Kind::Mutating, "m", hooks));
    let is_told = rng.chance(50);
    if is_told {
        let mut told = hook("told", "/warn-told");
        told["rules"] = rule(rng);
        steps.extend(configured(Kind::Validating, "v", vec![told]));
    }
    steps.extend(writes(rng));
    steps.push(released(Kind::Mutating, "m"));
    steps.extend(is_told.then(|| released(Kind::Validating, "v")));
    steps.push(Step::new("DELETE", DEFINITION).quiet());
    steps
}

fn changing(rng: &mut Rng) -> Value {
    match rng.chance(65) {
        true => {
            let patches: Vec<&str> = (0..=rng.below(2)).map(|_| rng.pick(&PATCHES)).collect();
            let patches: Vec<String> = patches.iter().map(|patch| format!("JSONPatch{patch}")).collect();
            json!({"patchType": "JSONPatch", "jsonPatch": {"expression": format!("[{}]", patches.join(", "))}})
        }
        false => laid(rng.pick(&LAID)),
    }
}

fn over(mutations: Value, rules: Value) -> Value {
    json!({
        "matchConstraints": {"namespaceSelector": here(), "resourceRules": rules}, "reinvocationPolicy": "Never",
        "mutations": mutations,
    })
}

/// A policy that changes objects, and perhaps a hook that tells what it left.
pub fn laid_over(rng: &mut Rng) -> Vec<Step> {
    let mut steps = vec![
        Step::with("POST", DEFINITIONS, definition()).quiet(),
        Step::new("GET", things("v1")).until(200).quiet(),
        Step::new("GET", things("v2")).until(200).quiet(),
    ];
    let mark = json!([{
        "apiGroups": ["{id}.example.com"], "apiVersions": ["*"], "resources": ["things"], "operations": ["CREATE"],
        "resourceNames": ["mark"],
    }]);
    let mutations = (0..=rng.below(3)).map(|_| changing(rng)).collect();
    let mut spec = over(mutations, rule(rng));
    spec["matchConstraints"]["excludeResourceRules"] = mark.clone();
    steps.extend([policy("p", spec), binding("p", json!({}))]);
    let label = laid("Object{metadata: Object.metadata{labels: {'heard': 'yes'}}}");
    let heard = over(json!([label]), mark);
    steps.extend([policy("heard", heard).quiet(), binding("heard", json!({})).quiet()]);
    known(&mut steps);
    let is_told = rng.chance(50);
    if is_told {
        let mut told = hook("told", "/warn-told");
        told["rules"] = rule(rng);
        steps.extend(configured(Kind::Mutating, "m", vec![told]));
    }
    // The real server hears of the fields of a new kind only after a while, and of those of each version on its own.
    for version in ["v1", "v2"] {
        let mut mark = thing(rng, version, "mark");
        mark["spec"] = json!({});
        let heard = Until { status: 201, at: "/metadata/labels/heard".into(), is: json!("yes") };
        let step = Step::with("POST", format!("{}?dryRun=All", things(version)), mark).quiet();
        steps.extend(std::iter::repeat_n(Step { until: Some(heard), ..step }, 4));
    }
    steps.extend(writes(rng));
    forgotten(&mut steps, &["p", "heard"]);
    steps.extend(is_told.then(|| released(Kind::Mutating, "m")));
    steps.push(Step::new("DELETE", DEFINITION).quiet());
    steps
}
