//! The Node object: that there is a node, what it has, and that it is still there.
//!
//! As with kubelet, a lease is renewed every ten seconds and the status is written when something in it changed, and
//! every five minutes. A node that stops says nothing: its lease runs out.

mod machine;
mod object;

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;
use windlass::Env;

pub use machine::Machine;
pub use object::{Registration, node, status};

use crate::site::insist;

/// Where the leases of nodes are.
const LEASES: &str = "kube-node-lease";

/// How long a lease lasts, and how often it is renewed.
const LEASE_SECONDS: i32 = 40;
const RENEW: Duration = Duration::from_secs(10);

/// How often a status that has not changed is written, in rounds of [`RENEW`].
const REPORT: u32 = 30;

/// Who writes the Node.
const MANAGER: &str = "kubelet";

/// A node towards the API server.
#[derive(Clone)]
pub struct Registrar {
    client: kube::Client,
    env: Env,
    registration: Registration,
}

impl Registrar {
    /// A node that is to be known to an API server.
    pub fn new(client: kube::Client, env: Env, registration: Registration) -> Registrar {
        Registrar { client, env, registration }
    }

    /// Makes the Node object, or takes the one that is there, and says that the node is ready. Tries until it is done.
    pub async fn register(&self) {
        insist(&self.env, &self.registration.name, || self.try_register()).await;
    }

    async fn try_register(&self) -> Result<(), kube::Error> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let new = node(&self.registration);
        match nodes.create(&by_us(), &new).await {
            Err(kube::Error::Api(refused)) if refused.is_already_exists() => {
                let labels = json!({"metadata": {"labels": new.metadata.labels}});
                nodes.patch(&self.registration.name, &patched(), &Patch::Merge(&labels)).await?;
            }
            made => {
                made?;
            }
        }
        self.renew().await?;
        self.report(true).await
    }

    /// Renews the lease and reports the status, until it is dropped.
    pub async fn heartbeat(&self) {
        let mut round = 0;
        loop {
            self.env.sleep(self.env.jittered(RENEW, 0.04)).await;
            round = (round + 1) % REPORT;
            if let Err(error) = self.renew().await {
                tracing::warn!(node = self.registration.name, %error, "the lease could not be renewed");
            }
            match self.report(round == 0).await {
                Ok(()) => {}
                // Somebody deleted it: kubelet makes it again only when it is started again, and so do we.
                Err(kube::Error::Api(refused)) if refused.is_not_found() => {
                    tracing::warn!(node = self.registration.name, "the Node was deleted");
                }
                Err(error) => {
                    tracing::warn!(node = self.registration.name, %error, "the status could not be written");
                }
            }
        }
    }

    async fn renew(&self) -> Result<(), kube::Error> {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), LEASES);
        let name = &self.registration.name;
        let now = object::micro(self.env.now());
        let spec = json!({"holderIdentity": name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": now});
        let renewed = leases.patch(name, &patched(), &Patch::Merge(json!({"spec": spec}))).await;
        match renewed {
            Err(kube::Error::Api(refused)) if refused.is_not_found() => {
                let mut lease = json!({"metadata": {"name": name, "namespace": LEASES}, "spec": spec});
                let node = Api::<Node>::all(self.client.clone()).get_opt(name).await?;
                if let Some(uid) = node.and_then(|node| node.metadata.uid) {
                    lease["metadata"]["ownerReferences"] =
                        json!([{"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}]);
                }
                let lease = serde_json::from_value(lease).map_err(kube::Error::SerdeError)?;
                leases.create(&by_us(), &lease).await?;
                Ok(())
            }
            renewed => renewed.map(|_| ()),
        }
    }

    /// Writes the status if it differs from what is there, or in any case.
    async fn report(&self, always: bool) -> Result<(), kube::Error> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let name = &self.registration.name;
        let there = nodes.get(name).await?.status.unwrap_or_default();
        let (new, changed) = status(&self.registration, &there, self.env.now());
        if changed || always {
            let patch = json!({"status": new});
            nodes.patch_status(name, &patched(), &Patch::Strategic(&patch)).await?;
        }
        Ok(())
    }
}

fn by_us() -> PostParams {
    PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() }
}

fn patched() -> PatchParams {
    PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() }
}
