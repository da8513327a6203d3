//! Valid objects of every built-in kind, spoilt at random: what a user can get wrong, at a create and at an update.
//!
//! The objects lie in `builtin/*.yaml`, several of a kind, so that together they fill nearly every field; definitions of
//! custom kinds are a pool of their own. Nothing that is spoilt is stored: those requests are dry runs.

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

/// Kinds, and what spoils their objects.
struct Pool {
    kinds: Vec<Kind>,
    spoiler: Spoiler,
}

impl Pool {
    fn new(files: &[&[u8]]) -> Pool {
        let files = files.iter().map(|file| codec::parse(file, Format::Yaml).expect("it is YAML").value);
        let rows = files.flat_map(|file| file.as_array().expect("a list").clone());
        let kinds: Vec<Kind> = rows.map(|row| read(&row)).collect();
        let objects = kinds.iter().flat_map(|kind| kind.objects.iter().map(|o| (kind.type_name.as_str(), o)));
        let spoiler = Spoiler::new(objects);
        Pool { kinds, spoiler }
    }

    fn any(&self, rng: &mut Rng) -> &Kind {
        let mut rest = rng.below(self.kinds.iter().map(|kind| kind.weight).sum());
        for kind in &self.kinds {
            match rest.checked_sub(kind.weight) {
                Some(less) => rest = less,
                None => return kind,
            }
        }
        unreachable!("the weights add up")
    }

    /// The object with one to three things wrong.
    fn spoilt(&self, rng: &mut Rng, kind: &Kind, object: &Value) -> Value {
        loop {
            let mut object = object.clone();
            for _ in 0..1 + rng.below(100) / 60 + rng.below(100) / 80 {
                self.spoiler.spoil(rng, &kind.type_name, &mut object);
            }
            if !is_dropped(&object) {
                return object;
            }
        }
    }

    /// New objects that are spoilt.
    fn created(&self, rng: &mut Rng) -> Vec<Step> {
        let kind = self.any(rng);
        let object = kind.object(rng);
        let path = format!("{}?dryRun=All", kind.path);
        let try_one = |_| Step::with("POST", path.clone(), self.spoilt(rng, kind, &object));
        (0..TRIES).map(try_one).collect()
    }

    /// Updates of an object at its path, which spoil it.
    fn updated(&self, rng: &mut Rng, kind: &Kind, object: &Value) -> Vec<Step> {
        let try_one = |_| {
            let mut object = self.spoilt(rng, kind, object);
            mutate::set(&mut object, "/metadata/resourceVersion", json!("{rv}"));
            Step::with("PUT", format!("{}/{}?dryRun=All", kind.path, kind.name), object)
        };
        (0..TRIES).map(try_one).collect()
    }
}

fn builtin() -> &'static Pool {
    static POOL: OnceLock<Pool> = OnceLock::new();
    POOL.get_or_init(|| Pool::new(&FILES))
}

fn definitions() -> &'static Pool {
    static POOL: OnceLock<Pool> = OnceLock::new();
    POOL.get_or_init(|| Pool::new(&[include_bytes!("../../builtin/definitions.yaml")]))
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

/// Whether kube-apiserver drops the connection: a policy for success counts completions that are not there, or fields
/// are selectable that are looked for in a schema that is none.
fn is_dropped(object: &Value) -> bool {
    let specs = [&object["spec"], &object["spec"]["jobTemplate"]["spec"]];
    let mut versions = object["spec"]["versions"].as_array().into_iter().flatten();
    let is_lost = |version: &Value| {
        let schema = version["schema"].to_string();
        let is_none = !version["schema"].is_null() && !version["schema"]["openAPIV3Schema"].is_object();
        let no_structure = [r#""x-kubernetes-preserve-unknown-fields":false"#, r#""items":["#];
        let is_lost = is_none || no_structure.iter().any(|fault| schema.contains(fault));
        is_lost && version.get("selectableFields").is_some()
    };
    specs.iter().any(|spec| spec.get("successPolicy").is_some() && spec.get("completions").is_none())
        || versions.any(is_lost)
}

/// How many requests a sequence makes besides the first.
const TRIES: usize = 4;

/// New objects that are spoilt.
pub fn created(rng: &mut Rng) -> Vec<Step> {
    builtin().created(rng)
}

/// New definitions that are spoilt.
pub fn defined(rng: &mut Rng) -> Vec<Step> {
    definitions().created(rng)
}

/// Updates that spoil a valid object, or change what may not change.
pub fn updated(rng: &mut Rng) -> Vec<Step> {
    let kind = loop {
        let kind = builtin().any(rng);
        if kind.stored {
            break kind;
        }
    };
    let object = kind.object(rng);
    let item = format!("{}/{}", kind.path, kind.name);
    let first = Step::with("POST", kind.path.clone(), object.clone());
    let mut steps = vec![first.capture("rv", "/metadata/resourceVersion")];
    steps.extend(builtin().updated(rng, kind, &object));
    // Of addresses there are few, and what belongs to no namespace does not go with one.
    if !item.contains("{ns}") || item.contains("/services/") {
        steps.push(Step::new("DELETE", item).quiet());
    }
    steps
}

/// Updates that spoil a definition that is in use.
pub fn redefined(rng: &mut Rng) -> Vec<Step> {
    let kind = definitions().any(rng);
    let object = kind.object(rng);
    let item = format!("{}/{}", kind.path, kind.name);
    let known = Step::new("GET", item.clone()).until_told(200, "/status/conditions/1/status", json!("True"));
    let mut steps = vec![
        Step::with("POST", kind.path.clone(), object.clone()).quiet(),
        known.capture("rv", "/metadata/resourceVersion").quiet(),
    ];
    steps.extend(definitions().updated(rng, kind, &object));
    steps.push(Step::new("DELETE", item).quiet());
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
    let mut prefers_both = false;
    let mut part = |rng: &mut Rng| loop {
        let part = serde_json::from_str::<Value>(rng.pick(&SERVICES)).expect("it is JSON");
        prefers_both |= part["ipFamilyPolicy"] == "PreferDualStack";
        // kube-apiserver with one family drops the connection when such a service gives up its address.
        if !(prefers_both && part["clusterIP"] == "None") {
            return part;
        }
    };
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
