//! Making objects.

use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};

use super::object::{meta_mut, meta_str};
use super::options::WriteOptions;
use super::registry::{Flavor, Resource, split_api_version};
use super::response::Response;
use super::server::{Call, Ids, Server};
use super::webhooks::{Operation, Write};
use crate::codec::scalar::time::{self, Precision};
use crate::field::{Errors, Path};
use crate::json::str_at;
use crate::kinds::{meta, names};
use crate::status::{Result, Status};
use crate::store::Object;
use crate::{crd, managed};

impl Server {
    pub(super) fn create(&mut self, call: &mut Call<'_>) -> Result<Response> {
        let resource = call.target.resource.clone();
        let options = WriteOptions::parse(call.query, &call.user_agent(), "CreateOptions")?;
        let mut tree = super::decode::body(call, &resource, options.validation)?;
        meta::wipe_system_fields(&mut tree);
        place(&mut tree, &resource, &call.target.namespace)?;
        call.warnings.extend(meta::dedup_owner_references(&mut tree));
        self.own(call, &resource, &options, None, &mut tree);
        let object = self.insert(call, &resource, tree, options.dry_run)?;
        self.respond(call, &resource, &object, 201)
    }

    /// Prepares, validates and stores a new object. PUT and apply come here too when nothing is there yet.
    pub(super) fn insert(
        &mut self,
        call: &mut Call<'_>,
        resource: &Arc<Resource>,
        mut tree: Value,
        dry_run: bool,
    ) -> Result<Arc<Object>> {
        meta_str(&tree, "name").clone_into(&mut call.name);
        let write = Write::new(Operation::Create, resource, None, dry_run);
        self.admit(call, write, &mut tree)?;
        self.confirm_no_escalation(call, resource, None, &tree)?;
        if tree.get("metadata").is_some_and(|metadata| !metadata.is_object()) {
            return Err(Status::internal("system metadata was not initialized"));
        }
        // The path of a POST names nothing, though custom kinds take one that does.
        let asked = if call.request.method == Method::POST { "" } else { &call.target.name };
        if asked.is_empty() {
            self.name(resource, &mut tree, call.ids);
        } else if meta_str(&tree, "name").is_empty() && !meta_str(&tree, "generateName").is_empty() {
            return Err(Status::internal("metadata.name was not generated"));
        }
        place(&mut tree, resource, &call.target.namespace)?;
        if call.name.is_empty() {
            meta_str(&tree, "name").clone_into(&mut call.name);
        }
        let fields = meta_mut(&mut tree);
        fields.insert("uid".into(), json!(uid(call.ids)));
        fields.insert("creationTimestamp".into(), json!(time::format(call.now, Precision::Seconds)));
        self.prepare_create(call, resource, &mut tree)?;
        self.confirm_params(call, resource, None, &tree)?;
        // Such a name could not be asked for again: it is refused whatever the kind says of names.
        let faults = names::path_segment(meta_str(&tree, "name"));
        if let Some(fault) = faults.first() {
            let mut errors = Errors::default();
            let path = Path::Root.child("metadata");
            errors.invalid(&path.child("name"), &json!(meta_str(&tree, "name")), fault);
            return Err(Status::invalid(&resource.group, &resource.kind, meta_str(&tree, "name"), errors));
        }
        // What cannot be a revision is ignored, and so is zero.
        if meta_str(&tree, "resourceVersion").parse::<u64>().is_ok_and(|revision| revision > 0) {
            return Err(Status::new(500, "", "resourceVersion should not be set on objects to be created"));
        }
        self.validate(call, write.of(&tree))?;
        self.settle(resource, &mut tree)?;
        self.foresee_write(call, resource, &tree)?;
        self.charge(call, write.of(&tree))?;
        let namespace = meta_str(&tree, "namespace").to_owned();
        // Whatever admission made of its name, PUT and apply store it where they were told to.
        let name = if asked.is_empty() { meta_str(&tree, "name") } else { asked }.to_owned();
        if let Some(other) = self.store.get(&resource.storage, &namespace, &name) {
            return Err(taken(resource, &tree, &self.load(resource, other)));
        }
        let object = self.put_as(resource, &name, None, tree, dry_run)?;
        if !dry_run {
            self.after_write(resource, &object, call)?;
        }
        Ok(object)
    }

    /// Gives a name to an object that has only a `generateName`.
    fn name(&self, resource: &Resource, tree: &mut Value, ids: &mut dyn Ids) {
        let base = meta_str(tree, "generateName").to_owned();
        if base.is_empty() || !meta_str(tree, "name").is_empty() {
            return;
        }
        let namespace = meta_str(tree, "namespace").to_owned();
        let mut name = generate_name(&base, ids);
        for _ in 1..GENERATE_ATTEMPTS {
            if self.store.get(&resource.storage, &namespace, &name).is_none() {
                break;
            }
            name = generate_name(&base, ids);
        }
        meta_mut(tree).insert("name".into(), json!(name));
    }

    fn prepare_create(&self, call: &mut Call<'_>, resource: &Resource, tree: &mut Value) -> Result<()> {
        match &resource.flavor {
            Flavor::Builtin { hooks, .. } if resource.is_definitions() => {
                crd::prepare_create(tree);
                let mut errors = Errors::default();
                meta::validate_create(tree, false, true, hooks.name, &mut errors);
                crd::validate_create(tree, call.noted, &mut errors);
                verdict(resource, tree, errors)?;
                call.warnings.extend(crd::warnings(tree, None));
                Ok(())
            }
            Flavor::Builtin { hooks, .. } => {
                call.warnings.extend((hooks.forewarnings)(tree));
                hooks.create(tree, &self.context(call, resource))?;
                call.warnings.extend((hooks.warnings)(tree, None));
                Ok(())
            }
            Flavor::Custom { definition, version, .. } => {
                let version = &definition.versions[*version];
                if version.has_status {
                    tree.as_object_mut().expect("objects are JSON objects").remove("status");
                }
                meta_mut(tree).insert("generation".into(), json!(1));
                let mut errors = Errors::default();
                if is_typed(resource, tree, &mut errors) {
                    meta::validate_create(
                        tree,
                        resource.namespaced,
                        false,
                        names::dns_subdomain,
                        &mut errors,
                    );
                    version.validate_form(tree, None, &mut errors);
                }
                version.validate_rules(tree, None, &mut errors);
                verdict(resource, tree, errors)
            }
        }
    }

    /// Works out who owns what, as the writer of this request.
    pub(super) fn write_as<T>(
        &self,
        call: &Call<'_>,
        resource: &Resource,
        options: &WriteOptions,
        work: impl FnOnce(&managed::Schema<'_>, &managed::Write<'_>) -> T,
    ) -> T {
        let subresource = call.target.subresource.as_str();
        let api_version = resource.api_version();
        let (types, root) = resource.types();
        let versions: Vec<&str> = resource.versions.iter().map(String::as_str).collect();
        let schema = managed::Schema { types, root, custom: resource.is_custom(), versions: &versions };
        let paths: Vec<Vec<&str>> = resource
            .reset_paths(subresource)
            .iter()
            .map(|path| path.iter().map(String::as_str).collect())
            .collect();
        let paths: Vec<&[&str]> = paths.iter().map(Vec::as_slice).collect();
        let reset = match resource.is_custom() && subresource == "status" {
            true => managed::Reset::Only(&[&["status"]]),
            false => managed::Reset::Exclude(&paths),
        };
        let write = managed::Write {
            manager: &options.manager,
            api_version: &api_version,
            kind: &resource.kind,
            subresource,
            now: call.now,
            reset,
        };
        work(&schema, &write)
    }
}

/// `422` if anything is wrong with the object. A custom object is named as what it says it is.
pub(super) fn verdict(resource: &Resource, tree: &Value, errors: Errors) -> Result<()> {
    let (group, kind) = match resource.is_custom() {
        true => (split_api_version(str_at(tree, &["apiVersion"])).0, str_at(tree, &["kind"])),
        false => (&*resource.group, &*resource.kind),
    };
    match errors.is_empty() {
        true => Ok(()),
        false => Err(Status::invalid(group, kind, meta_str(tree, "name"), errors)),
    }
}

/// Whether a custom object is of its resource's type. It carries its type with it, and whoever changes it may change that.
pub(super) fn is_typed(resource: &Resource, tree: &Value, errors: &mut Errors) -> bool {
    let mut same = |field: &'static str, own: &str| {
        let has = str_at(tree, &[field]);
        if has != own {
            errors.invalid(&Path::Root.child(field), &has.into(), &format!("must be {own}"));
        }
        has == own
    };
    let (has_kind, has_version) = (same("kind", &resource.kind), same("apiVersion", &resource.api_version()));
    has_kind && has_version
}

/// `409`. Whatever has a `generateName` is told that no name was found, whoever named it.
fn taken(resource: &Resource, tree: &Value, other: &Value) -> Status {
    let mut status = Status::already_exists(&resource.group, &resource.plural, meta_str(tree, "name"));
    if !meta_str(tree, "generateName").is_empty() {
        status.message.push_str(", the server was not able to generate a unique name for the object");
        status = status.retry_after(1);
    }
    if other.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null()) {
        status.message = format!("object is being deleted: {}", status.message);
    }
    status
}

/// How often a name is drawn anew when it is taken.
const GENERATE_ATTEMPTS: usize = 8;

/// The longest base that is kept of a `generateName`.
const BASE_MAX: usize = 58;
/// How many letters are added to it.
const SUFFIX: usize = 5;

/// Kubernetes' alphabet for suffixes: no vowels, nothing that reads like something else.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// The base, cut so that the name fits, and five random letters.
pub(super) fn generate_name(base: &str, ids: &mut dyn Ids) -> String {
    let cut = base
        .char_indices()
        .map(|(i, c)| i + c.len_utf8())
        .take_while(|end| *end <= BASE_MAX)
        .last()
        .unwrap_or(0);
    let mut bits = ids.next();
    let mut name = base[..cut].to_owned();
    for _ in 0..SUFFIX {
        name.push(ALPHABET[(bits % ALPHABET.len() as u64) as usize] as char);
        bits /= ALPHABET.len() as u64;
    }
    name
}

/// A version 4 UUID.
pub(super) fn uid(ids: &mut dyn Ids) -> String {
    let (high, low) = (ids.next(), ids.next());
    let (a, b, c) = (high >> 32, (high >> 16) & 0xffff, high & 0x0fff);
    let (d, e) = (0x8000 | (low >> 50), low & 0xffff_ffff_ffff);
    format!("{a:08x}-{b:04x}-4{c:03x}-{d:04x}-{e:012x}")
}

/// The namespace of the path is the namespace of the object.
pub(super) fn place(tree: &mut Value, resource: &Resource, namespace: &str) -> Result<()> {
    let own = meta_str(tree, "namespace").to_owned();
    if !resource.namespaced {
        meta_mut(tree).remove("namespace");
    } else if own.is_empty() {
        meta_mut(tree).insert("namespace".into(), json!(namespace));
    } else if own != namespace {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Status::bad_request(message));
    }
    Ok(())
}

/// Removes what is at a path of keys.
pub(super) fn remove_at(tree: &mut Value, path: &[String]) {
    let Some((last, parents)) = path.split_last() else { return };
    let mut place = tree;
    for key in parents {
        match place.as_object_mut().and_then(|map| map.get_mut(key)) {
            Some(next) => place = next,
            None => return,
        }
    }
    if let Some(map) = place.as_object_mut() {
        map.remove(last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Counter(u64);
    impl Ids for Counter {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            self.0
        }
    }

    #[test]
    fn generated_names_fit_and_use_the_alphabet() {
        let name = generate_name(&"a".repeat(100), &mut Counter(1));
        assert_eq!(name.len(), 63);
        assert!(name[58..].bytes().all(|b| ALPHABET.contains(&b)), "{name}");
    }

    #[test]
    fn uids_are_version_4() {
        let uid = uid(&mut Counter(7));
        assert_eq!(uid.len(), 36);
        assert_eq!(&uid[14..15], "4");
        assert!("89ab".contains(&uid[19..20]), "{uid}");
    }
}
