//! What the store keeps apart: one tree and one log for each kind.

use std::fmt;
use std::sync::Arc;

/// A kind of object, as `resource.group` (`deployments.apps`, and `pods` in the core group). All versions of a
/// resource are one kind.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(Arc<str>);

impl Kind {
    /// The kind of a resource of a group; the core group is empty.
    pub fn new(group: &str, resource: &str) -> Kind {
        match group {
            "" => Kind(resource.into()),
            _ => Kind(format!("{resource}.{group}").into()),
        }
    }

    /// The kind of a text that [`Kind::as_str`] gave.
    pub fn from_qualified(text: &str) -> Kind {
        Kind(text.into())
    }

    /// `resource.group`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The API group; empty for the core group.
    pub fn group(&self) -> &str {
        self.0.split_once('.').map_or("", |(_, group)| group)
    }

    /// The plural resource.
    pub fn resource(&self) -> &str {
        self.0.split_once('.').map_or(&self.0, |(resource, _)| resource)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
