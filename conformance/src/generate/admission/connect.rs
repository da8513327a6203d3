//! Connections to pods and services: webhooks and policies are asked about these as operation `CONNECT`. There is no node, so
//! that none comes about; what is compared is who refuses it, and what everybody is told.

use serde_json::{Value, json};

use super::webhooks::{Kind, configured, hook, released};
use super::{binding, forgotten, here, known, mutations, policy};
use crate::rng::Rng;
use crate::sequence::Step;

const PODS: &str = "/api/v1/namespaces/{ns}/pods";

/// What options look like to expressions, as texts.
const SEEN: [&str; 8] = [
    "object.kind + ' ' + object.apiVersion",
    "has(object.command) && object.command != null ? object.command.join(' ') : 'no command'",
    "has(object.stdin) ? 'in' : 'no in'",
    "has(object.container) ? object.container : 'no container'",
    "has(object.path) ? object.path : 'no path'",
    "has(object.ports) ? object.ports.map(p, string(p)).join('+') : 'no ports'",
    "request.operation + ' ' + request.resource.resource + '/' + request.subResource + ' of ' + request.name",
    "has(request.options) && request.options != null ? 'options' : 'no options'",
];

/// The same as conditions.
const CONDITIONS: [&str; 7] = [
    "object.kind == 'PodExecOptions'",
    "object.command.size() > 1",
    "has(object.stdin) && object.stdin",
    "request.subResource == 'exec' || request.subResource == 'proxy'",
    "oldObject == null",
    "!request.dryRun",
    "authorizer.requestResource.check('create').allowed()",
];

fn rule(rng: &mut Rng) -> Value {
    let resources: [&[&str]; 6] = [
        &["pods/exec"],
        &["pods/*"],
        &["*/*"],
        &["pods/attach", "pods/portforward", "*/proxy"],
        &["pods/exec", "services/proxy"],
        &["pods"],
    ];
    let operations: [&[&str]; 4] = [&["CONNECT"], &["CONNECT"], &["*"], &["CREATE", "UPDATE"]];
    json!({
        "apiGroups": [""], "apiVersions": ["v1"], "scope": "Namespaced",
        "resources": rng.pick(&resources), "operations": rng.pick(&operations),
    })
}

/// A pod without a node, and a service without endpoints.
fn prepared(rng: &mut Rng) -> Vec<Step> {
    let mut containers = vec![json!({"name": "c", "image": "i"})];
    if rng.chance(30) {
        containers.push(json!({"name": "d", "image": "i"}));
    }
    let mut pod = json!({"metadata": {"name": "p"}, "spec": {"containers": containers}});
    if rng.chance(40) {
        pod["spec"]["nodeName"] = json!("{id}-nowhere");
    }
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    vec![
        Step::with("POST", PODS, pod).quiet(),
        Step::with("POST", "/api/v1/namespaces/{ns}/services", service).quiet(),
    ]
}

fn connections(rng: &mut Rng, count: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    for _ in 0..count {
        let method = rng.pick(&["GET", "POST"]);
        let name = rng.pick(&["p", "p", "p", "nothing"]);
        let container = rng.pick(&["", "&container=c", "&container=x"]);
        let flags =
            rng.pick(&["", "&stdin=true", "&stdout=1&stderr=true", "&tty=true&stdin=false&stdout=yes"]);
        let path = match rng.below(9) {
            0..=3 => {
                let command =
                    rng.pick(&["", "command=ls", "command=ls&command=-l", "command=sh&command=-c&command="]);
                format!("{PODS}/{name}/exec?{command}{container}{flags}")
            }
            4 => format!("{PODS}/{name}/attach?x=y{container}{flags}"),
            5 | 6 => {
                let ports = rng.pick(&["", "ports=80", "ports=80,81&ports=90", "ports=http", "ports=70000"]);
                format!("{PODS}/{name}/portforward?{ports}")
            }
            7 => {
                let rest = rng.pick(&["", "/", "/a/b", "/a%20b/c/", "//a", "/a?path=/b"]);
                format!("{PODS}/{}/proxy{rest}", rng.pick(&["p", "http:p:80", "p:80", "nothing"]))
            }
            _ => {
                let rest = rng.pick(&["/", "/a", "/a/?b=c"]);
                format!(
                    "/api/v1/namespaces/{{ns}}/services/{}/proxy{rest}",
                    rng.pick(&["s", "s:80", "nothing"])
                )
            }
        };
        let dry_run =
            if rng.chance(8) { if path.contains('?') { "&dryRun=All" } else { "?dryRun=All" } } else { "" };
        let step = Step::new(method, format!("{path}{dry_run}"));
        // Refusals come before anybody changes the protocol.
        steps.push(match rng.below(3) {
            0 => step.header("connection", "Upgrade").header("upgrade", "SPDY/3.1"),
            1 if method == "GET" => step
                .header("connection", "Upgrade")
                .header("upgrade", "websocket")
                .header("sec-websocket-version", "13")
                .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
                .header("sec-websocket-protocol", "v5.channel.k8s.io"),
            _ => step,
        });
    }
    steps
}

/// Webhooks are asked about connections, and may change what is asked for.
pub fn hooked(rng: &mut Rng) -> Vec<Step> {
    let kind = if rng.chance(50) { Kind::Mutating } else { Kind::Validating };
    let path = rng.pick(&[
        "/warn-told",
        "/warn-told",
        "/deny-message",
        "/container",
        "/command",
        "/label",
        "/unknown-field",
        "/code-500",
    ]);
    let mut asked = hook("asked", path);
    asked["rules"] = json!([rule(rng)]);
    // What has no labels is not even chosen for having none.
    if rng.chance(85) {
        asked["objectSelector"] = json!({});
    }
    if rng.chance(30) {
        asked["namespaceSelector"] = json!({});
        asked["matchConditions"] =
            json!([{"name": "here", "expression": "request.namespace.startsWith('{ns}')"}]);
    } else if rng.chance(40) {
        asked["matchConditions"] = json!([{"name": "c", "expression": rng.pick(&CONDITIONS)}]);
    }
    if rng.chance(30) {
        asked["failurePolicy"] = json!("Ignore");
    }
    let mut hooks = vec![asked];
    if kind == Kind::Mutating && rng.chance(40) {
        let mut second = hook("second", "/warn-told");
        second["rules"] = json!([rule(rng)]);
        second["objectSelector"] = json!({});
        second["reinvocationPolicy"] = json!("IfNeeded");
        hooks.insert(rng.below(2), second);
    }
    let mut steps = prepared(rng);
    steps.extend(configured(kind, "c", hooks));
    steps.extend(connections(rng, 5));
    steps.push(released(kind, "c"));
    steps
}

/// Policies judge connections.
pub fn judged(rng: &mut Rng) -> Vec<Step> {
    let validations: Value = SEEN
        .iter()
        .map(|source| json!({"expression": "false", "message": "it failed", "messageExpression": source}))
        .collect();
    let mut constraints = json!({"namespaceSelector": here(), "resourceRules": [rule(rng)]});
    if rng.chance(15) {
        constraints["objectSelector"] =
            json!({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]});
    }
    let mut spec = json!({"matchConstraints": constraints, "validations": validations});
    if rng.chance(40) {
        spec["matchConditions"] = json!([{"name": "c", "expression": rng.pick(&CONDITIONS)}]);
    }
    let action = if rng.chance(75) { "Warn" } else { "Deny" };
    let mut steps = prepared(rng);
    steps.extend([policy("p", spec), binding("p", json!({"validationActions": [action]}))]);
    known(&mut steps);
    steps.extend(connections(rng, 5));
    forgotten(&mut steps, &["p"]);
    steps
}

/// Policies change what is asked for.
pub fn changed(rng: &mut Rng) -> Vec<Step> {
    let laid = |source: &str| json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": source}});
    let patch = |source: &str| json!({"patchType": "JSONPatch", "jsonPatch": {"expression": source}});
    let mutation = match rng.below(5) {
        0 => laid("Object{container: 'other'}"),
        1 => laid("Object{nothing: 'other'}"),
        2 => patch("[JSONPatch{op: 'add', path: '/container', value: 'other'}]"),
        3 => patch("[JSONPatch{op: 'add', path: '/container', value: 5}]"),
        _ => patch("[JSONPatch{op: 'add', path: '/command', value: ['id']}]"),
    };
    let mut spec = json!({
        "matchConstraints": {"namespaceSelector": here(), "resourceRules": [rule(rng)]},
        "mutations": [mutation], "reinvocationPolicy": rng.pick(&["Never", "IfNeeded"]),
    });
    if rng.chance(30) {
        spec["failurePolicy"] = json!("Ignore");
    }
    let mut steps = prepared(rng);
    steps.extend([mutations::policy("p", spec), mutations::binding("p", json!({}))]);
    mutations::known(&mut steps);
    steps.extend(connections(rng, 5));
    mutations::forgotten(&mut steps, &["p"]);
    steps
}
