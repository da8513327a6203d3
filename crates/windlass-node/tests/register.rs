//! A node towards an API server.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, NodeCondition};
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use windlass::Env;
use windlass_node::network::addresses::NodeAddresses;
use windlass_node::register::{Machine, Registrar, Registration};
use windlass_testing::TestCluster;

fn registrar(cluster: &TestCluster, env: &Env, port: u16) -> Registrar {
    let registration = Registration {
        name: "windlass-1".into(),
        addresses: NodeAddresses::of(0).unwrap(),
        port,
        machine: Machine::this(Path::new("/")),
        version: "v1.36.4".into(),
    };
    Registrar::new(cluster.client(), env.clone(), registration)
}

fn ready(cluster: &TestCluster) -> NodeCondition {
    let node: Node = cluster.world().get("", "windlass-1").unwrap();
    node.status.unwrap().conditions.unwrap().into_iter().find(|one| one.type_ == "Ready").unwrap()
}

fn renewed(cluster: &TestCluster) -> Timestamp {
    let lease: Lease = cluster.world().get("kube-node-lease", "windlass-1").unwrap();
    lease.spec.unwrap().renew_time.unwrap().0
}

#[tokio::test(start_paused = true)]
async fn a_node_is_known_and_stays_ready_while_it_renews_its_lease() {
    let cluster = TestCluster::new().await;
    let env = Env::seeded(1, "2026-01-01T00:00:00Z".parse().unwrap());
    let node = registrar(&cluster, &env, 10250);
    node.register().await;
    let first = (ready(&cluster), renewed(&cluster));
    assert_eq!((first.0.status.as_str(), first.0.reason.as_deref()), ("True", Some("KubeletReady")));
    let made: Node = cluster.world().get("", "windlass-1").unwrap();
    let lease: Lease = cluster.world().get("kube-node-lease", "windlass-1").unwrap();
    assert_eq!(lease.metadata.owner_references.unwrap()[0].uid, made.metadata.uid.clone().unwrap());

    let beating = env.spawn("heartbeat", async move { node.heartbeat().await });
    env.sleep(Duration::from_secs(35)).await;
    assert!(renewed(&cluster).duration_since(first.1).as_secs() >= 20);
    assert_eq!(ready(&cluster), first.0, "nothing changed, so nothing was written");

    let unknown = json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}});
    let nodes: Api<Node> = Api::all(cluster.client());
    nodes.patch_status("windlass-1", &PatchParams::default(), &Patch::Strategic(&unknown)).await.unwrap();
    env.sleep(Duration::from_secs(15)).await;
    let healed = ready(&cluster);
    assert_eq!(healed.status, "True");
    assert!(healed.last_transition_time.unwrap().0 > first.0.last_transition_time.unwrap().0);
    drop(beating);
}

#[tokio::test]
async fn a_node_that_comes_back_is_the_same_node_with_what_is_new() {
    let cluster = TestCluster::new().await;
    let env = Env::system();
    registrar(&cluster, &env, 10250).register().await;
    let before: Node = cluster.world().get("", "windlass-1").unwrap();
    registrar(&cluster, &env, 4711).register().await;
    let after: Node = cluster.world().get("", "windlass-1").unwrap();
    assert_eq!(after.metadata.uid, before.metadata.uid);
    let endpoint = after.status.unwrap().daemon_endpoints.unwrap().kubelet_endpoint.unwrap();
    assert_eq!(endpoint.port, 4711);
}
