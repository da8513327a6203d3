//! Names from the watch cache.

use std::net::Ipv4Addr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Namespace, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::core::PartialObjectMeta;
use windlass::cache::{Cache, Declared, Index, Informer};
use windlass_core::{Kind, ObjectKey};

use super::super::services::{addresses, cluster_ip, each, service_of};
use super::answer::Directory;

/// What the cache knows of Services, their endpoints and namespaces. Clones are the same.
#[derive(Clone, Debug)]
pub struct Cached {
    /// The Services.
    pub services: Informer<Service>,
    /// Their endpoints.
    pub slices: Informer<EndpointSlice>,
    namespaces: Informer<PartialObjectMeta<Namespace>>,
}

const BY_SERVICE: &str = "service";
const BY_ADDRESS: &str = "address";

impl Cached {
    /// Says that it is wanted.
    pub fn declare(cache: &Cache) -> Cached {
        let address = |service: &Service| cluster_ip(service).map(|ip| ip.to_string()).into_iter().collect();
        let of_service = |slice: &EndpointSlice| {
            service_of(slice).map(|(namespace, name)| format!("{namespace}/{name}")).into_iter().collect()
        };
        let has_address = |slice: &EndpointSlice| {
            each(slice).flat_map(addresses).map(|address| address.to_string()).collect()
        };
        Cached {
            services: cache.declare(Declared::typed().index(Index::new(BY_ADDRESS, address))),
            slices: cache.declare(
                Declared::typed()
                    .index(Index::new(BY_SERVICE, of_service))
                    .index(Index::new(BY_ADDRESS, has_address)),
            ),
            namespaces: cache.declare(Declared::of(Kind::of::<Namespace>())),
        }
    }

    /// Whether everything that there is, is known.
    pub fn is_synced(&self) -> bool {
        self.services.is_synced() && self.slices.is_synced() && self.namespaces.is_synced()
    }
}

impl Directory for Cached {
    fn service(&self, namespace: &str, name: &str) -> Option<Arc<Service>> {
        self.services.get(&ObjectKey::namespaced(namespace, name))
    }

    fn slices(&self, namespace: &str, service: &str) -> Vec<Arc<EndpointSlice>> {
        self.slices.by_index(BY_SERVICE, &format!("{namespace}/{service}")).unwrap_or_default()
    }

    fn service_at(&self, address: Ipv4Addr) -> Option<Arc<Service>> {
        self.services.by_index(BY_ADDRESS, &address.to_string())?.into_iter().next()
    }

    fn slices_at(&self, address: Ipv4Addr) -> Vec<Arc<EndpointSlice>> {
        self.slices.by_index(BY_ADDRESS, &address.to_string()).unwrap_or_default()
    }

    fn has_namespace(&self, name: &str) -> bool {
        self.namespaces.get(&ObjectKey::cluster(name)).is_some()
    }
}
