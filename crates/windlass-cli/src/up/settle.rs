//! Waits until what was applied is ready, and says what is not, and why.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use serde_json::Value;
use windlass::Env;

use super::apply::Document;
use super::readiness::{Readiness, readiness, trouble};
use super::show::{Show, Step};

/// How long it is waited for: what is not ready by then is a matter for those who wrote it.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(100);

/// Waits until all that can be ready among these is, or for two minutes.
pub async fn settle(client: &kube::Client, documents: &[Document], show: &Show, env: &Env) {
    let mut waiting: Vec<Awaited> =
        documents.iter().filter_map(|document| Awaited::of(document, documents, show)).collect();
    let deadline = env.moment() + PATIENCE;
    while !waiting.is_empty() {
        let late = env.moment() >= deadline;
        let mut still = Vec::new();
        for awaited in waiting {
            match awaited.look(client).await {
                Readiness::Ready(how) => show.done(&format!("{}: {how}", awaited.name)),
                Readiness::Waits(why) if late => {
                    show.line(&format!("{} is not ready yet: {why}", awaited.name))
                }
                Readiness::Waits(why) => {
                    awaited.step.say(format!("{}: {why}", awaited.name));
                    still.push(awaited);
                }
            }
        }
        waiting = still;
        env.sleep(LOOK).await;
    }
}

/// Something that will be ready.
struct Awaited {
    resource: ApiResource,
    namespace: String,
    object: String,
    /// What people call it: `deployment/web`.
    name: String,
    step: Step,
}

impl Awaited {
    /// Workloads can be waited for, and objects of the kinds that are installed along with them: an operator sees to these.
    fn of(document: &Document, all: &[Document], show: &Show) -> Option<Awaited> {
        let object = &document.object;
        let (api_version, kind) = (object["apiVersion"].as_str()?, object["kind"].as_str()?);
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let is_workload = group == "apps" && matches!(kind, "Deployment" | "StatefulSet" | "DaemonSet");
        let defines = |definition: &&Document| {
            let definition = &definition.object;
            definition["kind"] == "CustomResourceDefinition"
                && definition["spec"]["group"] == group
                && definition["spec"]["names"]["kind"] == kind
        };
        let plural = match all.iter().find(defines) {
            Some(definition) => definition.object["spec"]["names"]["plural"].as_str()?.to_owned(),
            None if is_workload => format!("{}s", kind.to_lowercase()),
            None => return None,
        };
        let text = |field: &str| object["metadata"][field].as_str().map(str::to_owned);
        let name = format!("{}/{}", kind.to_lowercase(), text("name")?);
        Some(Awaited {
            resource: ApiResource::from_gvk_with_plural(
                &GroupVersionKind::gvk(group, version, kind),
                &plural,
            ),
            namespace: text("namespace").unwrap_or_else(|| "default".into()),
            object: text("name")?,
            step: show.begin(&name),
            name,
        })
    }

    async fn look(&self, client: &kube::Client) -> Readiness {
        let objects: Api<DynamicObject> =
            Api::namespaced_with(client.clone(), &self.namespace, &self.resource);
        let object = match objects.get(&self.object).await {
            Ok(object) => serde_json::to_value(object).unwrap_or_default(),
            Err(error) => return Readiness::Waits(error.to_string()),
        };
        match readiness(&object) {
            Readiness::Waits(how) => match self.trouble(client, &object).await {
                Some(why) => Readiness::Waits(format!("{how}: {why}")),
                None => Readiness::Waits(how),
            },
            ready => ready,
        }
    }

    /// What is wrong with the pods that it selects.
    async fn trouble(&self, client: &kube::Client, object: &Value) -> Option<String> {
        let labels = object["spec"]["selector"]["matchLabels"].as_object()?;
        let labels: Vec<_> = labels
            .iter()
            .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
            .collect();
        let pods: Api<Pod> = Api::namespaced(client.clone(), &self.namespace);
        let pods = pods.list(&ListParams::default().labels(&labels.join(","))).await.ok()?;
        pods.items.iter().find_map(trouble)
    }
}
