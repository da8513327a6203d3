//! What the admission plugin ServiceAccount does to pods: whose account they run under, and how they get at its token.

use serde_json::{Value, json};

use super::create::generate_name;
use super::object::{meta_str, spec_mut};
use super::registry::Resource;
use super::server::{Call, Server};
use super::token::ADMITTED_LIFETIME;
use crate::json::str_at;
use crate::kinds::World;
use crate::status::{Result, Status};
use crate::store::Kind;

/// Where containers find the token, the certificate authority and the namespace.
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const VOLUME: &str = "kube-api-access-";
const MIRROR: &str = "kubernetes.io/config.mirror";
const DEFAULT: &str = "default";

impl Server {
    /// Whether a new pod should wait a little: the account `default` of its namespace is about to be made by a controller.
    pub(super) fn awaits_account(&self, call: &Call<'_>) -> bool {
        let is_pods = call.target.resource.group.is_empty() && call.target.resource.plural == "pods";
        if !self.config.service_accounts || !is_pods || call.waited {
            return false;
        }
        let namespace = call.target.namespace.as_str();
        let active = self
            .store
            .get(&Kind::new("", "namespaces"), "", namespace)
            .is_some_and(|namespace| namespace.field("status.phase") != Some("Terminating"));
        active && self.store.get(&Kind::new("", "serviceaccounts"), namespace, DEFAULT).is_none()
    }

    /// A new pod runs under an account that is there, and its containers get at its token.
    pub(super) fn admit_account(
        &self,
        call: &mut Call<'_>,
        resource: &Resource,
        pod: &mut Value,
    ) -> Result<()> {
        let is_pods = resource.group.is_empty() && resource.plural == "pods";
        if !self.config.service_accounts || !is_pods || !call.target.subresource.is_empty() {
            return Ok(());
        }
        let refuse = |pod: &Value, why: &str| {
            let own = [meta_str(pod, "name"), meta_str(pod, "generateName")];
            let own = own.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
            Status::forbidden("", "pods", own, why)
        };
        if !str_at(pod, &["metadata", "annotations", MIRROR]).is_empty() {
            return match mirror_fault(pod) {
                Some(why) => Err(refuse(pod, why)),
                None => Ok(()),
            };
        }
        if str_at(pod, &["spec", "serviceAccountName"]).is_empty() {
            let spec = spec_mut(pod);
            for field in ["serviceAccountName", "serviceAccount"] {
                spec.insert(field.into(), DEFAULT.into());
            }
        }
        let name = str_at(pod, &["spec", "serviceAccountName"]).to_owned();
        let namespace = meta_str(pod, "namespace").to_owned();
        let Some(account) = World::get(self, "", "ServiceAccount", &namespace, &name) else {
            let why = format!(
                "error looking up service account {namespace}/{name}: serviceaccount {name:?} not found"
            );
            return Err(refuse(pod, &why));
        };
        let wish = |object: &Value| object["automountServiceAccountToken"].as_bool();
        if wish(&pod["spec"]).or_else(|| wish(&account)).unwrap_or(true) {
            mount(spec_mut(pod), || generate_name(VOLUME, call.ids));
        }
        let secrets = account["imagePullSecrets"].as_array().filter(|secrets| !secrets.is_empty());
        let spec = spec_mut(pod);
        if let Some(secrets) = secrets
            && spec.get("imagePullSecrets").and_then(Value::as_array).is_none_or(Vec::is_empty)
        {
            spec.insert("imagePullSecrets".into(), json!(secrets));
        }
        Ok(())
    }
}

/// What a pod of a node's own may not have.
fn mirror_fault(pod: &Value) -> Option<&'static str> {
    let volumes = || pod["spec"]["volumes"].as_array().into_iter().flatten();
    let projects_token = |volume: &Value| {
        let sources = volume["projected"]["sources"].as_array();
        sources.into_iter().flatten().any(|source| !source["serviceAccountToken"].is_null())
    };
    if !str_at(pod, &["spec", "serviceAccountName"]).is_empty() {
        Some("a mirror pod may not reference service accounts")
    } else if volumes().any(|volume| !volume["secret"].is_null()) {
        Some("a mirror pod may not reference secrets")
    } else if volumes().any(projects_token) {
        Some("a mirror pod may not use ServiceAccountToken volume projections")
    } else {
        None
    }
}

/// Mounts the token into every container that has nothing at its place.
fn mount(spec: &mut serde_json::Map<String, Value>, new_name: impl FnOnce() -> String) {
    let given = spec.get("volumes").and_then(Value::as_array).into_iter().flatten();
    let given = given.filter_map(|volume| volume["name"].as_str()).find(|name| name.starts_with(VOLUME));
    let given = given.map(str::to_owned);
    let has_volume = given.is_some();
    let name = given.unwrap_or_else(new_name);
    let mut is_needed = false;
    for list in ["initContainers", "containers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let Some(container) = container.as_object_mut() else { continue };
            let mounts = container.entry("volumeMounts").or_insert_with(|| json!([]));
            if mounts.is_null() {
                *mounts = json!([]);
            }
            let Some(mounts) = mounts.as_array_mut() else { continue };
            if mounts.iter().any(|mount| mount["mountPath"].as_str() == Some(MOUNT_PATH)) {
                continue;
            }
            mounts.push(json!({"name": name, "readOnly": true, "mountPath": MOUNT_PATH}));
            is_needed = true;
        }
    }
    if has_volume || !is_needed {
        return;
    }
    let volumes = spec.entry("volumes").or_insert_with(|| json!([]));
    if volumes.is_null() {
        *volumes = json!([]);
    }
    if let Some(volumes) = volumes.as_array_mut() {
        volumes.push(volume(&name));
    }
}

fn volume(name: &str) -> Value {
    json!({"name": name, "projected": {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": ADMITTED_LIFETIME, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [
                {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}},
            ]}},
        ],
        "defaultMode": 420,
    }})
}
