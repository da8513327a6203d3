//! OpenAPI v3: an index, and a document for each group and version, built from the type table when it is asked for.
//! OpenAPI v2 is one document, made of those.

mod data;
mod gnostic;
mod operation;
mod paths;
mod schemas;
mod v2;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock};

use bytes::Bytes;
use http::HeaderValue;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, LOCATION, USER_AGENT, VARY};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha512};

use super::options::Query;
use super::registry::{Flavor, Resource};
use super::response::{Body, Response};
use super::server::{Request, Server};
use crate::crd;

impl Server {
    pub(super) fn openapi(&self, path: &str, request: &Request) -> Response {
        if path.is_empty() {
            // The index has no tag, but whoever is content with any version of it has one.
            if known_tags(request).any(|one| one == "*") {
                return empty(304);
            }
            let mut body = Vec::new();
            crate::codec::write_value(&mut body, &self.openapi_index());
            return Response::new(200, "text/plain; charset=utf-8", Body::Full(body.into()));
        }
        let Some(hash) = self.openapi_hash(path) else { return empty(404) };
        if !acceptable(request) {
            let mut response = empty(406);
            response.headers.insert(VARY, HeaderValue::from_static("Accept"));
            return response;
        }
        self.openapi_document(path, &hash, request)
    }

    /// The old format: one document of everything, as JSON or as protobuf. kubectl asks for it also when version 3 does not
    /// know a kind: the moment to say why that may be.
    pub(super) fn openapi_v2(&self, request: &Request) -> Response {
        // Clients ask for `v2@v1.0`. The answer is called so because `@` is in no media type, and Go refuses one that has it.
        const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
        let accept = request.headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let is_protobuf = accept.contains("proto-openapi.spec.v2");
        let names = self.openapi_names();
        let mut hasher = Sha512::new();
        for name in &names {
            hasher.update(self.openapi_hash(name).unwrap_or_default());
        }
        hasher.update([u8::from(is_protobuf)]);
        let hash = hex(hasher);
        let tag = format!("\"{hash}\"");
        let mut known = known_tags(request).map(|one| one.strip_prefix("W/").unwrap_or(one));
        let mut response = if known.any(|one| one == tag || one == "*") {
            empty(304)
        } else {
            let kind = if is_protobuf { PROTOBUF } else { "application/json" };
            Response::new(200, kind, Body::Full(self.openapi_v2_bytes(&names, hash, is_protobuf)))
        };
        response.headers.insert(ETAG, HeaderValue::from_str(&tag).expect("hex digits"));
        response.headers.insert(VARY, HeaderValue::from_static("Accept"));
        let asks = request.headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if asks.starts_with("kubectl") {
            response.warn(&[crd::v1beta1_hint()]);
        }
        response
    }

    /// The document, by its hash: it is some megabytes, and stays the same until a definition changes.
    fn openapi_v2_bytes(&self, names: &BTreeSet<String>, hash: String, is_protobuf: bool) -> Bytes {
        /// Those of servers that do not change meanwhile, in both forms.
        const KEPT: usize = 4;
        static CACHE: OnceLock<Mutex<BTreeMap<String, Bytes>>> = OnceLock::new();
        let cache = CACHE.get_or_init(Mutex::default);
        if let Some(bytes) = cache.lock().expect("nothing panics in here").get(&hash) {
            return bytes.clone();
        }
        let mut gathered = v2::Gathered::default();
        // What both have is said by those of built-in kinds.
        let (known, custom): (Vec<_>, Vec<_>) =
            names.iter().partition(|name| data::documents().contains_key(*name));
        for name in known.iter().chain(&custom) {
            gathered.add(name, self.openapi_tree(name), !data::documents().contains_key(*name));
        }
        let tree = gathered.finish(self.info_version());
        let bytes: Bytes = match is_protobuf {
            true => gnostic::document(&tree).into(),
            false => {
                let mut bytes = Vec::new();
                crate::codec::write_value(&mut bytes, &tree);
                bytes.into()
            }
        };
        let mut cache = cache.lock().expect("nothing panics in here");
        if cache.len() >= KEPT {
            cache.clear();
        }
        cache.insert(hash, bytes.clone());
        bytes
    }

    /// The documents that are served.
    fn openapi_names(&self) -> BTreeSet<String> {
        let builtin = data::documents().keys().cloned();
        let groups = self.registry.groups().into_iter();
        let custom = groups.flat_map(|group| {
            group.versions.into_iter().map(move |version| format!("apis/{}/{version}", group.group))
        });
        builtin.chain(custom).filter(|name| self.openapi_hash(name).is_some()).collect()
    }

    /// All documents, with the hash of each in its address: who has it need not ask again.
    fn openapi_index(&self) -> Value {
        let entry = |name: String| {
            let address = address(&name, &self.openapi_hash(&name)?);
            Some((name, json!({"serverRelativeURL": address})))
        };
        let paths: Map<String, Value> = self.openapi_names().into_iter().filter_map(entry).collect();
        json!({ "paths": paths })
    }

    /// The hash of a document that is served. Built-in documents have that of their content, which is known; others
    /// one that changes when their definitions do.
    fn openapi_hash(&self, name: &str) -> Option<String> {
        // Documents of what is not served here are not served either.
        super::route::route(&self.registry, &format!("/{name}")).ok()?;
        let known = data::documents().get(name).map(|document| document.hash.as_str());
        let custom = self.custom_resources(name);
        if let (Some(known), true, true) = (known, custom.is_empty(), self.info_version() == KNOWN_VERSION) {
            return Some(known.to_owned());
        }
        if known.is_none() && custom.is_empty() {
            return None;
        }
        let mut hasher = Sha512::new();
        hasher.update(format!(
            "{}/{}/{name}/{}",
            env!("CARGO_PKG_VERSION"),
            self.info_version(),
            known.unwrap_or_default()
        ));
        for resource in custom {
            if let Flavor::Custom { definition, version, .. } = &resource.flavor {
                hasher.update(definition.versions[*version].open_api().to_string());
                hasher.update(format!("{resource:?} {:?}", resource.subresources));
            }
        }
        Some(hex(hasher))
    }

    fn custom_resources(&self, name: &str) -> Vec<Arc<Resource>> {
        let (group, version) = group_version(name).unwrap_or_default();
        let mut resources = self.registry.resources(group, version);
        resources.retain(|resource| resource.is_custom());
        resources
    }

    /// `1.36` of `v1.36.4`.
    fn info_version(&self) -> &str {
        let version = self.config.version.trim_start_matches('v');
        version.match_indices('.').nth(1).map_or(version, |(at, _)| &version[..at])
    }

    fn openapi_document(&self, name: &str, hash: &str, request: &Request) -> Response {
        let tag = format!("\"{hash}\"");
        let asked = Query::parse(request.uri.query().unwrap_or_default()).get("hash").map(str::to_owned);
        let asked = asked.filter(|asked| !asked.is_empty());
        let known = known_tags(request);
        let mut response = if asked.as_deref().is_some_and(|asked| asked != hash) {
            let mut response = Response::new(301, "application/json", Body::Full(Bytes::new()));
            let address =
                HeaderValue::from_str(&address(name, hash)).expect("names of groups, and hex digits");
            response.headers.insert(LOCATION, address);
            response
        } else if known.map(|one| one.strip_prefix("W/").unwrap_or(one)).any(|one| one == tag || one == "*") {
            empty(304)
        } else {
            Response::new(200, "application/json", Body::Full(self.openapi_bytes(name)))
        };
        response.headers.insert(ETAG, HeaderValue::from_str(&tag).expect("hex digits"));
        response.headers.insert(VARY, HeaderValue::from_static("Accept"));
        if asked.as_deref() == Some(hash) {
            response.headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
        }
        response
    }

    /// The document. Those of built-in kinds never change, so all servers of a process share them.
    fn openapi_bytes(&self, name: &str) -> Bytes {
        static BUILTIN: OnceLock<Mutex<BTreeMap<String, Bytes>>> = OnceLock::new();
        if !self.custom_resources(name).is_empty() {
            return self.build(name);
        }
        let key = format!("{} {name}", self.info_version());
        let cache = BUILTIN.get_or_init(Mutex::default);
        if let Some(bytes) = cache.lock().expect("nothing panics in here").get(&key) {
            return bytes.clone();
        }
        let bytes = self.build(name);
        cache.lock().expect("nothing panics in here").insert(key, bytes.clone());
        bytes
    }

    fn build(&self, name: &str) -> Bytes {
        let mut bytes = Vec::new();
        crate::codec::write_value(&mut bytes, &self.openapi_tree(name));
        bytes.into()
    }

    fn openapi_tree(&self, name: &str) -> Value {
        let known = data::documents().get(name);
        let (group, version) = group_version(name).unwrap_or_default();
        let mut schemas = schemas::Schemas::new(group, version, known.is_none());
        let mut all = Map::new();
        if let Some(paths) = known.and_then(|known| known.paths.as_ref()) {
            schemas.need_all(paths);
            all = paths.clone();
        } else {
            for resource in self.registry.resources(group, version) {
                let (name, list) = match &resource.flavor {
                    Flavor::Builtin { .. } => schemas.builtin(&resource),
                    Flavor::Custom { definition, version, .. } => {
                        custom(&mut schemas, &definition.versions[*version])
                    }
                };
                paths::resource(&resource, &name, list.as_deref(), &mut schemas, &mut all);
            }
            if known.is_some() {
                all.insert(format!("/{name}/"), paths::index(group, version, &mut schemas));
            }
        }
        all.sort_keys();
        let mut components = Map::new();
        let schemas = schemas.finish();
        if !schemas.is_empty() {
            components.insert("schemas".into(), Value::Object(schemas));
        }
        let mut info = json!({"title": "Kubernetes CRD Swagger", "version": "v0.1.0"});
        if known.is_some() {
            info = json!({"title": "Kubernetes", "version": self.info_version()});
            let token = json!({
                "type": "apiKey", "description": "Bearer Token authentication", "name": "authorization", "in": "header",
            });
            components.insert("securitySchemes".into(), json!({ "BearerToken": token }));
        }
        json!({"openapi": "3.0.0", "info": info, "paths": all, "components": components})
    }
}

/// The version whose documents the table has the hashes of.
const KNOWN_VERSION: &str = "1.36";

/// Where a document with this hash is.
fn address(name: &str, hash: &str) -> String {
    format!("/openapi/v3/{name}?hash={hash}")
}

fn hex(hasher: Sha512) -> String {
    hasher.finalize().iter().map(|byte| format!("{byte:02X}")).collect()
}

/// `api/v1` or `apis/<group>/<version>`.
fn group_version(name: &str) -> Option<(&str, &str)> {
    match name.split('/').collect::<Vec<_>>().as_slice() {
        ["api", version] => Some(("", *version)),
        ["apis", group, version] => Some((*group, *version)),
        _ => None,
    }
}

/// The tags of what the client has, as far as the header can be read.
fn known_tags(request: &Request) -> impl Iterator<Item = &str> {
    let known = request.headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let readable = |one: &&str| *one == "*" || one.strip_prefix("W/").unwrap_or(one).starts_with('"');
    known.split(',').map(str::trim).take_while(readable)
}

/// An answer without a body, and so without a content type.
fn empty(code: u16) -> Response {
    let mut response = Response::new(code, "application/json", Body::Full(Bytes::new()));
    response.headers.remove(CONTENT_TYPE);
    response
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
    let name = short(group);
    format!("{}{}_{version}", name[..1].to_ascii_lowercase(), &name[1..])
}

/// `AppsV1`, as in operation names.
fn camel(group: &str, version: &str) -> String {
    format!("{}{}", short(group), capital(version))
}

/// `RbacAuthorization` of `rbac.authorization.k8s.io`.
fn short(group: &str) -> String {
    if group.is_empty() {
        return "Core".into();
    }
    group.strip_suffix(".k8s.io").unwrap_or(group).split('.').map(capital).collect()
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Config;
    use crate::store::Store;

    #[test]
    fn names_of_operations_follow_the_group() {
        assert_eq!(tag("", "v1"), "core_v1");
        assert_eq!(tag("rbac.authorization.k8s.io", "v1"), "rbacAuthorization_v1");
        assert_eq!(camel("apps", "v1"), "AppsV1");
        assert_eq!(camel("oa.example.com", "v1alpha1"), "OaExampleComV1alpha1");
    }

    #[test]
    fn the_old_document_has_a_type_that_go_can_read() {
        let server = Server::restore(Config::default(), Store::default());
        let accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
        let request = Request {
            method: http::Method::GET,
            uri: "/openapi/v2".parse().unwrap(),
            headers: [(ACCEPT, accept.parse().unwrap())].into_iter().collect(),
            body: bytes::Bytes::new(),
            user: crate::api::User::admin().into(),
        };
        let kind = &server.openapi_v2(&request).headers[http::header::CONTENT_TYPE];
        assert_eq!(kind, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf");
    }

    /// The hash is of what kube-apiserver 1.36.4 answers to `/openapi/v2`, with the keys of all objects in order.
    #[test]
    fn the_document_of_version_2_is_that_of_a_real_server() {
        const REAL: &str = "28097AD0715778751018BE41818709729D733095E2DC28A8CB4A9AD382E7492D\
            DE788FBD9304024E6F81BA4E6D3225F5BF744F618005C5EEE7829D3B80ED1E35";
        let server = Server::restore(Config::default(), Store::default());
        let bytes = server.openapi_v2_bytes(&server.openapi_names(), String::new(), false);
        let mut tree: Value = serde_json::from_slice(&bytes).unwrap();
        tree.sort_all_objects();
        assert_eq!(hex(Sha512::new_with_prefix(tree.to_string())), REAL);
    }

    /// Byte for byte: the hashes of the table are those of a real server's documents.
    #[test]
    fn documents_are_those_of_a_real_server() {
        let server = Server::restore(Config::default(), Store::default());
        for (name, document) in data::documents() {
            let hash = hex(Sha512::new_with_prefix(server.build(name)));
            assert_eq!(hash, document.hash, "{name}");
        }
    }
}
