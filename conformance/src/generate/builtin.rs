//! Valid objects of every built-in kind, spoilt at random: what a user can get wrong, at a create and at an update.
//!
//! The objects lie in `builtin/*.yaml`, several of a kind, so that together they fill nearly every field. Nothing that
//! is spoilt is stored: those requests are dry runs.

use std::sync::OnceLock;

use serde_json::{Value, json};
use windlass_apiserver::codec::{self, Format};

use super::mutate;
use super::spoil::Spoiler;
use crate::rng::Rng;
use crate::sequence::Step;

/// A built-in kind and valid objects of it.
struct Kind {
    path: String,
    type_name: String,
    name: String,
    weight: usize,
    /// Whether an object of it can be there without harm to others.
    stored: bool,
    objects: Vec<Value>,
}

impl Kind {
    /// A valid object under its name.
    fn object(&self, rng: &mut Rng) -> Value {
        let mut object = self.objects[rng.below(self.objects.len())].clone();
        mutate::set(&mut object, "/metadata/name", json!(self.name));
        object
    }
}

const FILES: [&[u8]; 4] = [
    include_bytes!("../../builtin/pods.yaml"),
    include_bytes!("../../builtin/core.yaml"),
    include_bytes!("../../builtin/workloads.yaml"),
    include_bytes!("../../builtin/others.yaml"),
];

fn all() -> &'static [Kind] {
    static KINDS: OnceLock<Vec<Kind>> = OnceLock::new();
    KINDS.get_or_init(|| {
        let files = FILES.iter().map(|file| codec::parse(file, Format::Yaml).expect("it is YAML").value);
        files.flat_map(|file| file.as_array().expect("a list").iter().map(read).collect::<Vec<_>>()).collect()
    })
}

fn read(row: &Value) -> Kind {
    let text = |key: &str| row[key].as_str().map(str::to_owned);
    let name = text("name").unwrap_or_else(|| if row["cluster"] == true { "{id}-a" } else { "a" }.into());
    Kind {
        path: text("path").expect("a path"),
        type_name: text("type").expect("a type"),
        name,
        weight: row["weight"].as_u64().and_then(|weight| usize::try_from(weight).ok()).unwrap_or(1),
        stored: row["stored"] != false,
        objects: row["objects"].as_array().expect("a list").clone(),
    }
}

fn spoiler() -> &'static Spoiler {
    static SPOILER: OnceLock<Spoiler> = OnceLock::new();
    SPOILER.get_or_init(|| {
        let objects = all().iter().flat_map(|kind| kind.objects.iter().map(|o| (kind.type_name.as_str(), o)));
        Spoiler::new(objects)
    })
}

fn any(rng: &mut Rng) -> &'static Kind {
    let mut rest = rng.below(all().iter().map(|kind| kind.weight).sum());
    for kind in all() {
        match rest.checked_sub(kind.weight) {
            Some(less) => rest = less,
            None => return kind,
        }
    }
    unreachable!("the weights add up")
}

/// The object with one to three things wrong.
fn spoilt(rng: &mut Rng, kind: &Kind, object: &Value) -> Value {
    loop {
        let mut object = object.clone();
        for _ in 0..1 + rng.below(100) / 60 + rng.below(100) / 80 {
            spoiler().spoil(rng, &kind.type_name, &mut object);
        }
        if !is_dropped(&object) {
            return object;
        }
    }
}

/// Whether kube-apiserver drops the connection: a policy for success counts completions that are not there.
fn is_dropped(object: &Value) -> bool {
    let specs = [&object["spec"], &object["spec"]["jobTemplate"]["spec"]];
    specs.iter().any(|spec| spec.get("successPolicy").is_some() && spec.get("completions").is_none())
}

/// How many requests a sequence makes besides the first.
const TRIES: usize = 4;

/// New objects that are spoilt.
pub fn created(rng: &mut Rng) -> Vec<Step> {
    let kind = any(rng);
    let object = kind.object(rng);
    let path = format!("{}?dryRun=All", kind.path);
    let mut steps = Vec::new();
    for _ in 0..TRIES {
        steps.push(Step::with("POST", path.clone(), spoilt(rng, kind, &object)));
    }
    steps
}

/// Updates that spoil a valid object, or change what may not change.
pub fn updated(rng: &mut Rng) -> Vec<Step> {
    let kind = loop {
        let kind = any(rng);
        if kind.stored {
            break kind;
        }
    };
    let object = kind.object(rng);
    let item = format!("{}/{}", kind.path, kind.name);
    let first = Step::with("POST", kind.path.clone(), object.clone());
    let mut steps = vec![first.capture("rv", "/metadata/resourceVersion")];
    for _ in 0..TRIES {
        let mut object = spoilt(rng, kind, &object);
        mutate::set(&mut object, "/metadata/resourceVersion", json!("{rv}"));
        steps.push(Step::with("PUT", format!("{item}?dryRun=All"), object));
    }
    // Of addresses there are few, and what belongs to no namespace does not go with one.
    if !item.contains("{ns}") || item.contains("/services/") {
        steps.push(Step::new("DELETE", item).quiet());
    }
    steps
}

/// Parts of services that change what is allocated for them.
const SERVICES: [&str; 22] = [
    r#"{"type": "NodePort"}"#,
    r#"{"type": "ClusterIP"}"#,
    r#"{"type": "LoadBalancer"}"#,
    r#"{"type": "ExternalName", "externalName": "example.com"}"#,
    r#"{"type": "ExternalName", "externalName": "example.com", "clusterIP": null, "clusterIPs": null}"#,
    r#"{"type": "LoadBalancer", "externalTrafficPolicy": "Local"}"#,
    r#"{"type": "NodePort", "externalTrafficPolicy": "Local"}"#,
    r#"{"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false}"#,
    r#"{"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 29999}"#,
    r#"{"externalTrafficPolicy": "Cluster"}"#,
    r#"{"ipFamilyPolicy": "PreferDualStack"}"#,
    r#"{"ipFamilyPolicy": "RequireDualStack"}"#,
    r#"{"ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4", "IPv6"]}"#,
    r#"{"ipFamilies": ["IPv6"]}"#,
    r#"{"ipFamilies": ["IPv4", "IPv6"], "ipFamilyPolicy": "PreferDualStack"}"#,
    r#"{"clusterIP": "None", "clusterIPs": ["None"]}"#,
    r#"{"clusterIP": "1.2.3.4", "clusterIPs": ["1.2.3.4"]}"#,
    r#"{"clusterIP": null, "clusterIPs": null}"#,
    r#"{"ports": [{"port": 80, "name": "a"}, {"port": 80, "name": "b", "protocol": "UDP"}]}"#,
    r#"{"type": "NodePort", "ports": [{"port": 80, "nodePort": 5}]}"#,
    r#"{"selector": null}"#,
    r#"{"healthCheckNodePort": 31999}"#,
];

/// Services that become others, with the addresses and ports that they get, keep and give back.
pub fn allocated(rng: &mut Rng) -> Vec<Step> {
    const PATH: &str = "/api/v1/namespaces/{ns}/services";
    let part = |rng: &mut Rng| serde_json::from_str::<Value>(rng.pick(&SERVICES)).expect("it is JSON");
    let item = format!("{PATH}/a");
    let mut service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"},
        "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}});
    for _ in 0..rng.below(2) {
        for (field, value) in part(rng).as_object().expect("an object") {
            mutate::set(&mut service, &format!("/spec/{field}"), value.clone());
        }
    }
    let mut steps = vec![Step::with("POST", PATH, service.clone())];
    for _ in 0..TRIES {
        let query = if rng.chance(30) { "?dryRun=All" } else { "" };
        let patch = json!({"spec": part(rng)});
        steps.push(Step::patch("merge", format!("{item}{query}"), patch));
    }
    steps.push(Step::new("GET", item.clone()));
    steps.push(Step::new("DELETE", item.clone()));
    steps.push(Step::with("POST", format!("{PATH}?dryRun=All"), service));
    steps
}
