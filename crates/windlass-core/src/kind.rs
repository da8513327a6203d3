//! Which kind of object.

use std::any::TypeId;
use std::fmt;

use k8s_openapi::NamespaceResourceScope;
use kube_core::{ApiResource, Resource};

/// A kind as the API serves it: its names, and whether its objects live in namespaces.
///
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use windlass_core::Kind;
///
/// let kind = Kind::of::<Deployment>();
/// assert_eq!(kind.to_string(), "Deployment.apps");
/// assert_eq!(kind.path(Some("default"), Some("web")), "/apis/apps/v1/namespaces/default/deployments/web");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kind {
    /// Group, version, kind and plural.
    pub resource: ApiResource,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

impl Kind {
    /// The kind of a Rust type.
    pub fn of<K>() -> Kind
    where
        K: Resource<DynamicType = ()>,
        K::Scope: 'static,
    {
        let namespaced = TypeId::of::<K::Scope>() == TypeId::of::<NamespaceResourceScope>();
        Kind { resource: ApiResource::erase::<K>(&()), namespaced }
    }

    /// The path of an object, or of the collection where there is no name.
    pub fn path(&self, namespace: Option<&str>, name: Option<&str>) -> String {
        let root = if self.resource.group.is_empty() { "/api" } else { "/apis" };
        let mut path = format!("{root}/{}", self.resource.api_version);
        if let Some(namespace) = namespace {
            path.push_str("/namespaces/");
            path.push_str(namespace);
        }
        path.push('/');
        path.push_str(&self.resource.plural);
        if let Some(name) = name {
            path.push('/');
            path.push_str(name);
        }
        path
    }
}

/// The kind alone for the core group, `Kind.group` otherwise, as kubectl writes it.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.resource.kind)?;
        if !self.resource.group.is_empty() {
            write!(f, ".{}", self.resource.group)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::{apps::v1::Deployment, core::v1::Node};

    #[test]
    fn kinds_know_their_paths() {
        let deployments = Kind::of::<Deployment>();
        assert!(deployments.namespaced);
        assert_eq!(deployments.to_string(), "Deployment.apps");
        assert_eq!(
            deployments.path(Some("web"), Some("nginx")),
            "/apis/apps/v1/namespaces/web/deployments/nginx"
        );
        let nodes = Kind::of::<Node>();
        assert!(!nodes.namespaced);
        assert_eq!(nodes.path(None, None), "/api/v1/nodes");
    }
}
