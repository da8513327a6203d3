//! One webhook of a configuration: what it wants to be asked about, where it is, and what its answer means.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::question::{Place, Question, Reply, Verdict};
use super::{Server, Write};
use crate::api::object::meta_str;
use crate::api::registry::Resource;
use crate::api::server::Call;
use crate::crd::condition;
use crate::json::{at, str_at};
use crate::kinds::check::matches;
use crate::status::{Result, Status};
use crate::store::Object;

/// A Service that answers for a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The path of its requests.
    pub path: String,
    /// Its port.
    pub port: u16,
}

/// How a webhook is reached.
#[derive(Clone, Debug)]
pub(in crate::api) struct Client {
    url: String,
    service: Option<Service>,
    /// The certificates that it is known by, in PEM; empty for those that this machine knows.
    pub authority: String,
}

impl Client {
    /// Reads a `clientConfig`.
    pub fn read(client: &Value) -> Client {
        let text = |value: &Value, key: &str| str_at(value, &[key]).to_owned();
        let service = client.get("service").filter(|service| service.is_object()).map(|service| Service {
            namespace: text(service, "namespace"),
            name: text(service, "name"),
            path: text(service, "path"),
            port: service["port"].as_u64().and_then(|port| u16::try_from(port).ok()).unwrap_or(443),
        });
        let authority = STANDARD.decode(str_at(client, &["caBundle"])).unwrap_or_default();
        let authority = String::from_utf8_lossy(&authority).into_owned();
        Client { url: text(client, "url"), service, authority }
    }
}

impl Server {
    /// Where a webhook is now.
    pub(in crate::api) fn place(&self, client: &Client) -> Place {
        match &client.service {
            Some(service) => Place::Service(service.clone(), self.service_endpoint(service)),
            None => Place::Url(client.url.clone()),
        }
    }
}

/// A webhook.
#[derive(Clone, Debug)]
pub(super) struct Hook {
    /// The names of its configuration and its own.
    pub id: String,
    pub name: String,
    pub client: Client,
    pub timeout_seconds: u64,
    /// The newest version of AdmissionReview that it and we know.
    pub version: &'static str,
    /// Whether it does nothing else when nothing is written.
    pub has_dry_run: bool,
    /// Whether it wants to see what others changed after it.
    pub reinvoked: bool,
    ignores_failure: bool,
    rules: Vec<Value>,
    namespace_selector: Value,
    object_selector: Value,
    conditions: Vec<Value>,
}

impl Hook {
    /// The hooks of a stored configuration.
    pub fn of(object: &Object) -> Vec<Hook> {
        let configuration: Value = serde_json::from_slice(object.body()).unwrap_or_default();
        let name = meta_str(&configuration, "name");
        list(&configuration, "webhooks").iter().map(|hook| Hook::read(name, hook)).collect()
    }

    fn read(configuration: &str, hook: &Value) -> Hook {
        let name = str_at(hook, &["name"]).to_owned();
        let knows = |version: &str| list(hook, "admissionReviewVersions").iter().any(|one| one == version);
        Hook {
            id: format!("{configuration}/{name}"),
            client: Client::read(&hook["clientConfig"]),
            timeout_seconds: hook["timeoutSeconds"].as_u64().unwrap_or(10),
            version: if knows("v1") { "v1" } else { "v1beta1" },
            has_dry_run: matches!(str_at(hook, &["sideEffects"]), "None" | "NoneOnDryRun"),
            reinvoked: str_at(hook, &["reinvocationPolicy"]) == "IfNeeded",
            ignores_failure: str_at(hook, &["failurePolicy"]) == "Ignore",
            rules: list(hook, "rules").to_vec(),
            namespace_selector: hook["namespaceSelector"].clone(),
            object_selector: hook["objectSelector"].clone(),
            conditions: list(hook, "matchConditions").to_vec(),
            name,
        }
    }

    /// Whether a rule of it names the operation and the resource.
    pub fn has_rule(&self, operation: &str, resource: &Resource, subresource: &str) -> bool {
        let has = |rule: &Value, key: &str, value: &str| {
            list(rule, key).iter().any(|one| one == "*" || one == value)
        };
        let fits = |rule: &&Value| {
            let scope = match str_at(rule, &["scope"]) {
                "Namespaced" => resource.namespaced && !resource.is_namespaces(),
                "Cluster" => !resource.namespaced,
                _ => true,
            };
            scope
                && has(rule, "operations", operation)
                && has(rule, "apiGroups", &resource.group)
                && has(rule, "apiVersions", &resource.version)
                && list(rule, "resources").iter().any(|one| names(one, &resource.plural, subresource))
        };
        self.rules.iter().any(|rule| fits(&rule))
    }

    /// Whether it wants to be asked about this object. Where nobody can tell, its failure policy decides.
    pub fn wants(&self, server: &Server, call: &Call<'_>, write: Write<'_>) -> Result<bool> {
        let labels =
            |object: Option<&Value>| object.and_then(|object| at(object, &["metadata", "labels"])).cloned();
        let namespace = server.namespace_labels(call, write);
        // What is in no namespace is not chosen by namespaces.
        let by_namespace =
            namespace.is_none_or(|labels| matches(Some(&self.namespace_selector), Some(&labels)));
        let by_object = [write.object, write.old]
            .into_iter()
            .flatten()
            .any(|object| matches(Some(&self.object_selector), labels(Some(object)).as_ref()));
        if !by_namespace || !by_object {
            return Ok(false);
        }
        self.conditions_hold(&server.request(call, write), write)
    }

    /// One condition that does not hold is enough, even where another one fails.
    fn conditions_hold(&self, request: &Value, write: Write<'_>) -> Result<bool> {
        let mut failed: Vec<String> = Vec::new();
        for one in &self.conditions {
            let variables =
                [("object", &request["object"]), ("oldObject", &request["oldObject"]), ("request", request)];
            let expression = str_at(one, &["expression"]);
            match condition(expression, &variables) {
                Ok(false) => return Ok(false),
                Ok(true) => {}
                Err(why) => failed.push(format!("expression '{expression}' resulted in error: {why}")),
            }
        }
        let told = match &failed[..] {
            [] => return Ok(true),
            _ if self.ignores_failure => return Ok(false),
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let Write { resource, .. } = write;
        Err(Status::forbidden(&resource.group, &resource.plural, str_at(request, &["name"]), &told))
    }

    /// What an answer means: nothing, where the hook could not be asked and need not be.
    pub fn judge(
        &self,
        question: &Question,
        reply: &Reply,
        mutates: bool,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Verdict>> {
        let read = match reply {
            Ok(body) => Verdict::read(body, question, mutates),
            Err(why) => Err(format!("failed to call webhook: {why}")),
        };
        if let Ok(verdict) = &read {
            warnings.extend(verdict.warnings.iter().cloned());
        }
        match read {
            Ok(verdict) if verdict.allowed => Ok(Some(verdict)),
            Ok(verdict) => Err(verdict.refusal(&self.name)),
            Err(_) if self.ignores_failure => Ok(None),
            Err(why) => Err(self.failure(&why)),
        }
    }

    fn failure(&self, why: &str) -> Status {
        Status::internal(&format!("failed calling webhook {:?}: {why}", self.name))
    }
}

/// Whether an entry of a rule names a resource: `pods`, `pods/status`, `pods/*`, `*/status`, `*` or `*/*`.
fn names(entry: &Value, plural: &str, subresource: &str) -> bool {
    let entry = entry.as_str().unwrap_or_default();
    let (resource, sub) = entry.split_once('/').unwrap_or((entry, ""));
    (resource == "*" || resource == plural) && (sub == subresource || sub == "*")
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn entries_name_resources_and_their_parts() {
        let fits = |entry: &str, plural, sub| names(&json!(entry), plural, sub);
        assert!(fits("pods", "pods", "") && !fits("pods", "pods", "status"));
        assert!(fits("*", "pods", "") && !fits("*", "pods", "status"));
        assert!(fits("*/*", "pods", "status") && fits("*/*", "pods", ""));
        assert!(fits("pods/*", "pods", "status") && fits("pods/*", "pods", ""));
        assert!(fits("*/status", "pods", "status") && !fits("*/status", "pods", ""));
    }
}
