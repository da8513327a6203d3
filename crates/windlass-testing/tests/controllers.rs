//! Built-in controllers beside the server of a test.

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use windlass::Env;
use windlass_testing::{Controllers, TestCluster};

const WEB: &str = "
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: busybox}]}
";

#[tokio::test]
async fn a_replica_set_has_pods_where_its_controller_runs() {
    let cluster = TestCluster::new().await;
    cluster.run(Controllers::named(["replicaset"]).unwrap(), &Env::system());
    cluster.apply_yaml(WEB).await.unwrap();
    let two = |set: &ReplicaSet| set.status.as_ref().is_some_and(|status| status.replicas == 2);
    cluster.wait_for("default", "web", "two pods", two).await.unwrap();
    assert_eq!(cluster.world().list::<Pod>(None).len(), 2);
}

#[tokio::test]
async fn without_controllers_nobody_writes() {
    let cluster = TestCluster::new().await;
    cluster.apply_yaml(WEB).await.unwrap();
    assert!(cluster.world().list::<Pod>(None).is_empty());
}
