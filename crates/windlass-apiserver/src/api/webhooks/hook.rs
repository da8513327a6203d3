//! One webhook of a configuration: what it wants to be asked about, where it is, and what its answer means.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::sync::Arc;

use serde_json::Value;

use super::question::{Answered, Consulted, Place, Question, Verdict};
use super::{Operation, Server, Write};
use crate::api::conditions::{Compiled, hold};
use crate::api::matching::{Asking, list};
use crate::api::object::meta_str;
use crate::api::registry::Resource;
use crate::api::server::Call;
use crate::crd::{Environment, Given, Returns};
use crate::json::str_at;
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
#[derive(Clone)]
pub(super) struct Hook {
    /// The names of its configuration and its own.
    pub id: String,
    pub name: String,
    pub client: Client,
    pub timeout_seconds: u64,
    /// The first of its versions of AdmissionReview that we know.
    pub version: &'static str,
    /// Whether it does nothing else when nothing is written.
    pub has_dry_run: bool,
    /// Whether it wants to see what others changed after it.
    pub reinvoked: bool,
    ignores_failure: bool,
    pub rules: Vec<Value>,
    /// Whether other versions of a resource are other resources to it.
    pub is_exact: bool,
    /// The version that it is shown, where its rules name another one than was asked for.
    pub sees: Option<Arc<Resource>>,
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
        let versions = list(hook, "admissionReviewVersions").iter();
        let known = versions.filter_map(Value::as_str).find(|version| matches!(*version, "v1" | "v1beta1"));
        Hook {
            id: format!("{configuration}/{name}"),
            client: Client::read(&hook["clientConfig"]),
            timeout_seconds: hook["timeoutSeconds"].as_u64().unwrap_or(10),
            version: if known == Some("v1beta1") { "v1beta1" } else { "v1" },
            has_dry_run: matches!(str_at(hook, &["sideEffects"]), "None" | "NoneOnDryRun"),
            reinvoked: str_at(hook, &["reinvocationPolicy"]) == "IfNeeded",
            ignores_failure: str_at(hook, &["failurePolicy"]) == "Ignore",
            rules: list(hook, "rules").to_vec(),
            is_exact: str_at(hook, &["matchPolicy"]) == "Exact",
            sees: None,
            namespace_selector: hook["namespaceSelector"].clone(),
            object_selector: hook["objectSelector"].clone(),
            conditions: list(hook, "matchConditions").to_vec(),
            name,
        }
    }

    /// Whether its selectors choose this object.
    pub fn selects(&self, server: &Server, call: &Call<'_>, write: Write<'_>) -> Result<bool> {
        server.is_selected(&self.namespace_selector, &self.object_selector, call, write)
    }

    /// Whether its conditions hold. Where nobody can tell, its failure policy decides.
    pub fn wants(&self, server: &Server, call: &Call<'_>, write: Write<'_>) -> Result<bool> {
        if self.conditions.is_empty() {
            return Ok(true);
        }
        let environment = Environment::new(false, false);
        let sources = self.conditions.iter().map(|one| str_at(one, &["expression"]).trim());
        let compiled: Vec<Compiled> =
            sources.map(|source| environment.compile(source, Returns::Bool, true)).collect();
        let (request, asking) = (server.request(call, write), Asking::new(server, call, write));
        let given = Given {
            object: &request["object"],
            old: &request["oldObject"],
            request: &request,
            params: &Value::Null,
            namespace: &Value::Null,
            authorizer: Some((&asking, &asking.about)),
        };
        match hold(&compiled, &environment, given) {
            Err(_) if self.ignores_failure => Ok(false),
            Err(why) => {
                let resource = write.asked.map_or(write.resource, |(resource, _)| resource);
                Err(Status::forbidden(&resource.group, &resource.plural, write.name(call), &why))
            }
            Ok(holds) => Ok(holds),
        }
    }

    /// What an answer means: nothing, where the hook could not be asked and need not be.
    pub fn judge(
        &self,
        question: &Question,
        answered: &Answered,
        step: &'static str,
        operation: Operation,
        call: &mut Call<'_>,
    ) -> Result<Option<Verdict>> {
        let reply = &answered.reply;
        let read = match &reply.body {
            Ok(body) => Verdict::read(body, question, step == "admit"),
            Err(failure) => Err(failure.within("failed to call webhook")),
        };
        let (mut code, mut rejection, mut failed_open) = (200, None, false);
        let meaning = match read {
            Ok(verdict) => {
                call.warnings.extend(verdict.warnings.iter().cloned());
                if verdict.allowed {
                    Ok(Some(verdict))
                } else {
                    let refusal = verdict.refusal(&self.name);
                    (code, rejection) = (refusal.code, Some("no_error"));
                    Err(refusal)
                }
            }
            Err(failure) if self.ignores_failure => {
                (code, failed_open) = (failure.code, true);
                Ok(None)
            }
            Err(failure) => {
                (code, rejection) = (failure.code, Some("calling_webhook_error"));
                Err(self.failure(&failure.why))
            }
        };
        let (name, operation, took) = (self.name.clone(), operation.as_str(), reply.took);
        call.consulted.push(Consulted { name, step, operation, code, rejection, failed_open, took });
        meaning
    }

    fn failure(&self, why: &str) -> Status {
        Status::internal(&format!("failed calling webhook {:?}: {why}", self.name))
    }
}
