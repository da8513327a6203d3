//! The objects that pods are configured from.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use windlass::cache::Informer;
use windlass_core::ObjectKey;

/// Where the objects come from that pods name.
pub trait Library: Send + Sync + 'static {
    /// A ConfigMap.
    fn config_map(&self, namespace: &str, name: &str) -> Option<Arc<ConfigMap>>;
    /// A Secret.
    fn secret(&self, namespace: &str, name: &str) -> Option<Arc<Secret>>;
    /// All Services.
    fn services(&self) -> Vec<Arc<Service>>;
}

/// The objects of a cache.
#[derive(Clone, Debug)]
pub struct CacheLibrary {
    /// All ConfigMaps.
    pub config_maps: Informer<ConfigMap>,
    /// All Secrets.
    pub secrets: Informer<Secret>,
    /// All Services.
    pub services: Informer<Service>,
}

impl Library for CacheLibrary {
    fn config_map(&self, namespace: &str, name: &str) -> Option<Arc<ConfigMap>> {
        self.config_maps.get(&ObjectKey::namespaced(namespace, name))
    }

    fn secret(&self, namespace: &str, name: &str) -> Option<Arc<Secret>> {
        self.secrets.get(&ObjectKey::namespaced(namespace, name))
    }

    fn services(&self) -> Vec<Arc<Service>> {
        self.services.list(None)
    }
}

/// As the API words it that an object is not there.
pub(crate) fn not_found(resource: &str, name: &str) -> String {
    format!("{resource} \"{name}\" not found")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Objects of a test.
    #[derive(Clone, Debug, Default)]
    pub(crate) struct Shelf {
        pub config_maps: Vec<Arc<ConfigMap>>,
        pub secrets: Vec<Arc<Secret>>,
        pub services: Vec<Arc<Service>>,
    }

    impl Library for Shelf {
        fn config_map(&self, _: &str, name: &str) -> Option<Arc<ConfigMap>> {
            self.config_maps.iter().find(|map| map.metadata.name.as_deref() == Some(name)).cloned()
        }

        fn secret(&self, _: &str, name: &str) -> Option<Arc<Secret>> {
            self.secrets.iter().find(|secret| secret.metadata.name.as_deref() == Some(name)).cloned()
        }

        fn services(&self) -> Vec<Arc<Service>> {
            self.services.clone()
        }
    }
}
