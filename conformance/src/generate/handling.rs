//! What is put to pods and others besides themselves: evictions, bindings, debuggers, sizes, tokens, the end of namespaces.

use serde_json::{Value, json};

use crate::rng::Rng;
use crate::sequence::Step;

const PODS: &str = "/api/v1/namespaces/{ns}/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets";
const ACCOUNTS: &str = "/api/v1/namespaces/{ns}/serviceaccounts";

fn pod(name: &str, spec: Value) -> Value {
    let mut body = json!({"metadata": {"name": name, "labels": {"app": name}}, "spec": spec});
    body["spec"]["terminationGracePeriodSeconds"] = json!(0);
    body
}

fn plain(name: &str) -> Value {
    pod(name, json!({"containers": [{"name": "a", "image": "x"}]}))
}

/// A budget with the status that its controller would have written.
fn budget(rng: &mut Rng, name: &str, app: &str) -> Vec<Step> {
    let mut spec = json!({"selector": {"matchLabels": {"app": app}}});
    spec[rng.pick(&["minAvailable", "maxUnavailable"])] = json!(1);
    if rng.chance(40) {
        spec["unhealthyPodEvictionPolicy"] = json!(rng.pick(&["AlwaysAllow", "IfHealthyBudget"]));
    }
    let mut status = json!({
        "disruptionsAllowed": rng.below(3), "currentHealthy": rng.below(3), "desiredHealthy": rng.below(3),
        "expectedPods": 2, "observedGeneration": if rng.chance(85) { 1 } else { 0 },
    });
    if rng.chance(40) {
        let (reason, message) =
            [("SyncFailed", "found no controller"), ("InsufficientPods", ""), ("Other", "text")]
                [rng.below(3)];
        status["conditions"] = json!([{
            "type": "DisruptionAllowed", "status": rng.pick(&["True", "False"]), "reason": reason, "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]);
    }
    vec![
        Step::with("POST", BUDGETS, json!({"metadata": {"name": name}, "spec": spec})),
        Step::patch("merge", format!("{BUDGETS}/{name}/status"), json!({"status": status})),
    ]
}

fn eviction(rng: &mut Rng, name: &str) -> Step {
    let mut body = json!({
        "apiVersion": if rng.chance(85) { "policy/v1" } else { "policy/v1beta1" }, "kind": "Eviction",
        "metadata": {"name": name, "namespace": "{ns}"},
    });
    if rng.chance(40) {
        let options = [
            json!({"gracePeriodSeconds": 0}),
            json!({"gracePeriodSeconds": -1}),
            json!({"dryRun": ["All"]}),
            json!({"preconditions": {"uid": "{uid}"}}),
            json!({"preconditions": {"uid": "another"}}),
            json!({"preconditions": {"resourceVersion": "1"}}),
            json!({"propagationPolicy": "Sometimes"}),
            json!({"dryRun": ["Some"]}),
            json!({"ignoreStoreReadErrorWithClusterBreakingPotential": true}),
        ];
        body["deleteOptions"] = options[rng.below(options.len())].clone();
    }
    if rng.chance(6) {
        body["metadata"]["name"] = json!("other");
    }
    let query = rng.pick(&["", "", "", "?dryRun=All"]);
    Step::with("POST", format!("{PODS}/{name}/eviction{query}"), body)
}

/// Pods in all states, with budgets and without, and evictions of them.
pub fn evictions(rng: &mut Rng) -> Vec<Step> {
    let mut steps = Vec::new();
    for name in ["p0", "p1"] {
        let mut body = plain(name);
        if rng.chance(80) {
            body["spec"]["nodeName"] = json!("somewhere");
        }
        let step = Step::with("POST", PODS, body);
        steps.push(if name == "p0" { step.capture("uid", "/metadata/uid") } else { step });
        let phase = rng.pick(&["Pending", "Running", "Running", "Succeeded", "Failed"]);
        let ready = rng.pick(&["True", "False"]);
        let status = json!({"status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]}});
        steps.push(Step::patch("merge", format!("{PODS}/{name}/status"), status));
    }
    if rng.chance(85) {
        steps.extend(budget(rng, "b0", "p0"));
    }
    if rng.chance(15) {
        steps.extend(budget(rng, "b1", "p0"));
    }
    for _ in 0..3 {
        let name = rng.pick(&["p0", "p0", "p0", "p1", "none"]);
        steps.push(eviction(rng, name));
        steps.push(Step::new("GET", format!("{PODS}/p0")));
        steps.push(Step::new("GET", format!("{BUDGETS}/b0/status")));
    }
    steps
}

/// Waits until the nodes so far are known: the real server hears of them a little later, one after the other, so a pod
/// that is told where the last of them is comes after all of them.
fn nodes_known(steps: &mut Vec<Step>) {
    const ZONE: &str = "topology.kubernetes.io/zone";
    let node = json!({"metadata": {"name": "{id}-mark", "labels": {ZONE: "mark"}}});
    let mut body = plain("mark");
    body["spec"]["nodeName"] = json!("{id}-mark");
    let told = format!("/metadata/labels/{}", ZONE.replace('/', "~1"));
    let mark = Step::with("POST", format!("{PODS}?dryRun=All"), body).until_told(201, &told, json!("mark"));
    steps.push(Step::with("POST", "/api/v1/nodes", node).quiet());
    steps.push(mark.quiet());
    steps.push(Step::new("DELETE", "/api/v1/nodes/{id}-mark").quiet());
}

/// Pods that are given to nodes.
pub fn bindings(rng: &mut Rng) -> Vec<Step> {
    let mut body = plain("p0");
    if rng.chance(20) {
        body["spec"]["schedulingGates"] = json!([{"name": "example.com/gate"}]);
    }
    let labels =
        json!({"topology.kubernetes.io/zone": "z1", "topology.kubernetes.io/region": "r1", "other": "x"});
    let mut steps = vec![
        Step::with("POST", "/api/v1/nodes", json!({"metadata": {"name": "{id}-n", "labels": labels}})),
        Step::with("POST", PODS, body).capture("uid", "/metadata/uid"),
    ];
    nodes_known(&mut steps);
    for _ in 0..3 {
        let mut binding = json!({"metadata": {"name": "p0"}, "target": {"kind": "Node", "name": "{id}-n"}});
        match rng.below(8) {
            0 => binding["target"] = json!({"kind": "Pod", "name": "x"}),
            1 => binding["target"] = json!({"kind": "Node"}),
            2 => binding["metadata"]["uid"] = json!(rng.pick(&["{uid}", "another"])),
            3 => binding["metadata"]["annotations"] = json!({"a": "b"}),
            4 => binding["metadata"]["labels"] = json!({"c": "d", "topology.kubernetes.io/zone": "mine"}),
            5 => binding["metadata"]["name"] = json!("other"),
            _ => {}
        }
        let path = if rng.chance(80) {
            format!("{PODS}/p0/binding{}", rng.pick(&["", "", "?dryRun=All"]))
        } else {
            "/api/v1/namespaces/{ns}/bindings".to_owned()
        };
        steps.push(Step::with("POST", path, binding));
        steps.push(Step::new("GET", format!("{PODS}/p0")));
    }
    let mut born = plain("p1");
    born["spec"]["nodeName"] = json!("{id}-n");
    steps.push(Step::with("POST", PODS, born));
    steps.push(Step::new("DELETE", "/api/v1/nodes/{id}-n"));
    steps
}

fn some_resources(rng: &mut Rng) -> Value {
    let mut out = json!({});
    for (name, amounts) in [("cpu", ["100m", "200m", "1"]), ("memory", ["64Mi", "128Mi", "1Gi"])] {
        if rng.chance(75) {
            let at = rng.below(3);
            out["requests"][name] = json!(amounts[rng.below(at + 1)]);
            out["limits"][name] = json!(amounts[at]);
        }
    }
    if rng.chance(8) {
        out["requests"]["ephemeral-storage"] = json!("1Gi");
    }
    out
}

/// Pods that are resized while they are there.
pub fn sizes(rng: &mut Rng) -> Vec<Step> {
    let mut spec = json!({"containers": [{"name": "a", "image": "x", "resources": some_resources(rng)}]});
    if rng.chance(40) {
        spec["containers"][0]["resizePolicy"] = json!([
            {"resourceName": rng.pick(&["cpu", "memory"]), "restartPolicy": rng.pick(&["NotRequired", "RestartContainer"])},
        ]);
    }
    if rng.chance(35) {
        let mut first = json!({"name": "i", "image": "x", "resources": some_resources(rng)});
        if rng.chance(60) {
            first["restartPolicy"] = json!("Always");
        }
        spec["initContainers"] = json!([first]);
    }
    if rng.chance(20) {
        spec["resources"] = some_resources(rng);
    }
    if rng.chance(10) {
        spec["os"] = json!({"name": "windows"});
    }
    let node = json!({"metadata": {"name": "{id}-n"}, "status": {
        "allocatable": {"cpu": rng.pick(&["500m", "4"]), "memory": rng.pick(&["100Mi", "8Gi"])},
        "capacity": {"cpu": "4", "memory": "8Gi"},
    }});
    let bound = rng.chance(50);
    if bound {
        spec["nodeName"] = json!(rng.pick(&["{id}-n", "{id}-n", "{id}-none"]));
    }
    let mut steps = Vec::new();
    if bound {
        steps.push(Step::with("POST", "/api/v1/nodes", node));
        nodes_known(&mut steps);
    }
    steps.push(Step::with("POST", PODS, pod("p0", spec)));
    for _ in 0..4 {
        let patch = match rng.below(9) {
            0 => json!({"spec": {"initContainers": [{"name": "i", "resources": some_resources(rng)}]}}),
            1 => json!({"spec": {"containers": [{"name": "a", "image": "y"}]}}),
            2 => json!({"spec": {"resources": some_resources(rng)}}),
            3 => {
                json!({"metadata": {"labels": {"x": "y"}}, "spec": {"containers": [{"name": "a", "resources": some_resources(rng)}]}})
            }
            4 => {
                json!({"spec": {"containers": [{"name": "b", "image": "x", "resources": some_resources(rng)}]}})
            }
            5 => json!({"spec": {"containers": [{"name": "a", "resources": {"limits": null}}]}}),
            _ => json!({"spec": {"containers": [{"name": "a", "resources": some_resources(rng)}]}}),
        };
        let path = format!("{PODS}/p0/{}", rng.pick(&["resize", "resize", "resize", "resize?dryRun=All"]));
        steps.push(Step::patch("strategic", path, patch));
    }
    if rng.chance(30) {
        let patch = json!({"spec": {"containers": [{"name": "a", "resources": some_resources(rng)}]}});
        steps.push(Step::patch("strategic", format!("{PODS}/p0"), patch));
    }
    steps.push(Step::new("GET", format!("{PODS}/p0/resize")));
    if bound {
        steps.push(Step::new("DELETE", "/api/v1/nodes/{id}-n"));
    }
    steps
}

/// Containers that are added to look into a pod.
pub fn debuggers(rng: &mut Rng) -> Vec<Step> {
    let mut steps = vec![Step::with("POST", PODS, plain("p0"))];
    for index in 0..4 {
        let mut debugger = json!({"name": rng.pick(&["d0", "d1", "a"]), "image": "busybox"});
        match rng.below(10) {
            0 => debugger["ports"] = json!([{"containerPort": 80}]),
            1 => debugger["resources"] = json!({"limits": {"cpu": "1"}}),
            2 => debugger["targetContainerName"] = json!(rng.pick(&["a", "none"])),
            3 => debugger["livenessProbe"] = json!({"exec": {"command": ["x"]}}),
            4 => debugger["image"] = json!(""),
            5 => debugger["command"] = json!(["sh"]),
            6 => debugger["lifecycle"] = json!({"preStop": {"exec": {"command": ["x"]}}}),
            _ => {}
        }
        let patch = json!({"spec": {"ephemeralContainers": [debugger]}});
        steps.push(match rng.below(5) {
            0 => Step::patch("merge", format!("{PODS}/p0/ephemeralcontainers"), patch),
            1 => Step::patch("strategic", format!("{PODS}/p0"), patch),
            _ => Step::patch(
                "strategic",
                format!("{PODS}/p{}/ephemeralcontainers", rng.below(8) / 7 + index / 9),
                patch,
            ),
        });
    }
    steps.push(Step::new("GET", format!("{PODS}/p0/ephemeralcontainers")));
    steps
}

/// Tokens that are asked for.
pub fn tokens(rng: &mut Rng) -> Vec<Step> {
    let mut steps = vec![
        Step::with("POST", ACCOUNTS, json!({"metadata": {"name": "sam"}})).capture("uid", "/metadata/uid"),
        Step::with("POST", "/api/v1/namespaces/{ns}/secrets", json!({"metadata": {"name": "s"}}))
            .capture("secret", "/metadata/uid"),
        Step::with("POST", PODS, plain("p0")),
    ];
    for index in 0..4 {
        let mut spec = json!({});
        if rng.chance(50) {
            spec["expirationSeconds"] = json!([0, 1, 599, 600, 3600, 4_294_967_297_i64][rng.below(6)]);
        }
        if rng.chance(40) {
            spec["audiences"] =
                [json!(["a"]), json!(["a", "b"]), json!([]), json!([""])][rng.below(4)].clone();
        }
        if rng.chance(50) {
            let objects = [
                json!({"kind": "Secret", "apiVersion": "v1", "name": "s"}),
                json!({"kind": "Secret", "apiVersion": "v1", "name": "s", "uid": "{secret}"}),
                json!({"kind": "Secret", "apiVersion": "v1", "name": "s", "uid": "another"}),
                json!({"kind": "Pod", "apiVersion": "v1", "name": "p0"}),
                json!({"kind": "Pod", "apiVersion": "v1", "name": "none"}),
                json!({"kind": "Node", "apiVersion": "v1", "name": "none"}),
                json!({"kind": "ConfigMap", "apiVersion": "v1", "name": "x"}),
                json!({"kind": "Secret", "apiVersion": "v1"}),
            ];
            spec["boundObjectRef"] = objects[rng.below(objects.len())].clone();
        }
        let mut body = json!({"spec": spec});
        match rng.below(8) {
            0 => body["metadata"] = json!({"name": rng.pick(&["sam", "other"])}),
            1 => body["metadata"] = json!({"uid": rng.pick(&["{uid}", "another"])}),
            2 => body["metadata"] = json!({"namespace": rng.pick(&["{ns}", "other"])}),
            _ => {}
        }
        let name = rng.pick(&["sam", "sam", "sam", "none"]);
        let query = rng.pick(&["", "", "?dryRun=All"]);
        let step = Step::with("POST", format!("{ACCOUNTS}/{name}/token{query}"), body);
        steps.push(step.capture(&format!("token{index}"), "/status/token"));
    }
    steps
}

/// Namespaces that are let go.
pub fn endings(rng: &mut Rng) -> Vec<Step> {
    const OWN: &str = "/api/v1/namespaces/{id}-f";
    let mut steps = vec![Step::with("POST", "/api/v1/namespaces", json!({"metadata": {"name": "{id}-f"}}))];
    let finalize = |finalizers: Value| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "{id}-f"}, "spec": {"finalizers": finalizers}});
    if rng.chance(50) {
        steps.push(Step::with(
            "PUT",
            format!("{OWN}/finalize"),
            finalize(json!(["kubernetes", "example.com/x"])),
        ));
    }
    if rng.chance(30) {
        steps.push(Step::with("PUT", format!("{OWN}/finalize"), finalize(json!(["nonsense"]))));
    }
    if rng.chance(40) {
        let patch = json!({"metadata": {"finalizers": [rng.pick(&["example.com/y", "short"])]}});
        steps.push(Step::patch("merge", OWN, patch));
    }
    steps.push(Step::new("DELETE", OWN));
    let map = json!({"metadata": {"name": "late"}});
    steps.push(Step::with("POST", format!("{OWN}/configmaps"), map).until(403));
    if rng.chance(50) {
        steps.push(Step::with("PUT", OWN, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "{id}-f", "labels": {"a": "b"}}})));
    }
    let conditions = json!({"status": {"phase": rng.pick(&["Terminating", "Active"])}});
    steps.push(Step::patch("merge", format!("{OWN}/status"), conditions));
    steps.push(Step::with("PUT", format!("{OWN}/finalize"), finalize(json!([]))));
    let free = json!({"metadata": {"finalizers": null}});
    steps.push(Step::patch("merge", OWN, free));
    steps.push(Step::new("DELETE", OWN));
    steps.push(Step::new("GET", OWN));
    for name in ["default", "kube-system", "kube-public"] {
        steps.push(Step::new("DELETE", format!("/api/v1/namespaces/{name}?dryRun=All")));
    }
    steps
}
