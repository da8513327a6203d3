//! `serviceaccounts/<name>/token`: a token is asked for.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::claims::Claims;
use crate::api::create::{place, uid};
use crate::api::object::{meta_mut, meta_str, spec_mut};
use crate::api::options::WriteOptions;
use crate::api::registry::Resource;
use crate::api::response::Response;
use crate::api::server::{Call, Server};
use crate::api::webhooks::{Operation, Write};
use crate::codec::scalar::time::{self, Precision};
use crate::field::{Errors, Path};
use crate::json::str_at;
use crate::kinds::World;
use crate::status::{Result, Status};

/// How long a token lives where nobody says it.
const LIFETIME: i64 = 3600;
/// The lifetime that the admission of pods asks for. Such a token lives on for a year, so that programs which read it only
/// once go on working.
pub(in crate::api) const ADMITTED_LIFETIME: i64 = 3607;
const EXTENDED_LIFETIME: i64 = 365 * 24 * 3600;

const GROUP: &str = "authentication.k8s.io";
const KIND: &str = "TokenRequest";

impl Server {
    /// A TokenRequest: it is answered with a token, and not kept.
    pub(in crate::api) fn token(&mut self, call: &mut Call<'_>) -> Result<Response> {
        let config = self.config.clone();
        let Some(issuer) = &config.tokens else {
            return Err(Status::method_not_supported("", "serviceaccounts/token", call.verb.as_str()));
        };
        let requests = Resource::of_type(GROUP, "v1", KIND, "io.k8s.api.authentication.v1.TokenRequest");
        let options = WriteOptions::parse(call.query, &call.user_agent(), "CreateOptions")?;
        let mut request = crate::api::decode::body(call, &requests, options.validation)?;
        let spec = spec_mut(&mut request);
        if spec.get("expirationSeconds").is_none_or(Value::is_null) {
            spec.insert("expirationSeconds".into(), LIFETIME.into());
        }
        place(&mut request, &call.target.resource, &call.target.namespace)?;
        self.own(call, &requests, &options, None, &mut request);
        let accounts = call.target.resource.clone();
        let write = Write::new(Operation::Create, &accounts, None, options.dry_run).shaped(&requests);
        self.admit(call, write, &mut request)?;
        let (namespace, name) = (call.target.namespace.as_str(), call.target.name.as_str());
        check_place(&request, namespace, name)?;
        let account = World::get(self, "", "ServiceAccount", namespace, name)
            .ok_or_else(|| Status::not_found("", "serviceaccounts", name))?;
        let (asked, own) = (meta_str(&request, "uid"), meta_str(&account, "uid"));
        if !asked.is_empty() && asked != own {
            let why = format!(
                "the UID in the token request ({asked}) does not match the UID of the service account ({own})"
            );
            return Err(Status::conflict(GROUP, KIND, name, &why));
        }
        complete(&mut request, &account, &issuer.audiences, &time::format(call.now, Precision::Seconds));
        let seconds = check_lifetime(&request)?;
        self.validate(call, write.of(&request))?;
        let bound = self.bound(&request, namespace, name)?;
        let audiences: Vec<String> = texts(&request["spec"]["audiences"]);
        let is_pods = bound.iter().any(|(kind, _)| *kind == "pod");
        let extended = is_pods
            && seconds == ADMITTED_LIFETIME
            && audiences.iter().all(|audience| issuer.audiences.contains(audience));
        let claims = Claims {
            account: &account,
            bound,
            audiences: &audiences,
            lifetime: SignedDuration::from_secs(if extended { EXTENDED_LIFETIME } else { seconds }),
            warn_after: extended.then(|| SignedDuration::from_secs(seconds)),
            id: uid(call.ids),
        };
        let token = issuer.sign(&claims.to_value(&issuer.url, call.now));
        let expires = call.now + SignedDuration::from_secs(seconds);
        request["status"] =
            json!({"token": token, "expirationTimestamp": time::format(expires, Precision::Seconds)});
        Ok(Response::tree(201, &call.output, &request))
    }

    /// The objects that a token ends with.
    fn bound(&self, request: &Value, namespace: &str, account: &str) -> Result<Vec<(&'static str, Value)>> {
        let Some(reference) = request["spec"].get("boundObjectRef").filter(|reference| !reference.is_null())
        else {
            return Ok(Vec::new());
        };
        let text = |field: &str| reference[field].as_str().unwrap_or_default();
        let (api_version, kind, name, uid) = (text("apiVersion"), text("kind"), text("name"), text("uid"));
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let (plural, found) = match (group, kind) {
            ("", "Pod") => ("pods", World::get(self, "", kind, namespace, name)),
            ("", "Secret") => ("secrets", World::get(self, "", kind, namespace, name)),
            ("", "Node") => ("nodes", World::get(self, "", kind, "", name)),
            _ => {
                let what = format!("{group}/{version}, Kind={kind}");
                return Err(Status::bad_request(format!("cannot bind token to object of type {what}")));
            }
        };
        if name.is_empty() {
            return Err(Status::bad_request("Name parameter required."));
        }
        let object = found.ok_or_else(|| Status::not_found("", plural, name))?;
        if kind == "Pod" && str_at(&object, &["spec", "serviceAccountName"]) != account {
            return Err(Status::bad_request(format!(
                "cannot bind token for serviceaccount {account:?} to pod running with different serviceaccount name."
            )));
        }
        if !uid.is_empty() && uid != meta_str(&object, "uid") {
            let why = format!(
                "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have \
                 been deleted and then recreated"
            );
            return Err(Status::conflict(group, kind, name, &why));
        }
        let node = str_at(&object, &["spec", "nodeName"]);
        Ok(match kind {
            "Pod" if !node.is_empty() => {
                let unknown = || json!({"metadata": {"name": node}});
                let node = World::get(self, "", "Node", "", node).unwrap_or_else(unknown);
                vec![("node", node), ("pod", object)]
            }
            "Pod" => vec![("pod", object)],
            "Secret" => vec![("secret", object)],
            _ => vec![("node", object)],
        })
    }
}

/// Where the body says which account it is of, it has to be that of the path.
fn check_place(request: &Value, namespace: &str, name: &str) -> Result<()> {
    for (field, own) in [("name", name), ("namespace", namespace)] {
        let given = meta_str(request, field);
        if !given.is_empty() && given != own {
            let mut errors = Errors::default();
            let path = Path::Root.child("metadata");
            let why = format!("must match the service account {field} if specified");
            errors.invalid(&path.child(field), &json!(given), &why);
            return Err(Status::invalid(GROUP, KIND, name, errors));
        }
    }
    Ok(())
}

fn complete(request: &mut Value, account: &Value, audiences: &[String], now: &str) {
    let spec = spec_mut(request);
    if texts(spec.get("audiences").unwrap_or(&Value::Null)).is_empty() {
        spec.insert("audiences".into(), json!(audiences));
    }
    spec.entry("boundObjectRef").or_insert(Value::Null);
    let given = std::mem::take(meta_mut(request));
    let meta = meta_mut(request);
    for field in ["name", "namespace", "uid"] {
        meta.insert(field.into(), meta_str(account, field).into());
    }
    meta.insert("creationTimestamp".into(), now.into());
    for (field, value) in given {
        meta.entry(field).or_insert(value);
    }
}

fn check_lifetime(request: &Value) -> Result<i64> {
    let seconds = request["spec"]["expirationSeconds"].as_i64().unwrap_or_default();
    let why = match seconds {
        ..600 => "may not specify a duration less than 10 minutes",
        4_294_967_297.. => "may not specify a duration larger than 2^32 seconds",
        _ => return Ok(seconds),
    };
    let mut errors = Errors::default();
    errors.invalid(&Path::Root.child("spec").child("expirationSeconds"), &json!(seconds), why);
    Err(Status::invalid(GROUP, KIND, "", errors))
}

/// The texts of a list.
pub(super) fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(|text| Some(text.as_str()?.to_owned())).collect()
}
