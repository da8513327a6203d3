//! Webhooks and policies about one version of a custom kind, and requests in the other: a webhook of the kind converts.

use serde_json::{Value, json};

use super::super::conversion::{spec, thing, things, with};
use super::webhooks::{Kind, configured, hook, released};
use super::{binding, forgotten, here, known, policy};
use crate::rng::Rng;
use crate::sequence::Step;

/// What is seen of an object, as texts.
const SEEN: [&str; 5] = [
    "object == null ? 'nothing' : object.apiVersion",
    "object != null && has(object.spec.address) ? 'address ' + object.spec.address : 'no address'",
    "object != null && has(object.spec.host) ? 'host ' + object.spec.host : 'no host'",
    "oldObject == null ? 'new' : oldObject.apiVersion + (has(oldObject.spec.nosuch) ? ' unpruned' : '')",
    "request.kind.version + ' asked as ' + request.requestKind.version",
];

const CONDITIONS: [&str; 4] = [
    "object == null || has(object.spec.address)",
    "object == null || has(object.spec.host)",
    "request.kind.version != request.requestKind.version",
    "request.operation != 'DELETE'",
];

/// Whoever converts. Some make fields that no version knows: of these real field managers lose track, whatever admission
/// says, so that such objects are not changed.
fn converter(rng: &mut Rng) -> (&'static str, bool) {
    let path =
        rng.pick(&["/convert-exact", "/convert-exact", "/convert", "/convert-label", "/convert-refuse"]);
    (path, path == "/convert-exact")
}

fn rule(rng: &mut Rng) -> Value {
    let versions: [&[&str]; 4] = [&["v1"], &["v2"], &["v2"], &["v3", "v1"]];
    let resources: [&[&str]; 4] = [&["things"], &["things"], &["*/*"], &["things/status"]];
    json!({
        "apiGroups": ["{id}.example.com"], "apiVersions": rng.pick(&versions), "resources": rng.pick(&resources),
        "operations": ["*"],
    })
}

fn writes(rng: &mut Rng, is_exact: bool) -> Vec<Step> {
    let mut steps = Vec::new();
    // Who owns what in which version is another question.
    let version = rng.pick(&["v1", "v2"]);
    for _ in 0..4 {
        let name = rng.pick(&["a", "b"]);
        let (all, one) = (things(version), format!("{}/{name}", things(version)));
        let query = rng.pick(&["", "", "?dryRun=All"]);
        let choice = if is_exact { rng.below(7) } else { *rng.pick(&[&0, &0, &5, &6]) };
        steps.push(match choice {
            0..=2 => Step::with("POST", format!("{all}{query}"), thing(rng, version, name)),
            3 => Step::patch("merge", one, json!({"spec": spec(rng, version)})),
            4 => Step::patch("merge", format!("{one}/status"), json!({"status": {"ok": true}})),
            5 => Step::new("GET", one),
            _ => Step::new("DELETE", one),
        });
    }
    steps
}

/// Webhooks about one version.
pub fn hooked(rng: &mut Rng) -> Vec<Step> {
    let kind = if rng.chance(60) { Kind::Mutating } else { Kind::Validating };
    let hooks = (0..=rng.below(2)).map(|index| {
        let path = rng.pick(&["/warn-told", "/warn-told", "/label", "/count", "/host", "/deny-message"]);
        let mut hook = hook(&format!("h{index}"), path);
        hook["rules"] = json!([rule(rng)]);
        hook["matchPolicy"] = json!(rng.pick(&["Equivalent", "Equivalent", "Equivalent", "Exact"]));
        if rng.chance(30) {
            hook["matchConditions"] = json!([{"name": "c", "expression": rng.pick(&CONDITIONS)}]);
        }
        if rng.chance(30) {
            hook["reinvocationPolicy"] = json!("IfNeeded");
        }
        hook
    });
    let mut hooks: Vec<Value> = hooks.collect();
    if kind == Kind::Validating {
        // Of several that are asked at once nobody knows which answers first. Whoever only looks has no second look.
        hooks.truncate(1);
        let looks = hooks.iter_mut().filter_map(Value::as_object_mut);
        looks.for_each(|hook| drop(hook.remove("reinvocationPolicy")));
    }
    let (path, is_exact) = converter(rng);
    let mut steps = configured(kind, "c", hooks);
    steps.extend(writes(rng, is_exact));
    steps.push(released(kind, "c"));
    with(path, steps)
}

/// Policies about one version. Those that change objects are not among them: the real server hears of the fields of a new
/// kind only after minutes.
pub fn judged(rng: &mut Rng) -> Vec<Step> {
    let constraints = json!({
        "namespaceSelector": here(), "resourceRules": [rule(rng)],
        "matchPolicy": rng.pick(&["Equivalent", "Equivalent", "Exact"]),
    });
    let mut spec = json!({"matchConstraints": constraints});
    if rng.chance(30) {
        spec["matchConditions"] = json!([{"name": "c", "expression": rng.pick(&CONDITIONS)}]);
    }
    if rng.chance(25) {
        spec["failurePolicy"] = json!("Ignore");
    }
    let validations = SEEN
        .iter()
        .map(|source| json!({"expression": "false", "message": "it failed", "messageExpression": source}));
    spec["validations"] = validations.collect();
    let action = if rng.chance(75) { "Warn" } else { "Deny" };
    let mut steps = vec![policy("p", spec), binding("p", json!({"validationActions": [action]}))];
    known(&mut steps);
    let (path, is_exact) = converter(rng);
    steps.extend(writes(rng, is_exact));
    forgotten(&mut steps, &["p"]);
    with(path, steps)
}
