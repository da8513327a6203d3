//! Tables of every kind that can be listed: `tables.yaml`.

use std::sync::OnceLock;

use serde_json::{Value, json};
use windlass_apiserver::codec::{self, Format};

use super::{kinds, mutate};
use crate::rng::Rng;
use crate::sequence::{Step, Until, accept};

/// What a table is printed of.
struct Printed {
    /// The path of the collection.
    path: String,
    /// Whether it is cluster-wide, so that names must be unique in a run and objects should go.
    cluster: bool,
    /// Whether an instance takes something that there is little of.
    expensive: bool,
    /// The name, where it cannot be any.
    name: Option<String>,
    /// The object; without one, what is there from the start is shown.
    object: Option<Value>,
    /// Pointers and the values that may stand there.
    vary: Vec<(String, Vec<Value>)>,
}

fn all() -> &'static [Printed] {
    static ALL: OnceLock<Vec<Printed>> = OnceLock::new();
    ALL.get_or_init(|| {
        let parsed =
            codec::parse(include_bytes!("../../tables.yaml"), Format::Yaml).expect("tables.yaml is YAML");
        parsed.value.as_array().expect("a list").iter().map(read).collect()
    })
}

fn read(row: &Value) -> Printed {
    let path = row["path"].as_str().expect("a path").to_owned();
    let known = kinds::all().iter().find(|kind| kind.path == path);
    let vary = row["vary"].as_object().expect("`vary` is an object");
    Printed {
        cluster: row["cluster"] == true || known.is_some_and(|kind| kind.cluster),
        expensive: row["expensive"] == true,
        name: row["name"].as_str().map(str::to_owned),
        object: row.get("object").cloned().or_else(|| known.map(|kind| kind.object.clone())),
        vary: vary.iter().map(|(k, v)| (k.clone(), v.as_array().expect("a list").clone())).collect(),
        path,
    }
}

/// Two kinds, each with values that its printer looks at: the object alone, in a list, and in a list of its versions.
pub fn every(rng: &mut Rng) -> Vec<Step> {
    let mut steps = Vec::new();
    for _ in 0..2 {
        let kind = &all()[rng.below(all().len())];
        one(rng, kind, &mut steps);
    }
    steps
}

fn one(rng: &mut Rng, kind: &Printed, steps: &mut Vec<Step>) {
    let address = format!("{}.{}", rng.below(256), rng.below(256));
    let name = match &kind.name {
        Some(name) => name.replace("RANDOM", &address),
        None if kind.cluster => "{id}-t".to_owned(),
        None => "t".to_owned(),
    };
    let item = format!("{}/{name}", kind.path);
    if let Some(object) = &kind.object {
        let (mut object, mut status) = (object.clone(), json!({}));
        mutate::set(&mut object, "/metadata/name", json!(name));
        for _ in 0..1 + rng.below(5) {
            let (pointer, values) = &kind.vary[rng.below(kind.vary.len())];
            let tree = if pointer.starts_with("/status") { &mut status } else { &mut object };
            mutate::set(tree, pointer, values[rng.below(values.len())].clone());
        }
        // Some kinds say who made them, and the administrators are not the same.
        let create = Step::with("POST", kind.path.clone(), object).quiet();
        let create = create.header("impersonate-user", "maker").header("impersonate-group", "system:masters");
        steps.push(create);
        if status != json!({}) {
            steps.push(Step::patch("merge", format!("{item}/status"), status).quiet());
        }
    }
    if kind.path.ends_with("/customresourcedefinitions") {
        // The real server takes its time.
        let mut step = Step::new("GET", item.clone()).quiet();
        step.until = Some(Until { status: 200, at: "/status/conditions/1/status".into(), is: json!("True") });
        steps.push(step);
    }
    let include = rng.pick(&["", "", "includeObject=None", "includeObject=Object"]);
    let read = |path: String| Step::new("GET", path).header("accept", &accept("table"));
    steps.push(read(format!("{item}?{include}")));
    // Others of the kind may be there.
    steps.push(read(format!("{}?fieldSelector=metadata.name%3D{name}&{include}", kind.path)));
    if kind.object.is_some() && (kind.cluster || kind.expensive || rng.chance(30)) {
        // What an object looks like on its way out, where it does not go at once.
        steps.push(Step::new("DELETE", item.clone()).quiet());
        if !kind.cluster && !kind.expensive {
            steps.push(read(item));
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::Request;
    use http_body_util::{BodyExt as _, Full};

    use super::*;
    use crate::client::Endpoint as _;
    use crate::local::Local;

    /// It says how the machine is.
    const NOT_PRINTED: &str = "/api/v1/componentstatuses";

    async fn discover(root: &str) -> Vec<String> {
        let mut connection = Local::at(0).open().await.unwrap();
        let request = Request::get(root).header("accept", accept("aggregated"));
        let answer = connection.send(request.body(Full::new(Bytes::new())).unwrap()).await.unwrap();
        let tree: Value =
            serde_json::from_slice(&answer.into_body().collect().await.unwrap().to_bytes()).unwrap();
        let each = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
        let mut paths = Vec::new();
        for group in each(&tree, "items") {
            for version in each(&group, "versions") {
                for resource in each(&version, "resources") {
                    let path = [&group["metadata"]["name"], &version["version"]];
                    let path = path.map(|part| part.as_str().unwrap_or_default().to_owned()).join("/");
                    let scope = if resource["scope"] == "Namespaced" { "/namespaces/{ns}" } else { "" };
                    let name = resource["resource"].as_str().unwrap();
                    if each(&resource, "verbs").contains(&json!("list")) {
                        let path = path.trim_start_matches('/');
                        paths.push(format!("{root}/{path}{scope}/{name}"));
                    }
                }
            }
        }
        paths
    }

    #[tokio::test]
    async fn every_kind_that_can_be_listed_is_there() {
        let listed = [discover("/api").await, discover("/apis").await].concat();
        assert!(listed.len() > 55, "{}", listed.len());
        for path in listed {
            let there = path == NOT_PRINTED || all().iter().any(|kind| kind.path == path);
            assert!(there, "{path} is not in tables.yaml");
        }
    }
}
