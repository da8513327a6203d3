//! Replacing objects: PUT, and what patches end in.

use std::sync::Arc;

use serde_json::{Value, json};

use super::create::{is_typed, place, remove_at, verdict};
use super::object::{finalizers, meta_mut, meta_str};
use super::options::WriteOptions;
use super::registry::{Flavor, Resource};
use super::response::Response;
use super::route::Target;
use super::server::{Call, Server};
use super::webhooks::{Operation, Write};
use crate::field::{Errors, Path};
use crate::json::at;
use crate::kinds::generation::Generation;
use crate::kinds::meta;
use crate::status::{Result, Status};
use crate::store::Object;
use crate::{crd, managed};

impl Server {
    pub(super) fn update(&mut self, call: &mut Call<'_>) -> Result<Response> {
        let resource = call.target.resource.clone();
        let options = WriteOptions::parse(call.query, &call.user_agent(), "UpdateOptions")?;
        let mut tree = super::decode::body(call, &resource, options.validation)?;
        check_name(&tree, call)?;
        place(&mut tree, &resource, &call.target.namespace)?;
        call.warnings.extend(meta::dedup_owner_references(&mut tree));
        let target = call.target;
        let Some(current) = self.store.get(&resource.storage, &target.namespace, &target.name).cloned()
        else {
            if !resource.create_on_update || !target.subresource.is_empty() {
                return Err(Status::not_found(&resource.group, &resource.plural, &target.name));
            }
            parsed_revision(&tree)?;
            let uid = meta_str(&tree, "uid");
            if !uid.is_empty() {
                let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: ");
                return Err(Status::conflict(&resource.group, &resource.plural, &target.name, &why));
            }
            // The revision of what is no longer there is no obstacle.
            meta_mut(&mut tree).remove("resourceVersion");
            self.own(call, &resource, &options, None, &mut tree);
            let object = self.insert(call, &resource, tree, options.dry_run)?;
            return self.respond(call, &resource, &object, 201);
        };
        self.foresee(call, &resource, [&current])?;
        let old = self.load(&resource, &current);
        check_uid(&tree, &old, &resource)?;
        self.own(call, &resource, &options, Some(&old), &mut tree);
        let object = self.replace(call, &resource, &current, &old, tree, options.dry_run)?;
        self.respond(call, &resource, &object, 200)
    }

    /// Records who owns what after an ordinary write.
    pub(super) fn own(
        &self,
        call: &Call<'_>,
        resource: &Resource,
        options: &WriteOptions,
        old: Option<&Value>,
        tree: &mut Value,
    ) {
        self.write_as(call, resource, options, |schema, write| managed::update(schema, old, tree, write));
    }

    /// Prepares, validates and stores a new state of an object. Gives back what the client is to see.
    pub(super) fn replace(
        &mut self,
        call: &mut Call<'_>,
        resource: &Arc<Resource>,
        current: &Arc<Object>,
        old: &Value,
        mut tree: Value,
        dry_run: bool,
    ) -> Result<Arc<Object>> {
        let write = Write::new(Operation::Update, resource, Some(old), dry_run);
        self.admit(call, write, &mut tree)?;
        self.confirm_no_escalation(call, resource, Some(old), &tree)?;
        self.check_revision(resource, old, &mut tree)?;
        restore(resource, &call.target.subresource, old, &mut tree);
        self.prepare_update(call, resource, old, &mut tree)?;
        self.confirm_params(call, resource, Some(old), &tree)?;
        managed::settle(old, &mut tree);
        self.validate(call, write.of(&tree))?;
        self.settle(resource, &mut tree)?;
        self.foresee_write(call, resource, &tree)?;
        self.charge(call, write.of(&tree))?;
        if self.deletes_by_update(resource, old, &tree) {
            let last = self.seal(resource, tree, current.revision())?;
            if !dry_run {
                self.remove(resource, current, call)?;
            }
            return Ok(Arc::new(last));
        }
        let object = self.put(resource, Some(current), tree, dry_run)?;
        if !dry_run && object.revision() != current.revision() {
            self.after_write(resource, &object, call)?;
        }
        Ok(object)
    }

    /// Writes another status of an object, as the server's own client would.
    pub(super) fn write_status(
        &mut self,
        call: &mut Call<'_>,
        resource: &Arc<Resource>,
        current: &Arc<Object>,
        old: &Value,
        mut tree: Value,
    ) -> Result<()> {
        let target = Target {
            resource: resource.clone(),
            namespace: meta_str(old, "namespace").to_owned(),
            name: meta_str(old, "name").to_owned(),
            subresource: "status".into(),
            watch: false,
        };
        let mut call = call.to(&target);
        self.own(&call, resource, &WriteOptions::of_manager("kube-apiserver"), Some(old), &mut tree);
        self.replace(&mut call, resource, current, old, tree, false).map(drop)
    }

    /// The client's resourceVersion must be the stored one; where the kind allows it, none at all will do.
    fn check_revision(&self, resource: &Resource, old: &Value, tree: &mut Value) -> Result<()> {
        let name = meta_str(old, "name");
        let (have, want) = (meta_str(old, "resourceVersion"), meta_str(tree, "resourceVersion").to_owned());
        parsed_revision(tree)?;
        if (want.is_empty() || want == "0") && resource.unconditional_update {
            meta_mut(tree).insert("resourceVersion".into(), json!(have));
            return Ok(());
        }
        if want.is_empty() || want == "0" {
            let mut errors = Errors::default();
            let path = Path::Root.child("metadata");
            errors.invalid(&path.child("resourceVersion"), &json!(0), "must be specified for an update");
            return Err(Status::invalid(&resource.group, &resource.plural, name, errors));
        }
        if want != have {
            let why =
                "the object has been modified; please apply your changes to the latest version and try again";
            return Err(Status::conflict(&resource.group, &resource.plural, name, why));
        }
        Ok(())
    }

    fn prepare_update(
        &self,
        call: &mut Call<'_>,
        resource: &Resource,
        old: &Value,
        tree: &mut Value,
    ) -> Result<()> {
        let status = call.target.subresource == "status";
        match &resource.flavor {
            Flavor::Builtin { .. } if resource.is_definitions() => {
                let mut errors = Errors::default();
                meta::keep_system_fields(tree, old);
                meta::validate_common(tree, old, false, &mut errors);
                meta::validate_update(tree, old, false, &mut errors);
                if status {
                    crd::prepare_status_update(tree, old);
                    crd::validate_status_update(tree, &mut errors);
                } else {
                    crd::prepare_update(tree, old);
                    crd::validate_update(tree, old, call.noted, &mut errors);
                }
                verdict(resource, tree, errors)?;
                if !status {
                    call.warnings.extend(crd::warnings(tree, Some(old)));
                }
                Ok(())
            }
            Flavor::Builtin { hooks, .. } => {
                if status {
                    return hooks.update_status(tree, old, &self.context(call, resource));
                }
                hooks.update(tree, old, &self.context(call, resource))?;
                call.warnings.extend((hooks.warnings)(tree, Some(old)));
                Ok(())
            }
            Flavor::Custom { definition, version, .. } => {
                let version = &definition.versions[*version];
                meta::keep_system_fields(tree, old);
                Generation::SPEC.keep(tree, old);
                if !status && custom_changed(old, tree, version.has_status) {
                    bump_generation(old, tree);
                }
                let mut errors = Errors::default();
                meta::validate_common(tree, old, resource.namespaced, &mut errors);
                if is_typed(resource, tree, &mut errors) {
                    meta::validate_update(tree, old, false, &mut errors);
                    match status {
                        true => version.validate_status_form(tree, old, &mut errors),
                        false => version.validate_form(tree, Some(old), &mut errors),
                    }
                }
                call.warnings.extend(version.validate_rules(tree, Some(old), &mut errors));
                verdict(resource, tree, errors)
            }
        }
    }

    /// Whether this update takes the last finalizer from an object that is being deleted.
    fn deletes_by_update(&self, resource: &Resource, old: &Value, tree: &Value) -> bool {
        let deleting = at(old, &["metadata", "deletionTimestamp"]).is_some_and(|time| !time.is_null());
        let grace = at(old, &["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_i64).unwrap_or(0);
        let emptied = finalizers(tree).is_empty();
        let namespace_done = !resource.is_namespaces()
            || at(tree, &["spec", "finalizers"]).and_then(Value::as_array).is_none_or(Vec::is_empty);
        deleting && grace == 0 && emptied && namespace_done
    }
}

/// The name in the body is the name in the path.
pub(super) fn check_name(tree: &Value, call: &Call<'_>) -> Result<()> {
    let (name, namespace) = (meta_str(tree, "name"), meta_str(tree, "namespace"));
    let target = call.target;
    if name.is_empty() {
        let why = "name must be provided";
        let message =
            format!("the name of the object ({} based on URL) was undeterminable: {why}", target.name);
        return Err(Status::bad_request(message));
    }
    if name != target.name {
        let message =
            format!("the name of the object ({name}) does not match the name on the URL ({})", target.name);
        return Err(Status::bad_request(message));
    }
    if !target.namespace.is_empty() && !namespace.is_empty() && namespace != target.namespace {
        let message = format!(
            "the namespace of the object ({namespace}) does not match the namespace on the request ({})",
            target.namespace
        );
        return Err(Status::bad_request(message));
    }
    Ok(())
}

/// A resourceVersion must be a number, if there is one.
fn parsed_revision(tree: &Value) -> Result<()> {
    let text = meta_str(tree, "resourceVersion");
    match text.is_empty() || text.parse::<u64>().is_ok() {
        true => Ok(()),
        false => Err(Status::new(500, "", format!("strconv.ParseUint: parsing {text:?}: invalid syntax"))),
    }
}

/// A uid in the body is a precondition.
pub(super) fn check_uid(tree: &Value, old: &Value, resource: &Resource) -> Result<()> {
    let (want, have) = (meta_str(tree, "uid"), meta_str(old, "uid"));
    if want.is_empty() || want == have {
        return Ok(());
    }
    let why = format!("Precondition failed: UID in precondition: {want}, UID in object meta: {have}");
    Err(Status::conflict(&resource.group, &resource.plural, meta_str(old, "name"), &why))
}

/// Puts back what a writer of this subresource may not change.
fn restore(resource: &Resource, subresource: &str, old: &Value, tree: &mut Value) {
    if resource.is_custom() && subresource == "status" {
        let status = tree.get("status").cloned();
        let metadata = restored_metadata(tree, old);
        *tree = old.clone();
        let object = tree.as_object_mut().expect("objects are JSON objects");
        object.insert("metadata".into(), metadata);
        object.remove("status");
        if let Some(status) = status {
            object.insert("status".into(), status);
        }
        return;
    }
    let is_signing = resource.group == "certificates.k8s.io" && subresource == "status";
    for path in resource.reset_paths(subresource) {
        let keys: Vec<&str> = path.iter().map(String::as_str).collect();
        // Who signs does not own the conditions, and sets them all the same: that it failed.
        if is_signing && keys == ["status", "conditions"] {
            continue;
        }
        match at(old, &keys) {
            Some(_) if keys == ["metadata"] => {
                let metadata = restored_metadata(tree, old);
                set_at(tree, path, metadata);
            }
            Some(value) => set_at(tree, path, value.clone()),
            None => remove_at(tree, path),
        }
    }
}

/// The metadata of `old`, with what a write says of itself: the version that it read, and who owns what.
fn restored_metadata(tree: &Value, old: &Value) -> Value {
    let mut metadata = old["metadata"].clone();
    let Some(map) = metadata.as_object_mut() else { return metadata };
    for key in ["resourceVersion", "managedFields"] {
        match at(tree, &["metadata", key]) {
            Some(value) => map.insert(key.to_owned(), value.clone()),
            None => map.remove(key),
        };
    }
    metadata
}

fn set_at(tree: &mut Value, path: &[String], value: Value) {
    let Some((last, parents)) = path.split_last() else { return };
    let mut place = tree;
    for key in parents {
        let Some(map) = place.as_object_mut() else { return };
        place = map.entry(key.clone()).or_insert_with(|| json!({}));
    }
    if let Some(map) = place.as_object_mut() {
        map.insert(last.clone(), value);
    }
}

fn bump_generation(old: &Value, tree: &mut Value) {
    let generation = at(old, &["metadata", "generation"]).and_then(Value::as_i64).unwrap_or(0);
    meta_mut(tree).insert("generation".into(), json!(generation + 1));
}

/// A custom object's generation counts changes of everything but metadata and (where it is a subresource) status.
fn custom_changed(old: &Value, tree: &Value, has_status: bool) -> bool {
    let relevant = |tree: &Value| {
        let mut copy = tree.clone();
        if let Some(object) = copy.as_object_mut() {
            object.remove("metadata");
            object.remove("apiVersion");
            if has_status {
                object.remove("status");
            }
        }
        copy
    };
    relevant(old) != relevant(tree)
}
