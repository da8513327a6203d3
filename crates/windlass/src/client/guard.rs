//! Only what is declared, and where asked for only reads.

use std::sync::Arc;

use http::Request;
use kube::client::Body;
use serde_json::Value;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceExt as _};

use super::refused::name;
use super::{Call, Refused, Resource, Settings, Wire};
use crate::rules::Rules;

pub(super) fn layer(inner: Wire, settings: &Arc<Settings>) -> Wire {
    let settings = settings.clone();
    BoxCloneSyncService::new(tower::service_fn(move |mut request: Request<Body>| {
        let (inner, settings) = (inner.clone(), settings.clone());
        async move {
            let mut call = Call::of(request.method(), request.uri());
            let undeclared = settings.guard.as_ref().and_then(|rules| undeclared(rules, &call));
            // A delete says in its body that it is a dry run; what a caller meant to declare may be there as well.
            if call.writes() && (undeclared.is_some() || settings.read_only) {
                let object = object(request.body().try_clone()).await;
                call.dry_run |= call.verb.starts_with("delete") && object["dryRun"][0] == "All";
                if settings.read_only && call.writes() {
                    return Err(Refused::ReadOnly { call: name(&call) }.into());
                }
                if let Some(resource) = undeclared {
                    return Err(not_declared(&call, resource, object["kind"].as_str()));
                }
            } else if let Some(resource) = undeclared {
                return Err(not_declared(&call, resource, None));
            }
            request.extensions_mut().insert(call);
            inner.oneshot(request).await
        }
    }))
}

/// What a call is about, if no rule covers it. What is no resource (the version, discovery) everybody may read.
fn undeclared(rules: &Rules, call: &Call) -> Option<Resource> {
    let resource = call.resource.as_ref()?;
    (!rules.covers(call.verb, &resource.group, &resource.full())).then(|| resource.clone())
}

async fn object(body: Option<Body>) -> Value {
    let Some(body) = body else { return Value::Null };
    let bytes = body.collect_bytes().await.unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

fn not_declared(call: &Call, resource: Resource, kind: Option<&str>) -> BoxError {
    let permits = format!(
        "`.permits({:?}, {:?}, &[{:?}])` to the operator",
        resource.group,
        resource.full(),
        call.verb
    );
    // Options of a delete have a kind too, which is not the object's.
    let kind = kind.filter(|&kind| kind != "DeleteOptions").unwrap_or("K");
    let declare = match call.verb {
        _ if !resource.subresource.is_empty() => None,
        "get" | "list" | "watch" => Some("reads"),
        "create" | "patch" | "delete" => Some("owns"),
        _ => None,
    };
    let advice = match declare {
        Some(word) => {
            let which =
                if kind == "K" { format!(", with the kind of {}", resource.resource) } else { String::new() };
            format!("add `.{word}::<{kind}>()` to the controller{which}, or {permits}")
        }
        None => format!("add {permits}"),
    };
    Refused::NotDeclared { call: name(call), advice }.into()
}
