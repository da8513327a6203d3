//! A write as somebody sees it who wants another version of the same resource.

use std::sync::Arc;

use serde_json::{Value, json};

use super::conversion::{self, Converted};
use super::convert::between;
use super::registry::Resource;
use super::server::{Call, Server};
use super::webhooks::Write;
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
    shown: Option<Shown>,
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
            Some(shown) => (shown.object, self.is_changed) = (Some(changed), true),
            None => *tree = changed,
        }
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
            tree.map(|tree| self.in_version(call, write, (write.resource, other), tree)).transpose()
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
        match (&seen.shown, wanted) {
            (None, None) => return Ok(()),
            (Some(shown), Some(other)) if shown.resource.api_version() == other.api_version() => {
                return Ok(());
            }
            _ => {}
        }
        if let Seen { shown: Some(shown), is_changed: true } = std::mem::take(seen)
            && let Some(object) = &shown.object
        {
            *tree = self.in_version(call, write, (&shown.resource, write.resource), object)?;
        }
        if let Some(other) = wanted {
            seen.shown = Some(self.show(call, write.of(tree), other)?);
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
        if !from.is_custom() {
            return Ok(between(from, to, tree.clone()));
        }
        let target = to.api_version();
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
