//! Two controllers on kube-rs's own runtime, in the shape of its examples: one keeps a ConfigMap for every ConfigMapGenerator
//! (owners, server-side apply), one keeps a Secret beside every labelled ConfigMap (finalizers). What is there at each step is
//! printed, without what differs between any two servers.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::finalizer::{Event, finalizer};
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::watcher;
use kube::{Client, CustomResource, CustomResourceExt as _, Resource as _, ResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const NAMESPACE: &str = "kube-rs";
const MANAGER: &str = "controllers.example.com";
const FINALIZER: &str = "controllers.example.com/secret";
const PATIENCE: Duration = Duration::from_secs(30);

/// What the ConfigMap has to say.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "controllers.example.com",
    version = "v1",
    kind = "ConfigMapGenerator",
    namespaced,
    shortname = "cmg"
)]
struct ConfigMapGeneratorSpec {
    content: String,
}

#[tokio::main]
async fn main() -> Result<()> {
    let client = Client::try_default().await?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = serde_json::from_value(json!({"metadata": {"name": NAMESPACE}}))?;
    namespaces.create(&PostParams::default(), &namespace).await?;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let definition = ConfigMapGenerator::crd();
    let name = definition.name_any();
    definitions.patch(&name, &PatchParams::apply(MANAGER), &Patch::Apply(&definition)).await?;
    let established = await_condition(definitions, &name, conditions::is_crd_established());
    tokio::time::timeout(PATIENCE, established).await??;

    let generating = tokio::spawn(generate(client.clone()));
    let syncing = tokio::spawn(sync(client.clone()));
    let story = tell(client).await;
    let alive = !generating.is_finished() && !syncing.is_finished();
    generating.abort();
    syncing.abort();
    story?;
    anyhow::ensure!(alive, "a controller has ended");
    Ok(())
}

/// What happens, and what is there after it.
async fn tell(client: Client) -> Result<()> {
    let generators: Api<ConfigMapGenerator> = Api::namespaced(client.clone(), NAMESPACE);
    let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    let one = ConfigMapGenerator::new("one", ConfigMapGeneratorSpec { content: "first".to_owned() });
    generators.create(&PostParams::default(), &one).await?;
    until("a ConfigMap for the generator", async || has(&config_maps, "one", "first").await).await?;
    show("created", &client).await?;

    let patch = json!({"spec": {"content": "second"}});
    generators.patch("one", &PatchParams::default(), &Patch::Merge(&patch)).await?;
    until("what the generator says now", async || has(&config_maps, "one", "second").await).await?;
    show("changed", &client).await?;

    config_maps.delete("one", &DeleteParams::default()).await?;
    until("the ConfigMap again", async || has(&config_maps, "one", "second").await).await?;
    let meddled = json!({"data": {"content": "third"}});
    config_maps.patch("one", &PatchParams::default(), &Patch::Merge(&meddled)).await?;
    until("what the generator says, once more", async || has(&config_maps, "one", "second").await).await?;
    show("deleted and meddled with", &client).await?;

    let labelled = serde_json::from_value(json!({
        "metadata": {"name": "two", "labels": {"sync": "yes"}}, "data": {"key": "value"},
    }))?;
    config_maps.create(&PostParams::default(), &labelled).await?;
    until("a Secret beside it", async || Ok(secrets.get_opt("two").await?.is_some())).await?;
    show("synced", &client).await?;

    config_maps.delete("two", &DeleteParams::default()).await?;
    until("the end of both", async || {
        Ok(config_maps.get_opt("two").await?.is_none() && secrets.get_opt("two").await?.is_none())
    })
    .await?;
    show("gone", &client).await
}

async fn has(config_maps: &Api<ConfigMap>, name: &str, content: &str) -> Result<bool> {
    let found = config_maps.get_opt(name).await?;
    Ok(found.and_then(|it| it.data).is_some_and(|data| data.get("content").is_some_and(|it| it == content)))
}

async fn until(what: &str, holds: impl AsyncFn() -> Result<bool>) -> Result<()> {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !holds().await? {
        if tokio::time::Instant::now() > deadline {
            bail!("not in time: {what}");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// Prints what is there.
async fn show(what: &str, client: &Client) -> Result<()> {
    println!("== {what}");
    let all = ListParams::default();
    let generators: Api<ConfigMapGenerator> = Api::namespaced(client.clone(), NAMESPACE);
    let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    let mut found: Vec<Value> = Vec::new();
    for one in generators.list(&all).await? {
        found.push(serde_json::to_value(one)?);
    }
    for one in config_maps.list(&all).await? {
        found.push(serde_json::to_value(one)?);
    }
    for one in secrets.list(&all).await? {
        found.push(serde_json::to_value(one)?);
    }
    for mut tree in found {
        let metadata = tree["metadata"].as_object_mut().context("metadata")?;
        metadata.retain(|key, _| !matches!(key.as_str(), "uid" | "resourceVersion" | "creationTimestamp"));
        let owners = metadata.get_mut("ownerReferences").and_then(Value::as_array_mut).into_iter().flatten();
        owners.for_each(|owner| owner["uid"] = json!("<uid>"));
        let entries = metadata.get_mut("managedFields").and_then(Value::as_array_mut).into_iter().flatten();
        for entry in entries {
            entry["time"] = json!("<time>");
            // An owner is a key by its uid.
            if entry["fieldsV1"].to_string().contains("f:ownerReferences") {
                entry["fieldsV1"]["f:metadata"]["f:ownerReferences"] = json!("<owners>");
            }
        }
        println!("{tree}");
    }
    Ok(())
}

/// Keeps a ConfigMap for every generator.
async fn generate(client: Client) {
    let generators: Api<ConfigMapGenerator> = Api::namespaced(client.clone(), NAMESPACE);
    let owned: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let reconcile = async |generator: Arc<ConfigMapGenerator>, client: Arc<Client>| {
        let owner = generator.controller_owner_ref(&()).expect("it is stored");
        let wanted = ConfigMap {
            metadata: ObjectMeta {
                name: generator.metadata.name.clone(),
                owner_references: Some(vec![owner]),
                ..ObjectMeta::default()
            },
            data: Some([("content".to_owned(), generator.spec.content.clone())].into()),
            ..ConfigMap::default()
        };
        let config_maps: Api<ConfigMap> = Api::namespaced(Client::clone(&client), NAMESPACE);
        let force = PatchParams::apply(MANAGER).force();
        config_maps.patch(&generator.name_any(), &force, &Patch::Apply(&wanted)).await?;
        Ok::<_, kube::Error>(Action::requeue(Duration::from_secs(300)))
    };
    Controller::new(generators, watcher::Config::default())
        .owns(owned, watcher::Config::default())
        .run(reconcile, |_, error, _| failed(error), Arc::new(client))
        .for_each(|_| std::future::ready(()))
        .await;
}

/// Keeps a Secret beside every labelled ConfigMap, and ends it before.
async fn sync(client: Client) {
    let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let reconcile = async |config_map: Arc<ConfigMap>, client: Arc<Client>| {
        let config_maps: Api<ConfigMap> = Api::namespaced(Client::clone(&client), NAMESPACE);
        let secrets: Api<Secret> = Api::namespaced(Client::clone(&client), NAMESPACE);
        finalizer(&config_maps, FINALIZER, config_map, async |event| match event {
            Event::Apply(config_map) => {
                let wanted = Secret {
                    metadata: ObjectMeta { name: config_map.metadata.name.clone(), ..ObjectMeta::default() },
                    string_data: config_map.data.clone(),
                    ..Secret::default()
                };
                let force = PatchParams::apply(MANAGER).force();
                secrets.patch(&config_map.name_any(), &force, &Patch::Apply(&wanted)).await?;
                Ok::<_, kube::Error>(Action::await_change())
            }
            Event::Cleanup(config_map) => {
                secrets.delete(&config_map.name_any(), &DeleteParams::default()).await?;
                Ok(Action::await_change())
            }
        })
        .await
    };
    Controller::new(config_maps, watcher::Config::default().labels("sync=yes"))
        .run(reconcile, |_, error, _| failed(error), Arc::new(client))
        .for_each(|_| std::future::ready(()))
        .await;
}

/// Both servers have to be without these.
fn failed(error: &dyn std::error::Error) -> Action {
    println!("a reconciliation failed: {error}");
    Action::requeue(Duration::from_secs(1))
}
