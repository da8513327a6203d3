//! What a change costs all controllers together, with few and with many pods in the store.
//!
//! One ReplicaSet among many is scaled by one, up and down; each time the clock of the processor runs from the request to
//! the status that says it is done. The cost may grow with the change, not with the number of pods that have nothing to do
//! with it. There are nodes for all of them: pods that nobody can place are tried again and again, which is another matter.
//! Figures are of processor time, so that a busy machine changes them little.
//!
//! `cargo bench -p windlass-cluster --bench flat`

use std::time::Duration;

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, Patch, PatchParams, PostParams};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use windlass::Env;
use windlass_cluster::Controllers;
use windlass_testing::TestCluster;

/// That of the command.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const PODS_OF_A_SET: usize = 10;
const FEW: usize = 100;
const MANY: usize = 5_000;
const CHANGES: u32 = 200;
const NODES: usize = 50;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let few = runtime.block_on(cost(FEW));
    let many = runtime.block_on(cost(MANY));
    println!("{FEW:>6} pods: {few:>9.1?} of processor time for a change of scale");
    println!("{MANY:>6} pods: {many:>9.1?}");
    println!("       ratio: {:>9.2}", many.as_secs_f64() / few.as_secs_f64());
}

/// The processor time of one change in a cluster with this many pods.
async fn cost(pods: usize) -> Duration {
    let cluster = TestCluster::new().await.with_timeout(Duration::from_secs(120));
    let running = Controllers::all().start(cluster.client(), &Env::system());
    running.ready().await;
    let nodes: Api<Node> = Api::all(cluster.client());
    for number in 0..NODES {
        nodes.create(&PostParams::default(), &node(number)).await.unwrap();
    }
    let sets: Api<ReplicaSet> = Api::default_namespaced(cluster.client());
    for number in 0..pods / PODS_OF_A_SET {
        sets.create(&PostParams::default(), &set(number)).await.unwrap();
    }
    for number in 0..pods / PODS_OF_A_SET {
        wait(&cluster, number, PODS_OF_A_SET).await;
    }
    let is_placed = |pod: &Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
    while !cluster.world().list::<Pod>(None).iter().all(is_placed) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(cluster.world().list::<Pod>(None).len(), pods);
    let before = processor();
    for round in 0..CHANGES {
        let replicas = PODS_OF_A_SET + usize::from(round % 2 == 0);
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        sets.patch("set-0", &PatchParams::default(), &patch).await.unwrap();
        wait(&cluster, 0, replicas).await;
    }
    let took = (processor() - before) / CHANGES;
    running.stop().await;
    took
}

async fn wait(cluster: &TestCluster, number: usize, replicas: usize) {
    let done = |set: &ReplicaSet| {
        let status = set.status.as_ref();
        status.is_some_and(|status| {
            status.replicas as usize == replicas && status.observed_generation == set.metadata.generation
        })
    };
    cluster.wait_for("default", &format!("set-{number}"), "its replicas", done).await.unwrap();
}

fn node(number: usize) -> Node {
    let now = jiff::Timestamp::now();
    serde_json::from_value(json!({
        "metadata": {"name": format!("node-{number}")},
        "status": {
            "allocatable": {"pods": "500", "cpu": "64", "memory": "64Gi"},
            "capacity": {"pods": "500", "cpu": "64", "memory": "64Gi"},
            "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": now.to_string()}],
        },
    }))
    .unwrap()
}

fn set(number: usize) -> ReplicaSet {
    let labels = json!({"app": format!("set-{number}")});
    serde_json::from_value(json!({
        "metadata": {"name": format!("set-{number}")},
        "spec": {
            "replicas": PODS_OF_A_SET,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "c", "image": "busybox"}]},
            },
        },
    }))
    .unwrap()
}

/// The processor time of this process so far.
fn processor() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
