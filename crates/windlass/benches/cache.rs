//! `cargo bench -p windlass --bench cache`: what an object in the cache costs in memory, and how long the first list takes.
//!
//! The pods are what a Deployment's pods are once they run: created by a controller, their status written by a node, so
//! that the server notes the fields of both. They come over the in-process API server, whose own memory is taken before
//! the cache starts.

use std::alloc::System;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cap::Cap;
use http::Request;
use k8s_openapi::api::core::v1::Pod;
use kube::core::{DynamicObject, PartialObjectMeta};
use serde_json::{Value, json};
use windlass::Env;
use windlass::cache::{Cache, Cached, Declared, Synced};
use windlass::core::Kind;
use windlass_testing::TestCluster;

/// Counts the bytes that are asked for. What an allocator adds to each piece is not in it.
#[global_allocator]
static HEAP: Cap<System> = Cap::new(System, usize::MAX);

const PODS: usize = 10_000;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    println!("| {PODS} pods | bytes each | goal | first list |");
    println!("|---|---|---|---|");
    for (rich, goals) in [(false, ["16,000", "2,200"]), (true, ["–", "–"])] {
        let cluster = TestCluster::new().await;
        let client = cluster.client();
        for n in 0..PODS {
            create(&client, n, rich).await;
        }
        println!("| {} | | | |", sizes(&client).await);
        row("typed", goals[0], measure(&cluster, Declared::<Pod>::typed()).await);
        row("typed, owned", "–", measure(&cluster, Declared::<Pod>::typed().owned()).await);
        row("metadata only", goals[1], measure(&cluster, Declared::<PartialObjectMeta<Pod>>::typed()).await);
        row("dynamic", "–", measure(&cluster, Declared::<DynamicObject>::of(Kind::of::<Pod>())).await);
    }
}

async fn sizes(client: &kube::Client) -> String {
    let request = Request::get("/api/v1/pods").body(Vec::new()).expect("it is a request");
    let list = client.request_text(request).await.expect("the pods are there");
    let first: Value = serde_json::from_str(&list).expect("it is a list");
    let fields = first["items"][0]["metadata"]["managedFields"].to_string().len();
    format!("**{} bytes of JSON, {fields} of these managedFields**", list.len() / PODS)
}

fn row(kept: &str, goal: &str, (each, took): (f64, Duration)) {
    println!("| {kept} | {each:.0} | {goal} | {:.2} s |", took.as_secs_f64());
}

/// The bytes that each object takes, with all that finds it, and how long it took until all were there.
async fn measure<K: Cached>(cluster: &TestCluster, declared: Declared<K>) -> (f64, Duration) {
    let client = cluster.client();
    let before = HEAP.allocated();
    let start = Instant::now();
    let cache = Cache::new(NODE);
    let informer = cache.declare(declared);
    let task = cache.start(client, &Env::system(), Arc::new(()));
    assert_eq!(informer.synced().await, Synced::Listed);
    let took = start.elapsed();
    // What the watch itself holds goes with it.
    task.abort();
    let _ended = task.await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let each = (HEAP.allocated() - before) as f64 / PODS as f64;
    assert_eq!(informer.list(Some("default")).len(), PODS);
    (each, took)
}

const CONTROLLER: &str = "kube-controller-manager";
const NODE: &str = "kubelet";

/// Creates a pod as a ReplicaSet's controller does, and writes its status as a node does. A rich one has probes, volumes,
/// tolerations and a security context.
async fn create(client: &kube::Client, n: usize, rich: bool) {
    let (set, uid) = (n / 10, format!("6f1c7c0e-0000-4000-8000-{:012x}", n / 10));
    let name = format!("web-6d4cf56db6-{n:05}");
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {"app": "web", "pod-template-hash": "6d4cf56db6"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("web-{set:04}"),
                "uid": uid, "controller": true, "blockOwnerDeletion": true}],
        },
        "spec": {
            "nodeName": format!("node-{}", n % 50),
            "containers": [{
                "name": "web", "image": "registry.example/web:1.27",
                "ports": [{"name": "http", "containerPort": 8080}],
                "env": [{"name": "MODE", "value": "production"}],
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
            }],
        },
    });
    if rich {
        let probe = |path: &str| json!({"httpGet": {"path": path, "port": 8080}, "periodSeconds": 10});
        let container = &mut pod["spec"]["containers"][0];
        container["livenessProbe"] = probe("/healthz");
        container["readinessProbe"] = probe("/readyz");
        container["securityContext"] =
            json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
        container["volumeMounts"] = json!([{"name": "config", "mountPath": "/etc/web"}, {"name": "cache", "mountPath": "/var/cache/web"}]);
        pod["spec"]["volumes"] =
            json!([{"name": "config", "configMap": {"name": "web"}}, {"name": "cache", "emptyDir": {}}]);
        pod["spec"]["tolerations"] = json!(["not-ready", "unreachable"].map(|taint| {
            let key = format!("node.kubernetes.io/{taint}");
            json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300})
        }));
    }
    let path = "/api/v1/namespaces/default/pods";
    let created: Value = client
        .request(send("POST", &format!("{path}?fieldManager={CONTROLLER}"), &pod))
        .await
        .expect("it is a pod");
    let time = "2026-01-01T00:00:07Z";
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": time});
    let status = json!({"status": {
        "phase": "Running", "hostIP": "10.0.0.7", "podIP": "10.1.0.7", "podIPs": [{"ip": "10.1.0.7"}], "startTime": time,
        "conditions": (["Initialized", "Ready", "PodScheduled"].map(condition)),
        "containerStatuses": [{
            "name": "web", "image": "registry.example/web:1.27", "imageID": "sha256:4c0ee8e4f9d2", "ready": true,
            "containerID": format!("containerd://{n:064x}"), "restartCount": 0, "started": true,
            "state": {"running": {"startedAt": time}}, "lastState": {},
        }],
    }});
    let name = created["metadata"]["name"].as_str().expect("it has a name");
    let target = format!("{path}/{name}/status?fieldManager={NODE}");
    let _: Value = client.request(send("PATCH", &target, &status)).await.expect("it is a status");
}

fn send(method: &str, target: &str, body: &Value) -> Request<Vec<u8>> {
    let content = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = Request::builder().method(method).uri(target).header("content-type", content);
    request.body(body.to_string().into_bytes()).expect("it is a request")
}
