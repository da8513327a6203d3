//! Pods are given to nodes: `pods/<name>/binding`, and `bindings` as it was before.

use serde_json::{Value, json};

use super::create::place;
use super::object::{meta_mut, meta_str};
use super::options::WriteOptions;
use super::registry::Resource;
use super::response::Response;
use super::server::{Call, Server};
use super::webhooks::{Operation, Write};
use crate::field::{Errors, Path};
use crate::json::{at, object_entry, str_at};
use crate::kinds::meta;
use crate::kinds::pod::conditions;
use crate::status::{Result, Status};

impl Server {
    /// A Binding: the pod of its name goes to the node that it names. It is answered, and not kept.
    pub(super) fn bind(&mut self, call: &mut Call<'_>) -> Result<Response> {
        let bindings = Resource::of_type("", "v1", "Binding", "io.k8s.api.core.v1.Binding");
        let pods = self.registry.find("", "v1", "pods").expect("in the table");
        let options = WriteOptions::parse(call.query, &call.user_agent(), "CreateOptions")?;
        let mut binding = super::decode::body(call, &bindings, options.validation)?;
        let legacy = call.target.subresource.is_empty();
        if legacy {
            meta::wipe_system_fields(&mut binding);
        }
        place(&mut binding, &pods, &call.target.namespace)?;
        self.own(call, &bindings, &options, None, &mut binding);
        let written = call.target.resource.clone();
        let write = Write::new(Operation::Create, &written, None, options.dry_run).shaped(&bindings);
        self.admit(call, write, &mut binding)?;
        let name = meta_str(&binding, "name").to_owned();
        if !legacy && name != call.target.name {
            return Err(Status::bad_request("name in URL does not match name in Binding object"));
        }
        check(&binding)?;
        self.validate(call, write.of(&binding))?;
        if name.is_empty() {
            return Err(Status::bad_request("Name parameter required."));
        }
        call.name.clone_from(&name);
        let found = self.store.get(&pods.storage, &call.target.namespace, &name).cloned();
        let current = found.ok_or_else(|| Status::not_found("", "pods", &name))?;
        let mut tree = self.load(&pods, &current);
        preconditions(&binding, &tree)?;
        assign(&mut tree, &binding, call.now)
            .map_err(|why| Status::conflict("", "pods/binding", &name, &why))?;
        self.put(&pods, Some(&current), tree, options.dry_run)?;
        Ok(done(call))
    }
}

/// The answer to what is done and leaves no object.
pub(super) fn done(call: &Call<'_>) -> Response {
    let status =
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    Response::tree(201, &call.output, &status)
}

/// The faults of a Binding are not told as those of an object, which makes them the server's.
fn check(binding: &Value) -> Result<()> {
    let mut errors = Errors::default();
    let target = Path::Root.child("target");
    let kind = str_at(binding, &["target", "kind"]);
    if !kind.is_empty() && kind != "Node" {
        errors.not_supported(&target.child("kind"), &json!(kind), &["Node", "<empty>"]);
    }
    if str_at(binding, &["target", "name"]).is_empty() {
        errors.required(&target.child("name"), "");
    }
    let texts: Vec<String> = errors.0.iter().map(ToString::to_string).collect();
    match texts.as_slice() {
        [] => Ok(()),
        [one] => Err(Status::new(500, "", one.clone())),
        many => Err(Status::new(500, "", format!("[{}]", many.join(", ")))),
    }
}

/// A Binding with a uid or a resourceVersion is for that pod only.
fn preconditions(binding: &Value, pod: &Value) -> Result<()> {
    for (field, word) in [("uid", "UID"), ("resourceVersion", "ResourceVersion")] {
        let (want, have) = (meta_str(binding, field), meta_str(pod, field));
        if want.is_empty() || want == have {
            continue;
        }
        let (namespace, name) = (meta_str(pod, "namespace"), meta_str(pod, "name"));
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: /registry/pods/{namespace}/{name}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: {word} in precondition: {want}, {word} in object meta: {have}"
        );
        return Err(Status::conflict("", "pods", name, &why));
    }
    Ok(())
}

/// Gives the pod to the node, with what the Binding says of it; or says why not.
fn assign(tree: &mut Value, binding: &Value, now: jiff::Timestamp) -> std::result::Result<(), String> {
    let name = meta_str(tree, "name");
    if at(tree, &["metadata", "deletionTimestamp"]).is_some_and(|time| !time.is_null()) {
        return Err(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    let node = str_at(tree, &["spec", "nodeName"]);
    if !node.is_empty() {
        return Err(format!("pod {name} is already assigned to node {node:?}"));
    }
    if at(tree, &["spec", "schedulingGates"]).and_then(Value::as_array).is_some_and(|gates| !gates.is_empty())
    {
        return Err(format!("pod {name} has non-empty .spec.schedulingGates"));
    }
    for map in ["annotations", "labels"] {
        let given = at(binding, &["metadata", map]).and_then(Value::as_object).cloned().unwrap_or_default();
        if !given.is_empty() {
            object_entry(meta_mut(tree), map).extend(given);
        }
    }
    let object = tree.as_object_mut().expect("objects are JSON objects");
    object_entry(object, "spec").insert("nodeName".into(), json!(str_at(binding, &["target", "name"])));
    object_entry(object, "status").remove("nominatedNodeName");
    conditions::set(tree, json!({"type": "PodScheduled", "status": "True"}), now);
    Ok(())
}
