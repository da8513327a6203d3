//! What is asked for and how: discovery, media types, paths, methods, users.

use serde_json::json;

use super::kinds;
use super::mutate;
use crate::proto;
use crate::rng::Rng;
use crate::sequence::{self, Payload, Step};

const CONFIG_MAPS: &str = "/api/v1/namespaces/{ns}/configmaps";

const GROUPS: [&str; 18] = [
    "apps/v1",
    "batch/v1",
    "policy/v1",
    "autoscaling/v2",
    "autoscaling/v1",
    "coordination.k8s.io/v1",
    "discovery.k8s.io/v1",
    "events.k8s.io/v1",
    "rbac.authorization.k8s.io/v1",
    "networking.k8s.io/v1",
    "storage.k8s.io/v1",
    "apiextensions.k8s.io/v1",
    "admissionregistration.k8s.io/v1",
    "scheduling.k8s.io/v1",
    "node.k8s.io/v1",
    "certificates.k8s.io/v1",
    "authorization.k8s.io/v1",
    "apiregistration.k8s.io/v1",
];

/// An `Accept` that is right, odd or wrong.
fn accept_header(rng: &mut Rng) -> String {
    let one = |rng: &mut Rng| {
        let base = rng.pick(&[
            "application/json",
            "application/yaml",
            "*/*",
            "application/*",
            "text/html",
            "text/plain",
            "application/xml",
        ]);
        let parameter = rng.pick(&[
            "",
            "",
            "",
            ";q=0.9",
            ";q=0.1",
            ";charset=utf-8",
            ";stream=watch",
            ";as=Table;v=v1;g=meta.k8s.io",
            ";as=Table;v=v1beta1;g=meta.k8s.io",
            ";as=Table;v=v2;g=meta.k8s.io",
            ";as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
            ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
            ";as=Nothing;v=v1;g=meta.k8s.io",
            ";pretty=1",
        ]);
        format!("{base}{parameter}")
    };
    let mut out = one(rng);
    for _ in 0..rng.below(3) {
        out = format!("{out},{}{}", rng.pick(&["", " "]), one(rng));
    }
    out
}

pub fn version(rng: &mut Rng) -> Vec<Step> {
    let path = rng.pick(&[
        "/version",
        "/version/",
        "/version?timeout=5s",
        "/version?pretty=1",
        "/version?timeout=32s",
    ]);
    let mut step = Step::new(rng.pick(&["GET", "GET", "GET", "HEAD"]), path);
    if rng.chance(40) {
        step = step.header("authorization", "");
    }
    if rng.chance(40) {
        step = step.header("accept", &accept_header(rng));
    }
    vec![step]
}

pub fn legacy(rng: &mut Rng) -> Vec<Step> {
    let path = rng.pick(&["/api", "/apis", "/api/", "/apis/", "/api?timeout=32s", "/apis?timeout=32s"]);
    let accept = rng.pick(&[
        "application/json",
        "application/json, */*",
        "application/yaml",
        "*/*",
        "application/json;q=0.5",
    ]);
    vec![Step::new("GET", path).header("accept", accept)]
}

pub fn aggregated(rng: &mut Rng) -> Vec<Step> {
    let version = rng.pick(&["v2", "v2", "v2beta1", "v3"]);
    let one = format!("application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList");
    let accept = match rng.below(4) {
        0 => one,
        1 => format!("{one},application/json"),
        2 => format!(
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,{one},application/json"
        ),
        _ => format!("application/json,{one}"),
    };
    vec![Step::new("GET", rng.pick(&["/api", "/apis"])).header("accept", &accept)]
}

pub fn etag(rng: &mut Rng) -> Vec<Step> {
    let path = rng.pick(&[
        "/api",
        "/apis",
        "/openapi/v3",
        "/openapi/v3/apis/apps/v1",
        "/openapi/v3/api/v1",
        "/openapi/v3/apis/batch/v1",
    ]);
    let accept =
        if path.starts_with("/api") { sequence::accept("aggregated") } else { "application/json".into() };
    let first = Step::new("GET", path).header("accept", &accept).capture("etag", "header:etag").quiet();
    let second = |tag: &str| Step::new("GET", path).header("accept", &accept).header("if-none-match", tag);
    vec![first, second("{etag}"), second(rng.pick(&["\"other\"", "*", "W/{etag}", "", "{etag}, \"x\""]))]
}

pub fn group(rng: &mut Rng) -> Vec<Step> {
    let group = rng.pick(&GROUPS);
    let name = group.split('/').next().unwrap_or_default();
    let path = match rng.below(3) {
        0 => format!("/apis/{name}"),
        1 => format!("/apis/{group}{}", rng.pick(&["", "/", "?timeout=32s"])),
        _ => "/api/v1".into(),
    };
    vec![
        Step::new("GET", path)
            .header("accept", rng.pick(&["application/json", "application/yaml", "application/json, */*"])),
    ]
}

pub fn openapi_index(rng: &mut Rng) -> Vec<Step> {
    let accept = rng.pick(&[
        "application/json",
        "*/*",
        "application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
        "text/plain",
        "application/json, */*",
    ]);
    // The definitions of other sequences come and go in this index: only that it answers is compared.
    let step = Step::new("HEAD", "/openapi/v3").header("accept", accept);
    vec![
        step,
        Step::new("HEAD", rng.pick(&["/openapi/v3/", "/openapi/v3?timeout=32s", "/openapi/v3/nothing"])),
    ]
}

pub fn openapi_document(rng: &mut Rng) -> Vec<Step> {
    let group = rng.pick(&GROUPS);
    let path = match rng.below(4) {
        0 => format!("/openapi/v3/apis/{}", group.split('/').next().unwrap_or_default()),
        1 => "/openapi/v3/version".into(),
        2 => "/openapi/v3/api/v1".into(),
        _ => format!("/openapi/v3/apis/{group}"),
    };
    vec![Step::new("GET", path)]
}

pub fn health(rng: &mut Rng) -> Vec<Step> {
    let path = rng.pick(&[
        "/healthz",
        "/livez",
        "/readyz",
        "/healthz/ping",
        "/livez/ping",
        "/readyz/ping",
        "/healthz/nothing",
        "/healthz/",
        "/livez?verbose",
        "/readyz?verbose=1&exclude=etcd",
        "/healthz?verbose&exclude=etcd&exclude=nothing&exclude=none",
        "/readyz?exclude=nothing",
        "/readyz/poststarthook/rbac/bootstrap-roles",
        "/livez/etcd?verbose",
        "/livez/informer-sync",
    ]);
    let mut step = Step::new(rng.pick(&["GET", "GET", "HEAD"]), path);
    if rng.chance(50) {
        step = step.header("authorization", "");
    }
    vec![step]
}

pub fn unknown_path(rng: &mut Rng) -> Vec<Step> {
    let path = rng.pick(&[
        "/nothing",
        "/api/v2",
        "/api/v1/nothings",
        "/api/v1/namespaces/{ns}/nothings",
        "/api/v1/namespaces/{ns}/nothings/a",
        "/api/v1/namespaces/{ns}/configmaps/a/nothing",
        "/api/v1/namespaces/{ns}/pods/a/nothing",
        "/apis/nothing",
        "/apis/nothing/v1",
        "/apis/nothing/v1/things",
        "/apis/apps/v9",
        "/apis/apps/v9/deployments",
        "/apis/apps/v1/nothings",
        "/apis/apps/v1/namespaces/{ns}/nothings/a",
        "/apis/apps/v1/namespaces/{ns}/deployments/a/nothing",
        "/apis/apps/v1/namespaces/{ns}/deployments/a/status/x",
        "//api/v1",
        "/api//v1",
        "/API/v1",
        "/api/v1/namespaces/{ns}/ConfigMaps",
        "/api/v1/namespaces/{ns}/configmap",
        "/api/v1/watch/nothings",
        "/apis/apiextensions.k8s.io/v1beta1/customresourcedefinitions",
        "/apis/extensions/v1beta1/ingresses",
        "/apis/batch/v1beta1/cronjobs",
        "/apis/policy/v1beta1/podsecuritypolicies",
        "/openapi/v4",
        "/api/v1/nodes/{id}-none",
        "/api/v1/componentstatuses/none",
    ]);
    let method = rng.pick(&["GET", "GET", "POST", "PUT", "DELETE", "PATCH"]);
    let step = match method {
        "POST" | "PUT" => Step::with(method, path, json!({"metadata": {"name": "a"}})),
        "PATCH" => Step::patch("merge", path, json!({})),
        _ => Step::new(method, path),
    };
    vec![step]
}

pub fn method(rng: &mut Rng) -> Vec<Step> {
    let (method, path) = match rng.below(12) {
        0 => ("PUT", CONFIG_MAPS),
        1 => ("PATCH", CONFIG_MAPS),
        2 => ("POST", "/api/v1/namespaces/{ns}/configmaps/a"),
        3 => ("POST", "/api/v1/configmaps"),
        4 => ("DELETE", "/api/v1/configmaps"),
        5 => ("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
        6 => ("POST", "/api/v1/componentstatuses"),
        7 => ("DELETE", "/apis/apps/v1/namespaces/{ns}/deployments/a/scale"),
        8 => ("POST", "/apis/apps/v1/namespaces/{ns}/deployments/a/status"),
        9 => ("GET", "/api/v1/namespaces/{ns}/pods/a/binding"),
        10 => ("OPTIONS", CONFIG_MAPS),
        _ => ("DELETE", "/version"),
    };
    let step = match method {
        "POST" | "PUT" => Step::with(method, path, json!({"metadata": {"name": "a"}})),
        "PATCH" => Step::patch("merge", path, json!({})),
        _ => Step::new(method, path),
    };
    vec![step]
}

pub fn accept(rng: &mut Rng) -> Vec<Step> {
    let create = Step::with("POST", CONFIG_MAPS, json!({"metadata": {"name": "a"}, "data": {"a": "b"}}));
    let accept = accept_header(rng);
    let step = match rng.below(5) {
        0 => Step::new("GET", CONFIG_MAPS),
        1 => Step::new("DELETE", format!("{CONFIG_MAPS}/a")),
        2 => Step::new("GET", format!("{CONFIG_MAPS}/missing")),
        3 => Step::with("POST", CONFIG_MAPS, json!({"metadata": {"name": "b"}})),
        _ => Step::new("GET", format!("{CONFIG_MAPS}/a")),
    };
    vec![create, step.header("accept", &accept)]
}

pub fn body(rng: &mut Rng) -> Vec<Step> {
    let text = rng.pick(&[
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}"#,
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: yes, b: 1}\n",
        "a: b: c",
        "{",
        "[]",
        "null",
        "\"text\"",
        "",
        "\u{feff}{}",
        r#"{"metadata":{"name":"a"}} trailing"#,
        r#"{"metadata":{"name":"a"}}{"metadata":{"name":"b"}}"#,
        "metadata: {name: a}\n---\nmetadata: {name: b}\n",
        r#"{"metadata":{"name":"a"},"data":{"n":1}}"#,
        r#"{"metadata":{"name":5}}"#,
        r#"{"metadata":[]}"#,
        r#"{"metadata":{"name":"a","labels":{"x":null}}}"#,
        r#"{"METADATA":{"name":"a"}}"#,
        r#"{"metadata":{"Name":"a"}}"#,
        "{\"metadata\":{\"name\":\"\\ud800\"}}",
        r#"{"kind":"List","apiVersion":"v1","items":[]}"#,
        r#"{"kind":5,"metadata":{"name":"a"}}"#,
    ]);
    let media_type = rng.pick(&[
        "application/json",
        "application/json",
        "application/yaml",
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
        "text/plain",
        "",
        "application/json; charset=utf-8",
        "application/x-www-form-urlencoded",
        "application/merge-patch+json",
    ]);
    let method = rng.pick(&["POST", "POST", "POST", "PUT", "DELETE"]);
    let path = if method == "POST" { CONFIG_MAPS.to_owned() } else { format!("{CONFIG_MAPS}/a") };
    let step = Step { body: Payload::Text(text.into()), ..Step::new(method, path) };
    vec![step.header("content-type", media_type)]
}

pub fn protobuf(rng: &mut Rng) -> Vec<Step> {
    loop {
        let kind = kinds::any(rng);
        let count = rng.below(4);
        let mut body = kind.varied(rng, "a", count);
        mutate::metadata(rng, &mut body);
        // A value that is not of its type cannot be sent this way.
        if proto::encode(&kind.type_name, &body).is_err() {
            continue;
        }
        let media_type = "application/vnd.kubernetes.protobuf";
        let payload = Payload::Proto(kind.type_name.clone(), body);
        let create = Step { body: payload.clone(), ..Step::new("POST", kind.path.clone()) };
        let mut steps = vec![create.header("content-type", media_type), Step::new("GET", kind.item("a"))];
        if rng.chance(30) {
            let update = Step { body: payload, ..Step::new("PUT", kind.item("a")) };
            steps.push(update.header("content-type", media_type));
        }
        if kind.expensive {
            steps.push(Step::new("DELETE", kind.item("a")).quiet());
        }
        return steps;
    }
}

pub fn pretty(rng: &mut Rng) -> Vec<Step> {
    let create = Step::with("POST", CONFIG_MAPS, json!({"metadata": {"name": "a"}, "data": {"a": "b"}}));
    let query =
        rng.pick(&["", "?pretty=1", "?pretty=true", "?pretty=0", "?pretty=false", "?pretty", "?pretty=x"]);
    let agent = rng.pick(&[
        "curl/8.0",
        "Wget/1.2",
        "Mozilla/5.0 (X11)",
        "kubectl/v1.36",
        "Go-http-client/1.1",
        "curlx",
    ]);
    let path = rng.pick(&["/a", "", "/missing"]);
    let step = Step::new("GET", format!("{CONFIG_MAPS}{path}{query}")).header("user-agent", agent);
    vec![create, step.clone(), step.header("accept", &accept_header(rng))]
}

pub fn identity(rng: &mut Rng) -> Vec<Step> {
    let authorization = rng.pick(&[
        "Bearer wrong",
        "Bearer ",
        "Basic YTpi",
        "Bearer a b",
        "bearer wrong",
        "Nonsense",
        "Bearer wrong",
    ]);
    let path = rng.pick(&[
        "/api/v1/namespaces",
        "/version",
        "/healthz",
        "/apis",
        "/nothing",
        "/api/v1/namespaces/default/configmaps",
        "/openapi/v3",
    ]);
    vec![Step::new("GET", path).header("authorization", authorization)]
}
