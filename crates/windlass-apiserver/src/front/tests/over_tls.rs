use super::*;
use crate::api::Authorization;
use serde_json::json;

#[tokio::test]
async fn certificates_and_tokens_are_known_over_both_protocols() {
    let served = Served::start().await;
    for protocol in ["http/1.1", "h2"] {
        let mut by_certificate = served.client(protocol, Some(served.admin())).await;
        assert_eq!(by_certificate.get("/api/v1/namespaces").await.0, 200, "{protocol}");
        let mut by_token = served.client(protocol, None).await;
        for (token, expected) in [(served.credentials.admin_token.as_str(), 200), ("wrong", 401)] {
            let mut request = get("/api/v1/namespaces");
            request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
            assert_eq!(by_token.send(request).await.unwrap().status(), expected, "{protocol} {token}");
        }
    }
    let users =
        served.server.inspect(|server| server.audit().records().map(|r| r.user.clone()).collect::<Vec<_>>());
    assert_eq!(users, ["kubernetes-admin", "admin", "kubernetes-admin", "admin"]);
}

#[tokio::test]
async fn the_protocol_is_what_alpn_agreed_on() {
    let served = Served::start().await;
    for (protocol, version) in [("http/1.1", http::Version::HTTP_11), ("h2", http::Version::HTTP_2)] {
        let stream = served.tls(protocol, None).await;
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(protocol.as_bytes()));
        let mut client = served.client(protocol, None).await;
        assert_eq!(client.send(get("/healthz")).await.unwrap().version(), version);
    }
}

#[tokio::test]
async fn strangers_are_nobody_in_particular_where_requests_are_judged() {
    let served = Served::start().await;
    let mut client = served.client("h2", None).await;
    for path in ["/healthz", "/livez", "/readyz", "/version"] {
        assert_eq!(client.get(path).await.0, 200, "{path}");
    }
    for path in ["/api", "/apis", "/healthzz", "/openapi/v3", "/"] {
        let (code, status) = client.get(path).await;
        let message = format!("forbidden: User \"system:anonymous\" cannot get path \"{path}\"");
        assert_eq!((code, &status["message"]), (403, &json!(message)), "{path}");
    }
    let (code, status) = client.get("/api/v1/namespaces").await;
    let message = "namespaces is forbidden: User \"system:anonymous\" cannot list resource \"namespaces\" in API group \
                   \"\" at the cluster scope";
    assert_eq!((code, &status["message"]), (403, &json!(message)));
    for (header, expected) in
        [("Bearer wrong", 401), ("Bearer  two-spaces", 403), ("Basic YTpi", 403), ("Bearer", 403)]
    {
        let mut request = get("/api");
        request.headers_mut().insert("authorization", header.parse().unwrap());
        assert_eq!(client.send(request).await.unwrap().status(), expected, "{header}");
    }
    let token = format!("bEaReR {} and more", served.credentials.admin_token);
    let mut request = get("/api/v1/namespaces");
    request.headers_mut().insert("authorization", token.parse().unwrap());
    assert_eq!(client.send(request).await.unwrap().status(), 200, "only the second word counts");
}

#[tokio::test]
async fn strangers_may_ask_how_it_is_and_nothing_else_where_all_others_may_do_everything() {
    let config = Config { authorization: Authorization::AlwaysAllow, ..Config::default() };
    let served = Served::of(Options { config, ..Options::default() }).await;
    let mut client = served.client("h2", None).await;
    for path in ["/healthz", "/livez", "/readyz", "/version"] {
        assert_eq!(client.get(path).await.0, 200, "{path}");
    }
    for path in ["/api", "/apis", "/api/v1/namespaces", "/healthzz", "/openapi/v3", "/"] {
        let (code, status) = client.get(path).await;
        let expected = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "Unauthorized", "reason": "Unauthorized", "code": 401});
        assert_eq!((code, status), (401, expected), "{path}");
    }
    for method in ["POST", "HEAD"] {
        let answer = client.send(request(method, "/healthz", "")).await.unwrap();
        assert_eq!(answer.status(), 403, "{method}");
    }
}

#[tokio::test]
async fn a_certificate_of_somebody_else_is_a_401_and_no_broken_handshake() {
    let served = Served::start().await;
    let stranger = Credentials::generate(LOOPBACK).unwrap();
    let certificate = (stranger.admin_certificate.clone(), stranger.admin_key.clone());
    let mut client = served.client("h2", Some(certificate)).await;
    assert_eq!(client.get("/api/v1/namespaces").await.0, 401);
    assert_eq!(client.get("/healthz").await.0, 401, "what is presented and wrong is not forgiven");
    let mut request = get("/api/v1/namespaces");
    let token = format!("Bearer {}", served.credentials.admin_token);
    request.headers_mut().insert("authorization", token.parse().unwrap());
    assert_eq!(client.send(request).await.unwrap().status(), 200, "a good token beside it counts");
}

#[tokio::test]
async fn users_of_the_authority_come_with_their_names() {
    let served = Served::start().await;
    let certificate = served.credentials.client("mia", &["team-a"]).unwrap();
    let mut client = served.client("h2", Some(certificate)).await;
    assert_eq!(client.get("/api").await.0, 200);
    let user = served.server.inspect(|server| server.audit().records().next_back().unwrap().user.clone());
    assert_eq!(user, "mia");
}

#[tokio::test]
async fn kept_credentials_outlive_the_server() {
    let folder = std::env::temp_dir().join(format!("windlass-credentials-{}", std::process::id()));
    let first = Credentials::keep(&folder, LOOPBACK).unwrap();
    let second = Credentials::keep(&folder, LOOPBACK).unwrap();
    assert_eq!(first.admin_token, second.admin_token);
    let chain = [CertificateDer::from_pem_slice(first.admin_certificate.as_bytes()).unwrap()];
    let known = second.serving().identity.of_certificates(Some(&chain));
    std::fs::write(folder.join("credentials.pem"), "token").unwrap();
    let damaged = Credentials::keep(&folder, LOOPBACK).err().map(|error| error.to_string());
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(
        matches!(known, crate::front::identity::Certified::User(user) if user.name == "kubernetes-admin")
    );
    assert!(damaged.unwrap().ends_with("credentials.pem could not be understood"));
}

#[tokio::test]
async fn a_watch_streams_over_both_protocols() {
    let served = Served::start().await;
    for (protocol, name) in [("http/1.1", "a"), ("h2", "b")] {
        let mut client = served.client(protocol, Some(served.admin())).await;
        let path = format!("{CONFIG_MAPS}?watch=1&fieldSelector=metadata.name={name}");
        let mut watch = client.send(get(&path)).await.unwrap().into_body();
        ask(&served.server, "POST", CONFIG_MAPS, &config_map(name)).await;
        let event = event(&mut watch).await;
        assert_eq!((&event["type"], &event["object"]["metadata"]["name"]), (&json!("ADDED"), &json!(name)));
    }
}

#[tokio::test]
async fn answers_say_their_length_and_their_date() {
    let served = Served::start().await;
    for protocol in ["http/1.1", "h2"] {
        let mut client = served.client(protocol, Some(served.admin())).await;
        let response = client.send(get("/api/v1/namespaces/default")).await.unwrap();
        for header in ["content-length", "date", "audit-id", "cache-control"] {
            assert!(response.headers().contains_key(header), "{protocol} {header}");
        }
    }
}

#[tokio::test]
async fn stopping_ends_watches_and_idle_connections() {
    let mut served = Served::start().await;
    let mut idle = served.admin_client().await;
    assert_eq!(idle.get("/readyz").await.0, 200);
    let mut client = served.client("http/1.1", Some(served.admin())).await;
    let mut watch =
        client.send(get(&format!("{CONFIG_MAPS}?watch=1&resourceVersion=1"))).await.unwrap().into_body();
    let reader = tokio::spawn(async move { watch.frame().await.is_none() });
    tokio::time::timeout(Duration::from_secs(3), served.stop()).await.expect("it ends at once");
    assert!(reader.await.unwrap(), "the watch ends cleanly");
    assert!(TcpStream::connect(served.address).await.is_err());
}

#[tokio::test]
async fn a_certificate_that_was_asked_for_makes_a_user_known() {
    use rcgen::{CertificateParams, DnType, KeyPair};
    let served = Served::start().await;
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "team-a");
    params.distinguished_name.push(DnType::CommonName, "amy");
    let key = KeyPair::generate().unwrap();
    let request = params.serialize_request(&key).unwrap().pem().unwrap();
    let (hour, usages) = (Duration::from_secs(3600), ["client auth".to_owned()]);
    let certificate = served.credentials.certify(&request, served.server.now(), hour, &usages).unwrap();
    let mut client = served.client("h2", Some((certificate, key.serialize_pem()))).await;
    let reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let (code, told) = answer(client.send(self::request("POST", reviews, "{}")).await.unwrap()).await;
    let told = &told["status"]["userInfo"];
    assert_eq!((code, &told["username"]), (201, &json!("amy")), "{told}");
    assert_eq!(told["groups"], json!(["team-a", "system:authenticated"]));
    let id = told["extra"]["authentication.kubernetes.io/credential-id"][0].as_str().unwrap();
    assert_eq!(id.strip_prefix("X509SHA256=").map(str::len), Some(64), "{id}");

    let past = served.server.now() - jiff::SignedDuration::from_hours(2);
    let expired = served.credentials.certify(&request, past, hour, &usages).unwrap();
    let mut client = served.client("h2", Some((expired, key.serialize_pem()))).await;
    assert_eq!(client.get("/api").await.0, 401);
    assert!(served.credentials.certify("no request", past, hour, &usages).is_err());
}
