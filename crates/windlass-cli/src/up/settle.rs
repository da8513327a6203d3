//! Waits until what was applied runs, and says what does not.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use kube::api::Api;
use windlass::Env;

use super::apply::Document;
use super::show::Show;

/// How long it is waited for: what is not ready by then is a matter for those who wrote it.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(100);

/// Waits until all workloads among these are ready, or for two minutes.
pub async fn settle(client: &kube::Client, documents: &[Document], show: &Show, env: &Env) {
    let mut waiting: Vec<Workload> = documents.iter().filter_map(Workload::of).collect();
    let deadline = env.moment() + PATIENCE;
    while !waiting.is_empty() {
        let mut still = Vec::new();
        for workload in waiting {
            match workload.count(client).await {
                Some((ready, wanted)) if ready >= wanted => {
                    show.done(&format!("{}: {ready} of {wanted} ready", workload.name()));
                }
                _ => still.push(workload),
            }
        }
        waiting = still;
        if env.moment() >= deadline {
            for workload in &waiting {
                show.line(&format!("{} is not ready yet: `kubectl describe` says why", workload.name()));
            }
            return;
        }
        if let Some(next) = waiting.first() {
            show.step(&format!("waiting for {}", next.name()), env.sleep(LOOK)).await;
        }
    }
}

/// Something whose pods are counted.
struct Workload {
    kind: Kind,
    namespace: String,
    name: String,
}

#[derive(Clone, Copy)]
enum Kind {
    Deployment,
    StatefulSet,
    DaemonSet,
}

impl Workload {
    fn of(document: &Document) -> Option<Workload> {
        let object = &document.object;
        let kind = match object["kind"].as_str()? {
            "Deployment" => Kind::Deployment,
            "StatefulSet" => Kind::StatefulSet,
            "DaemonSet" => Kind::DaemonSet,
            _ => return None,
        };
        let text = |field: &str| object["metadata"][field].as_str().map(str::to_owned);
        Some(Workload {
            kind,
            namespace: text("namespace").unwrap_or_else(|| "default".into()),
            name: text("name")?,
        })
    }

    fn name(&self) -> String {
        let kind = match self.kind {
            Kind::Deployment => "deployment",
            Kind::StatefulSet => "statefulset",
            Kind::DaemonSet => "daemonset",
        };
        format!("{kind}/{}", self.name)
    }

    /// How many pods are ready and how many there should be, once its controller has seen its last version.
    async fn count(&self, client: &kube::Client) -> Option<(i32, i32)> {
        let (client, namespace, name) = (client.clone(), &self.namespace, &self.name);
        let seen = |observed: Option<i64>, generation: Option<i64>| observed >= generation;
        match self.kind {
            Kind::Deployment => {
                let object = Api::<Deployment>::namespaced(client, namespace).get(name).await.ok()?;
                let status = object.status?;
                let wanted = object.spec?.replicas.unwrap_or(1);
                let updated = status.updated_replicas.unwrap_or(0) >= wanted;
                (seen(status.observed_generation, object.metadata.generation) && updated)
                    .then(|| (status.ready_replicas.unwrap_or(0), wanted))
            }
            Kind::StatefulSet => {
                let object = Api::<StatefulSet>::namespaced(client, namespace).get(name).await.ok()?;
                let status = object.status?;
                let wanted = object.spec?.replicas.unwrap_or(1);
                seen(status.observed_generation, object.metadata.generation)
                    .then(|| (status.ready_replicas.unwrap_or(0), wanted))
            }
            Kind::DaemonSet => {
                let object = Api::<DaemonSet>::namespaced(client, namespace).get(name).await.ok()?;
                let status = object.status?;
                seen(status.observed_generation, object.metadata.generation)
                    .then_some((status.number_ready, status.desired_number_scheduled))
            }
        }
    }
}
