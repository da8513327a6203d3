//! A plain `kube::runtime::Controller` inside of an operator, for those who migrate one controller at a time.
//!
//! ```console
//! $ cargo run -p windlass --example migrate
//! ```
//!
//! It runs on the replica that leads, with the operator's client: its calls have a timeout, safe retries and metrics, are
//! checked for the lease before every write, and end when the operator is told to stop. What it does not have are the
//! shared cache and the queue: those come when it becomes a [`windlass::Controller`].

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::watcher;
use kube::{Client, ResourceExt as _};
use windlass::operator::Beside;
use windlass::{Env, Operator, Settings};
use windlass_testing::TestCluster;

/// As it was before: marks every ConfigMap of its namespace.
async fn reconcile(map: Arc<ConfigMap>, client: Arc<Client>) -> Result<Action, kube::Error> {
    if !map.labels().contains_key("marked") {
        let api: Api<ConfigMap> = Api::default_namespaced((*client).clone());
        let patch = serde_json::json!({"metadata": {"labels": {"marked": "yes"}}});
        api.patch(&map.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
    }
    Ok(Action::await_change())
}

/// The one function that is new: it hosts the old controller.
async fn marker(beside: Beside) -> Result<(), windlass::Error> {
    let maps: Api<ConfigMap> = Api::default_namespaced(beside.client.clone());
    Controller::new(maps, watcher::Config::default())
        .graceful_shutdown_on(beside.stopping.cancelled_owned())
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_secs(1)), Arc::new(beside.client))
        .for_each(async |_| ())
        .await;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let cluster = TestCluster::new().await;
    let operator = Operator::new("marker", "0.1.0").runs_when_leading("marker", marker).permits(
        "",
        "configmaps",
        &["get", "list", "watch", "patch"],
    );
    let running = operator.start(cluster.client(), Settings::for_tests(Env::system())).await?;
    cluster.apply_yaml("{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}").await?;
    let marked = |map: &ConfigMap| map.labels().contains_key("marked");
    cluster.wait_for("default", "one", "it is marked", marked).await?;
    println!("the old controller has marked it");
    running.stop().await?;
    Ok(())
}
