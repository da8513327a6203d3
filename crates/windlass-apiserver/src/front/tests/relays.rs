//! Answers of others: a node that is not ours, at the end of a real socket.

use std::convert::Infallible;
use std::future::pending;
use std::time::Instant;

use http::{Response, StatusCode};
use hyper::service::service_fn;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::super::relay::Relaying;
use super::webhooks::{Hook, configure};
use super::*;

/// A node's endpoint that tells logs, echoes what comes after a change of protocol, and sometimes never answers.
async fn node() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let tls = TlsAcceptor::from(Credentials::generate(LOOPBACK).unwrap().serving().tls.clone());
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let tls = tls.clone();
            tokio::spawn(async move {
                let stream = TokioIo::new(tls.accept(stream).await.unwrap());
                let http = hyper::server::conn::http1::Builder::new();
                let _ = http.serve_connection(stream, service_fn(answered)).with_upgrades().await;
            });
        }
    });
    port
}

async fn answered(mut request: http::Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let text = |code: u16, words: &'static str| {
        Response::builder().status(code).body(Full::new(Bytes::from_static(words.as_bytes()))).unwrap()
    };
    if request.headers().get("authorization").is_none_or(|value| value != "Bearer node-token") {
        return Ok(text(401, "Unauthorized"));
    }
    Ok(match request.uri().path() {
        "/containerLogs/default/p/c" => text(200, "one\ntwo\n"),
        "/containerLogs/default/p/waiting" => text(400, "container is waiting"),
        "/containerLogs/default/p/gone" => text(404, "pod does not exist"),
        "/containerLogs/default/p/broken" => text(500, "it broke"),
        "/containerLogs/default/p/silent" => pending().await,
        "/exec/default/p/broken" => text(500, "container not found (\"broken\")"),
        "/exec/default/p/c" => {
            let upgrade = hyper::upgrade::on(&mut request);
            tokio::spawn(async move {
                let io = TokioIo::new(upgrade.await.unwrap());
                let (mut from, mut to) = tokio::io::split(io);
                tokio::io::copy(&mut from, &mut to).await.unwrap();
            });
            let mut response = text(101, "");
            *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            for name in ["upgrade", "connection"] {
                response.headers_mut().insert(name, request.headers()[name].clone());
            }
            response
        }
        path => panic!("{path}"),
    })
}

/// A server that knows a node at this port, and a pod on it.
async fn served(port: u16) -> Served {
    let relaying = Relaying::default().node_token("node-token");
    let served = Served::of(Options { relaying, random: Random::from_seed(1), ..Options::default() }).await;
    let mut client = served.admin_client().await;
    let mut send = async |method: &str, path: &str, body: Value| {
        let mut request = request(method, path, body.to_string());
        if method == "PATCH" {
            let media = "application/merge-patch+json".parse().unwrap();
            request.headers_mut().insert("content-type", media);
        }
        let (code, answer) = answer(client.send(request).await.unwrap()).await;
        assert!(code < 300, "{path}: {answer}");
    };
    send("POST", "/api/v1/nodes", json!({ "metadata": { "name": "n" } })).await;
    let addresses = json!([{ "type": "InternalIP", "address": "127.0.0.1" }]);
    let status =
        json!({ "addresses": addresses, "daemonEndpoints": { "kubeletEndpoint": { "Port": port } } });
    send("PATCH", "/api/v1/nodes/n/status", json!({ "status": status })).await;
    let names = ["c", "waiting", "gone", "broken", "silent"];
    let containers: Vec<_> = names.iter().map(|name| json!({ "name": name, "image": "i" })).collect();
    let pod = json!({ "metadata": { "name": "p" }, "spec": { "nodeName": "n", "containers": containers } });
    send("POST", "/api/v1/namespaces/default/pods", pod).await;
    served
}

const POD: &str = "/api/v1/namespaces/default/pods/p";

#[tokio::test]
async fn logs_come_from_the_node_and_its_refusals_in_our_words() {
    let served = served(node().await).await;
    for protocol in ["h2", "http/1.1"] {
        let mut client = served.client(protocol, Some(served.admin())).await;
        let response = client.send(get(&format!("{POD}/log?container=c"))).await.unwrap();
        assert_eq!(
            (response.status().as_u16(), response.headers()["content-type"].to_str().unwrap()),
            (200, "text/plain")
        );
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "one\ntwo\n");
        for (container, code, reason, message) in [
            ("waiting", 400, "BadRequest", "container is waiting"),
            ("gone", 404, "NotFound", "the server could not find the requested resource ( pods/log p)"),
            ("broken", 500, "InternalError", "Internal error occurred: it broke"),
        ] {
            let (status, body) = client.get(&format!("{POD}/log?container={container}")).await;
            assert_eq!((status, &body["reason"], &body["message"]), (code, &json!(reason), &json!(message)));
        }
    }
    for code in [200, 400, 404, 500] {
        assert!(counted(&served, code, "log").await.ends_with(" 2"), "{code}");
    }
}

/// The line that counts requests into pods which ended so, as soon as there is one.
async fn counted(served: &Served, code: u16, subresource: &str) -> String {
    loop {
        let found = metrics::lines(&served.server).await.into_iter().find(|line| {
            line.starts_with(&format!("apiserver_request_total{{code=\"{code}\""))
                && line.contains(&format!("subresource=\"{subresource}\",verb=\"CONNECT\""))
        });
        match found {
            Some(line) => return line,
            None => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

#[tokio::test]
async fn a_connection_that_changes_its_protocol_is_a_pipe() {
    let served = served(node().await).await;
    let mut stream = served.tls("http/1.1", Some(served.admin())).await;
    let head = format!(
        "POST {POD}/exec?container=c&command=x&stdin=1 HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: SPDY/3.1\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(b"early").await.unwrap();
    let mut heard = Vec::new();
    while !heard.ends_with(b"early") {
        assert_ne!(stream.read_buf(&mut heard).await.unwrap(), 0, "{}", String::from_utf8_lossy(&heard));
    }
    let text = String::from_utf8(heard).unwrap();
    assert!(text.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{text}");
    assert!(text.to_ascii_lowercase().contains("upgrade: spdy/3.1\r\n"), "{text}");
    let long = vec![7; 1 << 20];
    let (mut from, mut to) = tokio::io::split(stream);
    let (sent, echo) = tokio::join!(
        async {
            to.write_all(&long).await?;
            to.flush().await
        },
        async {
            let mut echo = vec![0; 1 << 20];
            from.read_exact(&mut echo).await.map(|_| echo)
        },
    );
    sent.unwrap();
    assert!(echo.unwrap() == long);
    // It goes on, and is counted when it has ended, under the code that kube-apiserver has for a connection that it gave away.
    let going =
        |line: &String| line.starts_with("apiserver_longrunning_requests{") && line.contains("\"exec\"");
    let told = metrics::lines(&served.server).await;
    assert!(told.iter().find(|line| going(line)).unwrap().ends_with(" 1"));
    drop((from, to));
    counted(&served, 0, "exec").await;
    let told = metrics::lines(&served.server).await;
    assert!(told.iter().find(|line| going(line)).unwrap().ends_with(" 0"));
}

/// A request to run something, as kubectl makes it.
fn exec(container: &str) -> http::Request<Full<Bytes>> {
    let mut request = request("POST", &format!("{POD}/exec?container={container}&command=x&stdin=1"), "");
    for (name, value) in [("connection", "Upgrade"), ("upgrade", "SPDY/3.1")] {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    request
}

#[tokio::test]
async fn webhooks_are_asked_before_a_connection_changes_its_protocol() {
    let (served, hook) = (served(node().await).await, Hook::start().await);
    let rules = json!({
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CONNECT"], "resources": ["pods/exec"]}],
    });
    configure(&served.server, "Mutating", &hook, &[("/container", rules.clone())]).await;
    let mut client = served.client("http/1.1", Some(served.admin())).await;
    let response = client.send(exec("broken")).await.unwrap();
    assert_eq!(response.status(), 101, "the hook says in which container it runs");
    let seen = hook.seen.lock().unwrap()[0].1.clone();
    let options = json!({
        "kind": "PodExecOptions", "apiVersion": "v1", "stdin": true, "container": "broken", "command": ["x"],
    });
    assert_eq!(
        (&seen["object"], &seen["oldObject"], &seen["options"]),
        (&options, &Value::Null, &Value::Null)
    );
    assert_eq!(
        (&seen["operation"], &seen["name"], &seen["subResource"], &seen["kind"]["kind"]),
        (&json!("CONNECT"), &json!("p"), &json!("exec"), &json!("PodExecOptions"))
    );

    configure(&served.server, "Mutating", &hook, &[]).await;
    configure(&served.server, "Validating", &hook, &[("/refuse", rules)]).await;
    let mut client = served.client("http/1.1", Some(served.admin())).await;
    let response = client.send(exec("c")).await.unwrap();
    assert_eq!(response.headers()["warning"].to_str().unwrap(), "299 - \"take care\"");
    let (code, refusal) = answer(response).await;
    let message = "admission webhook \"h0.example.com\" denied the request: no way";
    assert_eq!((code, refusal["message"].as_str().unwrap()), (409, message));
}

#[tokio::test]
async fn a_refused_change_of_protocol_is_passed_on() {
    let served = served(node().await).await;
    let mut client = served.client("http/1.1", Some(served.admin())).await;
    let response = client.send(exec("broken")).await.unwrap();
    assert_eq!(response.status(), 500);
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "container not found (\"broken\")");
}

#[tokio::test]
async fn a_dead_node_is_named_and_a_silent_one_holds_up_nobody() {
    let dead = served(1).await;
    let (code, body) = dead.admin_client().await.get(&format!("{POD}/log?container=c")).await;
    let message = "Get \"https://127.0.0.1:1/containerLogs/default/p/c\": dial tcp 127.0.0.1:1: connect: connection refused";
    assert_eq!((code, body["message"].as_str().unwrap()), (500, message));

    let served = served(node().await).await;
    let mut silent = served.admin_client().await;
    let waiting = tokio::spawn(async move { silent.get(&format!("{POD}/log?container=silent")).await });
    let started = Instant::now();
    let mut client = served.admin_client().await;
    for _ in 0..20 {
        assert_eq!(client.get(POD).await.0, 200);
    }
    assert!(started.elapsed() < Duration::from_secs(5));
    assert!(!waiting.is_finished());
    waiting.abort();
}

#[tokio::test]
async fn a_service_without_connections_says_that_it_cannot_change_one() {
    let served = served(node().await).await;
    let request = http::Request::post(format!("{POD}/exec?container=c&command=x&stdin=1"))
        .header("connection", "Upgrade")
        .header("upgrade", "SPDY/3.1")
        .body(Full::new(Bytes::new()))
        .unwrap();
    let response = tower::ServiceExt::oneshot(served.server.service(), request).await.unwrap();
    assert_eq!(response.status(), 400);
}
