//! Service accounts: every namespace has one of the name `default`.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::ObjectMeta;
use windlass_core::ObjectKey;

use crate::engine::{Controller, Turn, View, Wiring};

/// Makes the account of each namespace.
pub(super) struct ServiceAccounts;

/// The account under which a pod runs that names none.
const DEFAULT: &str = "default";

impl Controller for ServiceAccounts {
    fn name(&self) -> &'static str {
        "serviceaccount-controller"
    }

    fn declare(&self, wiring: &mut Wiring) {
        wiring.keys::<Namespace>();
        wiring.maps::<ServiceAccount>(|account, _| of_namespace(&account.metadata, DEFAULT));
    }

    fn step(&self, key: &ObjectKey, view: &View<'_>, _: Timestamp) -> Turn {
        let mut turn = Turn::default();
        let account = ObjectKey::namespaced(key.name(), DEFAULT);
        if is_active(view, key) && view.get::<ServiceAccount>(&account).is_none() {
            turn.create(&ServiceAccount {
                metadata: ObjectMeta {
                    name: Some(DEFAULT.into()),
                    namespace: Some(key.name().to_owned()),
                    ..ObjectMeta::default()
                },
                ..ServiceAccount::default()
            });
        }
        turn
    }
}

/// Whether a namespace is there, and to stay.
pub(super) fn is_active(view: &View<'_>, key: &ObjectKey) -> bool {
    let namespace = view.get::<Namespace>(key);
    let phase = namespace.as_ref().and_then(|namespace| namespace.status.as_ref()?.phase.as_deref());
    phase == Some("Active")
}

/// The namespace of an object, if it has this name.
pub(super) fn of_namespace(metadata: &ObjectMeta, name: &str) -> Vec<ObjectKey> {
    let namespace = metadata.namespace.as_deref().filter(|_| metadata.name.as_deref() == Some(name));
    namespace.map(ObjectKey::cluster).into_iter().collect()
}
