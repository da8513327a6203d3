//! A webhook that both servers ask. What it says is in the path that it is asked at, and it remembers nothing.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::sequence::Sequence;

/// What stands for its address in a sequence, as in `{hook}/label`.
const ADDRESS: &str = "{hook}";
/// What stands for the certificate that it is known by.
const AUTHORITY: &str = "{authority}";
/// How long `/hang` takes.
const HANG: Duration = Duration::from_secs(3);

/// A webhook on the loopback interface. It ends with this value.
pub struct Hook {
    address: String,
    authority: String,
    _connections: JoinSet<()>,
}

impl Hook {
    /// Begins to listen, with a certificate that is its own authority.
    ///
    /// # Errors
    /// When there is no port or no certificate to be had.
    pub async fn start() -> Result<Hook> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = format!("https://{}", listener.local_addr()?);
        let mut parameters = rcgen::CertificateParams::new(["127.0.0.1".to_owned()])?;
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate()?;
        let certificate = parameters.self_signed(&key)?;
        let private =
            PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).context("a key in PEM")?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)?;
        let mut connections = JoinSet::new();
        connections.spawn(listen(listener, TlsAcceptor::from(Arc::new(config))));
        Ok(Hook { address, authority: STANDARD.encode(certificate.pem()), _connections: connections })
    }

    /// Puts its address and its certificate into sequences.
    ///
    /// # Errors
    /// Never, in practice: a sequence can be written and read.
    pub fn fill(&self, sequences: &mut [Sequence]) -> Result<()> {
        for sequence in sequences.iter_mut().filter(|sequence| is_asked(sequence)) {
            let text = serde_json::to_string(&sequence.steps)?;
            let text = text.replace(ADDRESS, &self.address).replace(AUTHORITY, &self.authority);
            sequence.steps = serde_json::from_str(&text)?;
        }
        Ok(())
    }
}

/// Whether a sequence needs somebody who can be asked.
pub fn is_asked(sequence: &Sequence) -> bool {
    let names = |text: &str| text.contains(ADDRESS) || text.contains(AUTHORITY);
    sequence.steps.iter().any(|step| serde_json::to_string(&step.body).is_ok_and(|body| names(&body)))
}

async fn listen(listener: TcpListener, tls: TlsAcceptor) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let tls = tls.clone();
        connections.spawn(async move {
            // Who does not like the certificate goes away.
            let Ok(stream) = tls.accept(stream).await else { return };
            let _ended =
                http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(review)).await;
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn review(request: Request<Incoming>) -> io::Result<Response<Full<Bytes>>> {
    let path = request.uri().path().to_owned();
    let body =
        request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    match path.as_str() {
        "/close" => return Err(io::ErrorKind::ConnectionAborted.into()),
        "/hang" => tokio::time::sleep(HANG).await,
        _ => {}
    }
    let (code, text) = match asked["kind"] == "ConversionReview" {
        true => convert(&path, &asked["request"]),
        false => answer(&path, &asked["request"]),
    };
    let response = Response::builder().status(code).header("content-type", "application/json");
    Ok(response.body(Full::new(Bytes::from(text))).unwrap_or_else(|_| Response::new(Full::default())))
}

/// The code and the body of an answer.
fn answer(path: &str, asked: &Value) -> (u16, String) {
    let mut said = json!({"uid": asked["uid"], "allowed": true});
    let mut review = json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"});
    let whole = |review: &Value| (200, review.to_string());
    match path {
        "/garbage" => return (200, "this is no json".to_owned()),
        "/empty" => return (200, String::new()),
        "/no-response" => return whole(&review),
        "/no-kind" => review = json!({}),
        "/beta" => review["apiVersion"] = json!("admission.k8s.io/v1beta1"),
        "/other-uid" => said["uid"] = json!("other"),
        "/no-uid" => said = json!({"allowed": true}),
        "/code-500" => return (500, "it broke".to_owned()),
        "/code-404" => return (404, "not here".to_owned()),
        "/code-403" => return (403, "go away".to_owned()),
        "/code-400" => return (400, "bad".to_owned()),
        "/code-302" => return (302, String::new()),
        "/bad-patch" => patch_bytes(&mut said, b"nonsense"),
        "/bad-base64" => (said["patch"], said["patchType"]) = (json!("$$$"), json!("JSONPatch")),
        "/no-patch" => said["patchType"] = json!("JSONPatch"),
        "/merge" => {
            patch(&mut said, &json!([]));
            said["patchType"] = json!("Merge");
        }
        _ => say(path, asked, &mut said),
    }
    review["response"] = said;
    whole(&review)
}

/// The code and the body of an answer about a conversion.
fn convert(path: &str, asked: &Value) -> (u16, String) {
    let objects = asked["objects"].as_array().into_iter().flatten();
    let mut objects: Vec<Value> = objects.map(|object| converted(path, object, asked)).collect();
    let mut review = json!({"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1"});
    let mut said = json!({"uid": asked["uid"], "result": {"status": "Success"}});
    match path {
        "/convert-no-response" => return (200, review.to_string()),
        "/convert-refuse" => said["result"] = json!({"status": "Failed", "message": "not today"}),
        "/convert-other-uid" => said["uid"] = json!("other"),
        "/convert-none" => objects.clear(),
        path if !path.starts_with("/convert") => return answer(path, asked),
        _ => {}
    }
    said["convertedObjects"] = json!(objects);
    review["response"] = said;
    (200, review.to_string())
}

/// A host and a port for an address, or the other way.
fn converted(path: &str, object: &Value, asked: &Value) -> Value {
    let mut out = object.clone();
    out["apiVersion"] = asked["desiredAPIVersion"].clone();
    let spec = &object["spec"];
    let text = |key: &str| spec[key].as_str().unwrap_or_default();
    out["spec"] = match text("address").split_once(':') {
        Some((host, port)) if path == "/convert-exact" => json!({"host": host, "port": port}),
        Some((host, port)) => json!({"host": host, "port": port, "nosuch": "field"}),
        None => json!({"address": format!("{}:{}", text("host"), text("port"))}),
    };
    match path {
        // What is stored says nothing of it: a conversion and its way back change nothing.
        "/convert-label" if text("address").is_empty() => {
            let labels = out["metadata"].get_mut("labels").and_then(Value::as_object_mut);
            labels.into_iter().for_each(|labels| drop(labels.remove("converted")));
        }
        "/convert-label" => {
            out["metadata"]["labels"]["converted"] = json!("yes");
            out["metadata"]["finalizers"] = json!(["example.com/not-its-own"]);
        }
        "/convert-rename" => out["metadata"]["name"] = json!("other"),
        "/convert-retype" => out["kind"] = json!("Other"),
        _ => {}
    }
    out
}

/// Answers that are as they should be.
fn say(path: &str, asked: &Value, said: &mut Value) {
    let object = &asked["object"];
    let text = |key: &str| object["metadata"]["labels"][key].as_str();
    let mut deny = |status: Value| {
        said["allowed"] = json!(false);
        said["status"] = status;
    };
    match path {
        "/label" => label(said, object, "a", "1"),
        "/copy" => label(said, object, "b", text("a").unwrap_or("none")),
        "/count" => {
            let count = text("n").and_then(|n| n.parse::<u32>().ok()).unwrap_or(0) + 1;
            label(said, object, "n", &count.to_string());
        }
        "/tell" => {
            let value = told(asked).to_string();
            let annotations = object["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
            let mut annotations = annotations;
            annotations.insert("told".to_owned(), json!(value));
            patch(said, &json!([{"op": "add", "path": "/metadata/annotations", "value": annotations}]));
        }
        "/warn-told" => said["warnings"] = json!([told(asked).to_string()]),
        "/warn" => said["warnings"] = json!(["take care", "and \"this\""]),
        "/deny" => deny(Value::Null),
        "/deny-message" => deny(json!({"message": "no way", "code": 403, "reason": "Forbidden"})),
        "/deny-reason" => deny(json!({"reason": "BecauseISaidSo"})),
        "/deny-low" => deny(json!({"message": "m", "code": 200, "status": "Success"})),
        "/deny-details" => {
            let causes = json!([{"reason": "r", "message": "mm", "field": "f"}]);
            let details = json!({"name": "x", "kind": "y", "causes": causes});
            deny(json!({"message": "m", "code": 422, "reason": "Invalid", "details": details}));
        }
        "/deny-warn" => {
            deny(Value::Null);
            said["warnings"] = json!(["careful"]);
        }
        "/fails" => patch(said, &json!([{"op": "remove", "path": "/nothing/here"}])),
        "/test" => patch(said, &json!([{"op": "test", "path": "/metadata/name", "value": "zzz"}])),
        "/no-type" => {
            patch(said, &json!([{"op": "add", "path": "/data", "value": {}}]));
            said.as_object_mut().map(|map| map.remove("patchType"));
        }
        "/wrong-type" => patch(said, &json!([{"op": "add", "path": "/data", "value": {"k": 5}}])),
        "/unknown-field" => patch(said, &json!([{"op": "add", "path": "/nosuch", "value": 5}])),
        "/rename" => patch(said, &json!([{"op": "add", "path": "/metadata/name", "value": "renamed"}])),
        "/unname" => patch(said, &json!([{"op": "remove", "path": "/metadata/name"}])),
        "/generate" => patch(
            said,
            &json!([
                {"op": "add", "path": "/metadata/name", "value": ""},
                {"op": "add", "path": "/metadata/generateName", "value": "g-"},
            ]),
        ),
        "/host" => {
            let change = match object["spec"]["address"].is_string() {
                true => json!({"op": "replace", "path": "/spec/address", "value": "x:9"}),
                false => json!({"op": "add", "path": "/spec/host", "value": "x"}),
            };
            patch(said, &json!([change]));
        }
        "/replicas" => patch(said, &json!([{"op": "add", "path": "/spec/replicas", "value": 5}])),
        "/container" => patch(said, &json!([{"op": "add", "path": "/container", "value": "other"}])),
        "/command" => patch(said, &json!([{"op": "add", "path": "/command", "value": ["id"]}])),
        "/data" => patch(said, &json!([{"op": "add", "path": "/data", "value": {"made": "here"}}])),
        _ => deface(path, object, said),
    }
}

/// Changes of a custom object that its schema does not foresee.
fn deface(path: &str, object: &Value, said: &mut Value) {
    let add = |path: &str, value: Value| json!({"op": "add", "path": path, "value": value});
    let other = || object["apiVersion"].as_str().unwrap_or_default().replace("/v1", "/v2");
    let change = match path {
        "/metadata-unknown" => json!([add("/metadata/nosuch", json!(5))]),
        "/metadata-wrong" => json!([add("/metadata/labels", json!({"a": 5}))]),
        "/metadata-gone" => json!([{"op": "remove", "path": "/metadata"}]),
        "/metadata-text" => json!([add("/metadata", json!("text"))]),
        "/metadata-odd" => json!([
            add("/metadata/labels", json!({"a": "b", "c": null})),
            add("/metadata/annotations", json!([])),
            add("/metadata/finalizers", json!(["example.com/one", 5])),
            add("/metadata/ownerReferences", json!({})),
        ]),
        "/nosuch-version" => json!([add("/apiVersion", json!(other().replace("/v2", "/v7")))]),
        "/no-version" => json!([{"op": "remove", "path": "/apiVersion"}]),
        "/no-kind-left" => json!([{"op": "remove", "path": "/kind"}]),
        "/other-group" => json!([add("/apiVersion", json!("apps/v1"))]),
        "/other-version" => json!([add("/apiVersion", json!(other()))]),
        "/other-kind" => json!([add("/kind", json!("Other"))]),
        "/status" => json!([add("/status", json!({"ok": true, "nosuch": 5}))]),
        "/spec-unknown" => json!([add("/spec/nosuch", json!({"b": 1, "a": null}))]),
        "/spec-deep" => {
            json!([add("/spec/o", json!({"nosuch": "x"})), add("/spec/l", json!([{}, {"nosuch": 1}])),])
        }
        // What has a default, in whichever kind has it.
        "/bare" => {
            let fields =
                ["replicas", "strategy", "suspend", "concurrencyPolicy", "volumeMode", "policyTypes"];
            let has = |field: &&&str| object["spec"].get(**field).is_some();
            let remove = |field| json!({"op": "remove", "path": format!("/spec/{field}")});
            fields.iter().filter(has).map(remove).collect()
        }
        "/spec-bare" => json!([{"op": "remove", "path": "/spec/a"}]),
        "/spec-null" => json!([add("/spec/a", Value::Null)]),
        "/spec-gone" => json!([{"op": "remove", "path": "/spec"}]),
        "/spec-wrong" => json!([add("/spec/a", json!(5))]),
        "/spec-kept" => json!([add("/spec/kept", json!({"z": {"y": null, "b": 1.5}, "in": {"nosuch": 1}}))]),
        _ => return,
    };
    patch(said, &change);
}

fn label(said: &mut Value, object: &Value, key: &str, value: &str) {
    let mut labels: Map<String, Value> =
        object["metadata"]["labels"].as_object().cloned().unwrap_or_default();
    labels.insert(key.to_owned(), json!(value));
    patch(said, &json!([{"op": "add", "path": "/metadata/labels", "value": labels}]));
}

fn patch(said: &mut Value, patch: &Value) {
    patch_bytes(said, patch.to_string().as_bytes());
}

fn patch_bytes(said: &mut Value, patch: &[u8]) {
    (said["patch"], said["patchType"]) = (json!(STANDARD.encode(patch)), json!("JSONPatch"));
}

/// What was asked, without what is never twice the same. Of objects only the outlines.
fn told(asked: &Value) -> Value {
    let group = asked["resource"]["group"].as_str().unwrap_or_default();
    // Of a custom object what it says, in whichever version. Nobody orders its fields.
    let is_custom = group.ends_with(".example.com");
    let outline = |object: &Value| match object.as_object() {
        None => Value::Null,
        Some(_) if is_custom && !object["metadata"].is_object() => sorted(object),
        // The options of a connection.
        Some(map) if !map.contains_key("metadata") => object.clone(),
        Some(map) => {
            let keys = |value: &Value| value.as_object().map(|map| map.keys().cloned().collect::<Vec<_>>());
            let metadata = keys(&object["metadata"]).unwrap_or_default();
            let mut metadata: Vec<String> =
                metadata.into_iter().filter(|key| key != "resourceVersion").collect();
            metadata.sort();
            let mut names: Vec<&String> = map.keys().collect();
            let spec = match is_custom {
                true => {
                    names.sort();
                    json!([object["apiVersion"], object["kind"], sorted(&object["spec"])])
                }
                false => Value::Null,
            };
            json!([names, metadata, sorted(&object["metadata"]["labels"]), spec])
        }
    };
    let mut out = asked.clone();
    (out["object"], out["oldObject"]) = (outline(&asked["object"]), outline(&asked["oldObject"]));
    let generated = asked["object"]["metadata"]["generateName"].is_string();
    out.as_object_mut().into_iter().for_each(|map| {
        map.retain(|key, _| key != "uid" && key != "userInfo" && (key != "name" || !generated));
    });
    sorted(&out)
}

/// The same with its keys in order.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let all: BTreeMap<&String, Value> = map.iter().map(|(key, value)| (key, sorted(value))).collect();
            all.into_iter().map(|(key, value)| (key.clone(), value)).collect::<Map<_, _>>().into()
        }
        other => other.clone(),
    }
}
