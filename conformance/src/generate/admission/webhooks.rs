//! Webhooks that change objects, refuse them, answer nonsense or nothing at all.

use serde_json::{Value, json};

use super::{API, CONFIG_MAPS, here};
use crate::rng::Rng;
use crate::sequence::Step;

/// What a configuration is about.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Mutating,
    Validating,
}

impl Kind {
    fn name(self) -> &'static str {
        if self == Kind::Mutating { "Mutating" } else { "Validating" }
    }

    fn path(self) -> String {
        format!("{API}/{}webhookconfigurations", self.name().to_lowercase())
    }
}

/// A hook that is asked about all writes of ConfigMaps in the namespace of the sequence.
pub(super) fn hook(name: &str, path: &str) -> Value {
    json!({
        "name": format!("{name}.example.com"), "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "timeoutSeconds": 10, "namespaceSelector": here(),
        // The mark is nobody else's business.
        "objectSelector": {"matchExpressions": [{"key": "mark", "operator": "DoesNotExist"}]},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}],
        "clientConfig": {"url": format!("{{hook}}{path}"), "caBundle": "{authority}"},
    })
}

/// Makes a configuration, and waits until it is known.
pub(super) fn configured(kind: Kind, name: &str, hooks: Vec<Value>) -> Vec<Step> {
    let mut mark = hook("mark", "/deny");
    mark["objectSelector"] = json!({"matchLabels": {"mark": name}});
    let hooks: Vec<Value> = std::iter::once(mark).chain(hooks).collect();
    let body = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": format!("{}WebhookConfiguration", kind.name()),
        "metadata": {"name": format!("{{id}}-{name}")}, "webhooks": hooks,
    });
    vec![
        // Its body holds an address that is another one each time.
        Step::with("POST", kind.path(), body).quiet(),
        marked(name).until(400).quiet(),
    ]
}

/// A write that is refused as long as a configuration is known.
fn marked(name: &str) -> Step {
    let body = json!({"metadata": {"name": "mark", "labels": {"mark": name}}});
    Step::with("POST", format!("{CONFIG_MAPS}?dryRun=All"), body)
}

pub(super) fn released(kind: Kind, name: &str) -> Step {
    Step::new("DELETE", format!("{}/{{id}}-{name}", kind.path())).quiet()
}

fn writes(rng: &mut Rng, count: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    for _ in 0..count {
        let name = rng.pick(&["a", "b"]);
        let mut body =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": "v"}});
        if rng.chance(40) {
            body["metadata"]["labels"] = json!({"tier": rng.pick(&["web", "db"])});
        }
        let query = rng.pick(&["", "", "?dryRun=All", "?fieldManager=me&fieldValidation=Strict"]);
        let one = format!("{CONFIG_MAPS}/{name}");
        steps.push(match rng.below(9) {
            0..=3 => Step::with("POST", format!("{CONFIG_MAPS}{query}"), body),
            4 => Step::with("PUT", format!("{one}{query}"), body),
            5 => Step::patch("merge", format!("{one}{query}"), json!({"data": {"k": rng.pick(&["v", "w"])}})),
            6 => Step::patch("apply", format!("{one}?fieldManager=me"), body),
            7 => {
                body["metadata"] = json!({"generateName": "g-"});
                Step::with("POST", format!("{CONFIG_MAPS}{query}"), body)
            }
            _ => Step::new("DELETE", format!("{one}{query}")),
        });
    }
    steps
}

/// Hooks that change objects one after the other, some of them again.
pub fn changed(rng: &mut Rng) -> Vec<Step> {
    let paths = ["/label", "/copy", "/count", "/count", "/tell", "/fine", "/data"];
    let mut steps = Vec::new();
    let names: &[&str] = if rng.chance(30) { &["m", "n"] } else { &["m"] };
    for name in names {
        let hooks = (0..=rng.below(3)).map(|index| {
            let mut hook = hook(&format!("h{index}"), rng.pick(&paths));
            if rng.chance(50) {
                hook["reinvocationPolicy"] = json!(rng.pick(&["IfNeeded", "IfNeeded", "Never"]));
            }
            hook
        });
        let hooks = hooks.collect();
        steps.extend(configured(Kind::Mutating, name, hooks));
    }
    let is_told = rng.chance(40);
    if is_told {
        steps.extend(configured(Kind::Validating, "v", vec![hook("told", "/warn-told")]));
    }
    steps.extend(writes(rng, 4));
    steps.extend(names.iter().map(|name| released(Kind::Mutating, name)));
    steps.extend(is_told.then(|| released(Kind::Validating, "v")));
    steps
}

/// A hook that gives objects other names. What is made by its path is stored there, whatever its name is then.
pub fn renamed(rng: &mut Rng) -> Vec<Step> {
    let path = rng.pick(&["/rename", "/rename", "/rename", "/unname", "/generate"]);
    let mut steps = configured(Kind::Mutating, "m", vec![hook("names", path)]);
    for step in writes(rng, 5) {
        steps.push(step);
        let name = rng.pick(&["a", "b", "renamed"]);
        if rng.chance(50) {
            steps.push(Step::new("GET", format!("{CONFIG_MAPS}/{name}")));
        }
    }
    if rng.chance(30) {
        let both = json!({"metadata": {"name": "a", "generateName": "g-"}});
        steps.push(Step::with("POST", CONFIG_MAPS, both.clone()));
        steps.push(Step::with("POST", CONFIG_MAPS, both));
    }
    // The real server hears a little later that nobody is to be asked any more.
    steps.push(released(Kind::Mutating, "m"));
    steps.push(marked("m").until(201).quiet());
    let left = writes(rng, 2);
    steps.extend(left);
    steps
}

/// Hooks that say something odd, or nothing.
pub fn answered(rng: &mut Rng) -> Vec<Step> {
    const PATHS: [&str; 30] = [
        "/deny",
        "/deny-message",
        "/deny-reason",
        "/deny-low",
        "/deny-details",
        "/deny-warn",
        "/warn",
        "/garbage",
        "/empty",
        "/no-response",
        "/no-kind",
        "/beta",
        "/other-uid",
        "/no-uid",
        "/code-500",
        "/code-404",
        "/code-403",
        "/code-400",
        "/code-302",
        "/bad-patch",
        "/bad-base64",
        "/no-patch",
        "/merge",
        "/fails",
        "/test",
        "/no-type",
        "/wrong-type",
        "/unknown-field",
        "/close",
        "/warn-told",
    ];
    let kind = if rng.chance(50) { Kind::Mutating } else { Kind::Validating };
    let mut odd = hook("odd", rng.pick(&PATHS));
    if rng.chance(35) {
        odd["failurePolicy"] = json!("Ignore");
    }
    if rng.chance(15) {
        odd["admissionReviewVersions"] = json!(["v1beta1"]);
    }
    let mut steps = configured(kind, "c", vec![odd]);
    steps.extend(writes(rng, 3));
    steps.push(released(kind, "c"));
    steps
}

/// Hooks that cannot be asked: too slow for themselves or for the client, nobody there, a stranger's certificate.
pub fn silent(rng: &mut Rng) -> Vec<Step> {
    let kind = if rng.chance(50) { Kind::Mutating } else { Kind::Validating };
    let mut hook = hook("silent", "/fine");
    let case = rng.below(5);
    match case {
        0 => {
            hook["clientConfig"]["url"] = json!("{hook}/hang");
            hook["timeoutSeconds"] = json!(1);
        }
        4 => hook["clientConfig"]["url"] = json!("{hook}/hang"),
        1 => hook["clientConfig"]["url"] = json!("https://127.0.0.1:1/x"),
        2 => drop(hook["clientConfig"].as_object_mut().and_then(|client| client.remove("caBundle"))),
        _ => {
            let service = json!({"namespace": "{ns}", "name": "nothing", "path": "/x", "port": 8443});
            hook["clientConfig"] = json!({"service": service, "caBundle": "{authority}"});
        }
    }
    if rng.chance(40) {
        hook["failurePolicy"] = json!("Ignore");
    }
    let mut steps = configured(kind, "c", vec![hook]);
    steps.extend(writes(rng, 2).into_iter().map(|mut step| {
        if case == 4 {
            // The client waits no longer than this, whatever the hook's own time is.
            let sign = if step.path.contains('?') { '&' } else { '?' };
            step.path.push_str(&format!("{sign}timeout=1s"));
        }
        step
    }));
    steps.push(released(kind, "c"));
    steps
}

/// What hooks want to be asked about.
pub fn wanted(rng: &mut Rng) -> Vec<Step> {
    const CONDITIONS: [&str; 10] = [
        "object.metadata.name == 'a'",
        "request.operation == 'CREATE' && object.data.k == 'v'",
        "object.nothing.x == 'v'",
        "oldObject == null",
        "request.dryRun",
        "has(object.metadata.labels) && 'tier' in object.metadata.labels",
        "authorizer.requestResource.check('create').allowed()",
        "authorizer.serviceAccount('default', 'nobody').group('').resource('secrets').check('get').allowed()",
        "request.options.kind == 'CreateOptions'",
        "request.userInfo.groups.exists(g, g == 'nobody')",
    ];
    let kind = if rng.chance(40) { Kind::Mutating } else { Kind::Validating };
    let mut hook = hook("picky", rng.pick(&["/deny-message", "/warn-told", "/warn-told"]));
    if rng.chance(40) {
        let all = hook["objectSelector"]["matchExpressions"].as_array_mut();
        all.into_iter().for_each(|all| {
            all.push(match rng.below(3) {
                0 => json!({"key": "tier", "operator": "Exists"}),
                1 => json!({"key": "tier", "operator": "In", "values": ["web"]}),
                _ => json!({"key": "tier", "operator": "NotIn", "values": ["web"]}),
            });
        });
    }
    if rng.chance(40) {
        let operations: [&[&str]; 4] = [&["CREATE"], &["UPDATE"], &["DELETE"], &["CREATE", "UPDATE"]];
        hook["rules"][0]["operations"] = json!(rng.pick(&operations));
    }
    if rng.chance(30) {
        let resources: [&[&str]; 4] = [&["*"], &["*/*"], &["configmaps/status"], &["secrets", "configmaps"]];
        hook["rules"][0]["resources"] = json!(rng.pick(&resources));
    }
    if rng.chance(20) {
        hook["rules"][0]["scope"] = json!(rng.pick(&["Cluster", "Namespaced", "*"]));
    }
    if rng.chance(60) {
        let conditions = (0..=rng.below(2))
            .map(|index| json!({"name": format!("c{index}"), "expression": rng.pick(&CONDITIONS)}));
        hook["matchConditions"] = conditions.collect();
    }
    if rng.chance(30) {
        hook["failurePolicy"] = json!("Ignore");
    }
    let mut steps = configured(kind, "c", vec![hook]);
    steps.extend(writes(rng, 5));
    steps.push(released(kind, "c"));
    steps
}
