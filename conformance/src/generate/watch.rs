//! Watches: what is written while somebody looks.

use serde_json::json;

use super::kinds::{self, Kind};
use super::mutate;
use crate::rng::Rng;
use crate::sequence::{Collect, Step, accept};

const LIST: &str =
    "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

fn some_kind(rng: &mut Rng) -> &'static Kind {
    loop {
        let kind = kinds::any(rng);
        if !kind.expensive && !kind.cluster {
            return kind;
        }
    }
}

fn create(kind: &Kind, letter: &str) -> Step {
    Step::with("POST", kind.path.clone(), kind.plain(letter))
}

/// A few random writes to a few objects.
fn writes(rng: &mut Rng, kind: &Kind, count: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    for _ in 0..count {
        let letter = rng.pick(&["a", "b"]);
        let (pointer, value) = kind.change(rng);
        steps.push(match rng.below(7) {
            0 | 1 => create(kind, letter),
            2 => Step::patch("merge", kind.item(letter), json!({"metadata": {"labels": mutate::labels(rng)}})),
            3 => Step::patch("merge", kind.item(letter), mutate::only(pointer, value)),
            4 => Step::new("DELETE", kind.item(letter)),
            5 => Step::patch("merge", kind.item(letter), json!({"metadata": {"finalizers": if rng.chance(50) { json!(["x/a"]) } else { json!(null) }}})),
            _ => Step::with("PUT", kind.item(letter), kind.plain(letter)),
        });
    }
    steps
}

/// From the version of a list, until an object that ends it.
fn from_list(kind: &Kind, query: &str, accept: &str, between: Vec<Step>, mark: Step) -> Vec<Step> {
    let mut steps = vec![Step::new("GET", kind.path.clone()).capture("rv", "/metadata/resourceVersion")];
    let path = format!("{}?watch=1&resourceVersion={{rv}}{query}", kind.path);
    steps.push(Step::watch("w", path).header("accept", accept));
    steps.extend(between);
    steps.push(mark);
    steps.push(Step::collect("w", Collect::Name("z".into())));
    steps
}

pub fn events(rng: &mut Rng) -> Vec<Step> {
    let kind = some_kind(rng);
    let count = 2 + rng.below(6);
    let between = writes(rng, kind, count);
    let accept = accept(rng.pick(&["json", "json", "partial"]));
    from_list(kind, "", &accept, between, create(kind, "z"))
}

pub fn initial(rng: &mut Rng) -> Vec<Step> {
    let kind = some_kind(rng);
    let mut steps = writes(rng, kind, 4);
    let query = rng.pick(&["watch=1", "watch=true", "watch=1&resourceVersion="]);
    steps.push(Step::watch("w", format!("{}?{query}", kind.path)));
    steps.push(create(kind, "z"));
    steps.push(Step::collect("w", Collect::Name("z".into())));
    steps
}

pub fn timeout(rng: &mut Rng) -> Vec<Step> {
    let kind = some_kind(rng);
    let mut steps = vec![create(kind, "a")];
    steps.push(Step::watch("w", format!("{}?watch=1&timeoutSeconds={}", kind.path, 1 + rng.below(2))));
    steps.push(create(kind, "b"));
    steps.push(Step::collect("w", Collect::End));
    steps
}

pub fn bookmark(rng: &mut Rng) -> Vec<Step> {
    let kind = some_kind(rng);
    let mut steps = vec![create(kind, "a").capture("rv", "/metadata/resourceVersion")];
    let path = format!(
        "{}?watch=1&allowWatchBookmarks=true&timeoutSeconds={}&resourceVersion={{rv}}",
        kind.path,
        3 + rng.below(2)
    );
    steps.push(Step::watch("w", path));
    steps.push(create(kind, "b"));
    steps.push(Step::collect("w", Collect::End));
    steps
}

pub fn expired(rng: &mut Rng) -> Vec<Step> {
    let kind = some_kind(rng);
    let query = rng.pick(&["", "&allowWatchBookmarks=true", "&labelSelector=a", "&timeoutSeconds=3"]);
    let path = format!("{}?watch=1&resourceVersion={}{query}", kind.path, 1 + rng.below(4));
    vec![create(kind, "a"), Step::watch("w", path), Step::collect("w", Collect::Events(1))]
}

pub fn selector(rng: &mut Rng) -> Vec<Step> {
    let kind = some_kind(rng);
    let count = 4 + rng.below(5);
    let between = writes(rng, kind, count);
    let selector = rng.pick(&["app%3Da", "app", "app+in+(a,b)", "tier%21%3Db", "%21env", "app%3Da,tier"]);
    let mut mark = kind.plain("z");
    mutate::set(&mut mark, "/metadata/labels", json!({"app": "a", "tier": "a"}));
    let mark = Step::with("POST", kind.path.clone(), mark);
    from_list(kind, &format!("&labelSelector={selector}"), "application/json", between, mark)
}

pub fn deleted(rng: &mut Rng) -> Vec<Step> {
    let kind = some_kind(rng);
    let mut between = vec![create(kind, "a")];
    if rng.chance(50) {
        between.push(Step::patch("merge", kind.item("a"), json!({"metadata": {"finalizers": ["x/a"]}})));
    }
    between.push(Step::new("DELETE", kind.item("a")));
    between.push(Step::patch(
        "merge",
        kind.item("a"),
        json!({"metadata": {"finalizers": null, "annotations": {"last": "1"}}}),
    ));
    from_list(kind, "", "application/json", between, create(kind, "z"))
}

pub fn list(rng: &mut Rng) -> Vec<Step> {
    let kind = some_kind(rng);
    let mut steps = writes(rng, kind, 3);
    let selector = rng.pick(&["", "", "&labelSelector=app", "&fieldSelector=metadata.name%3Da"]);
    let accept = accept(rng.pick(&["json", "json", "partial", "table"]));
    steps.push(Step::watch("w", format!("{}?{LIST}{selector}", kind.path)).header("accept", &accept));
    steps.push(Step::collect("w", Collect::Initial));
    steps
}

pub fn table(rng: &mut Rng) -> Vec<Step> {
    let kind = some_kind(rng);
    let include = rng.pick(&["", "&includeObject=None", "&includeObject=Object"]);
    let mut steps = vec![create(kind, "a")];
    steps
        .push(Step::watch("w", format!("{}?watch=1{include}", kind.path)).header("accept", &accept("table")));
    steps.push(Step::collect("w", Collect::Events(1)));
    steps.push(Step::patch("merge", kind.item("a"), json!({"metadata": {"labels": {"x": "z"}}})));
    steps.push(Step::collect("w", Collect::Events(1)));
    steps
}
