//! The certificate authority of the API server, in every namespace: how a pod knows whom it speaks to.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::ObjectMeta;
use windlass_core::ObjectKey;

use super::authority::Authority;
use super::serviceaccount::{is_active, of_namespace};
use crate::engine::{Controller, Turn, View, Wiring};

/// Publishes the certificate authority of the API server as the ConfigMap `kube-root-ca.crt` of each namespace.
#[derive(Debug, Default)]
pub struct RootCa {
    authority: Authority,
}

const NAME: &str = "kube-root-ca.crt";
const KEY: &str = "ca.crt";
const ANNOTATION: &str = "kubernetes.io/description";
const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";

impl RootCa {
    /// Publishes these certificates, in PEM. Without them, those by which the API server knows its clients are
    /// published: the same authority, on a server of ours.
    pub fn new(authority: impl Into<String>) -> RootCa {
        RootCa { authority: Authority::given(authority) }
    }
}

impl Controller for RootCa {
    fn name(&self) -> &'static str {
        "root-ca-certificate-publisher-controller"
    }

    fn declare(&self, wiring: &mut Wiring) {
        wiring.keys::<Namespace>();
        wiring.maps::<ConfigMap>(|map, _| of_namespace(&map.metadata, NAME));
        self.authority.leads_to(wiring, |view| {
            let all = view.list::<Namespace>(None);
            all.iter().map(|namespace| ObjectKey::of(&namespace.metadata)).collect()
        });
    }

    fn step(&self, key: &ObjectKey, view: &View<'_>, _: Timestamp) -> Turn {
        let mut turn = Turn::default();
        let Some(authority) = self.authority.get(view).filter(|_| is_active(view, key)) else { return turn };
        let data = Some(BTreeMap::from([(KEY.to_owned(), authority)]));
        let Some(map) = view.get::<ConfigMap>(&ObjectKey::namespaced(key.name(), NAME)) else {
            turn.create(&ConfigMap {
                metadata: ObjectMeta {
                    name: Some(NAME.into()),
                    namespace: Some(key.name().to_owned()),
                    annotations: Some(BTreeMap::from([(ANNOTATION.to_owned(), DESCRIPTION.to_owned())])),
                    ..ObjectMeta::default()
                },
                data,
                ..ConfigMap::default()
            });
            return turn;
        };
        let annotations = map.metadata.annotations.as_ref();
        let described = annotations.and_then(|all| all.get(ANNOTATION)).is_some_and(|text| !text.is_empty());
        if map.data == data && described {
            return turn;
        }
        let mut map = ConfigMap { data, ..ConfigMap::clone(&map) };
        map.metadata.annotations.get_or_insert_default().insert(ANNOTATION.into(), DESCRIPTION.into());
        turn.replace(&map);
        turn
    }
}
