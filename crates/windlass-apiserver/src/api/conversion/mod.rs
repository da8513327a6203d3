//! Custom kinds, whose versions differ in name only unless a webhook converts them into each other.
//!
//! ```text
//! stored (v2) ── prune, default ── webhook ── prune ─► what a client of v1 reads
//! written in v1 ── webhook ── prune ─► stored (v2) ── webhook ─► what its writer is shown
//! ```
//!
//! A conversion that a request needs is asked for as a verdict is (see `webhooks`): the request is put aside before it has
//! written anything, and begun anew with the answer. What was answered is kept in the [resource](knowing) that the request
//! goes by, so that whoever reads an object finds its conversion there. A list asks about all its objects at once.
//!
//! What is read and written back as it was, such as to add a finalizer, is not converted back: it is stored as it was. What
//! else is written is converted back before it is stored, for the answer: the webhook that cannot do that keeps it from being
//! stored. kube-apiserver stores first, and answers with an error.
//!
//! Objects are selected by fields in whichever version, and the fields are kept with the object: where another version has
//! such fields, a write in the stored version asks for them, too, and is refused if nobody can tell.
//!
//! A watch asks for itself, through the front: see [`Wanted`].

mod review;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::object::meta_mut;
use super::registry::{Flavor, Resource};
use super::server::{Call, Server};
use super::webhooks::{Answered, Client, Question, Reply};
use crate::crd::{Conversion, Definition, Version};
use crate::status::{Result, Status};
use crate::store::Object;

/// Conversions that were asked for, by what was converted into what.
#[derive(Debug, Default)]
pub struct Known {
    answers: BTreeMap<Key, std::result::Result<Value, String>>,
    /// What was converted, by what was made of it: what is read and written back as it was is stored as it was.
    origins: BTreeMap<Key, std::result::Result<Value, String>>,
}

/// A version, and a tree that is to be converted into it. Of its metadata counts what names it, and what a webhook may
/// change: a finalizer more or a later revision convert nothing differently.
type Key = [u8; 32];

fn key(target: &str, tree: &Value) -> Key {
    let mut tree = tree.clone();
    meta_mut(&mut tree)
        .retain(|field, _| matches!(field.as_str(), "name" | "namespace" | "uid" | "labels" | "annotations"));
    tree.sort_all_objects();
    let mut hash = Sha256::new();
    hash.update(target.as_bytes());
    hash.update([0]);
    hash.update(tree.to_string().as_bytes());
    hash.finalize().into()
}

impl Known {
    /// What these answers say.
    fn from(definition: &Definition, answers: &[Answered]) -> Known {
        let mut known = Known::default();
        for Answered { question, reply } in answers {
            let Some((target, objects)) = review::asked(question) else { continue };
            for (object, converted) in objects.iter().zip(review::read(question, objects, reply)) {
                if let Ok(tree) = &converted
                    && !version(definition, target).is_some_and(|version| version.storage)
                {
                    let source = object["apiVersion"].as_str().unwrap_or_default();
                    let made = pruned(definition, tree.clone());
                    known.origins.insert(key(source, &made), Ok(object.clone()));
                }
                known.answers.insert(key(target, object), converted);
            }
        }
        known
    }

    /// A tree in another version, if it is known.
    fn find(&self, target: &str, tree: &Value) -> Option<&std::result::Result<Value, String>> {
        if self.answers.is_empty() {
            return None;
        }
        let key = key(target, tree);
        self.origins.get(&key).or_else(|| self.answers.get(&key))
    }
}

/// What a watch has to have converted before it can go on. [`Server::conversion`] makes a question of it, whose answer goes
/// to [`Watch::converted`](super::Watch::converted).
pub struct Wanted {
    resource: Arc<Resource>,
    target: String,
    objects: Vec<Value>,
}

/// What is known of the conversion of some objects.
enum Outlook {
    Clear,
    Missing(Vec<Value>),
}

/// What became of a conversion.
pub(super) enum Converted {
    Tree(Value),
    /// Why there is none.
    Failed(String),
    /// It has to be asked for first.
    Asking,
}

/// How a resource is converted, if a webhook does it.
fn webhook(resource: &Resource) -> Option<(&Definition, &Known, &Value)> {
    let Flavor::Custom { definition, known, .. } = &resource.flavor else { return None };
    match &definition.conversion {
        Conversion::Webhook(webhook) => Some((definition, known, webhook)),
        Conversion::None => None,
    }
}

/// Whether a webhook converts the versions of this resource.
pub(super) fn by_webhook(resource: &Resource) -> bool {
    webhook(resource).is_some()
}

/// The resource with what was answered so far.
pub(super) fn knowing(resource: &Arc<Resource>, answers: &[Answered]) -> Arc<Resource> {
    match webhook(resource) {
        Some((definition, ..)) if !answers.is_empty() => {
            with(resource, Arc::new(Known::from(definition, answers)))
        }
        _ => resource.clone(),
    }
}

/// Another view of the same objects, with what is known to this one.
pub(super) fn sharing(view: &Arc<Resource>, of: &Resource) -> Arc<Resource> {
    match &of.flavor {
        Flavor::Custom { known, .. } if by_webhook(of) => with(view, known.clone()),
        _ => view.clone(),
    }
}

fn with(resource: &Resource, all: Arc<Known>) -> Arc<Resource> {
    let mut resource = resource.clone();
    if let Flavor::Custom { known, .. } = &mut resource.flavor {
        *known = all;
    }
    Arc::new(resource)
}

/// The version of a definition that an object says it is of.
pub(super) fn version<'a>(definition: &'a Definition, api_version: &str) -> Option<&'a Version> {
    let (group, name) = super::registry::split_api_version(api_version);
    definition.versions.iter().find(|version| version.name == name && definition.group == group)
}

/// A tree with the fields that its version knows.
fn pruned(definition: &Definition, mut tree: Value) -> Value {
    if let Some(version) = version(definition, tree["apiVersion"].as_str().unwrap_or_default()) {
        version.prune(&mut tree, &mut Vec::new());
    }
    tree
}

/// A stored tree as its own version has it now.
fn settled(definition: &Definition, tree: Value) -> Value {
    let mut tree = pruned(definition, tree);
    if let Some(version) = version(definition, tree["apiVersion"].as_str().unwrap_or_default()) {
        version.default(&mut tree);
    }
    tree
}

/// A stored tree in the version of a resource of this definition. What no webhook was asked about keeps its fields, as it does
/// where versions are converted by name alone: the server looks at an object for itself, such as for its finalizers, without
/// asking anybody.
pub(super) fn read(resource: &Resource, definition: &Definition, known: &Known, tree: Value) -> Value {
    // A definition may have changed since the object was stored: what it says now of the stored version is what is read.
    kept(definition, known, settled(definition, tree), &resource.api_version())
}

/// A tree in the version in which it is stored.
pub(super) fn write(resource: &Resource, definition: &Definition, known: &Known, tree: Value) -> Value {
    kept(definition, known, tree, &resource.storage_api_version)
}

/// A tree in another version, with the fields that this one knows.
fn kept(definition: &Definition, known: &Known, tree: Value, target: &str) -> Value {
    match tree["apiVersion"] == target {
        true => tree,
        false => pruned(definition, converted(known.find(target, &tree), tree, target)),
    }
}

/// A tree in another version, as the webhook made it, if one was asked.
fn converted(known: Option<&std::result::Result<Value, String>>, mut tree: Value, target: &str) -> Value {
    let Some(Ok(converted)) = known else {
        tree["apiVersion"] = json!(target);
        return tree;
    };
    let mut out = converted.clone();
    let mut metadata = tree["metadata"].take();
    for field in ["labels", "annotations"] {
        match out["metadata"].get(field) {
            Some(value) => metadata[field] = value.clone(),
            None => drop(metadata.as_object_mut().and_then(|metadata| metadata.shift_remove(field))),
        }
    }
    out["metadata"] = metadata;
    out
}

/// What is still to be asked before these stored objects can be read.
fn outlook<'a>(resource: &Resource, objects: impl IntoIterator<Item = &'a Arc<Object>>) -> Result<Outlook> {
    let Some((definition, known, _)) = webhook(resource) else { return Ok(Outlook::Clear) };
    let target = resource.api_version();
    // Keys are sorted in what is stored: most objects need not be read to be known.
    let start = format!("{{\"apiVersion\":{}", json!(target));
    let others = objects.into_iter().filter(|object| !object.body().starts_with(start.as_bytes()));
    let trees = others.map(|object| {
        let tree = serde_json::from_slice(object.body()).expect("stored bodies are JSON");
        settled(definition, tree)
    });
    unknown(known, &target, trees.collect())
}

fn unknown(known: &Known, target: &str, trees: Vec<Value>) -> Result<Outlook> {
    let mut missing = Vec::new();
    for tree in trees {
        match known.find(target, &tree) {
            Some(Ok(_)) => {}
            Some(Err(why)) => return Err(Status::new(500, "", why.clone())),
            None => missing.push(tree),
        }
    }
    Ok(if missing.is_empty() { Outlook::Clear } else { Outlook::Missing(missing) })
}

impl Server {
    /// Sees to it that objects can be read in the resource's version.
    pub(super) fn foresee<'a>(
        &self,
        call: &mut Call<'_>,
        resource: &Arc<Resource>,
        objects: impl IntoIterator<Item = &'a Arc<Object>>,
    ) -> Result<()> {
        match outlook(resource, objects)? {
            Outlook::Clear => Ok(()),
            Outlook::Missing(objects) => self.ask(call, resource, resource.api_version(), objects),
        }
    }

    /// Sees to it that objects can be read, marked as deleted, and be stored again.
    pub(super) fn foresee_end(
        &self,
        call: &mut Call<'_>,
        resource: &Arc<Resource>,
        objects: &[Arc<Object>],
    ) -> Result<()> {
        self.foresee(call, resource, objects)?;
        match by_webhook(resource) {
            true => self.foresee_fields(call, resource, objects),
            false => Ok(()),
        }
    }

    /// Sees to it that the fields are known that objects are selected by in their other versions.
    fn foresee_fields(
        &self,
        call: &mut Call<'_>,
        resource: &Arc<Resource>,
        objects: &[Arc<Object>],
    ) -> Result<()> {
        for view in self.registry.views(&resource.storage).filter(|view| !view.fields.is_empty()) {
            self.foresee(call, &sharing(view, resource), objects)?;
        }
        Ok(())
    }

    /// Sees to it that a tree can be stored, and be read again: by its writer, and by the fields it is selected by.
    pub(super) fn foresee_write(
        &self,
        call: &mut Call<'_>,
        resource: &Arc<Resource>,
        tree: &Value,
    ) -> Result<()> {
        let Some((_, known, _)) = webhook(resource) else { return Ok(()) };
        let target = &resource.storage_api_version;
        if tree["apiVersion"] != **target
            && let Outlook::Missing(objects) = unknown(known, target, vec![tree.clone()])?
        {
            return self.ask(call, resource, target.clone(), objects);
        }
        let stored = [Arc::new(self.seal(resource, tree.clone(), self.store.revision())?)];
        self.foresee(call, resource, &stored)?;
        self.foresee_fields(call, resource, &stored)
    }

    /// A tree in another version of its resource, with all that the webhook made of it: who looks at a write sees also
    /// what will not be kept. The webhook is asked even about what it has just made of the stored object.
    pub(super) fn converted(
        &self,
        call: &mut Call<'_>,
        resource: &Resource,
        target: &str,
        tree: &Value,
    ) -> Converted {
        let Some((_, known, _)) = webhook(resource) else { return Converted::Tree(tree.clone()) };
        match known.answers.get(&key(target, tree)) {
            _ if tree["apiVersion"] == target => Converted::Tree(tree.clone()),
            known @ Some(Ok(_)) => Converted::Tree(converted(known, tree.clone(), target)),
            Some(Err(why)) => Converted::Failed(why.clone()),
            None => {
                let (resource, objects) = (Arc::new(resource.clone()), vec![tree.clone()]);
                let wanted = Wanted { resource, target: target.to_owned(), objects };
                call.asking.push(self.conversion(&wanted));
                Converted::Asking
            }
        }
    }

    fn ask(
        &self,
        call: &mut Call<'_>,
        resource: &Arc<Resource>,
        target: String,
        objects: Vec<Value>,
    ) -> Result<()> {
        call.asking.push(self.conversion(&Wanted { resource: resource.clone(), target, objects }));
        Err(Status::put_aside())
    }

    /// The question that a conversion is.
    pub fn conversion(&self, wanted: &Wanted) -> Question {
        let Wanted { resource, target, objects } = wanted;
        let hook = format!("conversion_webhook_for_{}.{}", resource.plural, resource.group);
        let config = webhook(resource).map_or(&Value::Null, |(_, _, webhook)| webhook);
        let client = Client::read(&config["clientConfig"]);
        review::question(hook, self.place(&client), client.authority, config, target, objects)
    }
}

/// What a watch has to ask before it can show these objects.
pub(super) fn wanted(resource: &Arc<Resource>, objects: &[Arc<Object>]) -> Result<Option<Wanted>> {
    Ok(match outlook(resource, objects)? {
        Outlook::Clear => None,
        Outlook::Missing(objects) => {
            Some(Wanted { resource: resource.clone(), target: resource.api_version(), objects })
        }
    })
}

/// The resource with one answer, in place of those before it.
pub(super) fn told(resource: &Arc<Resource>, question: Question, reply: Reply) -> Arc<Resource> {
    knowing(resource, &[Answered { question, reply }])
}
