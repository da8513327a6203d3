//! PodDisruptionBudgets.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::EvictParams;
use serde_json::{Value, json};

use crate::world::World;

/// A set of three pods with a budget; pods get ready as long as it is said.
async fn world(budget: Value, ready: &Arc<AtomicBool>) -> World {
    let mut world = World::with(["disruption", "replicaset"]).await;
    let ready = ready.clone();
    world.pods_are_ready(move |_| ready.load(Ordering::Relaxed));
    let template = json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    let set = json!({
        "metadata": {"name": "web"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    });
    world.create::<ReplicaSet>(set).await;
    let mut spec = budget;
    spec["selector"] = json!({"matchLabels": {"app": "web"}});
    world.create::<PodDisruptionBudget>(json!({"metadata": {"name": "web"}, "spec": spec})).await;
    world
}

/// Healthy, desired, expected, allowed.
fn counts(budget: &PodDisruptionBudget) -> [i32; 4] {
    let status = budget.status.clone().unwrap_or_default();
    [status.current_healthy, status.desired_healthy, status.expected_pods, status.disruptions_allowed]
        .map(Option::unwrap_or_default)
}

#[tokio::test]
async fn as_many_as_the_budget_leaves_may_go() {
    for (budget, desired, allowed) in [
        (json!({"minAvailable": 2}), 2, 1),
        (json!({"minAvailable": "50%"}), 2, 1),
        (json!({"maxUnavailable": 2}), 1, 2),
        (json!({"maxUnavailable": "10%"}), 2, 1),
    ] {
        let world = world(budget, &Arc::new(AtomicBool::new(true))).await;
        let want = [3, desired, 3, allowed];
        let counted =
            world.until::<PodDisruptionBudget>("web", "counted", |budget| counts(budget) == want).await;
        let conditions = counted.status.unwrap().conditions.unwrap();
        assert_eq!(
            (conditions[0].status.as_str(), conditions[0].reason.as_str()),
            ("True", "SufficientPods")
        );
        world.stop().await;
    }
}

#[tokio::test]
async fn an_eviction_waits_for_the_pod_that_comes() {
    let ready = Arc::new(AtomicBool::new(true));
    let world = world(json!({"minAvailable": 2}), &ready).await;
    world.until::<PodDisruptionBudget>("web", "counted", |budget| counts(budget) == [3, 2, 3, 1]).await;
    ready.store(false, Ordering::Relaxed);
    let pods = world.api::<Pod>();
    let names: Vec<String> = world.list::<Pod>().into_iter().filter_map(|pod| pod.metadata.name).collect();
    pods.evict(&names[0], &EvictParams::default()).await.unwrap();
    world.until::<PodDisruptionBudget>("web", "one less", |budget| counts(budget) == [2, 2, 3, 0]).await;
    let refused = pods.evict(&names[1], &EvictParams::default()).await.unwrap_err();
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 429));
    world.stop().await;
}
