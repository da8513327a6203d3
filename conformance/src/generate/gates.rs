//! The gates before writes: limit ranges, quotas, priorities and classes.
//!
//! The real server hears of what its gates look at a little after it is written. Limit ranges and quotas carry a mark, which is
//! asked for until it counts.

use serde_json::{Map, Value, json};

use crate::rng::Rng;
use crate::sequence::Step;

const PODS: &str = "/api/v1/namespaces/{ns}/pods";
const CLAIMS: &str = "/api/v1/namespaces/{ns}/persistentvolumeclaims";
const SERVICES: &str = "/api/v1/namespaces/{ns}/services";
const QUOTA: &str = "/api/v1/namespaces/{ns}/resourcequotas";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases";

const CPU: [&str; 7] = ["50m", "100m", "250m", "500m", "1", "1500m", "2"];
const MEMORY: [&str; 6] = ["32Mi", "64Mi", "128Mi", "200M", "1Gi", "2Gi"];

fn amount(rng: &mut Rng, name: &str) -> &'static str {
    match name {
        "cpu" => rng.pick(&CPU),
        "memory" => rng.pick(&MEMORY),
        "ephemeral-storage" => rng.pick(&["1Gi", "2Gi"]),
        _ => rng.pick(&["1", "2", "3"]),
    }
}

/// Requests and limits, or some of them.
fn resources(rng: &mut Rng) -> Value {
    let mut out = json!({});
    for name in ["cpu", "memory"] {
        if rng.chance(70) {
            out["limits"][name] = json!(amount(rng, name));
        }
        if rng.chance(60) {
            out["requests"][name] = json!(amount(rng, name));
        }
    }
    if rng.chance(10) {
        out["requests"]["ephemeral-storage"] = json!(amount(rng, "ephemeral-storage"));
    }
    if rng.chance(10) {
        let count = rng.pick(&["1", "2"]);
        out["limits"]["example.com/device"] = json!(count);
        out["requests"]["example.com/device"] = json!(count);
    }
    out
}

fn container(rng: &mut Rng, name: &str) -> Value {
    let mut container = json!({"name": name, "image": "nginx"});
    if rng.chance(85) {
        container["resources"] = resources(rng);
    }
    container
}

fn pod(rng: &mut Rng, name: &str) -> Value {
    let mut spec = json!({"containers": [container(rng, "a")]});
    if rng.chance(35) {
        let another = container(rng, "b");
        spec["containers"].as_array_mut().expect("a list").push(another);
    }
    if rng.chance(30) {
        let mut first = container(rng, "i");
        if rng.chance(40) {
            first["restartPolicy"] = json!("Always");
        }
        spec["initContainers"] = json!([first]);
    }
    if rng.chance(15) {
        spec["resources"] =
            json!({"requests": {"cpu": amount(rng, "cpu")}, "limits": {"memory": amount(rng, "memory")}});
    }
    if rng.chance(20) {
        spec["activeDeadlineSeconds"] = json!(30);
    }
    json!({"metadata": {"name": name}, "spec": spec})
}

fn claim(rng: &mut Rng, name: &str) -> Value {
    let mut claim = json!({"metadata": {"name": name}, "spec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": rng.pick(&["1Gi", "2Gi", "5Gi", "10Gi", "1500M", "1234567m"])}},
    }});
    if rng.chance(50) {
        claim["spec"]["storageClassName"] = json!(rng.pick(&["fast", "slow", ""]));
    }
    if rng.chance(10) {
        claim["metadata"]["annotations"] = json!({"volume.beta.kubernetes.io/storage-class": "fast"});
    }
    claim
}

/// One resource each: the real server tells faults of several in any order.
fn limit(rng: &mut Rng, kind: &str) -> Value {
    let mut limit = json!({"type": kind});
    for field in ["min", "max", "default", "defaultRequest", "maxLimitRequestRatio"] {
        let of_containers = field.starts_with("default");
        if rng.chance(if of_containers { 45 } else { 35 }) && (kind == "Container" || !of_containers) {
            let name = rng.pick(&["cpu", "memory"]);
            let amount = match field {
                "maxLimitRequestRatio" => rng.pick(&["1", "2", "4", "1500m"]),
                "min" if name == "cpu" => rng.pick(&["50m", "100m"]),
                "min" => rng.pick(&["32Mi", "64Mi"]),
                "max" if name == "cpu" => rng.pick(&["500m", "1", "2"]),
                "max" => rng.pick(&["128Mi", "1Gi"]),
                _ => amount(rng, name),
            };
            limit[field] = json!({name: amount});
        }
    }
    limit
}

/// A limit range, known when the gate keeps its mark: no claim is larger than 100Gi.
fn limit_range(rng: &mut Rng) -> Vec<Step> {
    let mut limits = vec![json!({"type": "PersistentVolumeClaim", "max": {"storage": "100Gi"}})];
    if rng.chance(40) {
        limits[0]["min"] = json!({"storage": "2Gi"});
    }
    if rng.chance(80) {
        limits.push(limit(rng, "Container"));
    }
    if rng.chance(50) {
        limits.push(limit(rng, "Pod"));
    }
    let marked = json!({"metadata": {"name": "mark"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "200Gi"}},
    }});
    vec![
        Step::with(
            "POST",
            "/api/v1/namespaces/{ns}/limitranges",
            json!({"metadata": {"name": "range"}, "spec": {"limits": limits}}),
        ),
        Step::with("POST", format!("{CLAIMS}?dryRun=All"), marked).until(403).quiet(),
    ]
}

/// Pods and claims that a limit range fills, allows or refuses.
pub fn limits(rng: &mut Rng) -> Vec<Step> {
    let mut steps = limit_range(rng);
    for index in 0..4 {
        let name = format!("p{index}");
        steps.push(match rng.below(6) {
            0 => Step::with("POST", CLAIMS, claim(rng, &name)),
            1 => Step::with("POST", format!("{PODS}?dryRun=All"), pod(rng, &name)),
            2 => {
                let mut unnamed = pod(rng, "");
                unnamed["metadata"] = json!({"generateName": "some-"});
                Step::with("POST", format!("{PODS}?dryRun=All"), unnamed)
            }
            _ => Step::with("POST", PODS, pod(rng, &name)),
        });
    }
    let resized = json!({"spec": {"containers": [{"name": "a", "resources": resources(rng)}]}});
    steps.push(Step::patch("strategic", format!("{PODS}/p{}/resize", rng.below(4)), resized));
    let labelled = json!({"metadata": {"labels": {"x": "y"}}});
    steps.push(Step::patch("merge", format!("{PODS}/p{}", rng.below(4)), labelled));
    steps
}

/// What quotas are about.
const HARD: [&str; 25] = [
    "pods",
    "count/pods",
    "cpu",
    "memory",
    "requests.cpu",
    "requests.memory",
    "limits.cpu",
    "limits.memory",
    "requests.ephemeral-storage",
    "requests.example.com/device",
    "services",
    "services.nodeports",
    "services.loadbalancers",
    "count/services",
    "persistentvolumeclaims",
    "requests.storage",
    "fast.storageclass.storage.k8s.io/requests.storage",
    "fast.storageclass.storage.k8s.io/persistentvolumeclaims",
    "count/persistentvolumeclaims",
    "configmaps",
    "count/configmaps",
    "count/deployments.apps",
    "secrets",
    "resourcequotas",
    "count/roles.rbac.authorization.k8s.io",
];

fn hard_amount(rng: &mut Rng, name: &str) -> &'static str {
    match name {
        _ if name.ends_with("cpu") => rng.pick(&["500m", "1", "2", "3500m"]),
        _ if name.ends_with("memory") => rng.pick(&["256Mi", "1Gi", "2G", "4Gi"]),
        _ if name.ends_with("storage") => rng.pick(&["2Gi", "6Gi", "20Gi"]),
        _ => rng.pick(&["0", "1", "2", "3", "10"]),
    }
}

/// A quota whose status is written, as the controller would; known when the gate keeps its mark: no leases.
fn quota(rng: &mut Rng, names: &[&str], spec: Value) -> Vec<Step> {
    let mut hard = Map::from_iter([("count/leases.coordination.k8s.io".to_owned(), json!("0"))]);
    for name in names {
        hard.insert((*name).to_owned(), json!(hard_amount(rng, name)));
    }
    let used: Map<String, Value> = hard.keys().map(|name| (name.clone(), json!("0"))).collect();
    let mut spec = spec;
    spec["hard"] = json!(hard);
    let mut used = json!(used);
    // What nobody has counted yet.
    if let Some(name) = names.first().filter(|_| rng.chance(6)) {
        used.as_object_mut().expect("an object").remove(*name);
    }
    let status = json!({"hard": hard, "used": used});
    vec![
        Step::with("POST", QUOTA, json!({"metadata": {"name": "quota"}, "spec": spec})),
        Step::patch("merge", format!("{QUOTA}/quota/status"), json!({"status": status})),
    ]
}

fn lease() -> Step {
    Step::with("POST", format!("{LEASES}?dryRun=All"), json!({"metadata": {"name": "mark"}}))
        .until(403)
        .quiet()
}

fn some_names<'a>(rng: &mut Rng, all: &[&'a str], most: usize) -> Vec<&'a str> {
    let mut out: Vec<&str> = Vec::new();
    for _ in 0..=rng.below(most) {
        let one = rng.pick(all);
        if !out.contains(&one) {
            out.push(one);
        }
    }
    out
}

fn service(rng: &mut Rng, name: &str) -> Value {
    let ports: Vec<Value> =
        (0..=rng.below(2)).map(|port| json!({"name": format!("p{port}"), "port": 80 + port})).collect();
    let mut spec = json!({"type": rng.pick(&["ClusterIP", "NodePort", "LoadBalancer"]), "ports": ports});
    if spec["type"] == "LoadBalancer" && rng.chance(40) {
        spec["allocateLoadBalancerNodePorts"] = json!(false);
    }
    json!({"metadata": {"name": name}, "spec": spec})
}

/// Something that is counted.
fn counted(rng: &mut Rng, index: usize) -> Step {
    let name = format!("o{index}");
    let dry = if rng.chance(15) { "?dryRun=All" } else { "" };
    let named = json!({"metadata": {"name": name}});
    let (path, body) = match rng.below(11) {
        0 => ("/api/v1/namespaces/{ns}/configmaps".to_owned(), named),
        1 => ("/api/v1/namespaces/{ns}/secrets".to_owned(), named),
        2 => ("/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles".to_owned(), named),
        3 => {
            let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": pod(rng, "")["spec"]});
            let mut spec = json!({"selector": {"matchLabels": {"a": "b"}}, "template": template});
            if let Some(inner) = spec["template"]["spec"].as_object_mut() {
                inner.remove("activeDeadlineSeconds");
            }
            (
                "/apis/apps/v1/namespaces/{ns}/deployments".to_owned(),
                json!({"metadata": {"name": name}, "spec": spec}),
            )
        }
        4 | 5 => (SERVICES.to_owned(), service(rng, &name)),
        6 | 7 => (CLAIMS.to_owned(), claim(rng, &name)),
        _ => (PODS.to_owned(), pod(rng, &name)),
    };
    Step::with("POST", format!("{path}{dry}"), body)
}

/// Objects of many kinds against a quota, and what it has counted after each.
pub fn quotas(rng: &mut Rng) -> Vec<Step> {
    let names = some_names(rng, &HARD, 8);
    let mut steps = quota(rng, &names, json!({}));
    steps.push(lease());
    for index in 0..5 {
        // A name that is taken is charged for all the same.
        let index = if rng.chance(20) { 0 } else { index };
        steps.push(counted(rng, index));
        steps.push(Step::new("GET", format!("{QUOTA}/quota")));
    }
    let kind = rng.pick(&["NodePort", "LoadBalancer", "ClusterIP"]);
    let changed = json!({"spec": {"type": kind}});
    steps.push(Step::patch("merge", format!("{SERVICES}/o{}", rng.below(5)), changed));
    let larger = json!({"spec": {"activeDeadlineSeconds": 20}});
    steps.push(Step::patch("merge", format!("{PODS}/o{}", rng.below(5)), larger));
    let resized = json!({"spec": {"containers": [{"name": "a", "resources": resources(rng)}]}});
    steps.push(Step::patch("strategic", format!("{PODS}/o{}/resize", rng.below(5)), resized));
    let allocated = json!({"status": {"allocatedResources": {"storage": rng.pick(&["1Gi", "7Gi"])}}});
    steps.push(Step::patch("merge", format!("{CLAIMS}/o{}/status", rng.below(5)), allocated));
    steps.push(Step::new("GET", format!("{QUOTA}/quota")));
    steps
}

/// Quotas that are about some pods only.
pub fn scopes(rng: &mut Rng) -> Vec<Step> {
    let of_compute = ["pods", "requests.cpu", "limits.cpu", "memory", "limits.memory", "count/pods"];
    let (names, spec) = match rng.below(4) {
        0 => (vec!["pods"], json!({"scopes": ["BestEffort"]})),
        1 => (
            some_names(rng, &of_compute[..5], 3),
            json!({"scopes": some_names(rng, &["Terminating", "NotBestEffort"], 2)}),
        ),
        2 => (some_names(rng, &of_compute[..5], 3), json!({"scopes": ["NotTerminating"]})),
        _ => {
            let operator = rng.pick(&["In", "NotIn", "Exists", "DoesNotExist"]);
            let mut one = json!({"scopeName": "PriorityClass", "operator": operator});
            if operator.ends_with("In") {
                one["values"] = json!(["system-node-critical"]);
            }
            (some_names(rng, &of_compute[..5], 3), json!({"scopeSelector": {"matchExpressions": [one]}}))
        }
    };
    let mut steps = quota(rng, &names, spec);
    // A quota with scopes counts pods alone: the mark needs one without.
    let hard = json!({"count/leases.coordination.k8s.io": "0"});
    let marking = json!({"metadata": {"name": "mark"}, "spec": {"hard": hard}});
    let status = json!({"status": {"hard": hard, "used": hard}});
    steps.push(Step::with("POST", QUOTA, marking).quiet());
    steps.push(Step::patch("merge", format!("{QUOTA}/mark/status"), status).quiet());
    steps.push(lease());
    for index in 0..5 {
        let mut body = pod(rng, &format!("p{index}"));
        if rng.chance(25) {
            body["spec"]["priorityClassName"] =
                json!(rng.pick(&["system-node-critical", "system-cluster-critical"]));
        }
        if rng.chance(30) {
            body["spec"]["containers"] = json!([{"name": "a", "image": "nginx"}]);
            body["spec"].as_object_mut().expect("an object").remove("resources");
        }
        steps.push(Step::with("POST", PODS, body));
        steps.push(Step::new("GET", format!("{QUOTA}/quota")));
    }
    let ends = json!({"spec": {"activeDeadlineSeconds": 20}});
    steps.push(Step::patch("merge", format!("{PODS}/p{}", rng.below(5)), ends));
    steps.push(Step::new("GET", format!("{QUOTA}/quota")));
    steps
}

/// Quotas themselves, and limit ranges: what they may say.
pub fn said(rng: &mut Rng) -> Vec<Step> {
    let wrong = [
        "gpu",
        "a/b/c",
        "requests.gpu",
        "hugepages-2Mi",
        "limits.storage",
        "count/x",
        "Upper",
        "example.com/x",
    ];
    let mut hard = Map::new();
    for name in some_names(rng, &HARD, 3).into_iter().chain(some_names(rng, &wrong, 2)) {
        hard.insert(name.to_owned(), json!(rng.pick(&["1", "-1", "500m", "1Gi", "0"])));
    }
    let mut spec = json!({"hard": hard});
    if rng.chance(40) {
        let all =
            ["BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "PriorityClass", "Nothing"];
        spec["scopes"] = json!(some_names(rng, &all, 3));
    }
    if rng.chance(30) {
        let mut one = json!({
            "scopeName": rng.pick(&["PriorityClass", "BestEffort", "CrossNamespacePodAffinity", "Nothing"]),
            "operator": rng.pick(&["In", "Exists", "NotIn", "Maybe"]),
        });
        if rng.chance(50) {
            one["values"] = json!(["a"]);
        }
        spec["scopeSelector"] = json!({"matchExpressions": [one]});
    }
    let quota = json!({"metadata": {"name": "quota"}, "spec": spec});
    let mut steps = vec![Step::with("POST", QUOTA, quota)];
    let used = json!({"status": {"used": {"pods": rng.pick(&["1", "-1", "500m"])}, "hard": {"pods": "5"}}});
    steps.push(Step::patch("merge", format!("{QUOTA}/quota/status"), used));
    steps.push(Step::patch("merge", format!("{QUOTA}/quota"), json!({"spec": {"scopes": ["BestEffort"]}})));
    let limits: Vec<Value> = (0..=rng.below(3))
        .map(|_| {
            let kind = rng.pick(&["Container", "Pod", "PersistentVolumeClaim", "Other", "example.com/x"]);
            limit(rng, kind)
        })
        .collect();
    let range = json!({"metadata": {"name": "range"}, "spec": {"limits": limits}});
    steps.push(Step::with("POST", "/api/v1/namespaces/{ns}/limitranges", range));
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    steps.push(Step::new("GET", QUOTA).header("accept", table));
    steps.push(Step::new("GET", "/api/v1/namespaces/{ns}/limitranges").header("accept", table));
    steps
}

/// Classes of priority, and pods that name them.
pub fn priority(rng: &mut Rng) -> Vec<Step> {
    const CLASSES: &str = "/apis/scheduling.k8s.io/v1/priorityclasses";
    let class = |name: &str, value: i64, policy: &str| json!({"metadata": {"name": name}, "value": value, "preemptionPolicy": policy});
    let value = [-5, 0, 100, 1_000_000][rng.below(4)];
    let policy = rng.pick(&["Never", "PreemptLowerPriority"]);
    let mut steps = vec![Step::with("POST", CLASSES, class("{id}-a", value, policy))];
    let simple = |name: &str| json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "a", "image": "x"}]}});
    let mut known = simple("mark");
    known["spec"]["priorityClassName"] = json!("{id}-a");
    steps.push(Step::with("POST", format!("{PODS}?dryRun=All"), known).until(201).quiet());
    for index in 0..4 {
        let mut body = simple(&format!("p{index}"));
        if rng.chance(75) {
            body["spec"]["priorityClassName"] =
                json!(rng.pick(&["{id}-a", "{id}-a", "{id}-none", "system-cluster-critical"]));
        }
        if rng.chance(40) {
            body["spec"]["priority"] = json!([value, 0, 7, 2_000_000_000][rng.below(4)]);
        }
        if rng.chance(35) {
            body["spec"]["preemptionPolicy"] = json!(rng.pick(&["Never", "PreemptLowerPriority"]));
        }
        steps.push(Step::with("POST", PODS, body));
    }
    let cleared = json!({"spec": {"priority": null, "preemptionPolicy": null}});
    steps.push(Step::patch("merge", format!("{PODS}/p{}", rng.below(4)), cleared));
    let mut default = class("{id}-d", 5, policy);
    default["globalDefault"] = json!(true);
    steps.push(Step::with("POST", format!("{CLASSES}?dryRun=All"), default));
    let changed = match rng.below(3) {
        0 => json!({"value": 3}),
        1 => json!({"preemptionPolicy": rng.pick(&["Never", "PreemptLowerPriority"])}),
        _ => json!({"description": "text"}),
    };
    steps.push(Step::patch("merge", format!("{CLASSES}/{{id}}-a"), changed));
    steps.push(Step::new("DELETE", format!("{CLASSES}/{{id}}-a")));
    steps
}

/// Classes of runtimes and of storage, and what they say of pods and claims.
pub fn classes(rng: &mut Rng) -> Vec<Step> {
    let mut class = json!({"metadata": {"name": "{id}-r"}, "handler": "h"});
    if rng.chance(60) {
        class["overhead"] = json!({"podFixed": {"cpu": amount(rng, "cpu")}});
    }
    if rng.chance(60) {
        class["scheduling"] = json!({"nodeSelector": {"kind": "x"}});
        if rng.chance(60) {
            class["scheduling"]["tolerations"] = json!([
                {"key": rng.pick(&["k", "node.kubernetes.io/not-ready", ""]), "operator": "Exists", "effect": rng.pick(&["NoExecute", "NoSchedule", ""])},
            ]);
        }
    }
    let mut steps = vec![Step::with("POST", "/apis/node.k8s.io/v1/runtimeclasses", class)];
    for index in 0..3 {
        let mut body = json!({"metadata": {"name": format!("p{index}")}, "spec": {"containers": [{"name": "a", "image": "x"}]}});
        if rng.chance(85) {
            body["spec"]["runtimeClassName"] = json!(rng.pick(&["{id}-r", "{id}-r", "{id}-r", "{id}-none"]));
        }
        if rng.chance(30) {
            body["spec"]["overhead"] = json!({"cpu": amount(rng, "cpu")});
        }
        if rng.chance(30) {
            body["spec"]["nodeSelector"] = json!({rng.pick(&["kind", "other"]): rng.pick(&["x", "y"])});
        }
        if rng.chance(40) {
            body["spec"]["tolerations"] = json!([
                {"key": rng.pick(&["k", "l"]), "operator": rng.pick(&["Exists", "Equal"]), "effect": rng.pick(&["NoExecute", "NoSchedule"])},
            ]);
        }
        steps.push(Step::with("POST", PODS, body));
    }
    let grows = rng.chance(60);
    let storage = json!({"metadata": {"name": "{id}-s"}, "provisioner": "p", "allowVolumeExpansion": grows});
    steps.push(Step::with("POST", "/apis/storage.k8s.io/v1/storageclasses", storage));
    let mut claim = claim(rng, "c");
    claim["spec"]["storageClassName"] = json!(rng.pick(&["{id}-s", "{id}-s", "{id}-none"]));
    claim["spec"]["resources"]["requests"]["storage"] = json!("1Gi");
    claim["metadata"].as_object_mut().expect("an object").remove("annotations");
    steps.push(Step::with("POST", CLAIMS, claim));
    if rng.chance(75) {
        let bound = json!({"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}});
        steps.push(Step::patch("merge", format!("{CLAIMS}/c/status"), bound));
    }
    storage_known(&mut steps);
    for size in ["2Gi", "1Gi", "512Mi"] {
        let larger = json!({"spec": {"resources": {"requests": {"storage": size}}}});
        steps.push(Step::patch("merge", format!("{CLAIMS}/c"), larger));
    }
    steps
}

/// Waits until the storage classes so far are known: the real server hears of them a little later, one after the other, so
/// when a claim of the last may grow it knows all of them.
fn storage_known(steps: &mut Vec<Step>) {
    const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";
    let name = json!({"name": "{id}-mark"});
    let class = json!({"metadata": name, "provisioner": "p", "allowVolumeExpansion": true});
    let sized = |size: &str| json!({"requests": {"storage": size}});
    let claim = json!({"metadata": name, "spec": {
        "accessModes": ["ReadWriteOnce"], "storageClassName": "{id}-mark", "resources": sized("1Gi"),
    }});
    let bound = json!({"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}});
    let larger = json!({"spec": {"resources": sized("2Gi")}});
    let item = format!("{CLAIMS}/{{id}}-mark");
    steps.push(Step::with("POST", CLASSES, class).quiet());
    steps.push(Step::with("POST", CLAIMS, claim).quiet());
    steps.push(Step::patch("merge", format!("{item}/status"), bound).quiet());
    steps.push(Step::patch("merge", format!("{item}?dryRun=All"), larger).until(200).quiet());
    steps.push(Step::new("DELETE", format!("{CLASSES}/{{id}}-mark")).quiet());
}
