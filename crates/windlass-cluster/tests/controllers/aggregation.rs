//! Aggregated ClusterRoles on a server in this process.

use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::{Value, json};
use windlass::Env;
use windlass_cluster::Controllers;
use windlass_testing::TestCluster;

use crate::world::eventually;

fn rules(cluster: &TestCluster, name: &str) -> Vec<PolicyRule> {
    let role = cluster.world().get::<ClusterRole>("", name);
    role.and_then(|role| role.rules).unwrap_or_default()
}

fn role(name: &str, labels: Value, resource: &str) -> ClusterRole {
    let rule = json!({"apiGroups": ["example.com"], "resources": [resource], "verbs": ["get"]});
    let role = json!({"metadata": {"name": name, "labels": labels}, "rules": [rule]});
    serde_json::from_value(role).unwrap()
}

#[tokio::test]
async fn rules_of_labelled_roles_come_and_go() {
    let cluster = TestCluster::new().await;
    let controllers = Controllers::named(["clusterrole-aggregation"]).unwrap();
    let running = controllers.start(cluster.client(), &Env::system());
    let count = |name: &str| rules(&cluster, name).len();
    // As kube-controller-manager leaves them in a new cluster.
    eventually(&cluster, "the roles of every cluster", || {
        [count("admin"), count("edit"), count("view")] == [29, 27, 12]
    })
    .await;

    let label = json!({"rbac.authorization.k8s.io/aggregate-to-view": "true"});
    let roles: Api<ClusterRole> = Api::all(cluster.client());
    roles.create(&PostParams::default(), &role("widgets-view", label, "widgets")).await.unwrap();
    let has = |name: &str| {
        rules(&cluster, name).iter().any(|rule| rule.resources.as_deref() == Some(&["widgets".to_owned()]))
    };
    eventually(&cluster, "who may edit may view", || ["view", "edit", "admin"].into_iter().all(has)).await;
    roles.delete("widgets-view", &DeleteParams::default()).await.unwrap();
    eventually(&cluster, "gone", || !["view", "edit", "admin"].into_iter().any(has)).await;
    running.stop().await;
}
