//! Removing objects: at once, gracefully, or when their finalizers are done.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::filter::Filter;
use super::list::{Selected, check_options, list_of};
use super::object::{finalizers, meta_mut, meta_str};
use super::options::dry_run;
use super::registry::Resource;
use super::response::Response;
use super::server::{Call, Server};
use super::webhooks::{Operation, Write};
use crate::codec::scalar::time::{self, Precision};
use crate::codec::{self, Format};
use crate::field::{Errors, Path};
use crate::json::{at, str_at};
use crate::schema;
use crate::status::{Result, Status};
use crate::store::{Change, Object};

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// `DeleteOptions`, from the body or from the query.
#[derive(Debug, Default, Clone)]
pub(super) struct DeleteOptions {
    grace: Option<i64>,
    uid: Option<String>,
    /// The only revision that may be deleted.
    pub revision: Option<String>,
    orphan: Option<bool>,
    propagation: Option<String>,
    /// Nothing is stored.
    pub dry_run: bool,
}

/// What became of the object.
pub(super) enum Deleted {
    /// It is gone; this was its last state.
    Gone(Arc<Object>),
    /// It waits for its grace period or its finalizers.
    Waiting(Arc<Object>),
}

impl Server {
    pub(super) fn delete(&mut self, call: &mut Call<'_>) -> Result<Response> {
        let resource = call.target.resource.clone();
        let options = DeleteOptions::parse(call)?;
        call.warnings.extend(options.preserved(&resource));
        let target = call.target;
        let found = self.store.get(&resource.storage, &target.namespace, &target.name).cloned();
        let object =
            found.ok_or_else(|| Status::not_found(&resource.group, &resource.plural, &target.name))?;
        self.foresee_end(call, &resource, std::slice::from_ref(&object))?;
        self.admit_end(call, &resource, &object, &options)?;
        match self.delete_object(call, &resource, &object, &options)? {
            Deleted::Waiting(object) => {
                // Only this old way to ask for dependents gets to know that the object is still there.
                let code = if options.orphan == Some(false) { 202 } else { 200 };
                self.respond(call, &resource, &object, code)
            }
            Deleted::Gone(object) if resource.returns_deleted => self.respond(call, &resource, &object, 200),
            Deleted::Gone(object) => Ok(Response::tree(200, &call.output, &gone(&resource, &object))),
        }
    }

    pub(super) fn delete_collection(&mut self, call: &mut Call<'_>) -> Result<Response> {
        let resource = call.target.resource.clone();
        check_options(call)?;
        let filter = Filter::parse(call)?;
        let options = DeleteOptions::parse(call)?;
        call.warnings.extend(options.preserved(&resource));
        let Selected { objects, metadata } = self.page_for_deletion(call, &resource, &filter)?;
        self.foresee_end(call, &resource, &objects)?;
        for object in &objects {
            self.admit_end(call, &resource, object, &options)?;
        }
        for object in &objects {
            self.delete_object(call, &resource, object, &options)?;
        }
        Ok(Response::tree(200, &call.output, &list_of(&resource, metadata, &objects)))
    }

    /// Asks everybody about the end of an object.
    fn admit_end(
        &self,
        call: &mut Call<'_>,
        resource: &Resource,
        object: &Object,
        options: &DeleteOptions,
    ) -> Result<()> {
        let old = self.load(resource, object);
        options.check_preconditions(&old, resource)?;
        let write = Write::new(Operation::Delete, resource, Some(&old), options.dry_run);
        self.admit(call, write, &mut Value::Null)?;
        self.validate(call, write)
    }

    pub(super) fn delete_object(
        &mut self,
        call: &mut Call<'_>,
        resource: &Arc<Resource>,
        object: &Arc<Object>,
        options: &DeleteOptions,
    ) -> Result<Deleted> {
        let mut tree = self.load(resource, object);
        options.check_preconditions(&tree, resource)?;
        if resource.is_definitions() {
            return self
                .delete_definition(call, resource, object, tree, options.dry_run)
                .map(Deleted::Waiting);
        }
        if resource.is_namespaces() {
            return self.delete_namespace(call, resource, object, tree, options);
        }
        let graceful = match self.grace(resource, &mut tree, options, call.now) {
            Grace::Pending => return Ok(Deleted::Waiting(object.clone())),
            Grace::Set(period) => Some(period),
            Grace::None => None,
        };
        set_collector_finalizers(&mut tree, resource, options);
        let waits = !finalizers(&tree).is_empty();
        if graceful.is_none() && waits {
            mark_deleting(&mut tree, call.now);
        }
        if graceful.is_some() || waits {
            let updated = self.put(resource, Some(object), tree, options.dry_run)?;
            if waits || graceful.is_some_and(|period| period > 0) {
                return Ok(Deleted::Waiting(updated));
            }
            if options.dry_run {
                return Ok(Deleted::Gone(updated));
            }
            return self.remove(resource, &updated, call).map(Deleted::Gone);
        }
        match options.dry_run {
            true => Ok(Deleted::Gone(object.clone())),
            false => self.remove(resource, object, call).map(Deleted::Gone),
        }
    }

    /// Deletes every object of a resource, as its definition goes.
    pub(super) fn delete_all(&mut self, call: &mut Call<'_>, resource: &Arc<Resource>) -> Result<()> {
        let snapshot = self.store.list(&resource.storage);
        for object in snapshot.range(None, None) {
            self.delete_object(call, resource, object, &DeleteOptions::default())?;
        }
        Ok(())
    }

    /// A namespace is emptied by its controller first: deleting it only sets that in motion.
    fn delete_namespace(
        &mut self,
        call: &mut Call<'_>,
        resource: &Arc<Resource>,
        object: &Arc<Object>,
        mut tree: Value,
        options: &DeleteOptions,
    ) -> Result<Deleted> {
        if is_deleting(&tree) {
            let pending = at(&tree, &["spec", "finalizers"])
                .and_then(Value::as_array)
                .is_some_and(|list| !list.is_empty());
            if pending || !finalizers(&tree).is_empty() {
                return Ok(Deleted::Waiting(object.clone()));
            }
            return match options.dry_run {
                true => Ok(Deleted::Gone(object.clone())),
                false => self.remove(resource, object, call).map(Deleted::Gone),
            };
        }
        set_collector_finalizers(&mut tree, resource, options);
        meta_mut(&mut tree)
            .insert("deletionTimestamp".into(), json!(time::format(call.now, Precision::Seconds)));
        let map = tree.as_object_mut().expect("objects are JSON objects");
        crate::json::object_entry(map, "status").insert("phase".into(), json!("Terminating"));
        let updated = self.put(resource, Some(object), tree, options.dry_run)?;
        Ok(Deleted::Waiting(updated))
    }

    /// Takes an object out of the store. Gives back its last state, under the revision of the deletion.
    pub(super) fn remove(
        &mut self,
        resource: &Arc<Resource>,
        object: &Arc<Object>,
        call: &mut Call<'_>,
    ) -> Result<Arc<Object>> {
        let change = Change::Delete { key: object.key().to_owned(), expected: object.revision() };
        let event =
            self.store.commit(&resource.storage, change).expect("the state was read in the same step");
        self.after_delete(resource, object, call)?;
        Ok(event.served())
    }

    /// Pods leave gracefully; nothing else does.
    fn grace(&self, resource: &Resource, tree: &mut Value, options: &DeleteOptions, now: Timestamp) -> Grace {
        if !(resource.group.is_empty() && resource.kind == "Pod") {
            return Grace::None;
        }
        let asked = options.grace.map(|period| if period < 0 { 1 } else { period });
        if is_deleting(tree) {
            return shorten_grace(tree, asked, now);
        }
        let own = at(tree, &["spec", "terminationGracePeriodSeconds"]).and_then(Value::as_i64).unwrap_or(0);
        let mut period = asked.unwrap_or(own);
        let finished = matches!(str_at(tree, &["status", "phase"]), "Failed" | "Succeeded");
        if str_at(tree, &["spec", "nodeName"]).is_empty() || finished {
            period = 0;
        }
        let period = if period < 0 { 1 } else { period };
        let meta = meta_mut(tree);
        let deadline = now + SignedDuration::from_secs(period.min(1 << 32));
        meta.insert("deletionTimestamp".into(), json!(time::format(deadline, Precision::Seconds)));
        meta.insert("deletionGracePeriodSeconds".into(), json!(period));
        if let Some(generation) =
            meta.get("generation").and_then(Value::as_i64).filter(|generation| *generation > 0)
        {
            meta.insert("generation".into(), json!(generation + 1));
        }
        Grace::Set(period)
    }
}

enum Grace {
    /// No grace: the object goes at once, or when its finalizers are done.
    None,
    /// The grace period was set.
    Set(i64),
    /// It is on its way already, and nothing changes.
    Pending,
}

/// A second delete can only shorten the grace period.
fn shorten_grace(tree: &mut Value, asked: Option<i64>, now: Timestamp) -> Grace {
    let current = at(tree, &["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_i64).unwrap_or(0);
    if current == 0 {
        return Grace::None;
    }
    let Some(mut period) = asked.filter(|period| *period < current) else { return Grace::Pending };
    let deadline = time::parse(meta_str(tree, "deletionTimestamp"), Precision::Seconds).unwrap_or(now);
    let mut deadline = deadline - SignedDuration::from_secs(current) + SignedDuration::from_secs(period);
    if deadline < now {
        deadline = now;
        if period != 0 {
            period = 1;
        }
    }
    let meta = meta_mut(tree);
    meta.insert("deletionTimestamp".into(), json!(time::format(deadline, Precision::Seconds)));
    meta.insert("deletionGracePeriodSeconds".into(), json!(period));
    Grace::Set(period)
}

fn is_deleting(tree: &Value) -> bool {
    at(tree, &["metadata", "deletionTimestamp"]).is_some_and(|time| !time.is_null())
}

/// Sets the time of deletion, if it is not set, and lets the generation grow: controllers must notice.
fn mark_deleting(tree: &mut Value, now: Timestamp) {
    let meta = meta_mut(tree);
    if meta.get("deletionTimestamp").is_none_or(Value::is_null) {
        meta.insert("deletionTimestamp".into(), json!(time::format(now, Precision::Seconds)));
        if let Some(generation) =
            meta.get("generation").and_then(Value::as_i64).filter(|generation| *generation > 0)
        {
            meta.insert("generation".into(), json!(generation + 1));
        }
    }
    meta.insert("deletionGracePeriodSeconds".into(), json!(0));
}

/// The finalizers that tell the garbage collector what to do with the object's dependents.
fn set_collector_finalizers(tree: &mut Value, resource: &Resource, options: &DeleteOptions) {
    if resource.default_gc == "unsupported" {
        return;
    }
    let current = finalizers(tree);
    let has = |name: &str| current.contains(&name);
    let by_default = has(ORPHAN) || (!has(FOREGROUND) && resource.default_gc == "orphan");
    let orphan = match (options.orphan, options.propagation.as_deref()) {
        (Some(orphan), _) => orphan,
        (None, Some(policy)) => policy == "Orphan",
        (None, None) => by_default,
    };
    let foreground = match (options.orphan, options.propagation.as_deref()) {
        (Some(_), _) => false,
        (None, Some(policy)) => policy == "Foreground",
        (None, None) => has(FOREGROUND),
    };
    let mut next: Vec<String> = current
        .iter()
        .filter(|name| **name != ORPHAN && **name != FOREGROUND)
        .map(|name| (*name).to_owned())
        .collect();
    if orphan {
        next.push(ORPHAN.into());
    }
    if foreground {
        next.push(FOREGROUND.into());
    }
    let (mut before, mut after) = (current.clone(), next.iter().map(String::as_str).collect::<Vec<_>>());
    before.sort_unstable();
    after.sort_unstable();
    if before == after {
        return;
    }
    let meta = meta_mut(tree);
    if next.is_empty() {
        meta.remove("finalizers");
    } else {
        meta.insert("finalizers".into(), json!(next));
    }
}

/// `Status` of success, which names what is gone.
fn gone(resource: &Resource, object: &Object) -> Value {
    let mut details = Map::new();
    // Admission may have renamed it on its way to where it was found.
    let metadata: Value = serde_json::from_slice(object.metadata()).expect("stored metadata is JSON");
    details.insert("name".into(), metadata["name"].clone());
    if !resource.group.is_empty() {
        details.insert("group".into(), json!(resource.group));
    }
    details.insert("kind".into(), json!(resource.plural));
    details.insert("uid".into(), json!(object.uid()));
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

impl DeleteOptions {
    /// Jobs once left their pods behind by default, and still do.
    fn preserved(&self, resource: &Resource) -> Option<String> {
        let silent = self.orphan.is_some() || self.propagation.is_some();
        let jobs = resource.group == "batch" && resource.plural == "jobs";
        (jobs && !silent).then(|| {
            "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning".to_owned()
        })
    }

    fn parse(call: &Call<'_>) -> Result<DeleteOptions> {
        let mut errors = Errors::default();
        let options = if call.request.body.is_empty() {
            DeleteOptions::from_query(call, &mut errors)?
        } else {
            DeleteOptions::from_body(call, &mut errors)?
        };
        options.check(&mut errors);
        if errors.is_empty() {
            Ok(options)
        } else {
            Err(Status::invalid("meta.k8s.io", "DeleteOptions", "", errors))
        }
    }

    /// Gathers what is wrong with the options.
    pub(super) fn check(&self, errors: &mut Errors) {
        let root = Path::Root;
        if self.orphan.is_some() && self.propagation.is_some() {
            let path = root.child("propagationPolicy");
            let policy = json!(self.propagation.as_deref().unwrap_or_default());
            errors.invalid(&path, &policy, "orphanDependents and deletionPropagation cannot be both set");
        }
        if let Some(policy) = &self.propagation
            && !matches!(policy.as_str(), "Foreground" | "Background" | "Orphan")
        {
            errors.not_supported(
                &root.child("propagationPolicy"),
                &json!(policy),
                &["Foreground", "Background", "Orphan", "nil"],
            );
        }
    }

    fn from_query(call: &Call<'_>, errors: &mut Errors) -> Result<DeleteOptions> {
        let query = call.query;
        Ok(DeleteOptions {
            grace: query.int("gracePeriodSeconds")?,
            uid: None,
            revision: None,
            orphan: query.get("orphanDependents").map(|_| query.flag("orphanDependents")),
            propagation: query.get("propagationPolicy").map(str::to_owned),
            dry_run: dry_run(&query.all("dryRun"), errors),
        })
    }

    fn from_body(call: &Call<'_>, errors: &mut Errors) -> Result<DeleteOptions> {
        let types = schema::builtin();
        let id = types.id("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions").expect("in the table");
        let bytes = &call.request.body;
        let tree = match super::negotiate::input(&call.request.headers)? {
            Format::Protobuf => {
                let unknown = codec::envelope(bytes).map_err(|e| Status::bad_request(e.to_string()))?;
                codec::decode_proto(types, id, &unknown).map_err(|e| Status::bad_request(e.to_string()))?
            }
            format => {
                let parsed = codec::parse(bytes, format).map_err(|e| Status::bad_request(e.to_string()))?;
                let kind = str_at(&parsed.value, &["kind"]);
                if !kind.is_empty() && kind != "DeleteOptions" {
                    let message =
                        format!("decoded object cannot be converted to DeleteOptions: kind {kind:?}");
                    return Err(Status::bad_request(message));
                }
                codec::canonical(types, id, parsed.value, &mut Vec::new())
                    .map_err(|e| Status::bad_request(e.to_string()))?
            }
        };
        Ok(DeleteOptions::of(&tree, errors))
    }

    /// Reads options that are a tree already.
    pub(super) fn of(tree: &Value, errors: &mut Errors) -> DeleteOptions {
        let text = |path: &[&str]| at(tree, path).and_then(Value::as_str).map(str::to_owned);
        let dry: Vec<&str> = at(tree, &["dryRun"])
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        DeleteOptions {
            grace: tree.get("gracePeriodSeconds").and_then(Value::as_i64),
            uid: text(&["preconditions", "uid"]),
            revision: text(&["preconditions", "resourceVersion"]),
            orphan: tree.get("orphanDependents").and_then(Value::as_bool),
            propagation: text(&["propagationPolicy"]),
            dry_run: dry_run(&dry, errors),
        }
    }

    pub(super) fn check_preconditions(&self, tree: &Value, resource: &Resource) -> Result<()> {
        let name = meta_str(tree, "name");
        let conflict = |why: String| {
            // kube-apiserver names the Kind here, except for namespaces.
            let what = if resource.is_namespaces() { &resource.plural } else { &resource.kind };
            Status::conflict(&resource.group, what, name, &why)
        };
        if let Some(want) = self.uid.as_deref().filter(|want| *want != meta_str(tree, "uid")) {
            let have = meta_str(tree, "uid");
            return Err(conflict(format!(
                "the UID in the precondition ({want}) does not match the UID in record ({have}). The object might have been deleted and then recreated"
            )));
        }
        if let Some(want) = self.revision.as_deref().filter(|want| *want != meta_str(tree, "resourceVersion"))
        {
            let have = meta_str(tree, "resourceVersion");
            return Err(conflict(format!(
                "the ResourceVersion in the precondition ({want}) does not match the ResourceVersion in record ({have}). The object might have been modified"
            )));
        }
        Ok(())
    }
}
