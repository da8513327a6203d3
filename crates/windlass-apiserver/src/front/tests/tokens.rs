//! Tokens of service accounts, and the pods that get them.

use super::*;
use crate::api::User;
use crate::api::admission::Plugins;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const PODS: &str = "/api/v1/namespaces/default/pods";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";

async fn account(server: &ApiServer, name: &str) -> Value {
    let (code, made) = ask(server, "POST", ACCOUNTS, &json!({"metadata": {"name": name}}).to_string()).await;
    assert_eq!(code, 201, "{made}");
    made
}

async fn token(server: &ApiServer, name: &str, spec: Value) -> (u16, Value) {
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
    ask(server, "POST", &format!("{ACCOUNTS}/{name}/token"), &body.to_string()).await
}

fn claims(token: &str) -> Value {
    let payload = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap()
}

async fn by_token(served: &Served, token: &str) -> (u16, Value) {
    let mut client = served.client("h2", None).await;
    let mut request = get("/api");
    request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
    answer(client.send(request).await.unwrap()).await
}

fn message(answer: &(u16, Value)) -> (u16, &str) {
    (answer.0, answer.1["message"].as_str().unwrap_or_default())
}

#[tokio::test]
async fn a_token_says_whose_it_is_and_counts_until_the_account_is_gone() {
    let served = Served::start().await;
    let made = account(&served.server, "a").await;
    let (code, request) = token(&served.server, "a", json!({})).await;
    assert_eq!(code, 201, "{request}");
    assert_eq!(request["spec"]["audiences"], json!(["https://kubernetes.default.svc"]));
    assert_eq!(request["spec"]["expirationSeconds"], 3600);
    assert_eq!(request["spec"]["boundObjectRef"], Value::Null);
    assert_eq!(request["metadata"]["uid"], made["metadata"]["uid"]);
    let text = request["status"]["token"].as_str().unwrap();
    let claims = claims(text);
    assert_eq!(claims["sub"], "system:serviceaccount:default:a");
    assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), 3600);
    assert_eq!(
        claims["kubernetes.io"],
        json!({"namespace": "default", "serviceaccount": {"name": "a", "uid": made["metadata"]["uid"]}})
    );
    assert_eq!(by_token(&served, text).await.0, 200);
    let user = served.server.inspect(|server| server.audit().records().next_back().unwrap().user.clone());
    assert_eq!(user, "system:serviceaccount:default:a");

    let (head, _) = text.rsplit_once('.').unwrap();
    let forged = format!("{head}.{}", URL_SAFE_NO_PAD.encode([1; 64]));
    assert_eq!(by_token(&served, &forged).await.0, 401, "somebody else signed it");
    let other = token(&served.server, "a", json!({"audiences": ["vault"]})).await.1;
    assert_eq!(
        by_token(&served, other["status"]["token"].as_str().unwrap()).await.0,
        401,
        "it is for somebody else"
    );

    ask(&served.server, "DELETE", &format!("{ACCOUNTS}/a"), "").await;
    assert_eq!(by_token(&served, text).await.0, 401);
    account(&served.server, "a").await;
    assert_eq!(by_token(&served, text).await.0, 401, "another account has its name");
}

/// Whom a token speaks for is looked up once, until something changes of what it names: on the same connection, too.
#[tokio::test]
async fn a_token_ends_with_what_it_names_on_a_connection_that_goes_on() {
    let served = Served::start().await;
    let mut client = served.client("h2", None).await;
    account(&served.server, "a").await;
    let spec = json!({"serviceAccountName": "a", "containers": [{"name": "c", "image": "i"}]});
    let pod = json!({"metadata": {"name": "p"}, "spec": spec}).to_string();
    let (code, pod) = ask(&served.server, "POST", PODS, &pod).await;
    assert_eq!(code, 201, "{pod}");
    let reference = json!({"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": pod["metadata"]["uid"]});
    let bound = token(&served.server, "a", json!({"boundObjectRef": reference})).await.1;
    let plain = token(&served.server, "a", json!({})).await.1;
    let mut show = async |token: &Value| {
        let mut request = get("/api");
        let token = token["status"]["token"].as_str().unwrap();
        request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        answer(client.send(request).await.unwrap()).await.0
    };
    for _ in 0..2 {
        assert_eq!((show(&bound).await, show(&bound).await, show(&plain).await), (200, 200, 200));
        account(&served.server, "other").await;
        ask(&served.server, "DELETE", &format!("{ACCOUNTS}/other"), "").await;
    }
    assert_eq!(show(&bound).await, 200);
    ask(&served.server, "DELETE", &format!("{PODS}/p?gracePeriodSeconds=0"), "").await;
    assert_eq!((show(&bound).await, show(&plain).await, show(&plain).await), (401, 200, 200));
    ask(&served.server, "DELETE", &format!("{ACCOUNTS}/a"), "").await;
    assert_eq!((show(&plain).await, show(&bound).await), (401, 401));
}

/// What a token says that lives in a Secret.
fn of_secret(account: &Value, secret: &str) -> Value {
    json!({
        "iss": "kubernetes/serviceaccount",
        "kubernetes.io/serviceaccount/namespace": "default",
        "kubernetes.io/serviceaccount/secret.name": secret,
        "kubernetes.io/serviceaccount/service-account.name": account["metadata"]["name"],
        "kubernetes.io/serviceaccount/service-account.uid": account["metadata"]["uid"],
        "sub": format!("system:serviceaccount:default:{}", account["metadata"]["name"].as_str().unwrap()),
    })
}

#[tokio::test]
async fn a_token_that_lives_in_a_secret_counts_as_long_as_that_has_it() {
    const SECRETS: &str = "/api/v1/namespaces/default/secrets";
    let served = Served::start().await;
    let made = account(&served.server, "a").await;
    let text = served.credentials.tokens().sign(&of_secret(&made, "t"));
    assert_eq!(by_token(&served, &text).await.0, 401, "no Secret has it");
    let secret = json!({
        "metadata": {"name": "t", "annotations": {"kubernetes.io/service-account.name": "a"}},
        "type": "kubernetes.io/service-account-token", "stringData": {"token": text},
    });
    assert_eq!(ask(&served.server, "POST", SECRETS, &secret.to_string()).await.0, 201);
    let before = served.server.now();
    assert_eq!(by_token(&served, &text).await.0, 200);
    let (_, noted) = ask(&served.server, "GET", &format!("{SECRETS}/t"), "").await;
    let day = noted["metadata"]["labels"]["kubernetes.io/legacy-token-last-used"].as_str().unwrap();
    let days = [before, served.server.now()].map(|time| time.to_string());
    assert!(days.iter().any(|time| time.starts_with(day)), "{day}");
    assert_eq!(by_token(&served, &text).await.0, 200);
    let (_, again) = ask(&served.server, "GET", &format!("{SECRETS}/t"), "").await;
    assert_eq!(again["metadata"]["resourceVersion"], noted["metadata"]["resourceVersion"], "once a day");
    let review = async || {
        let body =
            json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": text}});
        ask(&served.server, "POST", REVIEWS, &body.to_string()).await.1["status"].clone()
    };
    let told = review().await;
    assert_eq!(told["user"]["username"], "system:serviceaccount:default:a", "{told}");
    assert_eq!(told["user"]["uid"], made["metadata"]["uid"]);
    assert_eq!(told["audiences"], json!(["https://kubernetes.default.svc"]));

    let patch = async |patch: Value| {
        let request = http::Request::patch(format!("{SECRETS}/t"))
            .header("content-type", "application/merge-patch+json")
            .body(Bytes::from(patch.to_string()))
            .unwrap();
        assert_eq!(served.server.call(request, User::admin()).await.status(), 200);
    };
    let label = "kubernetes.io/legacy-token-invalid-since";
    patch(json!({"metadata": {"labels": {label: "2026-01-01"}}})).await;
    assert_eq!(by_token(&served, &text).await.0, 401, "it is marked as invalid");
    patch(json!({"metadata": {"labels": {label: null}}, "data": {"token": "eA=="}})).await;
    assert_eq!(review().await["error"], "[invalid bearer token, Token does not match server's copy]");
    patch(json!({"stringData": {"token": text}})).await;
    assert_eq!(by_token(&served, &text).await.0, 200);
    ask(&served.server, "DELETE", &format!("{ACCOUNTS}/a"), "").await;
    account(&served.server, "a").await;
    assert_eq!(by_token(&served, &text).await.0, 401, "another account has its name");
}

#[tokio::test]
async fn a_token_of_a_pod_ends_with_it() {
    let served = Served::start().await;
    account(&served.server, "a").await;
    let pod = json!({"metadata": {"name": "p"}, "spec": {
        "serviceAccountName": "a", "nodeName": "n", "containers": [{"name": "c", "image": "i"}],
    }});
    let (_, pod) = ask(&served.server, "POST", PODS, &pod.to_string()).await;
    let bound = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": pod["metadata"]["uid"]});
    let spec = json!({"boundObjectRef": bound, "expirationSeconds": 3607});
    let (_, request) = token(&served.server, "a", spec).await;
    let text = request["status"]["token"].as_str().unwrap();
    let claims = claims(text);
    let own = &claims["kubernetes.io"];
    assert_eq!(own["pod"], json!({"name": "p", "uid": pod["metadata"]["uid"]}));
    assert_eq!(own["node"], json!({"name": "n"}));
    let issued = claims["iat"].as_i64().unwrap();
    assert_eq!(own["warnafter"].as_i64().unwrap() - issued, 3607);
    assert_eq!(claims["exp"].as_i64().unwrap() - issued, 365 * 24 * 3600);
    assert_eq!(by_token(&served, text).await.0, 200);
    ask(&served.server, "DELETE", &format!("{PODS}/p?gracePeriodSeconds=0"), "").await;
    assert_eq!(by_token(&served, text).await.0, 401);
}

#[tokio::test]
async fn what_cannot_be_asked_for_is_refused_as_upstream_does() {
    let server = Served::start().await.server.clone();
    let uid = account(&server, "a").await["metadata"]["uid"].as_str().unwrap().to_owned();
    let check = async |name: &str, spec: Value| message(&token(&server, name, spec).await).to_owned_pair();
    assert_eq!(check("nope", json!({})).await, (404, "serviceaccounts \"nope\" not found".to_owned()));
    assert_eq!(
        check("a", json!({"expirationSeconds": 10})).await,
        (
            422,
            "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: 10: may not \
             specify a duration less than 10 minutes"
                .to_owned()
        )
    );
    let bound = |kind: &str| json!({"boundObjectRef": {"apiVersion": "v1", "kind": kind, "name": "nope"}});
    assert_eq!(check("a", bound("Pod")).await, (404, "pods \"nope\" not found".to_owned()));
    assert_eq!(
        check("a", bound("ConfigMap")).await,
        (400, "cannot bind token to object of type /v1, Kind=ConfigMap".to_owned())
    );
    let other = json!({"metadata": {"uid": "b"}});
    let answer = ask(&server, "POST", &format!("{ACCOUNTS}/a/token"), &other.to_string()).await;
    let expected = format!(
        "Operation cannot be fulfilled on TokenRequest.authentication.k8s.io \"a\": the UID in the token request (b) \
         does not match the UID of the service account ({uid})"
    );
    assert_eq!(message(&answer), (409, expected.as_str()));
}

trait OwnedPair {
    fn to_owned_pair(self) -> (u16, String);
}

impl OwnedPair for (u16, &str) {
    fn to_owned_pair(self) -> (u16, String) {
        (self.0, self.1.to_owned())
    }
}

#[tokio::test]
async fn a_review_tells_whose_token_it_is() {
    let server = Served::start().await.server.clone();
    let made = account(&server, "a").await;
    let (_, request) = token(&server, "a", json!({})).await;
    let text = request["status"]["token"].as_str().unwrap();
    let review = async |spec: Value| {
        let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec});
        ask(&server, "POST", REVIEWS, &body.to_string()).await
    };
    let (code, answer) = review(json!({"token": text})).await;
    assert_eq!(code, 201);
    let id = format!("JTI={}", claims(text)["jti"].as_str().unwrap());
    assert_eq!(
        answer["status"],
        json!({
            "authenticated": true,
            "user": {
                "username": "system:serviceaccount:default:a",
                "uid": made["metadata"]["uid"],
                "groups": ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"],
                "extra": {"authentication.kubernetes.io/credential-id": [id]},
            },
            "audiences": ["https://kubernetes.default.svc"],
        })
    );
    let (_, answer) = review(json!({"token": text, "audiences": ["x"]})).await;
    assert_eq!(
        answer["status"],
        json!({"user": {}, "error": "[invalid bearer token, token audiences [\"https://kubernetes.default.svc\"] is \
            invalid for the target audiences [\"x\"]]"})
    );
    let (_, answer) = review(json!({"token": "nope"})).await;
    assert_eq!(answer["status"], json!({"user": {}, "error": "invalid bearer token"}));
    let answer = review(json!({})).await;
    assert_eq!(message(&answer), (400, "token is required for TokenReview in authentication"));
}

#[tokio::test]
async fn the_key_of_the_tokens_is_told() {
    let served = Served::start().await;
    let (_, keys) = ask(&served.server, "GET", "/openid/v1/jwks", "").await;
    assert_eq!(keys["keys"][0]["alg"], "ES256");
    account(&served.server, "a").await;
    let (_, request) = token(&served.server, "a", json!({})).await;
    let header = request["status"]["token"].as_str().unwrap().split('.').next().unwrap().to_owned();
    let header: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).unwrap()).unwrap();
    assert_eq!(header["kid"], keys["keys"][0]["kid"]);
    let (_, configuration) = ask(&served.server, "GET", "/.well-known/openid-configuration", "").await;
    assert_eq!(configuration["id_token_signing_alg_values_supported"], json!(["ES256"]));
}

fn admitting() -> ApiServer {
    let config = Config { plugins: Plugins::default(), ..Config::default() };
    ApiServer::start(Options { config, random: Random::from_seed(1), ..Options::default() })
}

fn pod(spec: Value) -> String {
    let mut pod = json!({"metadata": {"name": "p"}, "spec": {
        "initContainers": [{"name": "i", "image": "i"}], "containers": [{"name": "c", "image": "i"}],
    }});
    for (field, value) in spec.as_object().unwrap() {
        pod["spec"][field] = value.clone();
    }
    pod.to_string()
}

#[tokio::test]
async fn pods_get_at_the_token_of_their_account() {
    let server = admitting();
    account(&server, "default").await;
    let (code, made) = ask(&server, "POST", PODS, &pod(json!({}))).await;
    assert_eq!(code, 201, "{made}");
    let spec = &made["spec"];
    assert_eq!(
        (&spec["serviceAccountName"], &spec["serviceAccount"]),
        (&json!("default"), &json!("default"))
    );
    let name = spec["volumes"][0]["name"].as_str().unwrap();
    assert!(name.starts_with("kube-api-access-") && name.len() == 21, "{name}");
    assert_eq!(
        spec["volumes"][0]["projected"],
        json!({
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                {"downwardAPI": {"items": [
                    {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}},
                ]}},
            ],
            "defaultMode": 420,
        })
    );
    let mount = json!([{"name": name, "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}]);
    assert_eq!(spec["containers"][0]["volumeMounts"], mount);
    assert_eq!(spec["initContainers"][0]["volumeMounts"], mount);
}

#[tokio::test]
async fn who_wants_no_token_gets_none() {
    let server = admitting();
    account(&server, "default").await;
    let quiet = json!({
        "metadata": {"name": "quiet"}, "automountServiceAccountToken": false,
        "imagePullSecrets": [{"name": "registry"}],
    });
    ask(&server, "POST", ACCOUNTS, &quiet.to_string()).await;
    let (_, made) = ask(&server, "POST", PODS, &pod(json!({"serviceAccountName": "quiet"}))).await;
    assert_eq!(made["spec"]["volumes"], Value::Null, "{made}");
    assert_eq!(made["spec"]["containers"][0]["volumeMounts"], Value::Null);
    assert_eq!(made["spec"]["imagePullSecrets"], json!([{"name": "registry"}]));
    ask(&server, "DELETE", &format!("{PODS}/p?gracePeriodSeconds=0"), "").await;
    let wants = json!({"serviceAccountName": "quiet", "automountServiceAccountToken": true});
    let (_, made) = ask(&server, "POST", PODS, &pod(wants)).await;
    assert_eq!(made["spec"]["volumes"].as_array().unwrap().len(), 1, "the pod's wish comes first");
}

#[tokio::test]
async fn a_pod_whose_account_is_missing_is_refused() {
    let server = admitting();
    account(&server, "default").await;
    let answer = ask(&server, "POST", PODS, &pod(json!({"serviceAccountName": "nope"}))).await;
    let expected = "pods \"p\" is forbidden: error looking up service account default/nope: serviceaccount \"nope\" not found";
    assert_eq!(message(&answer), (403, expected));
}

#[tokio::test]
async fn a_new_pod_waits_a_little_for_the_default_account() {
    let server = admitting();
    let waiting = tokio::spawn({
        let server = server.clone();
        async move { ask(&server, "POST", PODS, &pod(json!({}))).await.0 }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!waiting.is_finished());
    ask(&server, "POST", CONFIG_MAPS, &config_map("other")).await;
    account(&server, "default").await;
    assert_eq!(waiting.await.unwrap(), 201);
}
