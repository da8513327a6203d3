//! `plan`: what the operator would do for an object.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use windlass_core::{Kind, ObjectKey};

use super::Operator;
use crate::cache::Cache;
use crate::client::{self, Server};
use crate::context::Shared;
use crate::controller::{Target, Wired};
use crate::metrics::Metrics;
use crate::{Env, Error};

/// How long the first look at the cluster may take.
const LISTED_WITHIN: Duration = Duration::from_secs(60);

/// Says what the operator would do, and does nothing: its client refuses to write.
pub(super) async fn preview(
    operator: Operator,
    server: Server,
    argument: &str,
    namespace: Option<&str>,
    kind: Option<&str>,
) -> Result<String, Error> {
    let env = Env::system();
    let metrics = Metrics::new();
    let client =
        server.client(client::Settings { read_only: true, ..client::Settings::new(&env, &metrics) })?;
    let namespace = namespace.unwrap_or_else(|| server.default_namespace());
    let written = is_file(argument).then(|| read(argument, namespace)).transpose()?;
    let name = operator.name;
    let shared = Shared::new(name, client.clone(), Cache::new(name), env.clone());
    let shared = Arc::new(Shared { states: operator.states, ..shared });
    let controllers: Vec<Wired> = operator.controllers.into_iter().map(|one| one.wire(&shared)).collect();
    let wanted = written.as_ref().and_then(|object| object["kind"].as_str()).or(kind);
    let controller = choose(&controllers, wanted, name)?;
    let target = match written {
        Some(object) => Target::Written(with_identity(&client, &controller.kind, object).await?),
        None => Target::Named(key(&controller.kind, argument, namespace)),
    };
    let _cache = shared.cache.start(client, &env, Arc::new(()));
    if env.within(LISTED_WITHIN, shared.cache.synced()).await.is_none() {
        return Err(Error::retry(format!("the cluster was not listed within {LISTED_WITHIN:?}")));
    }
    let steps = (controller.preview)(target).await?;
    Ok(match steps.is_empty() {
        true => "nothing to do\n".to_owned(),
        false => steps.iter().map(|step| format!("{step}\n")).collect(),
    })
}

fn is_file(argument: &str) -> bool {
    argument == "-"
        || Path::new(argument).exists()
        || [".yaml", ".yml", ".json"].iter().any(|end| argument.ends_with(end))
}

fn key(kind: &Kind, argument: &str, namespace: &str) -> ObjectKey {
    match argument.split_once('/') {
        Some((namespace, name)) => ObjectKey::namespaced(namespace, name),
        None if kind.namespaced => ObjectKey::namespaced(namespace, argument),
        None => ObjectKey::cluster(argument),
    }
}

fn choose<'a>(controllers: &'a [Wired], wanted: Option<&str>, operator: &str) -> Result<&'a Wired, Error> {
    let kinds =
        || controllers.iter().map(|one| one.kind.resource.kind.as_str()).collect::<Vec<_>>().join(", ");
    match (wanted, controllers) {
        (Some(wanted), _) => {
            controllers.iter().find(|one| one.kind.resource.kind.eq_ignore_ascii_case(wanted)).ok_or_else(
                || Error::retry(format!("{operator} has no controller for {wanted}; it has: {}", kinds())),
            )
        }
        (None, [one]) => Ok(one),
        (None, _) => Err(Error::retry(format!("say which kind, with --kind: {}", kinds()))),
    }
}

fn read(path: &str, namespace: &str) -> Result<Value, Error> {
    let text = match path {
        "-" => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map(|_| text)
        }
        path => std::fs::read_to_string(path),
    };
    let text = text.map_err(|error| Error::retry(format!("cannot read {path}: {error}")))?;
    let mut object: Value = serde_saphyr::from_str(&text)
        .map_err(|error| Error::retry(format!("{path} is no YAML with one object in it: {error}")))?;
    if !object["kind"].is_string() || !object["metadata"]["name"].is_string() {
        return Err(Error::retry(format!(
            "{path} has no `kind` and `metadata.name`: it is no Kubernetes object"
        )));
    }
    if object["metadata"]["namespace"].is_null() {
        object["metadata"]["namespace"] = Value::from(namespace);
    }
    Ok(object)
}

/// A manifest as the cluster would have it: with the metadata and the status of the object that is there, if there is one.
async fn with_identity(client: &kube::Client, kind: &Kind, mut object: Value) -> Result<Value, Error> {
    let metadata = &object["metadata"];
    let namespace = metadata["namespace"].as_str().filter(|_| kind.namespaced);
    let path = kind.path(namespace, metadata["name"].as_str());
    let live: Value = match client.request(http::Request::get(path).body(Vec::new())?).await {
        Ok(live) => live,
        Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(object),
        Err(error) => return Err(error.into()),
    };
    for field in
        ["uid", "resourceVersion", "generation", "finalizers", "creationTimestamp", "deletionTimestamp"]
    {
        if let Some(value) = live["metadata"].get(field) {
            object["metadata"][field] = value.clone();
        }
    }
    if let Some(status) = live.get("status") {
        object["status"] = status.clone();
    }
    Ok(object)
}
