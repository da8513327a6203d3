//! Where an object is.

use std::fmt;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// A namespace and a name: one shared text, so that a clone counts a reference and a hash reads one string.
///
/// ```
/// use windlass_core::ObjectKey;
///
/// let key = ObjectKey::namespaced("default", "web");
/// assert_eq!((key.namespace(), key.name()), (Some("default"), "web"));
/// assert_eq!(key.to_string(), "default/web");
/// assert_eq!(ObjectKey::new(None, "node-1"), ObjectKey::cluster("node-1"));
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// `namespace/name`, or `name` for objects of the cluster: neither part can hold a slash.
    text: Arc<str>,
}

impl ObjectKey {
    /// The key of an object in a namespace.
    pub fn namespaced(namespace: &str, name: &str) -> ObjectKey {
        ObjectKey { text: format!("{namespace}/{name}").into() }
    }

    /// The key of an object of the cluster.
    pub fn cluster(name: &str) -> ObjectKey {
        ObjectKey { text: name.into() }
    }

    /// The key of an object in a namespace, if there is one.
    pub fn new(namespace: Option<&str>, name: &str) -> ObjectKey {
        match namespace {
            Some(namespace) if !namespace.is_empty() => ObjectKey::namespaced(namespace, name),
            _ => ObjectKey::cluster(name),
        }
    }

    /// The key that an object's metadata gives it.
    pub fn of(metadata: &ObjectMeta) -> ObjectKey {
        ObjectKey::new(metadata.namespace.as_deref(), metadata.name.as_deref().unwrap_or_default())
    }

    /// The namespace; `None` for objects of the cluster.
    pub fn namespace(&self) -> Option<&str> {
        self.text.split_once('/').map(|(namespace, _)| namespace)
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.text.split_once('/').map_or(&*self.text, |(_, name)| name)
    }
}

/// `namespace/name`, as kubectl and the logs of other operators write it.
impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_knows_its_parts() {
        let key = ObjectKey::namespaced("default", "one");
        assert_eq!((key.namespace(), key.name()), (Some("default"), "one"));
        assert_eq!(key.to_string(), "default/one");
        let key = ObjectKey::new(Some(""), "node");
        assert_eq!((key.namespace(), key.name()), (None, "node"));
        assert_eq!(key, ObjectKey::cluster("node"));
    }
}
