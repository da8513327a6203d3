//! Which certificates the API server is known by.

use k8s_openapi::api::core::v1::ConfigMap;
use windlass_core::ObjectKey;

use crate::engine::{View, Wiring};

/// The certificate authority of the API server, in PEM: the one that was given, else what the server publishes of those by
/// which it knows its clients, which is the same authority on a server of ours.
#[derive(Clone, Debug, Default)]
pub(super) struct Authority(Option<String>);

/// Where the API server says which certificates it trusts.
const PUBLISHED: (&str, &str, &str) = ("kube-system", "extension-apiserver-authentication", "client-ca-file");

impl Authority {
    /// These certificates, whatever the server publishes.
    pub fn given(authority: impl Into<String>) -> Authority {
        Authority(Some(authority.into()))
    }

    /// Declares what it is read from; when that changes, all these keys are looked at.
    pub fn leads_to(
        &self,
        wiring: &mut Wiring,
        all: impl Fn(&View<'_>) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) {
        if self.0.is_some() {
            return;
        }
        let (namespace, name, _) = PUBLISHED;
        wiring.maps::<ConfigMap>(move |map, view| {
            let is_it = ObjectKey::of(&map.metadata) == ObjectKey::namespaced(namespace, name);
            if is_it { all(view) } else { Vec::new() }
        });
    }

    /// The certificates, where there are some.
    pub fn get(&self, view: &View<'_>) -> Option<String> {
        if self.0.is_some() {
            return self.0.clone();
        }
        let (namespace, name, key) = PUBLISHED;
        let published = view.get::<ConfigMap>(&ObjectKey::namespaced(namespace, name))?;
        published.data.as_ref()?.get(key).filter(|text| !text.is_empty()).cloned()
    }
}
