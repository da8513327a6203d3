//! Writes: create, update, delete, and what they do to an object.

use serde_json::{Value, json};

use super::kinds::{self, Kind};
use super::mutate;
use crate::rng::Rng;
use crate::sequence::{Payload, Step};

const UNKNOWN_UID: &str = "00000000-0000-0000-0000-000000000001";

fn post(kind: &Kind, body: Value) -> Step {
    Step::with("POST", kind.path.clone(), body)
}

fn put(kind: &Kind, letter: &str, body: Value) -> Step {
    Step::with("PUT", kind.item(letter), body)
}

fn get(kind: &Kind, letter: &str) -> Step {
    Step::new("GET", kind.item(letter))
}

/// Gives back what there is little of.
fn finish(kind: &Kind, mut steps: Vec<Step>) -> Vec<Step> {
    if kind.expensive {
        for letter in ["a", "b", "c"] {
            steps.push(Step::new("DELETE", kind.item(letter)).quiet());
        }
    }
    steps
}

pub fn create(rng: &mut Rng) -> Vec<Step> {
    let kind = kinds::any(rng);
    let mut body = kind.plain("a");
    mutate::metadata(rng, &mut body);
    finish(kind, vec![post(kind, body), get(kind, "a")])
}

pub fn create_errors(rng: &mut Rng) -> Vec<Step> {
    let kind = kinds::any(rng);
    let mut steps = Vec::new();
    match rng.below(6) {
        0 => steps.extend([post(kind, kind.plain("a")), post(kind, kind.plain("a"))]),
        1 => {
            let mut body = kind.plain("a");
            let name = rng.pick(&["A", "a_b", "-", "a..b", "x/y", "é", "a b", "a%b", "1a", "a."]);
            mutate::set(&mut body, "/metadata/name", json!(name));
            steps.push(post(kind, body));
        }
        2 => {
            let mut body = kind.plain("a");
            mutate::set(&mut body, "/metadata/resourceVersion", json!(rng.pick(&["1", "x", "0"])));
            steps.push(post(kind, body));
        }
        3 => {
            let mut body = kind.plain("a");
            mutate::set(&mut body, "/metadata/namespace", json!("elsewhere"));
            steps.push(post(kind, body));
        }
        4 => {
            let mut body = kind.plain("a");
            let key = rng.pick(&["a b", "-a", "a/b/c", "é", "x.y/", "UPPER"]);
            mutate::set(&mut body, "/metadata/labels", json!({key: rng.pick(&["v", "v w", "-", "é"])}));
            mutate::set(&mut body, "/metadata/annotations", json!({key: "v"}));
            steps.push(post(kind, body));
        }
        _ => {
            let mut body = kind.plain("a");
            mutate::set(
                &mut body,
                "/metadata/finalizers",
                json!([rng.pick(&["x", "x/y", "x y/z", "kubernetes"])]),
            );
            mutate::set(&mut body, "/metadata/ownerReferences", json!([{"kind": "X", "name": "y"}]));
            steps.push(post(kind, body));
        }
    }
    finish(kind, steps)
}

pub fn generate_name(rng: &mut Rng) -> Vec<Step> {
    let kind = kinds::of(
        rng,
        &["/api/v1/namespaces/{ns}/configmaps", "/apis/rbac", "/apis/coordination", "/apis/apps"],
    );
    let mut body = kind.plain("a");
    let base =
        rng.pick(&["g-", "some.name-", "a", "waytoolongwaytoolongwaytoolongwaytoolongwaytoolongwaytoolong-"]);
    body["metadata"] = json!({"generateName": format!("{}{base}", if kind.cluster { "{id}-" } else { "" })});
    let step = post(kind, body).capture("name", "/metadata/name");
    vec![step, Step::new("GET", format!("{}/{{name}}", kind.path))]
}

pub fn server_fields(rng: &mut Rng) -> Vec<Step> {
    let kind = kinds::any(rng);
    let mut body = kind.plain("a");
    for _ in 0..3 {
        let (pointer, value) = match rng.below(6) {
            0 => ("/metadata/uid", json!(UNKNOWN_UID)),
            1 => ("/metadata/creationTimestamp", json!("2001-01-01T00:00:00Z")),
            2 => ("/metadata/deletionTimestamp", json!("2001-01-01T00:00:00Z")),
            3 => ("/metadata/generation", json!(7)),
            4 => ("/metadata/selfLink", json!("/x")),
            _ => ("/metadata/deletionGracePeriodSeconds", json!(9)),
        };
        mutate::set(&mut body, pointer, value);
    }
    finish(kind, vec![post(kind, body), get(kind, "a")])
}

pub fn limits(rng: &mut Rng) -> Vec<Step> {
    let size =
        [1_048_570 + rng.below(12), 3_145_700 + rng.below(200), 500_000 + rng.below(100_000)][rng.below(3)];
    let step = Step { body: Payload::Large(size), ..Step::new("POST", "/api/v1/namespaces/{ns}/configmaps") };
    let delete = Step::new("DELETE", "/api/v1/namespaces/{ns}/configmaps/large").quiet();
    vec![step.header("content-type", "application/json"), delete]
}

fn defaults(rng: &mut Rng, prefixes: &[&str]) -> Vec<Step> {
    let kind = kinds::of(rng, prefixes);
    let count = 1 + rng.below(3);
    let body = kind.varied(rng, "a", count);
    let mut steps = vec![post(kind, body)];
    if rng.chance(30) {
        steps.push(get(kind, "a"));
    }
    finish(kind, steps)
}

pub fn defaults_core(rng: &mut Rng) -> Vec<Step> {
    defaults(rng, &["/api/v1/"])
}

pub fn defaults_workloads(rng: &mut Rng) -> Vec<Step> {
    defaults(rng, &["/apis/apps/", "/apis/batch/"])
}

pub fn defaults_others(rng: &mut Rng) -> Vec<Step> {
    const OTHERS: [&str; 9] = [
        "/apis/policy/",
        "/apis/coordination",
        "/apis/discovery",
        "/apis/rbac",
        "/apis/networking",
        "/apis/storage",
        "/apis/scheduling",
        "/apis/autoscaling",
        "/apis/node",
    ];
    defaults(rng, &OTHERS)
}

pub fn canonical(rng: &mut Rng) -> Vec<Step> {
    if rng.chance(70) {
        let kind = kinds::named("persistentvolumes");
        let digits =
            rng.pick(&["1", "0.5", "1.50", "1000", "1024", "0", "1e3", "100", "123456789", ".5", "5.", "+3"]);
        let unit = rng.pick(&[
            "", "m", "k", "Ki", "M", "Mi", "G", "Gi", "T", "Ti", "n", "u", "E", "Ei", "e3", "x", "KB",
        ]);
        let mut body = kind.plain("a");
        mutate::set(&mut body, "/spec/capacity", json!({"storage": format!("{digits}{unit}"), "x.y/z": "1"}));
        return vec![post(kind, body)];
    }
    let kind = kinds::named("leases");
    let mut body = kind.plain("a");
    let day = rng.pick(&["2024-02-29", "2023-02-29", "1970-01-01", "0001-01-01", "9999-12-31", "2024-1-1"]);
    let time = rng.pick(&[
        "T00:00:00",
        "T23:59:59.123456",
        "T12:00:00.000000",
        "t12:00:00.000001",
        " 12:00:00.5",
        "T24:00:00.000000",
    ]);
    let zone = rng.pick(&["Z", "+01:00", "-23:59", "", "z", "+0100"]);
    mutate::set(&mut body, "/spec/renewTime", json!(format!("{day}{time}{zone}")));
    vec![post(kind, body)]
}

pub fn unknown_fields(rng: &mut Rng) -> Vec<Step> {
    let kind = kinds::any(rng);
    let validation = rng.pick(&["Ignore", "Warn", "Strict", "", "Other"]);
    let mut body = kind.plain("a");
    for _ in 0..rng.below(3) {
        mutate::unknown(rng, &mut body);
    }
    let path = if validation.is_empty() {
        kind.path.clone()
    } else {
        format!("{}?fieldValidation={validation}", kind.path)
    };
    let step = if rng.chance(50) {
        let text = mutate::duplicated(rng, &body);
        Step { body: Payload::Text(text), ..Step::new("POST", path) }
            .header("content-type", "application/json")
    } else {
        Step::with("POST", path, body)
    };
    finish(kind, vec![step])
}

pub fn wrong_values(rng: &mut Rng) -> Vec<Step> {
    let kind = kinds::any(rng);
    let mut body = kind.plain("a");
    mutate::harm(rng, &mut body);
    finish(kind, vec![post(kind, body)])
}

pub fn immutable(rng: &mut Rng) -> Vec<Step> {
    let kind = kinds::any(rng);
    let (pointer, value) = kind.change(rng);
    let patch = Step::patch("merge", kind.item("a"), mutate::only(pointer, value));
    finish(kind, vec![post(kind, kind.plain("a")), patch, get(kind, "a")])
}

pub fn conflict(rng: &mut Rng) -> Vec<Step> {
    let kind = kinds::any(rng);
    let mut second = kind.varied(rng, "a", 1);
    mutate::set(&mut second, "/metadata/resourceVersion", json!("{rv}"));
    let labels = json!({"metadata": {"labels": {"x": "z"}}});
    let mut steps = vec![post(kind, kind.plain("a")).capture("rv", "/metadata/resourceVersion")];
    if rng.chance(70) {
        steps.push(Step::patch("merge", kind.item("a"), labels));
    }
    steps.push(put(kind, "a", second));
    finish(kind, steps)
}

pub fn unconditional(rng: &mut Rng) -> Vec<Step> {
    let kind = kinds::any(rng);
    let mut second = kind.plain("a");
    mutate::set(&mut second, "/metadata/labels", json!({"x": "z"}));
    finish(kind, vec![post(kind, kind.plain("a")), put(kind, "a", second)])
}

pub fn mismatch(rng: &mut Rng) -> Vec<Step> {
    let kind = kinds::any(rng);
    let mut body = kind.plain("a");
    let (pointer, value) = match rng.below(4) {
        0 => ("/metadata/uid", json!(UNKNOWN_UID)),
        1 => ("/metadata/name", json!("b")),
        2 => ("/metadata/namespace", json!("other")),
        _ => ("/kind", json!("Other")),
    };
    mutate::set(&mut body, pointer, value);
    finish(kind, vec![post(kind, kind.plain("a")), put(kind, "a", body)])
}

pub fn create_on_update(rng: &mut Rng) -> Vec<Step> {
    let kind = kinds::any(rng);
    let mut body = kind.plain("a");
    if rng.chance(30) {
        mutate::set(&mut body, "/metadata/resourceVersion", json!(rng.pick(&["1", "0", "x"])));
    }
    finish(kind, vec![put(kind, "a", body), get(kind, "a")])
}

pub fn no_op(rng: &mut Rng) -> Vec<Step> {
    let kind = kinds::any(rng);
    let count = rng.below(2);
    let body = kind.varied(rng, "a", count);
    let mut again = body.clone();
    mutate::set(&mut again, "/metadata/resourceVersion", json!("{rv}"));
    let second = match rng.below(4) {
        0 => put(kind, "a", again),
        1 => Step::patch("merge", kind.item("a"), body.clone()),
        2 => Step::patch("strategic", kind.item("a"), body.clone()),
        _ => Step::patch("json", kind.item("a"), json!([])),
    };
    let first = post(kind, body).capture("rv", "/metadata/resourceVersion");
    finish(kind, vec![first, second, get(kind, "a")])
}

pub fn generation(rng: &mut Rng) -> Vec<Step> {
    let kind = kinds::any(rng);
    let mut steps = vec![post(kind, kind.plain("a"))];
    for _ in 0..3 {
        let body = match rng.below(3) {
            0 => json!({"metadata": {"labels": mutate::labels(rng)}}),
            1 => json!({"metadata": {"generation": 9, "annotations": {"a": rng.pick(&["1", "2"])}}}),
            _ => {
                let (pointer, value) = kind.change(rng);
                mutate::only(pointer, value)
            }
        };
        steps.push(Step::patch("merge", kind.item("a"), body));
    }
    finish(kind, steps)
}

/// Kinds with `/status`, and values of it.
const STATUSES: [(&str, &str); 8] = [
    ("pods", r#"{"phase":"Running","podIP":"1.2.3.4","conditions":[{"type":"Ready","status":"True"}]}"#),
    ("deployments", r#"{"replicas":2,"observedGeneration":1,"readyReplicas":1}"#),
    ("replicasets", r#"{"replicas":2,"fullyLabeledReplicas":3}"#),
    ("statefulsets", r#"{"replicas":2,"currentRevision":"x"}"#),
    (
        "poddisruptionbudgets",
        r#"{"currentHealthy":1,"desiredHealthy":1,"disruptionsAllowed":0,"expectedPods":1}"#,
    ),
    ("persistentvolumeclaims", r#"{"phase":"Bound","capacity":{"storage":"1024Mi"}}"#),
    ("nodes", r#"{"capacity":{"cpu":"1000m"},"conditions":[{"type":"Ready","status":"True"}]}"#),
    ("ingresses", r#"{"loadBalancer":{"ingress":[{"ip":"1.2.3.4"}]}}"#),
];

pub fn status(rng: &mut Rng) -> Vec<Step> {
    let (plural, text) = STATUSES[rng.below(STATUSES.len())];
    let kind = kinds::named(plural);
    let status: Value = serde_json::from_str(text).expect("a status");
    let mut whole = kind.varied(rng, "a", 1);
    mutate::set(&mut whole, "/status", status.clone());
    mutate::set(&mut whole, "/metadata/labels", json!({"from": "status"}));
    let path = format!("{}/status", kind.item("a"));
    let write = match rng.below(3) {
        0 => Step::with("PUT", path.clone(), whole.clone()),
        1 => Step::patch(
            "merge",
            path.clone(),
            json!({"status": status, "spec": {"x": 1}, "metadata": {"labels": {"a": "b"}}}),
        ),
        _ => Step::patch("strategic", path.clone(), json!({"status": status})),
    };
    let main = put(kind, "a", whole);
    vec![post(kind, kind.plain("a")), write, Step::new("GET", path), main, get(kind, "a")]
}

pub fn scale(rng: &mut Rng) -> Vec<Step> {
    let kind = kinds::named(rng.pick(&[
        "deployments",
        "replicasets",
        "statefulsets",
        "replicationcontrollers",
        "daemonsets",
    ]));
    let path = format!("{}/scale", kind.item("a"));
    let mut steps = vec![post(kind, kind.plain("a")), Step::new("GET", path.clone())];
    let replicas = [0, 3, 7, -1][rng.below(4)];
    steps.push(match rng.below(4) {
        0 => Step::patch("merge", path.clone(), json!({"spec": {"replicas": replicas}})),
        1 => Step::patch("json", path.clone(), json!([{"op": "replace", "path": "/spec/replicas", "value": replicas}])),
        2 => Step::patch("strategic", path.clone(), json!({"spec": {"replicas": replicas}})),
        _ => {
            let body = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a", "namespace": "{ns}"},
                "spec": {"replicas": replicas}});
            Step::with("PUT", path.clone(), body)
        }
    });
    steps.extend([Step::new("GET", path), get(kind, "a")]);
    steps
}

pub fn dry_run(rng: &mut Rng) -> Vec<Step> {
    let kind = kinds::any(rng);
    let dry = rng.pick(&["All", "All", "All", "all", "None", "", "All&dryRun=All"]);
    let query = |path: String| format!("{path}?dryRun={dry}");
    let body = kind.varied(rng, "a", 1);
    let mut steps = vec![Step::with("POST", query(kind.path.clone()), body), get(kind, "a")];
    steps.push(post(kind, kind.plain("a")));
    let (pointer, value) = kind.change(rng);
    steps.push(match rng.below(3) {
        0 => Step::patch("merge", query(kind.item("a")), mutate::only(pointer, value)),
        1 => Step::new("DELETE", query(kind.item("a"))),
        _ => Step::with("PUT", query(kind.item("a")), kind.plain("a")),
    });
    steps.push(get(kind, "a"));
    finish(kind, steps)
}

pub fn manager(rng: &mut Rng) -> Vec<Step> {
    let kind = kinds::any(rng);
    let long = "m".repeat(126 + rng.below(5));
    let name = [long.as_str(), "m", "", "a%20b", "a%2Fb", "%00", "%C3%A9"][rng.below(7)].to_owned();
    let agent = rng.pick(&["x/1", "x y/1", "kubectl", "a/b/c", "(weird)/1"]);
    let create = Step::with("POST", format!("{}?fieldManager={name}", kind.path), kind.plain("a"))
        .header("user-agent", agent);
    let patch = Step::patch(
        "merge",
        format!("{}?fieldManager={name}", kind.item("a")),
        json!({"metadata": {"labels": {"a": "b"}}}),
    );
    finish(kind, vec![create, patch.header("user-agent", agent)])
}

fn options(rng: &mut Rng) -> Value {
    let mut body = json!({});
    for _ in 0..rng.below(3) {
        let (key, value) = match rng.below(5) {
            0 => ("propagationPolicy", json!(rng.pick(&["Foreground", "Background", "Orphan", "Other"]))),
            1 => ("gracePeriodSeconds", json!([0, 1, 30, -5][rng.below(4)])),
            2 => ("orphanDependents", json!(rng.chance(50))),
            3 => ("preconditions", json!({"uid": rng.pick(&["{uid}", UNKNOWN_UID])})),
            _ => ("dryRun", json!(["All"])),
        };
        body[key] = value;
    }
    body
}

pub fn delete(rng: &mut Rng) -> Vec<Step> {
    let kind = kinds::any(rng);
    let create = post(kind, kind.plain("a")).capture("uid", "/metadata/uid");
    let mut delete = Step::new("DELETE", kind.item("a"));
    if rng.chance(60) {
        delete = Step::with("DELETE", kind.item("a"), options(rng));
    }
    finish(kind, vec![create, delete.clone(), get(kind, "a"), delete])
}

pub fn preconditions(rng: &mut Rng) -> Vec<Step> {
    let kind = kinds::any(rng);
    let create = post(kind, kind.plain("a"))
        .capture("uid", "/metadata/uid")
        .capture("rv", "/metadata/resourceVersion");
    let mut steps = vec![create];
    if rng.chance(50) {
        steps.push(Step::patch("merge", kind.item("a"), json!({"metadata": {"labels": {"x": "z"}}})));
    }
    let mut wanted = json!({});
    if rng.chance(60) {
        wanted["uid"] = json!(rng.pick(&["{uid}", UNKNOWN_UID, ""]));
    }
    if rng.chance(60) {
        wanted["resourceVersion"] = json!(rng.pick(&["{rv}", "1", "x"]));
    }
    steps.push(Step::with("DELETE", kind.item("a"), json!({"preconditions": wanted})));
    steps.push(get(kind, "a"));
    finish(kind, steps)
}

pub fn finalizers(rng: &mut Rng) -> Vec<Step> {
    let kind = kinds::any(rng);
    let mut body = kind.plain("a");
    mutate::set(&mut body, "/metadata/finalizers", json!(["x/a", "x/b"]));
    let mut steps = vec![post(kind, body), Step::new("DELETE", kind.item("a"))];
    if rng.chance(30) {
        // The name is not free before the object is gone.
        steps.push(post(kind, kind.plain("a")));
    }
    for _ in 0..3 {
        let value = match rng.below(5) {
            0 => json!(["x/a"]),
            1 => json!(["x/b", "x/a"]),
            2 => json!([]),
            3 => json!(null),
            _ => json!(["x/a", "x/new"]),
        };
        steps.push(Step::patch("merge", kind.item("a"), json!({"metadata": {"finalizers": value}})));
    }
    steps.push(get(kind, "a"));
    steps.push(Step::patch("merge", kind.item("a"), json!({"metadata": {"finalizers": null}})));
    steps.push(get(kind, "a"));
    finish(kind, steps)
}

pub fn propagation(rng: &mut Rng) -> Vec<Step> {
    let kind = kinds::any(rng);
    let mut steps = vec![post(kind, kind.plain("a"))];
    for _ in 0..2 {
        let policy = rng.pick(&["Foreground", "Background", "Orphan", "Foreground", ""]);
        steps.push(if rng.chance(50) {
            Step::with(
                "DELETE",
                kind.item("a"),
                json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy}),
            )
        } else {
            Step::new("DELETE", format!("{}?propagationPolicy={policy}", kind.item("a")))
        });
    }
    steps.push(get(kind, "a"));
    finish(kind, steps)
}

pub fn collection(rng: &mut Rng) -> Vec<Step> {
    let kind = loop {
        let kind = kinds::any(rng);
        if !kind.cluster {
            break kind;
        }
    };
    let mut steps = Vec::new();
    for letter in ["a", "b", "c"] {
        let mut body = kind.plain(letter);
        mutate::set(&mut body, "/metadata/labels", mutate::labels(rng));
        if rng.chance(20) {
            mutate::set(&mut body, "/metadata/finalizers", json!(["x/a"]));
        }
        steps.push(post(kind, body));
    }
    let query = rng.pick(&[
        "",
        "?labelSelector=app%3Da",
        "?labelSelector=app",
        "?fieldSelector=metadata.name%3Db",
        "?limit=1",
        "?dryRun=All",
    ]);
    steps.push(Step::new("DELETE", format!("{}{query}", kind.path)));
    steps.push(Step::new("GET", kind.path.clone()));
    finish(kind, steps)
}

pub fn namespaces(rng: &mut Rng) -> Vec<Step> {
    let name = "{id}-n";
    let item = format!("/api/v1/namespaces/{name}");
    let mut body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    mutate::metadata(rng, &mut body);
    let inside = || {
        Step::with(
            "POST",
            format!("/api/v1/namespaces/{name}/configmaps"),
            json!({"metadata": {"name": "a"}}),
        )
    };
    let mut steps = vec![Step::with("POST", "/api/v1/namespaces", body), inside()];
    for _ in 0..4 {
        steps.push(match rng.below(6) {
            0 => Step::new("DELETE", item.clone()),
            1 => Step::patch("merge", item.clone(), json!({"metadata": {"labels": mutate::labels(rng)}})),
            2 => Step::patch("merge", item.clone(), json!({"spec": {"finalizers": []}})),
            3 => Step::with("PUT", format!("{item}/finalize"), json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": {"finalizers": []}})),
            4 => Step::with("PUT", format!("{item}/status"), json!({"metadata": {"name": name}, "status": {"phase": "Active"}})),
            _ => Step::with("POST", format!("/api/v1/namespaces/{name}/configmaps"), json!({"metadata": {"generateName": "g-"}})),
        });
    }
    steps.extend([Step::new("GET", item), inside()]);
    steps
}

pub fn events(rng: &mut Rng) -> Vec<Step> {
    let old = kinds::named("events");
    let new_path = "/apis/events.k8s.io/v1/namespaces/{ns}/events";
    let mut steps = Vec::new();
    if rng.chance(50) {
        steps.push(post(old, old.varied(rng, "a", 2)));
    } else {
        let mut body = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "a"},
            "eventTime": "2024-01-02T03:04:05.000006Z", "reportingController": "x.y/z", "reportingInstance": "i",
            "action": "Do", "reason": "R", "regarding": {"kind": "Pod", "name": "p", "namespace": "{ns}"}, "note": "m", "type": "Normal"});
        for _ in 0..rng.below(2) {
            mutate::harm(rng, &mut body);
        }
        steps.push(Step::with("POST", new_path, body));
    }
    steps.push(Step::new("GET", format!("{new_path}/a")));
    steps.push(get(old, "a"));
    steps.push(Step::patch("merge", old.item("a"), json!({"count": 5, "message": "n"})));
    steps.push(Step::patch(
        "strategic",
        format!("{new_path}/a"),
        json!({"series": {"count": 2, "lastObservedTime": "2024-01-02T03:04:05.000006Z"}}),
    ));
    steps.push(Step::new("GET", "/api/v1/namespaces/{ns}/events?fieldSelector=involvedObject.name%3Dp"));
    steps
}
