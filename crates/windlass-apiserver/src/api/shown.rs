//! A write as somebody sees it who wants another version of the same resource.

use std::sync::Arc;

use serde_json::{Value, json};

use super::conversion::{self, Converted};
use super::convert::between;
use super::registry::{Flavor, Resource};
use super::server::{Call, Server};
use super::webhooks::Write;
use crate::codec;
use crate::json::str_at;
use crate::status::Status;

/// A write in another version than it was asked for.
pub(super) struct Shown {
    resource: Arc<Resource>,
    object: Option<Value>,
    old: Option<Value>,
}

impl Shown {
    /// The write as it is shown.
    pub fn write<'a>(&'a self, write: Write<'a>) -> Write<'a> {
        let shape = if write.is_whole() { &*self.resource } else { write.shape };
        let (object, old) = (self.object.as_ref(), self.old.as_ref());
        let asked = Some((write.resource, write.shape));
        Write { resource: &self.resource, shape, object, old, asked, ..write }
    }
}

/// Why a write cannot be shown in another version.
pub(super) enum Unshown {
    /// A webhook has to be asked first.
    Asking,
    /// It was asked, and this is why.
    Failed(String),
}

impl Unshown {
    /// The end of the request, for now or for good.
    pub fn end(self, refusal: impl FnOnce(&str) -> Status) -> Status {
        match self {
            Unshown::Asking => Status::put_aside(),
            Unshown::Failed(why) => refusal(&why),
        }
    }
}

/// An object on its way through those who may change it, in the version in which the last of them saw it. Versions are
/// changed when somebody wants another one, and not before.
#[derive(Default)]
pub(super) struct Seen {
    /// What it is shown as: what it is, if there is nothing.
    shown: Option<Shown>,
    is_begun: bool,
    is_changed: bool,
}

impl Seen {
    /// The write as it is seen now.
    pub fn write<'a>(&'a self, own: Write<'a>) -> Write<'a> {
        self.shown.as_ref().map_or(own, |shown| shown.write(own))
    }

    /// Puts what was made of the object in its place.
    pub fn put(&mut self, tree: &mut Value, changed: Value) {
        match &mut self.shown {
            Some(shown) => shown.object = Some(changed),
            None => *tree = changed,
        }
        self.is_changed = true;
    }
}

impl Server {
    /// A write in another version.
    pub(super) fn show(
        &self,
        call: &mut Call<'_>,
        write: Write<'_>,
        other: &Arc<Resource>,
    ) -> Result<Shown, Unshown> {
        let mut convert = |tree: Option<&Value>| {
            let mut tree =
                tree.map(|tree| self.in_version(call, write, (write.resource, other), tree)).transpose()?;
            if let Some(tree) = tree.as_mut().filter(|_| write.is_whole() && other.is_custom()) {
                tree["kind"] = json!(other.kind);
            }
            Ok(tree)
        };
        // Both are asked for before anybody waits.
        let (object, old) = (convert(write.object), convert(write.old));
        Ok(Shown { resource: other.clone(), object: object?, old: old? })
    }

    /// Sees to it that an object is seen in a version: the one that was asked for, if no other one is wanted.
    pub(super) fn turn(
        &self,
        call: &mut Call<'_>,
        write: Write<'_>,
        tree: &mut Value,
        seen: &mut Seen,
        wanted: Option<&Arc<Resource>>,
    ) -> Result<(), Unshown> {
        let target = wanted.map_or_else(|| write.resource.api_version(), |other| other.api_version());
        let is_shown = match &seen.shown {
            Some(shown) => shown.resource.api_version() == target,
            None => seen.is_begun && wanted.is_none(),
        };
        if is_shown {
            return Ok(());
        }
        self.turn_back(call, write, tree, seen)?;
        seen.is_begun = true;
        seen.shown = match wanted {
            Some(other) => Some(self.show(call, write.of(tree), other)?),
            // Somebody took its type from it: it is shown with it all the same, until it is changed once more.
            None if write.is_whole()
                && write.resource.is_custom()
                && tree["kind"] != *write.resource.kind =>
            {
                Some(self.show(call, write.of(tree), &Arc::new(write.resource.clone()))?)
            }
            None => None,
        };
        Ok(())
    }

    /// Sees to it that an object is in the version that was asked for, whatever was made of it.
    pub(super) fn turn_back(
        &self,
        call: &mut Call<'_>,
        write: Write<'_>,
        tree: &mut Value,
        seen: &mut Seen,
    ) -> Result<(), Unshown> {
        let Seen { shown, is_changed, .. } = std::mem::take(seen);
        let (from, object) = match &shown {
            Some(Shown { resource, object, .. }) => (&**resource, object.as_ref()),
            // Whoever changed it may have given it another version than it was shown in.
            None => (write.resource, Some(&*tree)),
        };
        if let Some(object) = object.filter(|_| is_changed) {
            *tree = self.in_version(call, write, (from, write.resource), object)?;
            if !write.shape.is_custom() {
                codec::set_type(tree, &write.shape.api_version(), &write.shape.kind);
            }
        }
        Ok(())
    }

    fn in_version(
        &self,
        call: &mut Call<'_>,
        write: Write<'_>,
        (from, to): (&Resource, &Resource),
        tree: &Value,
    ) -> Result<Value, Unshown> {
        // What stands for a part of the resource is the same for all versions.
        if !write.is_whole() {
            return Ok(tree.clone());
        }
        let target = to.api_version();
        let Flavor::Custom { definition, .. } = &from.flavor else {
            return Ok(match from.api_version() == target {
                true => tree.clone(),
                false => between(from, to, tree.clone()),
            });
        };
        let has = str_at(tree, &["apiVersion"]);
        if conversion::version(definition, has).is_none() {
            return Err(Unshown::Failed(format!(
                "request to convert CR from an invalid group/version: {has}"
            )));
        }
        if !conversion::by_webhook(from) {
            let mut tree = tree.clone();
            tree["apiVersion"] = json!(target);
            return Ok(tree);
        }
        match self.converted(call, write.resource, &target, tree) {
            Converted::Tree(tree) => Ok(tree),
            Converted::Failed(why) => Err(Unshown::Failed(why)),
            Converted::Asking => Err(Unshown::Asking),
        }
    }
}
