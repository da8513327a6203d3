//! Reads: lists, pages, selectors, tables.

use serde_json::{Value, json};

use super::kinds::{self, Kind};
use super::mutate;
use crate::rng::Rng;
use crate::sequence::{Step, accept};

const CONFIG_MAPS: &str = "/api/v1/namespaces/{ns}/configmaps";

/// A namespaced kind of which there is no shortage.
fn some_kind(rng: &mut Rng) -> &'static Kind {
    loop {
        let kind = kinds::any(rng);
        if !kind.expensive && !kind.cluster {
            return kind;
        }
    }
}

fn create(kind: &Kind, body: Value) -> Step {
    Step::with("POST", kind.path.clone(), body)
}

/// Config maps with random labels.
fn labelled(rng: &mut Rng, count: usize) -> Vec<Step> {
    (0..count)
        .map(|index| {
            let labels = mutate::labels(rng);
            Step::with(
                "POST",
                CONFIG_MAPS,
                json!({"metadata": {"name": format!("m{index}"), "labels": labels}}),
            )
            .quiet()
        })
        .collect()
}

pub fn table(rng: &mut Rng) -> Vec<Step> {
    let kind = some_kind(rng);
    let accept = match rng.below(3) {
        0 => accept("table"),
        1 => format!("{},application/json", accept("table")),
        _ => "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json".into(),
    };
    let include = rng.pick(&[
        "",
        "?includeObject=None",
        "?includeObject=Metadata",
        "?includeObject=Object",
        "?includeObject=Other",
    ]);
    let path = if rng.chance(50) { kind.path.clone() } else { kind.item("a") };
    vec![
        create(kind, kind.plain("a")),
        Step::new("GET", format!("{path}{include}")).header("accept", &accept),
    ]
}

pub fn printers(rng: &mut Rng) -> Vec<Step> {
    let kind = kinds::any(rng);
    let body = kind.varied(rng, "a", 2);
    let table = Step::new("GET", kind.item("a")).header("accept", &accept("table"));
    let mut steps = vec![create(kind, body).quiet(), table];
    if kind.path.ends_with("/pods") {
        let statuses = [
            json!({"phase": "Running", "containerStatuses": [{"name": "c", "ready": true, "restartCount": 2, "image": "i", "imageID": "", "state": {"running": {}}}]}),
            json!({"phase": "Pending", "containerStatuses": [{"name": "c", "ready": false, "restartCount": 0, "image": "i", "imageID": "", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]}),
            json!({"phase": "Failed", "reason": "Evicted"}),
        ];
        let status = statuses[rng.below(3)].clone();
        let step =
            Step::patch("merge", format!("{}/status", kind.item("a")), json!({"status": status})).quiet();
        steps.insert(1, step);
    }
    if kind.expensive {
        steps.push(Step::new("DELETE", kind.item("a")).quiet());
    }
    steps
}

pub fn metadata_only(rng: &mut Rng) -> Vec<Step> {
    let kind = some_kind(rng);
    let mut body = kind.plain("a");
    mutate::metadata(rng, &mut body);
    let (path, accept) = match rng.below(4) {
        0 => (kind.path.clone(), accept("partials")),
        1 => (kind.item("a"), accept("partial")),
        2 => (kind.path.clone(), accept("partial")),
        _ => (kind.item("a"), accept("partials")),
    };
    vec![create(kind, body), Step::new("GET", path).header("accept", &accept)]
}

pub fn list(rng: &mut Rng) -> Vec<Step> {
    let kind = some_kind(rng);
    let letters = ["b", "a", "c"];
    let mut steps: Vec<Step> =
        letters[..rng.below(4)].iter().map(|letter| create(kind, kind.plain(letter))).collect();
    steps.push(Step::new("GET", kind.path.clone()));
    steps
}

pub fn pages(rng: &mut Rng) -> Vec<Step> {
    let count = 3 + rng.below(6);
    let mut steps = labelled(rng, count);
    let selector =
        rng.pick(&["", "", "&labelSelector=app", "&labelSelector=tier%3Da", "&labelSelector=%21env"]);
    let limit = 1 + rng.below(3);
    steps.push(
        Step::new("GET", format!("{CONFIG_MAPS}?limit={limit}{selector}"))
            .capture("token", "/metadata/continue"),
    );
    for _ in 0..2 {
        match rng.below(4) {
            0 => steps.push(Step::new("DELETE", format!("{CONFIG_MAPS}/m{}", rng.below(count)))),
            1 => {
                let body = json!({"metadata": {"name": format!("m{}x", rng.below(count))}});
                steps.push(Step::with("POST", CONFIG_MAPS, body));
            }
            2 => {
                let path = format!("{CONFIG_MAPS}/m{}", rng.below(count));
                steps.push(Step::patch("merge", path, json!({"metadata": {"labels": mutate::labels(rng)}})));
            }
            _ => {}
        }
    }
    steps.push(
        Step::new("GET", format!("{CONFIG_MAPS}?limit={limit}{selector}&continue={{token}}"))
            .capture("next", "/metadata/continue"),
    );
    steps.push(Step::new("GET", format!("{CONFIG_MAPS}?limit=50{selector}&continue={{token}}")));
    steps
}

pub fn versions(rng: &mut Rng) -> Vec<Step> {
    let create = |name: &str| Step::with("POST", CONFIG_MAPS, json!({"metadata": {"name": name}}));
    let mut steps = vec![
        create("a").capture("first", "/metadata/resourceVersion"),
        create("b").capture("second", "/metadata/resourceVersion"),
    ];
    steps.push(Step::new("DELETE", format!("{CONFIG_MAPS}/a")));
    let version = rng.pick(&["{first}", "{second}", "0", ""]);
    let how = rng.pick(&["", "&resourceVersionMatch=Exact", "&resourceVersionMatch=NotOlderThan"]);
    // A list that need not be the latest may be what a cache has just then: two real servers differ in it.
    if version != "0" {
        let limit = rng.pick(&["", "&limit=1", "&limit=5"]);
        steps.push(Step::new("GET", format!("{CONFIG_MAPS}?resourceVersion={version}{how}{limit}")));
    }
    steps.push(Step::new("GET", CONFIG_MAPS));
    steps
}

pub fn bytes(rng: &mut Rng) -> Vec<Step> {
    let kind = some_kind(rng);
    let body = kind.varied(rng, "a", 2);
    let accept_ = rng.pick(&["application/json", "application/yaml"]);
    let pretty = rng.pick(&["", "", "?pretty=1"]);
    vec![
        create(kind, body),
        Step::new("GET", format!("{}{pretty}", kind.item("a"))).header("accept", accept_),
        Step::new("GET", kind.path.clone())
            .header("accept", &accept(rng.pick(&["json", "partials", "json"]))),
        Step::new("GET", kind.item("missing")).header("accept", accept_),
    ]
}

fn label_selector(rng: &mut Rng) -> String {
    let key = rng.pick(&["app", "tier", "env", "none", "x.y/z", "a b", "-a", ""]);
    let value = rng.pick(&[
        "a",
        "b",
        "c",
        "",
        "a b",
        "-",
        "toolongtoolongtoolongtoolongtoolongtoolongtoolongtoolongtoolongtoolong",
    ]);
    match rng.below(14) {
        0 => format!("{key}={value}"),
        1 => format!("{key}=={value}"),
        2 => format!("{key}!={value}"),
        3 => format!("{key} in ({value},c)"),
        4 => format!("{key} notin ({value}, b)"),
        5 => key.to_owned(),
        6 => format!("!{key}"),
        7 => format!("{key} in ()"),
        8 => format!("{key}>5"),
        9 => format!("{key}<a"),
        10 => format!("{key} in {value}"),
        11 => format!("{key}={value}={value}"),
        12 => format!("! {key}"),
        _ => format!(" {key} = {value} "),
    }
}

pub fn label_selectors(rng: &mut Rng) -> Vec<Step> {
    let mut steps = labelled(rng, 5);
    let mut selector = label_selector(rng);
    for _ in 0..rng.below(3) {
        selector = format!("{selector},{}", label_selector(rng));
    }
    steps.push(Step::new("GET", format!("{CONFIG_MAPS}?labelSelector={}", escaped(&selector))));
    steps
}

fn escaped(text: &str) -> String {
    text.bytes()
        .map(|b| if b.is_ascii_alphanumeric() { char::from(b).to_string() } else { format!("%{b:02X}") })
        .collect()
}

pub fn field_selectors(rng: &mut Rng) -> Vec<Step> {
    let plural = rng.pick(&[
        "pods",
        "secrets",
        "configmaps",
        "events",
        "deployments",
        "jobs",
        "replicasets",
        "services",
    ]);
    let kind = kinds::named(plural);
    let field = rng.pick(&[
        "metadata.name",
        "metadata.namespace",
        "spec.nodeName",
        "spec.restartPolicy",
        "status.phase",
        "status.podIP",
        "spec.schedulerName",
        "type",
        "involvedObject.name",
        "reason",
        "status.successful",
        "status.replicas",
        "spec.clusterIP",
        "spec.type",
        "nothing",
        "metadata.labels.a",
    ]);
    let operator = rng.pick(&["=", "==", "!=", "=", ">"]);
    let value =
        rng.pick(&["a", "b", "Pending", "Always", "Opaque", "p", "R", "0", "", "true", "a\\,b", "a,b"]);
    let mut selector = format!("{field}{operator}{value}");
    if rng.chance(30) {
        selector = format!("{selector},metadata.name!=b");
    }
    let mut steps = vec![create(kind, kind.plain("a")).quiet(), create(kind, kind.plain("b")).quiet()];
    steps.push(Step::new("GET", format!("{}?fieldSelector={}", kind.path, escaped(&selector))));
    if kind.expensive {
        steps.extend(["a", "b"].map(|letter| Step::new("DELETE", kind.item(letter)).quiet()));
    }
    steps
}

pub fn bootstrap(rng: &mut Rng) -> Vec<Step> {
    let path = rng.pick(&[
        "/api/v1/namespaces/default",
        "/api/v1/namespaces/kube-system",
        "/api/v1/namespaces/kube-public",
        "/api/v1/namespaces/kube-node-lease",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/cluster-admin",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/view",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/edit",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/admin",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:discovery",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:kube-scheduler",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:controller:job-controller",
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/cluster-admin",
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/system:discovery",
        "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/roles",
        "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-public/rolebindings",
        "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical",
        "/apis/scheduling.k8s.io/v1/priorityclasses/system-cluster-critical",
        "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/exempt",
        "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations/global-default",
    ]);
    vec![Step::new("GET", path), Step::new("GET", path).header("accept", &accept("table"))]
}
