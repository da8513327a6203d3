//! A server as JSON: requests by kind and name.

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::{Value, json};

/// A kind that scenarios are about.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// `apps/v1`.
    pub api_version: &'static str,
    /// `Deployment`.
    pub kind: &'static str,
    /// `deployments`.
    pub plural: &'static str,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
}

const fn kind(api_version: &'static str, kind: &'static str, plural: &'static str, namespaced: bool) -> Kind {
    Kind { api_version, kind, plural, namespaced }
}

/// All kinds whose objects are compared.
pub const KINDS: &[Kind] = &[
    kind("v1", "Namespace", "namespaces", false),
    kind("v1", "Node", "nodes", false),
    kind("v1", "Pod", "pods", true),
    kind("v1", "Service", "services", true),
    kind("v1", "Endpoints", "endpoints", true),
    kind("v1", "ConfigMap", "configmaps", true),
    kind("v1", "Secret", "secrets", true),
    kind("v1", "ServiceAccount", "serviceaccounts", true),
    kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims", true),
    kind("v1", "PersistentVolume", "persistentvolumes", false),
    kind("v1", "Event", "events", true),
    kind("v1", "ResourceQuota", "resourcequotas", true),
    kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", false),
    kind("apps/v1", "Deployment", "deployments", true),
    kind("apps/v1", "ReplicaSet", "replicasets", true),
    kind("apps/v1", "StatefulSet", "statefulsets", true),
    kind("apps/v1", "DaemonSet", "daemonsets", true),
    kind("apps/v1", "ControllerRevision", "controllerrevisions", true),
    kind("batch/v1", "Job", "jobs", true),
    kind("batch/v1", "CronJob", "cronjobs", true),
    kind("coordination.k8s.io/v1", "Lease", "leases", true),
    kind("discovery.k8s.io/v1", "EndpointSlice", "endpointslices", true),
    kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", true),
    kind("resource.k8s.io/v1", "DeviceClass", "deviceclasses", false),
    kind("resource.k8s.io/v1", "ResourceClaim", "resourceclaims", true),
    kind("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", false),
    kind("storage.k8s.io/v1", "StorageClass", "storageclasses", false),
    kind("tests.windlass.dev/v1", "Ticket", "tickets", true),
];

impl Kind {
    /// By its name, whatever the case.
    ///
    /// # Errors
    /// When there is none.
    pub fn named(name: &str) -> Result<&'static Kind> {
        let found = KINDS.iter().find(|kind| kind.kind.eq_ignore_ascii_case(name));
        found.with_context(|| format!("no scenario knows a kind {name:?}"))
    }

    /// The path of all its objects, of one namespace where it is given.
    pub fn path(&self, namespace: Option<&str>) -> String {
        let prefix = if self.api_version.contains('/') { "apis" } else { "api" };
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => {
                format!("/{prefix}/{}/namespaces/{namespace}/{}", self.api_version, self.plural)
            }
            None => format!("/{prefix}/{}/{}", self.api_version, self.plural),
        }
    }
}

/// A client that knows no types.
#[derive(Clone)]
pub struct Api(kube::Client);

impl Api {
    /// On a client of the administrator.
    pub fn new(client: kube::Client) -> Api {
        Api(client)
    }

    /// Sends a request; the answer, unless it is a failure.
    ///
    /// # Errors
    /// When it fails. What is not there is one of these failures: see [`Api::send_to_any`].
    pub async fn send(&self, method: Method, path: &str, content: &str, body: &Value) -> Result<Value> {
        let (status, answer) = self.send_to_any(method.clone(), path, content, body).await?;
        if !(200..300).contains(&status) {
            bail!("{method} {path}: {status} {}", answer["message"].as_str().unwrap_or_default());
        }
        Ok(answer)
    }

    /// Sends a request; status and answer, whatever they are.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn send_to_any(
        &self,
        method: Method,
        path: &str,
        content: &str,
        body: &Value,
    ) -> Result<(u16, Value)> {
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content)
            .body(Body::from(bytes))?;
        let answer = self.0.send(request).await.with_context(|| path.to_owned())?;
        let status = answer.status().as_u16();
        let bytes = answer.into_body().collect().await?.to_bytes();
        Ok((status, serde_json::from_slice(&bytes).unwrap_or_default()))
    }

    /// All objects of a kind, and the version of the list.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn list(&self, kind: &Kind, namespace: Option<&str>) -> Result<(Vec<Value>, String)> {
        let mut answer =
            self.send(Method::GET, &kind.path(namespace), "application/json", &Value::Null).await?;
        let version = answer["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
        let items = match answer["items"].take() {
            Value::Array(items) => items,
            _ => Vec::new(),
        };
        Ok((items, version))
    }

    /// The events of a kind after a version, each a JSON object a line, as a body that goes on.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn watch(&self, kind: &Kind, version: &str) -> Result<Lines> {
        let path = format!("{}?watch=true&timeoutSeconds=3000&resourceVersion={version}", kind.path(None));
        let request = Request::get(path).body(Body::empty())?;
        let answer = self.0.send(request).await?;
        if !answer.status().is_success() {
            bail!("watch {}: {}", kind.plural, answer.status());
        }
        Ok(Lines { body: answer.into_body(), read: Vec::new() })
    }

    /// Applies an object, with force; or creates it, where it has no name.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn apply(&self, namespace: &str, object: &Value) -> Result<()> {
        let (status, answer) = self.try_apply(namespace, object).await?;
        if !(200..300).contains(&status) {
            let (kind, why) = (&object["kind"], answer["message"].as_str().unwrap_or_default());
            bail!("apply of a {kind}: {status} {why}");
        }
        Ok(())
    }

    /// The same; status and answer, whatever they are.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn try_apply(&self, namespace: &str, object: &Value) -> Result<(u16, Value)> {
        let kind = Kind::named(object["kind"].as_str().unwrap_or_default())?;
        let path = kind.path(Some(namespace));
        match object["metadata"]["name"].as_str() {
            Some(name) => {
                let path = format!("{path}/{name}?fieldManager=user&force=true");
                self.send_to_any(Method::PATCH, &path, "application/apply-patch+yaml", object).await
            }
            None => self.send_to_any(Method::POST, &path, "application/json", object).await,
        }
    }

    /// Merges a patch into an object, or a subresource of it.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn merge(&self, path: &str, patch: &Value) -> Result<()> {
        self.send(Method::PATCH, path, "application/merge-patch+json", patch).await.map(drop)
    }

    /// Deletes an object. One that is not there is as good as deleted.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn delete(&self, path: &str, options: &Value) -> Result<()> {
        let mut body = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
        for (key, value) in options.as_object().into_iter().flatten() {
            body[key] = value.clone();
        }
        let (status, answer) = self.send_to_any(Method::DELETE, path, "application/json", &body).await?;
        if !(200..300).contains(&status) && status != 404 && status != 409 {
            bail!("DELETE {path}: {status} {}", answer["message"].as_str().unwrap_or_default());
        }
        Ok(())
    }
}

/// Lines of JSON that arrive.
pub struct Lines {
    body: Body,
    read: Vec<u8>,
}

impl Lines {
    /// The next one; `None` at the end.
    ///
    /// # Errors
    /// When the connection breaks.
    pub async fn next(&mut self) -> Result<Option<Value>> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return Ok(Some(serde_json::from_slice(&line)?));
            }
            match self.body.frame().await.transpose()? {
                None => return Ok(None),
                Some(frame) => {
                    let data: Bytes = frame.into_data().unwrap_or_default();
                    self.read.extend_from_slice(&data);
                }
            }
        }
    }
}
