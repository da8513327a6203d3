//! Requests that somebody else answers: where they go, and why some go nowhere.

use serde_json::{Value, json};
use windlass_apiserver::api::{Peer, Relay, Relayed};

use crate::world::World;

const UPGRADE: [(&str, &str); 2] = [("connection", "Upgrade"), ("upgrade", "websocket")];

fn created(world: &mut World, path: &str, body: &Value) {
    let answer = world.post(path, body);
    assert_eq!(answer.code, 201, "{}", answer.text);
}

fn with_status(world: &mut World, path: &str, status: &Value) {
    let answer = world.patch("merge", &format!("{path}/status"), &json!({ "status": status }));
    assert_eq!(answer.code, 200, "{}", answer.text);
}

/// A node, a pod `one` with a container on it, a pod `two` with two and a third that comes first, and a pod `none` that is
/// nowhere.
fn world() -> World {
    let mut world = World::new();
    created(&mut world, "/api/v1/nodes", &json!({ "metadata": { "name": "n" } }));
    let addresses = json!([
        { "type": "InternalIP", "address": "10.1.2.3" },
        { "type": "Hostname", "address": "localhost" },
    ]);
    let endpoint = json!({ "kubeletEndpoint": { "Port": 4321 } });
    let status = json!({ "addresses": addresses, "daemonEndpoints": endpoint });
    with_status(&mut world, "/api/v1/nodes/n", &status);
    let container =
        |name: &str, port: u16| json!({ "name": name, "image": "i", "ports": [{ "containerPort": port }] });
    for (name, node, init, containers) in [
        ("one", "n", json!([]), json!([container("c", 8080)])),
        ("two", "n", json!([container("i", 1)]), json!([container("a", 1), container("b", 2)])),
        ("none", "", json!([]), json!([container("c", 1)])),
        ("lost", "gone", json!([]), json!([container("c", 1)])),
    ] {
        let spec = json!({ "nodeName": node, "initContainers": init, "containers": containers });
        let pod = json!({ "metadata": { "name": name }, "spec": spec });
        created(&mut world, "/api/v1/namespaces/default/pods", &pod);
    }
    let addressed = json!({ "podIP": "10.9.8.7", "podIPs": [{ "ip": "10.9.8.7" }] });
    with_status(&mut world, "/api/v1/namespaces/default/pods/one", &addressed);
    world
}

#[test]
fn logs_are_asked_of_the_node_in_its_own_words() {
    let mut world = world();
    let query = "follow=true&tailLines=3&sinceSeconds=5&timestamps=1&limitBytes=9";
    let relay = world.relay("GET", &format!("/api/v1/namespaces/default/pods/one/log?{query}"), &[]);
    let path =
        "/containerLogs/default/one/c?follow=true&limitBytes=9&sinceSeconds=5&tailLines=3&timestamps=true";
    let expected = Relay {
        peer: Peer::Node,
        host: "localhost".into(),
        port: 4321,
        tls: true,
        path: path.into(),
        answer: Relayed::Log { pod: "one".into() },
        warnings: Vec::new(),
    };
    assert_eq!(relay, expected);
}

#[test]
fn programs_and_ports_are_asked_of_the_node_too() {
    let mut world = world();
    let pods = "/api/v1/namespaces/default/pods";
    let exec = format!(
        "{pods}/two/exec?container=b&stdin=true&stdout=true&stderr=false&tty=true&command=echo&command=a%20b"
    );
    let relay = world.relay("POST", &exec, &UPGRADE);
    assert_eq!(relay.path, "/exec/default/two/b?command=echo&command=a+b&input=1&output=1&tty=1");
    assert_eq!(relay.answer, Relayed::Upgrade);
    let relay = world.relay("GET", &format!("{pods}/two/attach?container=i&stdout=true"), &UPGRADE);
    assert_eq!(relay.path, "/attach/default/two/i?output=1");
    let relay = world.relay("GET", &format!("{pods}/one/portforward?ports=80&ports=81"), &UPGRADE);
    assert_eq!(relay.path, "/portForward/default/one?port=80%2C81");
}

#[test]
fn what_cannot_be_asked_is_refused_in_the_words_of_kube_apiserver() {
    let mut world = world();
    for (path, code, message) in [
        ("two/log", 400, "a container name must be specified for pod two, choose one of: [i a b]"),
        ("two/log?container=x", 400, "container x is not valid for pod two"),
        ("missing/log", 404, "pods \"missing\" not found"),
        ("lost/log", 404, "pods \"gone\" not found"),
        ("one/log?tailLines=x", 400, "strconv.ParseInt: parsing \"x\": invalid syntax"),
        (
            "one/log?tailLines=-1",
            422,
            "PodLogOptions \"one\" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0",
        ),
        ("one/exec?command=ls&stdout=true", 400, "Upgrade request required"),
        ("none/exec?command=ls&stdout=true", 400, "pod none does not have a host assigned"),
        ("none/portforward", 400, "pod none does not have a host assigned"),
        ("two/proxy", 400, "address not allowed"),
        ("a:b:c:d/proxy", 400, "invalid pod request \"a:b:c:d\""),
        ("ftp:one:1/proxy", 400, "invalid pod request \"ftp:one:1\""),
    ] {
        let answer = world.get(&format!("/api/v1/namespaces/default/pods/{path}"));
        let status: Value =
            serde_json::from_str(&answer.text).unwrap_or_else(|_| panic!("{path}: {}", answer.text));
        assert_eq!((answer.code, status["message"].as_str().unwrap()), (code, message), "{path}");
    }
    assert_eq!(world.get("/api/v1/namespaces/default/pods/none/log").code, 204);
    let deleted = world.ask("DELETE", "/api/v1/namespaces/default/pods/one/exec", &[], "");
    assert_eq!(deleted.code, 405);
}

#[test]
fn a_proxy_leads_to_the_pod_and_keeps_the_rest_of_the_path() {
    let mut world = world();
    let pods = "/api/v1/namespaces/default/pods";
    let relay = world.relay("GET", &format!("{pods}/one/proxy/a%20b/c/?d=e"), &[]);
    let expected = Relay {
        peer: Peer::Program,
        host: "10.9.8.7".into(),
        port: 8080,
        tls: false,
        path: "/a%20b/c/?d=e".into(),
        answer: Relayed::Proxy,
        warnings: Vec::new(),
    };
    assert_eq!(relay, expected);
    let relay = world.relay("HEAD", &format!("{pods}/https:one:99/proxy/"), &[]);
    assert_eq!((relay.tls, relay.port, relay.path.as_str()), (true, 99, "/"));
    let moved = world.get(&format!("{pods}/one/proxy?x=y"));
    assert_eq!(
        (moved.code, moved.headers["location"].to_str().unwrap()),
        (301, "/api/v1/namespaces/default/pods/one/proxy/?x=y")
    );
}

#[test]
fn a_service_leads_to_one_of_its_pods_and_to_nothing_else() {
    let mut world = world();
    let service = json!({
        "metadata": { "name": "s" },
        "spec": { "ports": [{ "name": "web", "port": 80, "targetPort": 8080 }] },
    });
    created(&mut world, "/api/v1/namespaces/default/services", &service);
    let services = "/api/v1/namespaces/default/services";
    let refused = |world: &mut World, id: &str| {
        let answer = world.get(&format!("{services}/{id}/proxy/"));
        let status: Value = serde_json::from_str(&answer.text).unwrap();
        (answer.code, status["message"].as_str().unwrap().to_owned())
    };
    assert_eq!(refused(&mut world, "s:81"), (503, "no service port 81 found for service \"s\"".into()));
    assert_eq!(refused(&mut world, "s:80"), (404, "services \"s\" not found".into()));
    let reference = |name: &str| json!({ "kind": "Pod", "namespace": "default", "name": name });
    let endpoints = json!({
        "metadata": { "name": "s" },
        "subsets": [{
            "addresses": [
                { "ip": "10.9.9.9", "targetRef": reference("one") },
                { "ip": "10.9.9.8" },
                { "ip": "10.9.8.7", "targetRef": reference("one") },
            ],
            "ports": [{ "name": "web", "port": 8080 }],
        }],
    });
    created(&mut world, "/api/v1/namespaces/default/endpoints", &endpoints);
    for id in ["s:80", "s:web", "http:s:web"] {
        let relay = world.relay("POST", &format!("{services}/{id}/proxy/x"), &[]);
        assert_eq!((relay.host.as_str(), relay.port, relay.path.as_str()), ("10.9.8.7", 8080, "/x"), "{id}");
    }
    assert_eq!(refused(&mut world, "s"), (503, "no endpoints available for service \"s\"".into()));
}

#[test]
fn a_node_is_asked_at_its_own_port_only() {
    let mut world = world();
    let relay = world.relay("GET", "/api/v1/nodes/n/proxy/pods?x", &[]);
    assert_eq!((relay.peer, relay.port, relay.path.as_str()), (Peer::Node, 4321, "/pods?x"));
    assert_eq!(world.relay("GET", "/api/v1/nodes/n:4321/proxy/healthz", &[]).port, 4321);
    assert_eq!(world.get("/api/v1/nodes/n:22/proxy/").code, 400);
}
