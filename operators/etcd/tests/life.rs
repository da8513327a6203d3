//! The life of a cluster, on the in-process server, with a stand-in for etcd.

mod support;

use std::collections::BTreeSet;

use etcd_operator::api::{MemberRole, START_ANNOTATION, VOTER_LABEL, conditions};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::json;
use support::World;
use windlass::core::condition;

#[tokio::test(start_paused = true)]
async fn a_cluster_is_installed_grows_shrinks_and_goes() {
    let (world, running) = World::start().await;
    let created = world.apply("db", json!({"size": 3})).await.unwrap();
    assert_eq!(created.spec, Default::default(), "the stored object shows the defaults");
    world.until_done("db").await;
    assert_eq!(world.etcd.with(|state| state.changes.join(" ")), "add promote add promote");
    let status = world.clusters.get("db").await.unwrap().status.unwrap();
    assert_eq!(status.summary, "3/3");
    assert_eq!(status.cluster_id.as_deref(), Some("c1"));
    assert!(condition::is_true(&status.conditions, conditions::AVAILABLE));
    assert!(!condition::is_true(&status.conditions, conditions::DEGRADED));
    assert_eq!(status.members.iter().filter(|member| member.role == MemberRole::Leader).count(), 1);
    let voters = |pods: &[k8s_openapi::api::core::v1::Pod]| {
        pods.iter().filter(|pod| pod.labels()[VOTER_LABEL] == "true").count()
    };
    assert_eq!(voters(&world.pods.list(&Default::default()).await.unwrap().items), 3);
    let services: Api<Service> = Api::default_namespaced(world.cluster.client());
    let names: Vec<_> =
        services.list(&Default::default()).await.unwrap().items.iter().map(|one| one.name_any()).collect();
    assert!(names.contains(&"db-client".to_owned()) && names.contains(&"db-peers".to_owned()), "{names:?}");
    let budgets: Api<PodDisruptionBudget> = Api::default_namespaced(world.cluster.client());
    assert_eq!(
        budgets.get("db").await.unwrap().spec.unwrap().min_available,
        Some(k8s_openapi::apimachinery::pkg::util::intstr::IntOrString::Int(2))
    );

    let scale = json!({"spec": {"replicas": 5}});
    world.clusters.patch_scale("db", &PatchParams::default(), &Patch::Merge(&scale)).await.unwrap();
    world.until_done("db").await;
    assert_eq!(world.etcd.with(|state| state.members.len()), 5);
    world.apply("db", json!({"size": 1})).await.unwrap();
    world.until_done("db").await;
    assert_eq!(world.etcd.with(|state| state.members.len()), 1);
    assert_eq!(world.pods.list(&Default::default()).await.unwrap().items.len(), 1);
    assert_eq!(world.volumes.list(&Default::default()).await.unwrap().items.len(), 1);

    world.clusters.delete("db", &DeleteParams::default()).await.unwrap();
    world
        .until("nothing is left", async || {
            world.clusters.get_opt("db").await.unwrap().is_none()
                && world.names().await.is_empty()
                && world.pods.list(&Default::default()).await.unwrap().items.is_empty()
                && world.volumes.list(&Default::default()).await.unwrap().items.is_empty()
        })
        .await;
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_process_that_ends_in_its_first_pod_goes_on_in_another_one_from_its_data_only() {
    let (world, running) = World::start().await;
    world.apply("db", json!({"size": 3})).await.unwrap();
    world.until_done("db").await;
    let names = world.names().await;
    for name in &names {
        let first = world.pods.get(name).await.unwrap();
        assert_eq!(first.spec.as_ref().unwrap().restart_policy.as_deref(), Some("Never"));
        let ended = json!({"status": {"phase": "Failed"}});
        world.pods.patch_status(name, &PatchParams::default(), &Patch::Merge(&ended)).await.unwrap();
        world
            .until("another pod", async || {
                world.pods.get_opt(name).await.unwrap().is_some_and(|pod| pod.uid() != first.uid())
            })
            .await;
        world.until_done("db").await;
        let next = world.pods.get(name).await.unwrap();
        assert_eq!(next.annotations()[START_ANNOTATION], "rejoin");
        assert_eq!(next.spec.unwrap().restart_policy.as_deref(), Some("Always"));
    }
    assert_eq!(world.names().await, names);
    assert_eq!(world.etcd.with(|state| state.changes.len()), 4, "nobody was added or removed");
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_deleted_comes_back_on_its_volume_and_membership_is_left_alone() {
    let (world, running) = World::start().await;
    world.apply("db", json!({"size": 3})).await.unwrap();
    world.until_done("db").await;
    let names = world.names().await;
    let before = world.pods.get(&names[1]).await.unwrap().uid();
    world.delete_pod(&names[1]).await;
    world
        .until("another pod", async || {
            world.pods.get_opt(&names[1]).await.unwrap().is_some_and(|pod| pod.uid() != before)
        })
        .await;
    world.until_done("db").await;
    assert_eq!(world.names().await, names);
    assert_eq!(world.etcd.with(|state| state.changes.len()), 4, "nobody was added or removed");
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_member_that_lost_its_volume_is_replaced_by_one_of_another_name() {
    let (world, running) = World::start().await;
    world.apply("db", json!({"size": 3})).await.unwrap();
    world.until_done("db").await;
    let names = world.names().await;
    let lost = &names[2];
    world.volumes.delete(&format!("data-{lost}"), &DeleteParams::default()).await.unwrap();
    world.delete_pod(lost).await;
    world.until("it is gone", async || !world.names().await.contains(lost)).await;
    world.until_done("db").await;
    let after: BTreeSet<String> = world.names().await.into_iter().collect();
    assert_eq!(after.len(), 3);
    assert_eq!(after.iter().filter(|name| names.contains(name)).count(), 2, "two stayed, one is new");
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_member_that_is_deleted_is_replaced_before_it_goes() {
    let (world, running) = World::start().await;
    world.apply("db", json!({"size": 1})).await.unwrap();
    world.until_done("db").await;
    let names = world.names().await;
    world.members.delete(&names[0], &DeleteParams::default()).await.unwrap();
    world
        .until("another one took its place", async || {
            let now = world.names().await;
            now.len() == 1 && now != names
        })
        .await;
    world.until_done("db").await;
    assert_eq!(world.etcd.with(|state| state.changes.join(" ")), "add promote move leader remove");
    running.stop().await.unwrap();
}

/// Seen on real etcd, in 2 of 33 clusters that had a pod deleted, then lost data: the leader refused all changes, for good.
#[tokio::test(start_paused = true)]
async fn a_leader_that_takes_the_others_for_gone_is_not_the_only_one_to_ask() {
    let (world, running) = World::start().await;
    world.apply("db", json!({"size": 3})).await.unwrap();
    world.until_done("db").await;
    let lost = world.etcd.with(|state| {
        state.blind.insert(state.leader);
        state.members.iter().find(|member| member.id != state.leader).unwrap().name.clone()
    });
    world.volumes.delete(&format!("data-{lost}"), &DeleteParams::default()).await.unwrap();
    world.delete_pod(&lost).await;
    world.until("it is gone", async || !world.names().await.contains(&lost)).await;
    world.until_done("db").await;
    assert_eq!(
        world.etcd.with(|state| state.changes.join(" ")),
        "add promote add promote remove add promote"
    );
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_step_that_etcd_refuses_is_told_of_and_done_as_soon_as_it_can_be() {
    let (world, running) = World::start().await;
    world.apply("db", json!({"size": 1})).await.unwrap();
    world.until_done("db").await;
    world.etcd.with(|state| state.blind.insert(state.leader));
    world.apply("db", json!({"size": 3})).await.unwrap();
    let status = async || world.clusters.get("db").await.unwrap().status.unwrap();
    world
        .until("it says so", async || {
            status().await.blocked_reason.is_some_and(|reason| reason.starts_with("StepFails: tries since"))
        })
        .await;
    let told = status().await;
    assert!(condition::is_true(&told.conditions, conditions::DEGRADED), "{:?}", told.conditions);
    let next = told.next_action.unwrap();
    assert!(next.starts_with("add ") && told.blocked_reason.unwrap().contains(&next), "{next}");
    world.etcd.with(|state| state.blind.clear());
    world.until_done("db").await;
    let told = status().await;
    assert_eq!((told.blocked_reason, told.next_action), (None, None));
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_paused_cluster_is_left_alone_and_says_so() {
    let (world, running) = World::start().await;
    world.apply("db", json!({"size": 1})).await.unwrap();
    world.until_done("db").await;
    world.apply("db", json!({"size": 3, "paused": true})).await.unwrap();
    world
        .until("it says so", async || {
            let status = world.clusters.get("db").await.unwrap().status.unwrap();
            status.blocked_reason.is_some_and(|reason| reason.starts_with("Paused:"))
        })
        .await;
    assert_eq!(world.names().await.len(), 1);
    world.apply("db", json!({"size": 3})).await.unwrap();
    world.until_done("db").await;
    running.stop().await.unwrap();
}
#[tokio::test(start_paused = true)]
async fn all_members_lost_is_told_and_nothing_begins_anew() {
    let (world, running) = World::start().await;
    world.apply("db", json!({"size": 1})).await.unwrap();
    world.until_done("db").await;
    let name = world.names().await.remove(0);
    world.apply("db", json!({"size": 1, "paused": true})).await.unwrap();
    let none = json!({"metadata": {"finalizers": null}});
    world.members.patch(&name, &PatchParams::default(), &Patch::Merge(&none)).await.unwrap();
    world.members.delete(&name, &DeleteParams::default()).await.unwrap();
    world.delete_pod(&name).await;
    world.run_pods().await;
    world.apply("db", json!({"size": 1})).await.unwrap();
    world
        .until("it says so", async || {
            let status = world.clusters.get("db").await.unwrap().status.unwrap();
            status.blocked_reason.is_some_and(|reason| reason.starts_with("AllMembersLost:"))
        })
        .await;
    tokio::time::sleep(std::time::Duration::from_secs(3600)).await;
    assert!(world.names().await.is_empty(), "no member is made");
    assert_eq!(world.volumes.list(&Default::default()).await.unwrap().items.len(), 1, "the volume stays");
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_spec_that_cannot_be_is_told_and_can_be_mended() {
    let (world, running) = World::start().await;
    world.apply("db", json!({"size": 1, "storage": {"size": "1Gi"}})).await.unwrap();
    let blocked =
        async || world.clusters.get("db").await.unwrap().status.and_then(|status| status.blocked_reason);
    world
        .until("it says so", async || {
            blocked().await.is_some_and(|reason| reason.starts_with("InvalidSpec:"))
        })
        .await;
    assert!(world.names().await.is_empty(), "no member is made");
    world.apply("db", json!({"size": 1, "storage": {"size": "2Gi"}})).await.unwrap();
    world.until_done("db").await;
    assert_eq!(blocked().await, None);
    running.stop().await.unwrap();
}
