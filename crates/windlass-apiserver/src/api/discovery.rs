//! What is served, in the words of discovery: legacy and aggregated.

use http::HeaderValue;
use http::header::{ACCEPT, CACHE_CONTROL, ETAG, IF_NONE_MATCH, VARY};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha512};

use super::health;
use super::negotiate::{self, Output, Shape};
use super::options::Query;
use super::registry::{Registry, Resource, api_version};
use super::response::{Body, Response};
use super::route::{OpenId, Route};
use super::server::{Request, Server};
use super::token::Issuer;
use crate::codec::Format;

/// The content type of aggregated discovery; clients check that its parameters come back.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

impl Server {
    pub(super) fn discovery(&self, request: &Request, route: &Route, query: &Query<'_>) -> Response {
        if let Route::Groups { core } = route
            && wants_aggregated(request)
        {
            return self.aggregated(request, *core);
        }
        let output = match negotiate::output(&request.headers, query.get("pretty"), false) {
            Ok(output) => output,
            Err(status) => {
                let pretty = Output { format: Format::Json, pretty: true, shape: Shape::Object };
                return Response::refusal(&pretty, &status);
            }
        };
        let tree = match route {
            Route::Groups { core: true } => json!({
                "kind": "APIVersions",
                "versions": ["v1"],
                "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": self.config.address}],
            }),
            Route::Groups { core: false } => {
                let groups: Vec<_> =
                    self.registry.groups().iter().map(|g| group(&g.group, &g.versions)).collect();
                json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
            }
            Route::Group(name) => {
                let groups = self.registry.groups();
                let versions =
                    groups.iter().find(|g| g.group == *name).map(|g| g.versions.clone()).unwrap_or_default();
                let mut tree = Map::new();
                tree.insert("kind".into(), json!("APIGroup"));
                tree.insert("apiVersion".into(), json!("v1"));
                if let Value::Object(rest) = group(name, &versions) {
                    tree.extend(rest);
                }
                Value::Object(tree)
            }
            Route::Version(group, version) => resource_list(&self.registry, group, version),
            _ => unreachable!("only discovery routes come here"),
        };
        Response::tree(200, &output, &tree)
    }

    fn aggregated(&self, request: &Request, core: bool) -> Response {
        let items: Vec<Value> = if core {
            vec![aggregated_group(&self.registry, "", &["v1".to_owned()])]
        } else {
            self.registry
                .groups()
                .iter()
                .map(|g| aggregated_group(&self.registry, &g.group, &g.versions))
                .collect()
        };
        let tree = json!({
            "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items,
        });
        let mut bytes = Vec::new();
        crate::codec::write_value(&mut bytes, &tree);
        bytes.push(b'\n');
        cached(request, AGGREGATED, bytes)
    }

    pub(super) fn version(&self) -> Response {
        let body = serde_json::to_vec_pretty(&self.version_info()).expect("plain values");
        Response::new(200, "application/json", Body::Full(body.into()))
    }

    /// What `/version` says.
    pub fn version_info(&self) -> Value {
        let version = &self.config.version;
        let mut numbers = version.trim_start_matches('v').split('.');
        let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
        let previous =
            minor.parse::<u32>().map(|minor| minor.saturating_sub(1).to_string()).unwrap_or_default();
        json!({
            "major": major, "minor": minor,
            "emulationMajor": major, "emulationMinor": minor,
            "minCompatibilityMajor": major, "minCompatibilityMinor": previous,
            "gitVersion": version, "gitCommit": "", "gitTreeState": "clean",
            "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc", "platform": "linux/amd64",
        })
    }

    /// Tokens of service accounts are not issued here: there is an issuer, as everywhere, and it has no keys.
    pub(super) fn open_id(&self, what: OpenId) -> Response {
        let (content_type, tree) = match what {
            OpenId::Configuration => (
                "application/json",
                json!({
                    "issuer": "https://kubernetes.default.svc",
                    "jwks_uri": format!("https://{}/openid/v1/jwks", self.config.address),
                    "response_types_supported": ["id_token"],
                    "subject_types_supported": ["public"],
                    "id_token_signing_alg_values_supported": self.config.tokens.iter().map(|_| "ES256").collect::<Vec<_>>(),
                }),
            ),
            OpenId::Keys => {
                let keys: Vec<_> = self.config.tokens.iter().map(Issuer::jwk).collect();
                ("application/jwk-set+json", json!({"keys": keys}))
            }
        };
        let mut response = Response::new(200, content_type, Body::Full(tree.to_string().into()));
        response.headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
        response
    }

    pub(super) fn index(&self) -> Response {
        let mut paths =
            vec!["/api".to_owned(), "/api/v1".to_owned(), "/apis".to_owned(), "/apis/".to_owned()];
        for group in self.registry.groups() {
            paths.push(format!("/apis/{}", group.group));
            paths.extend(group.versions.iter().map(|version| format!("/apis/{}/{version}", group.group)));
        }
        for path in [
            "/.well-known/openid-configuration",
            "/metrics",
            "/openapi/v2",
            "/openapi/v3",
            "/openapi/v3/",
            "/openid/v1/jwks",
            "/version",
        ] {
            paths.push(path.to_owned());
        }
        paths.extend(health::paths());
        paths.sort();
        let body = serde_json::to_vec_pretty(&json!({"paths": paths})).expect("plain values");
        Response::new(200, "application/json", Body::Full(body.into()))
    }
}

/// An answer that clients keep: its ETag is the hash of its bytes, and who has it gets a 304.
pub(super) fn cached(request: &Request, content_type: &'static str, bytes: Vec<u8>) -> Response {
    let hash: String = Sha512::digest(&bytes).iter().map(|byte| format!("{byte:02X}")).collect();
    let tag = format!("\"{hash}\"");
    let known = request.headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let mut response = match known == Some(tag.as_str()) {
        true => Response::not_modified(),
        false => Response::new(200, content_type, Body::Full(bytes.into())),
    };
    response.headers.insert(ETAG, HeaderValue::from_str(&tag).expect("hex digits"));
    response.headers.insert(CACHE_CONTROL, HeaderValue::from_static("public"));
    response.headers.insert(VARY, HeaderValue::from_static("Accept"));
    response
}

/// Whether the client takes the aggregated form: kube-apiserver gives it to all who do, whatever else they take.
pub(super) fn wants_aggregated(request: &Request) -> bool {
    let accept = request.headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accept.split(',').any(|part| {
        let params: Vec<&str> = part.split(';').skip(1).map(str::trim).collect();
        let wanted = ["g=apidiscovery.k8s.io", "v=v2", "as=APIGroupDiscoveryList"];
        negotiate::media_type(part) == "application/json" && wanted.iter().all(|param| params.contains(param))
    })
}

fn group(name: &str, versions: &[String]) -> Value {
    let all: Vec<_> = versions
        .iter()
        .map(|version| json!({"groupVersion": api_version(name, version), "version": version}))
        .collect();
    let preferred = all.first().cloned().unwrap_or_default();
    json!({"name": name, "versions": all, "preferredVersion": preferred})
}

fn resource_list(registry: &Registry, group: &str, version: &str) -> Value {
    let mut resources = Vec::new();
    for resource in registry.resources(group, version) {
        resources.push(legacy(&resource));
        for sub in &resource.subresources {
            let mut entry = Map::new();
            entry.insert("name".into(), json!(format!("{}/{}", resource.plural, sub.name)));
            entry.insert("singularName".into(), json!(""));
            entry.insert("namespaced".into(), json!(resource.namespaced));
            if !sub.version.is_empty() {
                entry.insert("group".into(), json!(sub.group));
                entry.insert("version".into(), json!(sub.version));
            }
            entry.insert("kind".into(), json!(sub.kind));
            entry.insert("verbs".into(), json!(sub.verbs));
            resources.push(Value::Object(entry));
        }
    }
    let mut out = Map::new();
    out.insert("kind".into(), json!("APIResourceList"));
    // The list of the core group has no version of its own: it is older than that field.
    if !group.is_empty() {
        out.insert("apiVersion".into(), json!("v1"));
    }
    out.insert("groupVersion".into(), json!(api_version(group, version)));
    out.insert("resources".into(), Value::Array(resources));
    Value::Object(out)
}

fn legacy(resource: &Resource) -> Value {
    let mut entry = Map::new();
    entry.insert("name".into(), json!(resource.plural));
    entry.insert("singularName".into(), json!(resource.singular));
    entry.insert("namespaced".into(), json!(resource.namespaced));
    entry.insert("kind".into(), json!(resource.kind));
    entry.insert("verbs".into(), json!(resource.verbs));
    optional(&mut entry, "shortNames", &resource.short);
    optional(&mut entry, "categories", &resource.categories);
    if !resource.hash.is_empty() {
        entry.insert("storageVersionHash".into(), json!(resource.hash));
    }
    Value::Object(entry)
}

fn optional(entry: &mut Map<String, Value>, key: &str, list: &[crate::schema::Str]) {
    if !list.is_empty() {
        entry.insert(key.into(), json!(list));
    }
}

fn aggregated_group(registry: &Registry, group: &str, versions: &[String]) -> Value {
    let versions: Vec<_> = versions
        .iter()
        .map(|version| {
            let resources: Vec<_> =
                registry.resources(group, version).iter().map(|r| aggregated_resource(r)).collect();
            json!({"version": version, "resources": resources, "freshness": "Current"})
        })
        .collect();
    let metadata = if group.is_empty() { json!({}) } else { json!({"name": group}) };
    json!({"metadata": metadata, "versions": versions})
}

fn aggregated_resource(resource: &Resource) -> Value {
    // Only custom kinds and kinds of other groups say their group and version; clients fill the others in.
    let (group, version) =
        if resource.is_custom() { (&*resource.group, &*resource.version) } else { ("", "") };
    let mut entry = Map::new();
    entry.insert("resource".into(), json!(resource.plural));
    entry.insert("responseKind".into(), json!({"group": group, "version": version, "kind": resource.kind}));
    entry.insert("scope".into(), json!(if resource.namespaced { "Namespaced" } else { "Cluster" }));
    entry.insert("singularResource".into(), json!(resource.singular));
    entry.insert("verbs".into(), json!(resource.verbs));
    optional(&mut entry, "shortNames", &resource.short);
    optional(&mut entry, "categories", &resource.categories);
    let subresources: Vec<_> = resource
        .subresources
        .iter()
        .map(|sub| {
            let (group, version) = match (sub.version.is_empty(), resource.is_custom()) {
                (false, _) => (sub.group.as_str(), sub.version.as_str()),
                (true, true) => (&*resource.group, &*resource.version),
                (true, false) => ("", ""),
            };
            let kind = json!({"group": group, "version": version, "kind": sub.kind});
            json!({"subresource": sub.name, "responseKind": kind, "verbs": sub.verbs})
        })
        .collect();
    if !subresources.is_empty() {
        entry.insert("subresources".into(), json!(subresources));
    }
    Value::Object(entry)
}
