//! The same seed gives the same requests in the same order, with all controllers at work: the simulator's world is this
//! one.

use std::time::Duration;

use windlass::Env;
use windlass::jiff::Timestamp;
use windlass_cluster::Controllers;
use windlass_testing::{Clock, Record, TestCluster};

const WORLD: &str = "
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, ports: [{port: 80}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: busybox}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: c, image: busybox}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  template: {spec: {restartPolicy: Never, containers: [{name: c, image: busybox}]}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 2, selector: {matchLabels: {app: web}}}
";

/// Every request of two minutes with these objects, with its time and what came of it.
fn trace() -> Vec<Record> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let cluster = TestCluster::builder().seed(7).clock(Clock::runtime(now)).start().await;
        let running = Controllers::all().start(cluster.client(), &Env::seeded(7, now));
        running.ready().await;
        cluster.apply_yaml(WORLD).await.unwrap();
        tokio::time::sleep(Duration::from_secs(120)).await;
        running.stop().await;
        cluster.requests()
    })
}

#[test]
fn the_same_seed_gives_the_same_requests() {
    let first = trace();
    let creates = first.iter().filter(|request| request.verb == "create").count();
    assert!(creates > 10, "{first:#?}");
    let second = trace();
    for (number, (one, other)) in first.iter().zip(&second).enumerate() {
        assert_eq!(format!("{one:?}"), format!("{other:?}"), "request {number} differs");
    }
    assert_eq!(first.len(), second.len());
}

/// Nobody writes for the sake of writing: when all is said, the second minute is quiet. That a claim still has no volume is
/// told again from time to time, as kube-controller-manager does: events do not count.
#[test]
fn at_rest_nothing_is_written() {
    let minute: Timestamp = "2026-01-01T00:01:00Z".parse().unwrap();
    let reads =
        |request: &Record| matches!(request.verb, "get" | "list" | "watch") || request.resource == "events";
    let late: Vec<Record> =
        trace().into_iter().filter(|request| request.time > minute && !reads(request)).collect();
    assert!(late.is_empty(), "{late:#?}");
}
