//! The heartbeats of nodes that a scenario labels `puppet/alive`: their leases are renewed until the label is gone.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::api::Api;
use super::mirror::Mirror;

/// The label of a node that is alive.
pub const ALIVE: &str = "puppet/alive";

/// How often. The shortest grace that scenarios use is six seconds.
const PERIOD: Duration = Duration::from_secs(2);

/// Renews leases until it is dropped.
pub fn start(
    api: &Api,
    mirror: &Mirror,
    now: Arc<impl Fn() -> Timestamp + Send + Sync + 'static>,
) -> JoinSet<()> {
    let (api, mirror) = (api.clone(), mirror.clone());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        loop {
            for node in mirror.nodes_with(ALIVE) {
                let time = format!("{:.6}", now());
                let lease = json!({
                    "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": node},
                    "spec": {"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": time},
                });
                // A lease that cannot be renewed is what a node that is not heard of looks like: the scenario shows it.
                let _ = api.apply("kube-node-lease", &lease).await;
            }
            sleep(PERIOD).await;
        }
    });
    tasks
}
