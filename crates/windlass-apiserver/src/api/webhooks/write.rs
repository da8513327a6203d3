//! A write, as those who are asked about it see it.

use serde_json::Value;

use super::super::object::meta_str;
use super::super::registry::Resource;
use super::super::server::Call;
use crate::status::Status;

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It is made.
    Create,
    /// It is changed.
    Update,
    /// It is deleted.
    Delete,
    /// What is behind it is spoken with.
    Connect,
}

impl Operation {
    /// As rules name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
            Operation::Connect => "CONNECT",
        }
    }

    /// The kind of the options that such a request has.
    pub(super) fn options(self) -> Option<&'static str> {
        match self {
            Operation::Create => Some("CreateOptions"),
            Operation::Update => Some("UpdateOptions"),
            Operation::Delete => Some("DeleteOptions"),
            Operation::Connect => None,
        }
    }
}

/// A write that hooks are asked about.
#[derive(Clone, Copy)]
pub(in crate::api) struct Write<'a> {
    pub operation: Operation,
    pub resource: &'a Resource,
    /// What kind of object is written: that of the resource, or what a subresource is written with.
    pub shape: &'a Resource,
    /// What will be there; nothing, where something is deleted.
    pub object: Option<&'a Value>,
    /// What is there now.
    pub old: Option<&'a Value>,
    /// The resource and the kind that were asked for, where it is shown in another version.
    pub asked: Option<(&'a Resource, &'a Resource)>,
    /// Whether nothing is stored.
    pub dry_run: bool,
}

impl<'a> Write<'a> {
    pub fn new(
        operation: Operation,
        resource: &'a Resource,
        old: Option<&'a Value>,
        dry_run: bool,
    ) -> Write<'a> {
        Write { operation, resource, shape: resource, object: None, old, asked: None, dry_run }
    }

    /// Whether the object is one of the resource, and does not stand for a part of one.
    pub fn is_whole(&self) -> bool {
        std::ptr::eq(self.shape, self.resource)
    }

    /// The same of another kind of object, which stands for a part of the resource: a Scale, an Eviction.
    pub fn shaped(self, shape: &'a Resource) -> Write<'a> {
        Write { shape, ..self }
    }

    /// The same with what will be there.
    pub fn of<'b>(self, object: &'b Value) -> Write<'b>
    where
        'a: 'b,
    {
        let is_there = self.operation != Operation::Delete;
        Write { object: is_there.then_some(object), ..self }
    }

    /// A refusal that names what is written.
    pub fn forbidden(&self, call: &Call<'_>, why: &str) -> Status {
        let base = self.object.or(self.old).map_or("", |object| meta_str(object, "generateName"));
        let name = match (self.name(call), base) {
            ("", "") => "Unknown",
            ("", base) => base,
            (name, _) => name,
        };
        Status::forbidden(&self.resource.group, &self.resource.plural, name, why)
    }
}
