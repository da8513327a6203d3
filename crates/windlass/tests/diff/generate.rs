//! Objects as operators make them, and one change at a time.

use serde_json::{Map, Value, json};
use windlass_core::Random;

/// A kind with every type of list and map that a definition can ask for.
pub const THINGS: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  names: {kind: Thing, plural: things, singular: thing}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              text: {type: string}
              number: {type: number}
              defaulted: {type: string, default: d}
              atomic: {type: array, items: {type: string}}
              set: {type: array, x-kubernetes-list-type: set, items: {type: string}}
              keyed:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [key, kind]
                items:
                  type: object
                  required: [key]
                  properties: {key: {type: string}, kind: {type: string, default: plain}, value: {type: integer}}
              one: {type: object, x-kubernetes-map-type: atomic, additionalProperties: {type: string}}
              objects: {type: object, additionalProperties: {type: object, properties: {z: {type: string}}}}
              any: {type: object, x-kubernetes-preserve-unknown-fields: true}
"#;

/// An object that a server takes, and its path.
pub fn object(random: &mut Random) -> (String, Value) {
    let (path, kind) = match random.next() % 4 {
        0 => ("/api/v1/namespaces/default/configmaps/one", config_map(random)),
        1 => ("/apis/apps/v1/namespaces/default/deployments/one", deployment(random)),
        2 => ("/api/v1/namespaces/default/services/one", service(random)),
        _ => ("/apis/example.com/v1/namespaces/default/things/one", thing(random)),
    };
    (path.to_owned(), kind)
}

/// One field somewhere is removed, or its value is another one, or the items of a list change places.
pub fn change(random: &mut Random, object: &Value) -> Value {
    let mut places = Vec::new();
    collect(object, String::new(), &mut places);
    let mut changed = object.clone();
    if places.is_empty() {
        changed["metadata"]["labels"] = json!({"new": "v"});
        return changed;
    }
    let place = pick(random, &places).clone();
    let (parent, name) = place.rsplit_once('/').expect("a pointer");
    let is_kept = !one_in(random, 3);
    let value = changed.pointer_mut(&place).expect("it was found there");
    if is_kept {
        alter(random, value);
        return changed;
    }
    match changed.pointer_mut(parent).expect("it was found there") {
        Value::Object(members) => drop(members.remove(&name.replace("~1", "/"))),
        Value::Array(items) => drop(items.remove(name.parse().expect("an index"))),
        _ => unreachable!("a place is in an object or in a list"),
    }
    changed
}

/// All places but those that say which object it is.
fn collect(value: &Value, at: String, places: &mut Vec<String>) {
    if !at.is_empty() && at != "/metadata" && at != "/spec" {
        places.push(at.clone());
    }
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let is_identity = matches!(name.as_str(), "apiVersion" | "kind") && at.is_empty()
                    || at == "/metadata" && !matches!(name.as_str(), "labels" | "annotations" | "finalizers");
                if !is_identity && name != "status" {
                    collect(member, format!("{at}/{}", name.replace('/', "~1")), places);
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect(item, format!("{at}/{index}"), places);
            }
        }
        _ => {}
    }
}

fn alter(random: &mut Random, value: &mut Value) {
    match value {
        Value::Null => *value = json!("was-null"),
        Value::Bool(flag) => *flag = !*flag,
        Value::Number(number) => *value = json!(number.as_f64().unwrap_or(0.0) as i64 + 1),
        Value::String(text) => text.push(if one_in(random, 2) { 'x' } else { '1' }),
        Value::Array(items) if items.len() > 1 => items.reverse(),
        Value::Array(items) => items.clear(),
        Value::Object(members) => *members = Map::new(),
    }
}

fn config_map(random: &mut Random) -> Value {
    let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(random)});
    maybe(random, &mut object, "data", |random| {
        pick(random, &[json!({"a": "1", "b.txt": ""}), json!({"a": "2"}), json!({})]).clone()
    });
    maybe(random, &mut object, "binaryData", |_| json!({"b": "AAAA"}));
    maybe(random, &mut object, "immutable", |_| json!(false));
    object
}

fn deployment(random: &mut Random) -> Value {
    let mut pod = json!({"containers": some(random, 1, container)});
    if one_in(random, 2) {
        pod["containers"][0]["volumeMounts"] =
            json!([{"name": "v0", "mountPath": "/a"}, {"name": "v0", "mountPath": "/b"}]);
        pod["volumes"] = json!([{"name": "v0", "emptyDir": {}}]);
    }
    maybe(random, &mut pod, "volumes", |random| {
        some(random, 1, |random, n| match random.next() % 3 {
            0 => json!({"name": format!("v{n}"), "emptyDir": {}}),
            1 => {
                json!({"name": format!("v{n}"), "configMap": {"name": "c", "items": [{"key": "k", "path": "p"}]}})
            }
            _ => json!({"name": format!("v{n}"), "secret": {"secretName": "s", "optional": true}}),
        })
    });
    maybe(random, &mut pod, "tolerations", |random| {
        some(random, 0, |_, n| json!({"key": format!("t{n}"), "operator": "Exists"}))
    });
    maybe(random, &mut pod, "nodeSelector", texts);
    maybe(random, &mut pod, "hostNetwork", |_| json!(false));
    maybe(
        random,
        &mut pod,
        "securityContext",
        |_| json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}}),
    );
    maybe(random, &mut pod, "imagePullSecrets", |_| json!([{"name": "a"}, {"name": "b"}]));
    let mut spec = json!({
        "selector": {"matchLabels": {"app": "one"}},
        "template": {"metadata": {"labels": {"app": "one"}}, "spec": pod},
    });
    maybe(random, &mut spec, "replicas", |random| json!(random.next() % 4));
    maybe(random, &mut spec, "minReadySeconds", |_| json!(0));
    maybe(random, &mut spec, "paused", |_| Value::Null);
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(random), "spec": spec})
}

fn container(random: &mut Random, n: usize) -> Value {
    let mut container = json!({"name": format!("c{n}"), "image": "image:1"});
    maybe(random, &mut container, "args", |random| some(random, 0, |_, n| json!(format!("--{n}"))));
    maybe(random, &mut container, "env", |random| {
        some(random, 0, |random, n| match random.next() % 3 {
            0 => json!({"name": format!("E{n}"), "value": "v"}),
            1 => json!({"name": format!("E{n}"), "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}),
            _ => json!({"name": format!("E{n}"), "value": ""}),
        })
    });
    maybe(random, &mut container, "ports", |random| {
        some(random, 0, |random, n| match random.next() % 2 {
            0 => json!({"containerPort": 80 + n}),
            _ => json!({"containerPort": 80 + n, "protocol": "UDP", "name": format!("p{n}")}),
        })
    });
    maybe(random, &mut container, "resources", |random| {
        let cpu = *pick(random, &["1000m", "1", "100m", "0.5"]);
        json!({"requests": {"cpu": cpu, "memory": "64Mi"}, "limits": {"memory": "1024Mi"}})
    });
    maybe(
        random,
        &mut container,
        "readinessProbe",
        |_| json!({"httpGet": {"path": "/", "port": 80}, "periodSeconds": 5}),
    );
    container
}

fn service(random: &mut Random) -> Value {
    let mut spec = json!({"ports": some(random, 1, |random, n| match random.next() % 2 {
        0 => json!({"name": format!("p{n}"), "port": 80 + n}),
        _ => json!({"name": format!("p{n}"), "port": 80 + n, "protocol": "UDP", "targetPort": "http"}),
    })});
    maybe(random, &mut spec, "selector", texts);
    maybe(random, &mut spec, "type", |_| json!("ClusterIP"));
    maybe(random, &mut spec, "publishNotReadyAddresses", |_| json!(true));
    json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata(random), "spec": spec})
}

fn thing(random: &mut Random) -> Value {
    let mut spec = json!({"text": "t"});
    maybe(random, &mut spec, "number", |random| {
        pick(random, &[json!(1), json!(1.0), json!(1.5), json!(0)]).clone()
    });
    maybe(random, &mut spec, "defaulted", |_| json!("mine"));
    maybe(random, &mut spec, "atomic", |random| some(random, 0, |_, n| json!(format!("a{n}"))));
    maybe(random, &mut spec, "set", |random| some(random, 0, |_, n| json!(format!("s{n}"))));
    maybe(random, &mut spec, "keyed", |random| {
        some(random, 0, |random, n| match random.next() % 3 {
            0 => json!({"key": format!("k{n}")}),
            1 => json!({"key": "k", "kind": format!("kind{n}"), "value": n}),
            _ => json!({"key": format!("k{n}"), "value": 1.0}),
        })
    });
    maybe(random, &mut spec, "one", texts);
    maybe(random, &mut spec, "objects", |_| json!({"a": {"z": "1"}, "b": {}}));
    maybe(
        random,
        &mut spec,
        "any",
        |_| json!({"deep": {"list": [{"name": "a"}, {}], "empty": []}, "none": null}),
    );
    json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": metadata(random), "spec": spec})
}

fn metadata(random: &mut Random) -> Value {
    let owner = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "11111111-2222-3333-4444-555555555555",
        "controller": true, "blockOwnerDeletion": true,
    });
    let mut metadata = json!({"name": "one", "namespace": "default", "ownerReferences": [owner]});
    maybe(random, &mut metadata, "labels", texts);
    maybe(random, &mut metadata, "annotations", texts);
    maybe(random, &mut metadata, "finalizers", |_| json!(["example.com/a", "example.com/b"]));
    metadata
}

fn texts(random: &mut Random) -> Value {
    let names = ["a", "app.kubernetes.io/name", "c"];
    names[..random.next() as usize % 4]
        .iter()
        .map(|name| ((*name).to_owned(), json!("v")))
        .collect::<Map<_, _>>()
        .into()
}

fn maybe(random: &mut Random, object: &mut Value, name: &str, value: impl FnOnce(&mut Random) -> Value) {
    if one_in(random, 2) {
        object[name] = value(random);
    }
}

fn some(random: &mut Random, least: usize, item: impl Fn(&mut Random, usize) -> Value) -> Value {
    let count = least + random.next() as usize % 4;
    (0..count).map(|n| item(random, n)).collect()
}

/// Whether a case that comes once in so many times has come.
pub fn one_in(random: &mut Random, times: u64) -> bool {
    random.next().is_multiple_of(times)
}

fn pick<'a, T>(random: &mut Random, from: &'a [T]) -> &'a T {
    &from[random.next() as usize % from.len()]
}
