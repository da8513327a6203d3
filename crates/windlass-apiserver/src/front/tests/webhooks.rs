//! Webhooks at the end of a real socket. What is expected here was read from kube-apiserver 1.36, which was asked the same.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Response;
use hyper::service::service_fn;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;

use super::*;

/// A hook that does what the path says, and the reviews that it got.
pub(super) struct Hook {
    pub port: u16,
    pub authority: String,
    pub seen: Arc<Mutex<Vec<(String, Value)>>>,
    /// How many connections were made to it, and what ends them.
    opened: Arc<AtomicUsize>,
    connections: Arc<Mutex<Vec<AbortHandle>>>,
}

impl Hook {
    pub async fn start() -> Hook {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        // A certificate that is its own authority, as `openssl req -x509` makes them.
        let mut parameters = rcgen::CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = parameters.self_signed(&key).unwrap();
        let chain = vec![certificate.der().clone()];
        let private = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, private)
            .unwrap();
        let (tls, seen) = (TlsAcceptor::from(Arc::new(config)), Arc::new(Mutex::new(Vec::new())));
        let (opened, connections) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let (noted, counted, held) = (seen.clone(), opened.clone(), connections.clone());
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (tls, noted) = (tls.clone(), noted.clone());
                counted.fetch_add(1, Ordering::Relaxed);
                let connection = tokio::spawn(async move {
                    let Ok(stream) = tls.accept(stream).await else { return };
                    let http = hyper::server::conn::http1::Builder::new();
                    let before = AtomicUsize::new(0);
                    let service = service_fn(|request| {
                        reviewed(request, before.fetch_add(1, Ordering::Relaxed), noted.clone())
                    });
                    let _ = http.serve_connection(TokioIo::new(stream), service).await;
                });
                held.lock().unwrap().push(connection.abort_handle());
            }
        });
        Hook { port, authority: STANDARD.encode(certificate.pem()), seen, opened, connections }
    }

    /// How many connections were made since the last time.
    fn opened(&self) -> usize {
        self.opened.swap(0, Ordering::Relaxed)
    }

    /// Closes all connections.
    fn hang_up(&self) {
        self.connections.lock().unwrap().drain(..).for_each(|connection| connection.abort());
    }

    /// What was asked since the last time.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.seen.lock().unwrap()).into_iter().map(|(path, _)| path).collect()
    }
}

/// What it says to a question, behind others on the same connection.
async fn reviewed(
    request: http::Request<Incoming>,
    before: usize,
    noted: Arc<Mutex<Vec<(String, Value)>>>,
) -> Result<Response<Full<Bytes>>, &'static str> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    let asked = review["request"].clone();
    noted.lock().unwrap().push((path.clone(), asked.clone()));
    if review["kind"] == "ConversionReview" {
        let answer = super::conversions::converted(&path, &review);
        return Ok(Response::new(Full::new(Bytes::from(answer.to_string()))));
    }
    let mut labels = asked["object"]["metadata"]["labels"].as_object().cloned().unwrap_or_default();
    let mut said = json!({"uid": asked["uid"], "allowed": true});
    let mut set = |key: &str, value: String| {
        labels.insert(key.to_owned(), json!(value));
        let patch = json!([{"op": "add", "path": "/metadata/labels", "value": labels}]);
        (json!(STANDARD.encode(patch.to_string())), json!("JSONPatch"))
    };
    let count = asked["object"]["metadata"]["labels"]["n"].as_str().map_or(0, |n| n.parse::<u32>().unwrap());
    match path.as_str() {
        "/label" => (said["patch"], said["patchType"]) = set("a", "1".to_owned()),
        "/count" => (said["patch"], said["patchType"]) = set("n", (count + 1).to_string()),
        "/refuse" => {
            said["allowed"] = json!(false);
            said["warnings"] = json!(["take care"]);
            said["status"] = json!({"message": "no way", "code": 409, "reason": "Mine"});
        }
        "/container" => {
            let patch = json!([{"op": "add", "path": "/container", "value": "c"}]);
            (said["patch"], said["patchType"]) =
                (json!(STANDARD.encode(patch.to_string())), json!("JSONPatch"));
        }
        "/refuse-silently" => said["allowed"] = json!(false),
        "/bad-uid" => said["uid"] = json!("other"),
        "/once" if before > 0 => return Err("it answers one question each"),
        "/hang" => tokio::time::sleep(Duration::from_secs(20)).await,
        _ => {}
    }
    let answer = json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": said});
    let (code, text) = match path.as_str() {
        "/garbage" => (200, "nonsense".to_owned()),
        "/broken" => (500, String::new()),
        _ => (200, answer.to_string()),
    };
    Ok(Response::builder().status(code).body(Full::new(Bytes::from(text))).unwrap())
}

const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Sends a request to the server in this process: the code, the answer, the warnings.
pub(super) async fn send(
    server: &ApiServer,
    method: &str,
    path: &str,
    body: Value,
) -> (u16, Value, Vec<String>) {
    let mut request = request(method, path, body.to_string()).map(|_| Bytes::from(body.to_string()));
    if method == "PATCH" {
        let media = "application/merge-patch+json".parse().unwrap();
        request.headers_mut().insert("content-type", media);
    }
    let response = server.call(request, crate::api::User::admin()).await;
    let warnings =
        response.headers().get_all("warning").iter().map(|one| one.to_str().unwrap().to_owned()).collect();
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&body).unwrap(), warnings)
}

/// Configures hooks at these paths, in this order, with these fields set.
pub(super) async fn configure(server: &ApiServer, kind: &str, hook: &Hook, paths: &[(&str, Value)]) {
    let webhooks = paths.iter().enumerate().map(|(at, (path, more))| {
        let mut one = json!({
            "name": format!("h{at}.example.com"),
            "clientConfig": {"url": format!("https://127.0.0.1:{}{path}", hook.port), "caBundle": hook.authority},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}],
            "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 5,
        });
        one.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
        one
    });
    let plural = format!("{}webhookconfigurations", kind.to_lowercase());
    let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}");
    send(server, "DELETE", &format!("{path}/hooks"), Value::Null).await;
    let configuration = json!({"metadata": {"name": "hooks"}, "webhooks": webhooks.collect::<Vec<_>>()});
    let (code, said, _) = send(server, "POST", &path, configuration).await;
    assert_eq!(code, 201, "{said}");
}

fn config_map(name: &str) -> Value {
    json!({"metadata": {"name": name}, "data": {"k": "v"}})
}

#[tokio::test]
async fn hooks_change_objects_in_their_order_and_see_what_others_did() {
    let (server, hook) = (server(), Hook::start().await);
    let again = json!({"reinvocationPolicy": "IfNeeded"});
    let paths = [("/count", again.clone()), ("/label", json!({})), ("/count", again)];
    configure(&server, "Mutating", &hook, &paths).await;
    let (code, made, _) = send(&server, "POST", CONFIGMAPS, config_map("one")).await;
    assert_eq!((code, &made["metadata"]["labels"]), (201, &json!({"a": "1", "n": "4"})));
    assert_eq!(hook.asked(), ["/count", "/label", "/count", "/count", "/count"]);
    let stored = send(&server, "GET", &format!("{CONFIGMAPS}/one"), Value::Null).await.1;
    assert_eq!(stored, made, "what the client was told is what is there");
}

#[tokio::test]
async fn what_a_hook_says_is_told_in_the_words_of_kubernetes() {
    let (server, hook) = (server(), Hook::start().await);
    let failed = "Internal error occurred: failed calling webhook \"h0.example.com\": ";
    let cases = [
        ("/refuse", json!({}), 409, "Mine", "admission webhook \"h0.example.com\" denied the request: no way".to_owned()),
        ("/refuse-silently", json!({}), 400, "", "admission webhook \"h0.example.com\" denied the request without explanation".to_owned()),
        ("/broken", json!({}), 500, "InternalError", format!("{failed}failed to call webhook: an error on the server (\"unknown\") has prevented the request from succeeding")),
        ("/hang", json!({"timeoutSeconds": 1}), 500, "InternalError", format!("{failed}failed to call webhook: Post \"https://127.0.0.1:{}/hang?timeout=1s\": context deadline exceeded", hook.port)),
        ("/ok", json!({"matchConditions": [{"name": "c", "expression": "object.nosuch.x == 'v'"}]}), 403, "Forbidden", "configmaps \"one\" is forbidden: expression 'object.nosuch.x == 'v'' resulted in error: no such key: nosuch".to_owned()),
    ];
    for kind in ["Mutating", "Validating"] {
        for (path, more, code, reason, message) in &cases {
            configure(&server, kind, &hook, &[(path, more.clone())]).await;
            let (got, said, warnings) = send(&server, "POST", CONFIGMAPS, config_map("one")).await;
            assert_eq!((got, said["message"].as_str().unwrap()), (*code, message.as_str()), "{kind} {path}");
            assert_eq!(said["reason"].as_str().unwrap_or_default(), *reason, "{kind} {path}");
            assert_eq!(warnings.len(), usize::from(*path == "/refuse"), "{kind} {path}: {warnings:?}");
            // Who need not be asked keeps nobody from anything.
            let mut ignored = more.clone();
            ignored["failurePolicy"] = json!("Ignore");
            configure(&server, kind, &hook, &[(path, ignored)]).await;
            let got = send(&server, "POST", &format!("{CONFIGMAPS}?dryRun=All"), config_map("one")).await.0;
            assert_eq!(got == 201, !path.starts_with("/refuse"), "{kind} {path}");
        }
        configure(&server, kind, &hook, &[]).await;
    }
    let (code, _, _) = send(&server, "POST", CONFIGMAPS, config_map("one")).await;
    assert_eq!(code, 201);
}

#[tokio::test]
async fn an_answer_counts_for_the_object_that_was_asked_about() {
    let (server, hook) = (server(), Hook::start().await);
    send(&server, "POST", CONFIGMAPS, config_map("one")).await;
    configure(&server, "Validating", &hook, &[("/slow", json!({}))]).await;
    hook.asked();
    // Two patches at once: both are asked about, and the one that finds the other's change is asked about again.
    let path = format!("{CONFIGMAPS}/one");
    let patch = |key: &'static str| send(&server, "PATCH", &path, json!({"data": {key: "1"}}));
    let (first, second) = tokio::join!(patch("a"), patch("b"));
    assert_eq!((first.0, second.0), (200, 200));
    let stored = send(&server, "GET", &path, Value::Null).await.1;
    assert_eq!(stored["data"], json!({"a": "1", "b": "1", "k": "v"}), "nothing is lost");
    assert_eq!(hook.asked().len(), 3);
    let (code, _, _) = send(&server, "DELETE", &path, Value::Null).await;
    assert_eq!((code, hook.asked().len()), (200, 1));
}

#[tokio::test]
async fn a_hook_that_hangs_delays_nobody_else() {
    let (server, hook) = (server(), Hook::start().await);
    let chosen = json!({"objectSelector": {"matchLabels": {"slow": "yes"}}, "timeoutSeconds": 2});
    configure(&server, "Validating", &hook, &[("/hang", chosen)]).await;
    let slow = json!({"metadata": {"name": "slow", "labels": {"slow": "yes"}}});
    let waiting = tokio::spawn({
        let server = server.clone();
        async move { send(&server, "POST", CONFIGMAPS, slow).await.0 }
    });
    while hook.seen.lock().unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let started = Instant::now();
    for at in 0..100 {
        assert_eq!(send(&server, "POST", CONFIGMAPS, config_map(&format!("c{at}"))).await.0, 201);
    }
    assert!(!waiting.is_finished(), "the others were through after {:?}", started.elapsed());
    assert_eq!(waiting.await.unwrap(), 500);
}

#[tokio::test]
async fn connections_are_kept_for_the_next_question() {
    let (server, hook) = (server(), Hook::start().await);
    configure(&server, "Validating", &hook, &[("/ok", json!({})), ("/also", json!({}))]).await;
    let mut made = 0;
    let mut write = async || {
        made += 1;
        send(&server, "POST", CONFIGMAPS, config_map(&format!("c{made}"))).await
    };
    for _ in 0..10 {
        assert_eq!(write().await.0, 201);
    }
    // Both are asked at once.
    assert_eq!((hook.asked().len(), hook.opened()), (20, 2));

    // A webhook that was started anew has closed them.
    hook.hang_up();
    for _ in 0..3 {
        assert_eq!(write().await.0, 201);
    }
    assert_eq!((hook.asked().len(), hook.opened()), (6, 2));

    // Nor are they kept for ever.
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(91)).await;
    tokio::time::resume();
    assert_eq!((write().await.0, hook.opened()), (201, 2));
}

#[tokio::test]
async fn who_closes_a_kept_connection_is_asked_on_another() {
    let (server, hook) = (server(), Hook::start().await);
    configure(&server, "Validating", &hook, &[("/once", json!({}))]).await;
    for name in ["a", "b", "c"] {
        assert_eq!(send(&server, "POST", CONFIGMAPS, config_map(name)).await.0, 201);
    }
    assert_eq!((hook.asked().len(), hook.opened()), (5, 3), "and once only on each");
}

#[tokio::test]
async fn whoever_is_to_be_known_by_others_is_met_anew() {
    let (server, mut hook) = (server(), Hook::start().await);
    configure(&server, "Validating", &hook, &[("/ok", json!({}))]).await;
    assert_eq!(send(&server, "POST", CONFIGMAPS, config_map("a")).await.0, 201);
    hook.authority = Hook::start().await.authority;
    configure(&server, "Validating", &hook, &[("/ok", json!({}))]).await;
    let (code, said, _) = send(&server, "POST", CONFIGMAPS, config_map("b")).await;
    let why = "tls: failed to verify certificate: x509: certificate signed by unknown authority";
    assert!(code == 500 && said["message"].as_str().unwrap().ends_with(why), "{said}");
}

#[tokio::test]
async fn a_connection_on_which_nothing_came_is_not_kept() {
    let (server, hook) = (server(), Hook::start().await);
    for path in ["/ok", "/hang", "/ok"] {
        configure(&server, "Validating", &hook, &[(path, json!({"timeoutSeconds": 1}))]).await;
        let code =
            send(&server, "POST", CONFIGMAPS, config_map(&format!("at{}", hook.asked().len()))).await.0;
        assert_eq!(code, if path == "/hang" { 500 } else { 201 });
    }
    assert_eq!(hook.opened(), 2);
}
