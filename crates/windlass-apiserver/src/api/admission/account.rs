//! ServiceAccount: whose account pods run under, and how they get at its token.

use serde_json::{Value, json};

use super::{Admission, Operation};
use crate::api::create::generate_name;
use crate::api::object::spec_mut;
use crate::api::server::{Call, Server};
use crate::api::token::ADMITTED_LIFETIME;
use crate::json::str_at;
use crate::kinds::tree::{at, list, text, text_at};
use crate::status::{Result, Status};
use crate::store::Kind;

/// Where containers find the token, the certificate authority and the namespace.
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const VOLUME: &str = "kube-api-access-";
const MIRROR: &str = "kubernetes.io/config.mirror";
const ENFORCES: &str = "kubernetes.io/enforce-mountable-secrets";
const DEFAULT: &str = "default";
/// The name of the plugin.
pub(super) const NAME: &str = "ServiceAccount";

impl Server {
    /// Whether a new pod should wait a little: the account `default` of its namespace is about to be made by a controller.
    pub(in crate::api) fn awaits_account(&self, call: &Call<'_>) -> bool {
        let is_pods = call.target.resource.group.is_empty() && call.target.resource.plural == "pods";
        if !self.config.plugins.has(NAME) || !is_pods || call.waited {
            return false;
        }
        let namespace = call.target.namespace.as_str();
        let active = self
            .store
            .get(&Kind::new("", "namespaces"), "", namespace)
            .is_some_and(|namespace| namespace.field("status.phase") != Some("Terminating"));
        active && self.store.get(&Kind::new("", "serviceaccounts"), namespace, DEFAULT).is_none()
    }
}

/// A new pod runs under an account that is there, and its containers get at its token.
pub(super) fn admit(pod: &mut Value, admission: &mut Admission<'_>) -> Result<()> {
    if !admission.is_of("", "pods") || admission.operation != Operation::Create {
        return Ok(());
    }
    if is_mirror(pod) {
        return validate(pod, admission);
    }
    if text_at(pod, &["spec", "serviceAccountName"]).is_empty() {
        let spec = spec_mut(pod);
        for field in ["serviceAccountName", "serviceAccount"] {
            spec.insert(field.into(), DEFAULT.into());
        }
    }
    let account = account_of(pod, admission)?;
    let wish = |object: &Value| object["automountServiceAccountToken"].as_bool();
    if wish(&pod["spec"]).or_else(|| wish(&account)).unwrap_or(true) {
        mount(spec_mut(pod), || generate_name(VOLUME, admission.ids));
    }
    let secrets = list(&account, "imagePullSecrets");
    let spec = spec_mut(pod);
    if !secrets.is_empty() && spec.get("imagePullSecrets").and_then(Value::as_array).is_none_or(Vec::is_empty)
    {
        spec.insert("imagePullSecrets".into(), json!(secrets));
    }
    validate(pod, admission)
}

/// The account is there, and the pod refers to no secrets that the account does not know, where that matters.
pub(super) fn validate(pod: &Value, admission: &mut Admission<'_>) -> Result<()> {
    let debugged = admission.context.subresource == "ephemeralcontainers" && admission.is_in("", "pods");
    let is_new = admission.operation == Operation::Create && admission.is_of("", "pods");
    if !debugged && !is_new {
        return Ok(());
    }
    if is_new && is_mirror(pod) {
        return match mirror_fault(pod) {
            Some(why) => Err(admission.refuse(pod, why)),
            None => Ok(()),
        };
    }
    if text_at(pod, &["spec", "serviceAccountName"]).is_empty() {
        let name = text_at(pod, &["metadata", "name"]);
        let why = format!("no service account specified for pod {}/{name}", admission.namespace);
        return Err(admission.refuse(pod, &why));
    }
    let account = account_of(pod, admission)?;
    if !is_true(text_at(&account, &["metadata", "annotations", ENFORCES])) {
        return Ok(());
    }
    match secret_fault(pod, &account, debugged) {
        // The real server does not tell this one as a refusal of the pod.
        Some(why) if debugged => Err(Status::new(500, "", why)),
        Some(why) => Err(admission.refuse(pod, &why)),
        None => Ok(()),
    }
}

fn account_of(pod: &Value, admission: &Admission<'_>) -> Result<Value> {
    let (namespace, name) = (admission.namespace, text_at(pod, &["spec", "serviceAccountName"]));
    admission.context.world.get("", "ServiceAccount", namespace, name).ok_or_else(|| {
        let why =
            format!("error looking up service account {namespace}/{name}: serviceaccount {name:?} not found");
        admission.refuse(pod, &why)
    })
}

fn is_mirror(pod: &Value) -> bool {
    at(pod, &["metadata", "annotations", MIRROR]).is_some()
}

/// What Go reads as true.
fn is_true(text: &str) -> bool {
    matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True")
}

/// The first secret that the account does not know.
fn secret_fault(pod: &Value, account: &Value, debugged: bool) -> Option<String> {
    let (spec, own) = (&pod["spec"], text_at(account, &["metadata", "name"]));
    let knows =
        |field: &str, name: &str| list(account, field).iter().any(|secret| text(secret, "name") == name);
    let unknown = |name: &str| !name.is_empty() && !knows("secrets", name);
    let ending = format!("is not allowed because service account {own} does not reference that");
    let volumes = list(spec, "volumes").iter().filter(|_| !debugged);
    for name in volumes.filter_map(|volume| at(volume, &["secret"])).map(|secret| text(secret, "secretName"))
    {
        if !knows("secrets", name) {
            return Some(format!("volume with secret.secretName=\"{name}\" {ending} secret"));
        }
    }
    let lists: &[(&str, &str)] = match debugged {
        true => &[("ephemeralContainers", "ephemeral container")],
        false => &[("initContainers", "init container"), ("containers", "container")],
    };
    for (field, word) in lists {
        for container in list(spec, field) {
            let head = format!("{word} {}", text(container, "name"));
            for variable in list(container, "env") {
                let secret = text_at(variable, &["valueFrom", "secretKeyRef", "name"]);
                if unknown(secret) {
                    let name = text(variable, "name");
                    return Some(format!(
                        "{head} with envVar {name} referencing secret.secretName=\"{secret}\" {ending} secret"
                    ));
                }
            }
            for source in list(container, "envFrom") {
                let secret = text_at(source, &["secretRef", "name"]);
                if unknown(secret) {
                    return Some(format!(
                        "{head} with envFrom referencing secret.secretName=\"{secret}\" {ending} secret"
                    ));
                }
            }
        }
    }
    let mut pulls = list(spec, "imagePullSecrets").iter().filter(|_| !debugged).enumerate();
    pulls.find(|(_, secret)| !knows("imagePullSecrets", text(secret, "name"))).map(|(index, secret)| {
        let name = text(secret, "name");
        format!("imagePullSecrets[{index}].name=\"{name}\" {ending} imagePullSecret")
    })
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
    } else if names_secrets(&pod["spec"]) {
        Some("a mirror pod may not reference secrets")
    } else if volumes().any(projects_token) {
        Some("a mirror pod may not use ServiceAccountToken volume projections")
    } else {
        None
    }
}

/// Whether a spec refers to secrets, wherever that can be.
fn names_secrets(value: &Value) -> bool {
    const KEYS: [&str; 5] = ["secret", "secretRef", "secretKeyRef", "secretName", "nodePublishSecretRef"];
    match value {
        Value::Object(map) => map.iter().any(|(key, value)| {
            let named = KEYS.contains(&key.as_str()) && !value.is_null();
            let pulled = key == "imagePullSecrets" && value.as_array().is_some_and(|all| !all.is_empty());
            named || pulled || names_secrets(value)
        }),
        Value::Array(all) => all.iter().any(names_secrets),
        _ => false,
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
