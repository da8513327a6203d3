//! What the store keeps apart: one tree and one log for each kind.

use std::fmt;
use std::sync::Arc;

/// A kind of object, as `resource.group` (`deployments.apps`, and `pods` in the core group). All versions of a
/// resource are one kind.
///
/// Kinds are in the order of a hash of their names: one is looked up a dozen times for each write, and two numbers are
/// compared sooner than two texts that lie somewhere else.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    hash: u64,
    name: Arc<str>,
}

impl Kind {
    /// The kind of a resource of a group; the core group is empty.
    pub fn new(group: &str, resource: &str) -> Kind {
        match group {
            "" => Kind::from_qualified(resource),
            _ => Kind::from_qualified(&format!("{resource}.{group}")),
        }
    }

    /// The kind of a text that [`Kind::as_str`] gave.
    pub fn from_qualified(text: &str) -> Kind {
        Kind { hash: fnv(text), name: text.into() }
    }

    /// `resource.group`.
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// The API group; empty for the core group.
    pub fn group(&self) -> &str {
        self.name.split_once('.').map_or("", |(_, group)| group)
    }

    /// The plural resource.
    pub fn resource(&self) -> &str {
        self.name.split_once('.').map_or(&self.name, |(resource, _)| resource)
    }
}

/// FNV-1a: short, and the same in every process.
fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
