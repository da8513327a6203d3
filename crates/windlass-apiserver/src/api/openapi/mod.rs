//! OpenAPI v3: an index, and a document for each group and version, built from the type table when it is asked for.

mod paths;
mod schemas;

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock};

use bytes::Bytes;
use http::HeaderValue;
use http::header::{ACCEPT, CACHE_CONTROL, ETAG, IF_NONE_MATCH, VARY};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha512};

use super::registry::Flavor;
use super::response::{Body, Response};
use super::server::{Request, Server};
use crate::crd;

impl Server {
    pub(super) fn openapi(&self, path: &str, request: &Request) -> Response {
        if path.is_empty() {
            let mut body = Vec::new();
            crate::codec::write_value(&mut body, &self.openapi_index());
            return Response::new(200, "text/plain; charset=utf-8", Body::Full(body.into()));
        }
        if !acceptable(request) {
            return Response::text(406, "406 Not Acceptable\n");
        }
        match self.group_version(path) {
            Some((group, version)) => self.openapi_document(path, &group, &version, request),
            None => Response::text(404, "404 page not found\n"),
        }
    }

    /// The old format, without definitions: kubectl asks for it only when version 3 does not know a kind, and must
    /// read something before it says so. That is also the moment to say why the kind may be unknown.
    pub(super) fn openapi_v2(&self, request: &Request) -> Response {
        const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
        let accept = request.headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let version = self.config.version.as_str();
        let mut response = if accept.contains("proto-openapi.spec.v2") {
            let field = |number: u8, bytes: &[u8]| [&[number << 3 | 2, bytes.len() as u8], bytes].concat();
            let info = [field(1, b"Kubernetes"), field(2, version.as_bytes())].concat();
            let document = [field(1, b"2.0"), field(2, &info), field(8, b""), field(9, b"")].concat();
            Response::new(200, PROTOBUF, Body::Full(document.into()))
        } else {
            let info = json!({"title": "Kubernetes", "version": version});
            let tree = json!({"swagger": "2.0", "info": info, "paths": {}, "definitions": {}});
            Response::new(200, "application/json", Body::Full(tree.to_string().into()))
        };
        response.warn(&[crd::v1beta1_hint()]);
        response
    }

    /// All documents, with the hash of each in its address: who has it need not ask again.
    fn openapi_index(&self) -> Value {
        let mut paths = Map::new();
        let mut add = |path: String, hash: String| {
            let address = format!("/openapi/v3/{path}?hash={hash}");
            paths.insert(path, json!({"serverRelativeURL": address}));
        };
        add("api/v1".into(), self.openapi_hash("", "v1"));
        for group in self.registry.groups() {
            for version in &group.versions {
                add(format!("apis/{}/{version}", group.group), self.openapi_hash(&group.group, version));
            }
        }
        let mut tree = json!({ "paths": paths });
        tree.sort_all_objects();
        tree
    }

    /// `api/v1` or `apis/<group>/<version>`, if it is served.
    fn group_version(&self, path: &str) -> Option<(String, String)> {
        let parts: Vec<&str> = path.split('/').collect();
        let (group, version) = match parts.as_slice() {
            ["api", version] => ("", *version),
            ["apis", group, version] if !group.is_empty() => (*group, *version),
            _ => return None,
        };
        self.registry.has_group(group, version).then(|| (group.to_owned(), version.to_owned()))
    }

    /// Changes when the document does: built-in documents with the server's version, others with their definitions.
    fn openapi_hash(&self, group: &str, version: &str) -> String {
        let mut hasher = Sha512::new();
        hasher.update(format!("{}/{}/{group}/{version}", env!("CARGO_PKG_VERSION"), self.config.version));
        for resource in self.registry.resources(group, version) {
            if let Flavor::Custom { definition, version, .. } = &resource.flavor {
                hasher.update(definition.versions[*version].open_api().to_string());
                hasher.update(format!("{resource:?} {:?}", resource.short));
            }
        }
        hasher.finalize().iter().map(|byte| format!("{byte:02X}")).collect()
    }

    fn openapi_document(&self, path: &str, group: &str, version: &str, request: &Request) -> Response {
        let tag = format!("\"{}\"", self.openapi_hash(group, version));
        let known = request.headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok());
        let mut response = match known.is_some_and(|known| known.split(',').any(|one| one.trim() == tag)) {
            true => Response::new(304, "application/json", Body::Full(Bytes::new())),
            false => {
                Response::new(200, "application/json", Body::Full(self.openapi_bytes(path, group, version)))
            }
        };
        response.headers.insert(ETAG, HeaderValue::from_str(&tag).expect("hex digits"));
        response.headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
        response.headers.insert(VARY, HeaderValue::from_static("Accept"));
        response
    }

    /// The document. Those of built-in kinds never change, so all servers of a process share them.
    fn openapi_bytes(&self, path: &str, group: &str, version: &str) -> Bytes {
        static BUILTIN: OnceLock<Mutex<BTreeMap<String, Bytes>>> = OnceLock::new();
        let custom = self.registry.resources(group, version).iter().any(|resource| resource.is_custom());
        if custom {
            return self.build(group, version);
        }
        let key = format!("{} {path}", self.config.version);
        let cache = BUILTIN.get_or_init(Mutex::default);
        if let Some(bytes) = cache.lock().expect("nothing panics in here").get(&key) {
            return bytes.clone();
        }
        let bytes = self.build(group, version);
        cache.lock().expect("nothing panics in here").insert(key, bytes.clone());
        bytes
    }

    fn build(&self, group: &str, version: &str) -> Bytes {
        let mut schemas = schemas::Schemas::new(group, version);
        let mut all = Map::new();
        for resource in self.registry.resources(group, version) {
            let (name, list) = match &resource.flavor {
                Flavor::Builtin { .. } => schemas.builtin(&resource),
                Flavor::Custom { definition, version, .. } => {
                    custom(&mut schemas, &definition.versions[*version])
                }
            };
            paths::resource(&resource, &name, list.as_deref(), &mut schemas, &mut all);
        }
        let base =
            if group.is_empty() { format!("/api/{version}/") } else { format!("/apis/{group}/{version}/") };
        all.insert(base, paths::index(group, version, &mut schemas));
        let mut tree = json!({
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": self.config.version.trim_start_matches('v')},
            "paths": all,
            "components": {
                "schemas": schemas.finish(),
                "securitySchemes": {"BearerToken": {
                    "type": "apiKey", "description": "Bearer Token authentication", "name": "authorization", "in": "header",
                }},
            },
        });
        for part in ["/paths", "/components/schemas"] {
            if let Some(part) = tree.pointer_mut(part).and_then(Value::as_object_mut) {
                part.sort_keys();
            }
        }
        let mut bytes = Vec::new();
        crate::codec::write_value(&mut bytes, &tree);
        bytes.into()
    }
}

/// The schemas of a custom kind and its list.
fn custom(schemas: &mut schemas::Schemas, version: &crd::Version) -> (String, Option<String>) {
    let name = version.open_api_name();
    let list = format!("{name}List");
    schemas.add(&name, version.open_api());
    schemas.add(&list, version.open_api_list());
    schemas.need("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    schemas.need("io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta");
    (name, Some(list))
}

fn acceptable(request: &Request) -> bool {
    let accept = request.headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("*/*");
    accept.split(',').any(|part| {
        matches!(super::negotiate::media_type(part), "application/json" | "*/*" | "application/*" | "")
    })
}

/// `apps_v1`, or `core_v1`: how operations are grouped.
fn tag(group: &str, version: &str) -> String {
    let short = group.split('.').next().unwrap_or_default();
    format!("{}_{version}", if short.is_empty() { "core" } else { short })
}

/// `AppsV1`, as in operation names.
fn camel(group: &str, version: &str) -> String {
    let short = group.split('.').next().unwrap_or_default();
    let upper = |text: &str| text[..1].to_ascii_uppercase() + &text[1..];
    format!("{}{}", upper(if short.is_empty() { "core" } else { short }), upper(version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_operations_follow_the_group() {
        assert_eq!(tag("", "v1"), "core_v1");
        assert_eq!(tag("rbac.authorization.k8s.io", "v1"), "rbac_v1");
        assert_eq!(camel("apps", "v1"), "AppsV1");
    }
}
