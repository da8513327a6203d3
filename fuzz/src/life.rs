//! Objects of all kinds, made by their types, and what befalls them, through the whole server.

use std::sync::Arc;

use arbitrary::{Result, Unstructured};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};
use serde_json::{Value, json};
use windlass_apiserver::api::registry::Resource;

use crate::tree;
use crate::world::World;

/// How many requests one run makes.
const REQUESTS_MAX: usize = 12;
/// How deep the objects are.
const DEPTH: usize = 8;

/// Bytes are choices; when there are no more, the run ends.
pub fn run(data: &[u8]) {
    let mut u = Unstructured::new(data);
    let mut world = World::new();
    let resources: Vec<Arc<Resource>> = world.server().registry().all().cloned().collect();
    let mut last = None;
    for _ in 0..REQUESTS_MAX {
        if u.is_empty() || request(&mut u, &mut world, &resources, &mut last).is_err() {
            break;
        }
    }
    world.check();
}

/// What the last request was about: most requests are about the same.
struct Last {
    resource: Arc<Resource>,
    path: String,
    tree: Value,
}

fn request(
    u: &mut Unstructured<'_>,
    world: &mut World,
    resources: &[Arc<Resource>],
    last: &mut Option<Last>,
) -> Result<()> {
    let (resource, path, old) = match last.take() {
        Some(last) if u.ratio(7, 8)? => (last.resource, last.path, last.tree),
        _ => {
            let resource = resource(u, resources)?;
            let path = path(u, &resource)?;
            (resource, path, Value::Null)
        }
    };
    let object = |u: &mut Unstructured<'_>| body(u, &resource, &old);
    let (collection, name) = path.rsplit_once('/').expect("paths have slashes");
    let subresource = match u.int_in_range(0..=7)? {
        0 => "/status",
        1 => "/scale",
        2 => *u.choose(&["/approval", "/eviction", "/binding", "/token", "/finalize", "/log", "/resize"])?,
        _ => "",
    };
    let query = query(u)?;
    let one = format!("{path}{subresource}{query}");
    let json = "application/json";
    let (method, target, media, body) = match u.int_in_range(0..=11)? {
        0..=2 => {
            let mut tree = object(u)?;
            tree::put(&mut tree, &["metadata", "name"], json!(name));
            (Method::POST, format!("{collection}{query}"), json, tree)
        }
        3 => (Method::PUT, one, json, object(u)?),
        4 => (Method::PATCH, one, "application/merge-patch+json", object(u)?),
        5 => (Method::PATCH, one, "application/strategic-merge-patch+json", object(u)?),
        6 => {
            let mut tree = object(u)?;
            tree::put(&mut tree, &["apiVersion"], json!(resource.api_version()));
            tree::put(&mut tree, &["kind"], json!(resource.kind));
            let glue = if query.is_empty() { "?" } else { "&" };
            let manager = u.choose(&["m1", "m2", "kubectl"])?;
            (
                Method::PATCH,
                format!("{one}{glue}fieldManager={manager}"),
                "application/apply-patch+yaml",
                tree,
            )
        }
        7 => (Method::PATCH, one, "application/json-patch+json", crate::patch::operations(u, &old)?),
        8 => (Method::DELETE, one, json, if u.arbitrary()? { tree::any(u, 3)? } else { Value::Null }),
        9 => (Method::GET, format!("{collection}{query}"), json, Value::Null),
        10 => {
            world.pass(u.int_in_range(0..=400)?);
            (Method::GET, one, json, Value::Null)
        }
        _ => (Method::DELETE, format!("{collection}{query}"), json, Value::Null),
    };
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static(media));
    let accept = u.choose(&[
        "*/*",
        "*/*",
        "application/yaml",
        "application/json;as=Table;v=v1;g=meta.k8s.io",
        "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    ])?;
    headers.insert("accept", HeaderValue::from_static(accept));
    let bytes = if body.is_null() { Bytes::new() } else { body.to_string().into() };
    let Ok(uri) = target.parse() else { return Ok(()) };
    let answer = world.ask(method, uri, headers, bytes);
    let tree = match answer.code {
        200 | 201 if answer.tree.get("metadata").is_some_and(|meta| meta.get("uid").is_some()) => answer.tree,
        _ => old.clone(),
    };
    *last = Some(Last { resource, path, tree });
    Ok(())
}

fn resource(u: &mut Unstructured<'_>, resources: &[Arc<Resource>]) -> Result<Arc<Resource>> {
    let common = [
        "configmaps",
        "deployments",
        "pods",
        "services",
        "foos",
        "bars",
        "namespaces",
        "customresourcedefinitions",
    ];
    if u.arbitrary()? {
        let plural = u.choose(&common)?;
        let found: Vec<_> = resources.iter().filter(|resource| resource.plural == *plural).collect();
        return Ok((*u.choose(&found)?).clone());
    }
    Ok(u.choose(resources)?.clone())
}

fn path(u: &mut Unstructured<'_>, resource: &Resource) -> Result<String> {
    let root =
        if resource.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", resource.group) };
    let place = match resource.namespaced {
        true => {
            format!("/namespaces/{}", u.choose(&["default", "default", "default", "kube-system", "none"])?)
        }
        false => String::new(),
    };
    let name = u.choose(&["a", "web", "b", "foos.example.com", "default", "x%2Fy", "%00", "kubernetes"])?;
    Ok(format!("{root}/{}{place}/{}/{name}", resource.version, resource.plural))
}

fn query(u: &mut Unstructured<'_>) -> Result<String> {
    let one = |u: &mut Unstructured<'_>| {
        Ok(match u.int_in_range(0..=15)? {
            0 => "dryRun=All",
            1 => "fieldValidation=Strict",
            2 => "fieldValidation=Ignore",
            3 => "watch=1",
            4 => "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1",
            5 => "limit=1",
            6 => "labelSelector=app%3Dweb",
            7 => "labelSelector=app+notin+(a,b),!x",
            8 => "fieldSelector=metadata.name%3Da",
            9 => "resourceVersion=1",
            10 => "resourceVersion=1&resourceVersionMatch=Exact",
            11 => "force=true",
            12 => "propagationPolicy=Foreground",
            13 => "gracePeriodSeconds=30",
            14 => "pretty=true",
            _ => "timeoutSeconds=1",
        })
    };
    let parts = tree::several(u, 3, one)?;
    Ok(if parts.is_empty() { String::new() } else { format!("?{}", parts.join("&")) })
}

/// An object of the resource, or the one that was read last with something of it changed.
fn body(u: &mut Unstructured<'_>, resource: &Resource, old: &Value) -> Result<Value> {
    if resource.is_definitions() && u.arbitrary()? {
        return crate::crd::definition(u);
    }
    let (types, id) = resource.types();
    let fresh = tree::structure(u, types, id, DEPTH)?;
    if !old.is_object() || u.ratio(1, 3)? {
        return Ok(fresh);
    }
    let mut tree = old.clone();
    for (key, value) in fresh.as_object().into_iter().flatten() {
        match (key.as_str(), value) {
            ("metadata", Value::Object(metadata)) => {
                for (key, value) in metadata {
                    tree::put(&mut tree, &["metadata", key], value.clone());
                }
            }
            (key, value) => tree::put(&mut tree, &[key], value.clone()),
        }
    }
    Ok(tree)
}
