//! What stands for a part of an object, and versions of one resource: policies and webhooks are asked about these, too.

use serde_json::{Value, json};

use super::webhooks::{Kind, configured, hook, released};
use super::{binding, forgotten, here, known, policy};
use crate::rng::Rng;
use crate::sequence::Step;

const PODS: &str = "/api/v1/namespaces/{ns}/pods";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/{ns}/deployments";

/// What a policy tells of a request, as warnings that are always there.
const TOLD: [&str; 4] = [
    "request.kind.kind + ' ' + request.kind.group + '/' + request.kind.version + ' asked as ' + request.requestKind.version",
    "request.resource.resource + ' ' + request.resource.version + ' asked as ' + request.requestResource.version",
    "request.operation + ' ' + request.name + (has(request.subResource) ? '/' + request.subResource : '')",
    "object == null ? 'nothing' : (has(object.kind) ? object.kind + ' ' + object.apiVersion : 'no kind')",
];

/// What is told of the object besides.
const SEEN: [&str; 4] = [
    "has(object.spec) && has(object.spec.replicas) ? string(object.spec.replicas) : 'no replicas'",
    "has(object.spec) && has(object.spec.metrics) ? 'has metrics' : 'has none'",
    "has(object.note) ? 'note ' + object.note : (has(object.message) ? 'message ' + object.message : 'neither')",
    "oldObject == null ? 'new' : 'old'",
];

fn telling(rng: &mut Rng, rules: Value, match_policy: &str) -> Vec<Step> {
    let sources = TOLD.into_iter().chain([rng.pick(&SEEN)]);
    let validations: Value = sources
        .map(|source| json!({"expression": "false", "message": "it failed", "messageExpression": source}))
        .collect();
    let constraints =
        json!({"namespaceSelector": here(), "resourceRules": rules, "matchPolicy": match_policy});
    let spec = json!({"matchConstraints": constraints, "validations": validations});
    let action = if rng.chance(75) { "Warn" } else { "Deny" };
    vec![policy("p", spec), binding("p", json!({"validationActions": [action]}))]
}

/// A Deployment, a pod and an account.
fn prepared() -> Vec<Step> {
    let containers = json!([{"name": "c", "image": "i"}]);
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": containers}});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template},
    });
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers}});
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "s"}});
    vec![
        Step::with("POST", DEPLOYMENTS, deployment).quiet(),
        Step::with("POST", PODS, pod).quiet(),
        Step::with("POST", "/api/v1/namespaces/{ns}/serviceaccounts", account).quiet(),
    ]
}

fn rule(rng: &mut Rng) -> Value {
    let resources: [&[&str]; 5] = [
        &["*/*"],
        &["deployments/status", "pods/status", "*/scale"],
        &["deployments/scale", "pods/binding"],
        &["pods/*", "serviceaccounts/*", "deployments/*"],
        &["*/scale", "*/eviction", "*/token"],
    ];
    let operations: [&[&str]; 3] = [&["*"], &["CREATE"], &["UPDATE"]];
    json!({
        "apiGroups": ["*"], "apiVersions": ["*"], "resources": rng.pick(&resources), "operations": rng.pick(&operations),
        "scope": "Namespaced",
    })
}

fn requests(rng: &mut Rng, count: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    for _ in 0..count {
        let query = rng.pick(&["", "?dryRun=All"]);
        let scale = format!("{DEPLOYMENTS}/d/scale");
        steps.push(match rng.below(9) {
            6 => {
                let status = json!({"status": {"replicas": rng.below(4), "observedGeneration": 1}});
                Step::patch("merge", format!("{DEPLOYMENTS}/d/status{query}"), status)
            }
            7 => {
                let metadata = json!({"labels": {"x": "y"}});
                let status = json!({"status": {"phase": rng.pick(&["Running", "Failed"])}, "metadata": metadata});
                Step::patch("merge", format!("{PODS}/p/status{query}"), status)
            }
            0 | 8 => Step::patch("merge", format!("{scale}{query}"), json!({"spec": {"replicas": rng.below(4)}})),
            1 => {
                let metadata = json!({"name": "d", "namespace": "{ns}"});
                let body = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata, "spec": {"replicas": 2}});
                Step::with("PUT", format!("{scale}{query}"), body)
            }
            2 | 3 => {
                let target = json!({"apiVersion": "v1", "kind": "Node", "name": rng.pick(&["n", ""])});
                let body = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": target});
                Step::with("POST", format!("{PODS}/p/binding{query}"), body)
            }
            4 => {
                let body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
                Step::with("POST", format!("{PODS}/p/eviction?dryRun=All"), body)
            }
            _ => {
                // A token is another one each time, so that only what is refused is compared.
                let spec = json!({"audiences": ["a"], "expirationSeconds": 60});
                let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
                Step::with("POST", "/api/v1/namespaces/{ns}/serviceaccounts/s/token?dryRun=All", body)
            }
        });
    }
    steps
}

/// Policies about Scales, Bindings, Evictions, TokenRequests and statuses.
pub fn parts(rng: &mut Rng) -> Vec<Step> {
    let mut steps = prepared();
    let rules = json!([rule(rng)]);
    steps.extend(telling(rng, rules, "Equivalent"));
    known(&mut steps);
    steps.extend(requests(rng, 3));
    forgotten(&mut steps, &["p"]);
    steps
}

/// Webhooks about the same.
pub fn hooked(rng: &mut Rng) -> Vec<Step> {
    let kind = if rng.chance(60) { Kind::Mutating } else { Kind::Validating };
    let path =
        rng.pick(&["/warn-told", "/warn-told", "/label", "/replicas", "/tell", "/deny-message", "/data"]);
    let mut asked = hook("asked", path);
    asked["rules"] = json!([rule(rng)]);
    if rng.chance(30) {
        asked["objectSelector"] = json!({});
    }
    if rng.chance(30) {
        let condition = rng.pick(&[
            "has(request.subResource) && request.subResource == 'scale'",
            "object.kind == 'Scale' || object.kind == 'Binding'",
            "oldObject != null",
            "object.spec.replicas > 1",
        ]);
        asked["matchConditions"] = json!([{"name": "c", "expression": condition}]);
    }
    if rng.chance(20) {
        asked["failurePolicy"] = json!("Ignore");
    }
    let mut hooks = vec![asked];
    if kind == Kind::Mutating && rng.chance(40) {
        let mut second = hook("second", "/warn-told");
        second["rules"] = json!([rule(rng)]);
        hooks.push(second);
    }
    let mut steps = prepared();
    steps.extend(configured(kind, "c", hooks));
    steps.extend(requests(rng, 4));
    steps.push(released(kind, "c"));
    steps
}

/// Rules that name another version than the one that is asked for.
pub fn versions(rng: &mut Rng) -> Vec<Step> {
    let match_policy = rng.pick(&["Equivalent", "Equivalent", "Exact"]);
    let (group, version, resource) = rng.pick(&[
        &("autoscaling", "v1", "horizontalpodautoscalers"),
        &("autoscaling", "v2", "horizontalpodautoscalers"),
        &("autoscaling", "*", "*"),
        &("", "v1", "events"),
        &("events.k8s.io", "v1", "events"),
        &("*", "v1", "events"),
    ]);
    let rule =
        json!({"apiGroups": [group], "apiVersions": [version], "resources": [resource], "operations": ["*"]});
    let mut steps = telling(rng, json!([rule]), match_policy);
    known(&mut steps);
    for _ in 0..4 {
        let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"});
        let (path, body) = match rng.below(4) {
            0 => (
                "/apis/autoscaling/v1/namespaces/{ns}/horizontalpodautoscalers",
                json!({
                    "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"},
                    "spec": {"scaleTargetRef": target, "maxReplicas": 3, "targetCPUUtilizationPercentage": 50},
                }),
            ),
            1 => {
                let metric = json!({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}});
                (
                    "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers",
                    json!({
                        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"},
                        "spec": {"scaleTargetRef": target, "maxReplicas": 3, "metrics": [metric]},
                    }),
                )
            }
            2 => (
                "/api/v1/namespaces/{ns}/events",
                json!({
                    "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "reason": "r", "message": "m",
                    "type": "Normal", "involvedObject": {"kind": "Pod", "namespace": "{ns}", "name": "p"},
                }),
            ),
            _ => (
                "/apis/events.k8s.io/v1/namespaces/{ns}/events",
                json!({
                    "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "f"}, "reason": "r",
                    "note": "m", "type": "Normal", "action": "a", "reportingController": "c", "reportingInstance": "i",
                    "eventTime": "2026-01-01T00:00:00.000000Z", "regarding": {"kind": "Pod", "namespace": "{ns}", "name": "p"},
                }),
            ),
        };
        let name = body["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        steps.push(match rng.chance(70) {
            true => Step::with("POST", path, body),
            false => Step::new("DELETE", format!("{path}/{name}")),
        });
    }
    forgotten(&mut steps, &["p"]);
    steps
}
