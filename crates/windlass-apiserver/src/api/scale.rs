//! The scale subresource: `autoscaling/v1` Scale over anything that has replicas.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use windlass_core::select::LabelSelector;

use super::object::{meta_mut, meta_str};
use super::options::WriteOptions;
use super::registry::{Flavor, Resource};
use super::response::Response;
use super::route::Verb;
use super::server::{Call, Server};
use super::webhooks::{Operation, Write};
use crate::codec::{self, Format};
use crate::field::{Errors, Path};
use crate::json::at;
use crate::managed;
use crate::status::{Result, Status};

/// Where replicas and selector are in an object.
struct Paths {
    spec: Vec<String>,
    status: Vec<String>,
    selector: Selector,
}

enum Selector {
    /// A label selector object.
    Object(Vec<String>),
    /// A plain map of labels.
    Set(Vec<String>),
    /// The selector as text.
    Text(Vec<String>),
    /// None.
    None,
}

impl Server {
    pub(super) fn scale(&mut self, call: &mut Call<'_>) -> Result<Response> {
        let resource = call.target.resource.clone();
        let target = call.target;
        let found = self.store.get(&resource.storage, &target.namespace, &target.name).cloned();
        let current =
            found.ok_or_else(|| Status::not_found(&resource.group, &resource.plural, &target.name))?;
        self.foresee(call, &resource, [&current])?;
        let old = self.load(&resource, &current);
        let paths = paths(&resource);
        let before = to_scale(&old, &paths)?;
        if call.verb == Verb::Get {
            let replicas = paths.spec.iter().try_fold(&old, |place, key| place.get(key));
            if resource.is_custom() && replicas.is_none() {
                let path = format!(".{}", paths.spec.join("."));
                return Err(Status::internal(&format!("the spec replicas field {path:?} does not exist")));
            }
            return Ok(Response::tree(200, &call.output, &before));
        }
        let kind = if call.verb == Verb::Update { "UpdateOptions" } else { "PatchOptions" };
        let options = WriteOptions::parse(call.query, &call.user_agent(), kind)?;
        // Whoever writes a Scale owns the replicas of the object behind it: ownership goes through the Scale.
        let parent = entries(&old);
        let api_version = resource.api_version();
        let keys: Vec<&str> = paths.spec.iter().map(String::as_str).collect();
        let replicas = [managed::ReplicasPath { api_version: &api_version, path: Some(&keys) }];
        let owned = managed::to_scale(&parent, &replicas).map_err(internal)?;
        let plain = before.clone();
        let mut before = before;
        if !owned.is_empty() {
            meta_mut(&mut before).insert("managedFields".into(), Value::Array(owned));
        }
        let mut scale = self.written(call, &resource, &before, &options)?;
        let scales = scale_resource();
        let write = Write::new(Operation::Update, &resource, Some(&before), options.dry_run).shaped(&scales);
        self.admit(call, write, &mut scale)?;
        check(&scale, call)?;
        super::update::check_uid(&scale, &old, &resource)?;
        let fields = managed::from_scale(&parent, &entries(&scale), &api_version, &replicas);
        let mut tree = old.clone();
        set_path(&mut tree, &paths.spec, scale["spec"].get("replicas").cloned().unwrap_or(json!(0)));
        let meta = meta_mut(&mut tree);
        meta.insert("managedFields".into(), Value::Array(fields.map_err(internal)?));
        let revision = at(&scale, &["metadata", "resourceVersion"]).cloned();
        if let Some(revision) =
            revision.filter(|revision| revision.as_str().is_some_and(|text| !text.is_empty()))
        {
            meta.insert("resourceVersion".into(), revision);
        }
        // Whoever judges it is shown the objects behind them.
        let after = to_scale(&tree, &paths)?;
        self.validate(call, Write { old: Some(&plain), ..write }.of(&after))?;
        // The object behind it is nobody else's business.
        call.hooked = false;
        let object = self.replace(call, &resource, &current, &old, tree, options.dry_run)?;
        let after = to_scale(&self.load(&resource, &object), &paths)?;
        Ok(Response::tree(200, &call.output, &after))
    }

    /// The Scale that the request asks for, with who owns what of it.
    fn written(
        &self,
        call: &mut Call<'_>,
        resource: &Resource,
        before: &Value,
        options: &WriteOptions,
    ) -> Result<Value> {
        let scales = scale_resource();
        if call.verb == Verb::Update {
            let mut scale = super::decode::body(call, &scales, options.validation)?;
            self.own(call, &scales, options, Some(before), &mut scale);
            return Ok(scale);
        }
        let kind = super::patch::patch_type(call, resource)?;
        super::patch::check_force(kind, call, options)?;
        if kind == super::patch::APPLY {
            let config = codec::parse(&call.request.body, Format::Yaml)
                .map_err(|e| Status::bad_request(format!("error decoding YAML: {e}")))?;
            let fail = |why: &str| super::decode::cannot_handle(&scales, why);
            super::decode::report(call, options.validation, &config.problems(&[]), fail)?;
            super::patch::check_applied_kind(&config.value, &scales)?;
            let is_custom = resource.is_custom();
            if is_custom && entries(before).is_empty() {
                return Err(unconvertible(
                    "failed to create manager for existing fields: failed to convert live object",
                    "/",
                ));
            }
            let force = options.force.unwrap_or(false);
            let applied = self.write_as(call, &scales, options, |schema, write| {
                managed::apply(schema, Some(before), &config.value, write, force)
            })?;
            if is_custom && !super::patch::is_owned_otherwise(before, &applied) {
                let place = format!("{}/{}", meta_str(before, "namespace"), meta_str(before, "name"));
                return Err(unconvertible("failed to convert new object", &place));
            }
            return super::decode::conform(&scales, applied, &mut Vec::new());
        }
        let mut scale = super::patch::patched(call, kind, &scales, before, options.validation)?;
        self.own(call, &scales, options, Some(before), &mut scale);
        Ok(scale)
    }
}

/// kube-apiserver applies nothing to the Scale of a custom object that would change it: it looks for a version of the custom
/// kind that is a Scale.
fn unconvertible(what: &str, place: &str) -> Status {
    let why = "to proper version: request to convert CR to an invalid group/version: autoscaling/v1";
    Status::new(500, "", format!("{what} ({place}; autoscaling/v1, Kind=Scale) {why}"))
}

fn internal(message: String) -> Status {
    Status::internal(&message)
}

fn entries(tree: &Value) -> Vec<Value> {
    at(tree, &["metadata", "managedFields"]).and_then(Value::as_array).cloned().unwrap_or_default()
}

/// A Scale keeps its name, and its replicas are a count.
fn check(scale: &Value, call: &Call<'_>) -> Result<()> {
    let (name, replicas) = (meta_str(scale, "name"), scale["spec"]["replicas"].as_i64().unwrap_or(0));
    if !name.is_empty() && name != call.target.name {
        let message = format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.target.name
        );
        return Err(Status::bad_request(message));
    }
    if replicas < 0 {
        let mut errors = Errors::default();
        let spec = Path::Root.child("spec");
        errors.invalid(&spec.child("replicas"), &json!(replicas), "must be greater than or equal to 0");
        return Err(Status::invalid("autoscaling", "Scale", &call.target.name, errors));
    }
    Ok(())
}

fn paths(resource: &Resource) -> Paths {
    let keys =
        |path: &str| path.split('.').filter(|key| !key.is_empty()).map(str::to_owned).collect::<Vec<_>>();
    match &resource.flavor {
        Flavor::Builtin { .. } => Paths {
            spec: keys("spec.replicas"),
            status: keys("status.replicas"),
            selector: match &*resource.kind {
                "ReplicationController" => Selector::Set(keys("spec.selector")),
                _ => Selector::Object(keys("spec.selector")),
            },
        },
        Flavor::Custom { definition, version, .. } => {
            let scale =
                definition.versions[*version].scale.as_ref().expect("routed by the scale subresource");
            let selector = scale.selector_path.as_deref().filter(|path| !path.is_empty());
            Paths {
                spec: keys(&scale.spec_path),
                status: keys(&scale.status_path),
                selector: selector.map_or(Selector::None, |path| Selector::Text(keys(path))),
            }
        }
    }
}

/// The Scale of an object.
fn to_scale(tree: &Value, paths: &Paths) -> Result<Value> {
    let number =
        |path: &[String]| path.iter().try_fold(tree, |place, key| place.get(key)).and_then(Value::as_i64);
    let place = |path: &[String]| path.iter().try_fold(tree, |place, key| place.get(key));
    let mut metadata = Map::new();
    for key in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = at(tree, &["metadata", key]) {
            metadata.insert(key.into(), value.clone());
        }
    }
    let mut spec = Map::new();
    if let Some(replicas) = number(&paths.spec).filter(|replicas| *replicas != 0) {
        spec.insert("replicas".into(), json!(replicas));
    }
    let mut status = Map::new();
    status.insert("replicas".into(), json!(number(&paths.status).unwrap_or(0)));
    let selector = match &paths.selector {
        Selector::Object(path) => {
            LabelSelector::from_object(place(path)).map_err(|e| Status::internal(&e.to_string()))?.to_string()
        }
        Selector::Set(path) => place(path)
            .and_then(Value::as_object)
            .map(|set| LabelSelector::from_set(set).to_string())
            .unwrap_or_default(),
        Selector::Text(path) => place(path).and_then(Value::as_str).unwrap_or_default().to_owned(),
        Selector::None => String::new(),
    };
    if !selector.is_empty() {
        status.insert("selector".into(), json!(selector));
    }
    Ok(
        json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status}),
    )
}

fn set_path(tree: &mut Value, path: &[String], value: Value) {
    let mut place = tree;
    for key in path {
        if !place.is_object() {
            *place = json!({});
        }
        place = place.as_object_mut().expect("made above").entry(key.clone()).or_insert(Value::Null);
    }
    *place = value;
}

/// A resource to decode Scale bodies by; it is served nowhere by itself.
fn scale_resource() -> Arc<Resource> {
    use std::sync::OnceLock;
    static SCALE: OnceLock<Arc<Resource>> = OnceLock::new();
    SCALE
        .get_or_init(|| {
            Arc::new(Resource::of_type("autoscaling", "v1", "Scale", "io.k8s.api.autoscaling.v1.Scale"))
        })
        .clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::registry::Registry;

    #[test]
    fn a_deployment_as_scale() {
        let deployments = Registry::new().find("apps", "v1", "deployments").unwrap();
        let tree = json!({
            "metadata": {"name": "web", "namespace": "default", "labels": {"a": "b"}},
            "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}},
            "status": {"replicas": 2},
        });
        let scale = to_scale(&tree, &paths(&deployments)).unwrap();
        assert_eq!(scale["spec"]["replicas"], 3);
        assert_eq!(scale["status"], json!({"replicas": 2, "selector": "app=web"}));
        assert!(at(&scale, &["metadata", "labels"]).is_none());
    }
}
