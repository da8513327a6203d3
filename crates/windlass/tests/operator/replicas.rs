//! Two replicas in one process: one leads, the other stands by with all it needs.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tokio::time::Instant;
use windlass::cache::State;
use windlass::operator::Ended;
use windlass::{Env, Error, Running, Settings, election};
use windlass_testing::TestCluster;

use crate::support::{Log, until};
use crate::tap::{Asked, Tap};
use crate::widget::{Outside, apply, is_ready, operator};

struct Replica {
    tap: Tap,
    log: Log,
    running: Running,
}

async fn replica(cluster: &TestCluster, identity: &str) -> Replica {
    let (tap, log) = (Tap::default(), Log::default());
    let election = Some(election::Settings::new("default", "test-operator", identity));
    let settings = Settings { election, ..Settings::for_tests(Env::system()) };
    let running = operator(&log, &Outside::default()).start(tap.client(cluster), settings).await.unwrap();
    Replica { tap, log, running }
}

/// A leader, and one that stands by and knows all there is.
async fn pair(cluster: &TestCluster) -> (Replica, Replica) {
    let leader = replica(cluster, "a").await;
    leader.running.leadership().leading().await;
    let standby = replica(cluster, "b").await;
    apply(cluster, "default", "one", json!({"size": 1})).await;
    until(|| is_ready(cluster, "default", "one")).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let health = standby.running.cache().health();
    assert!(health.iter().all(|one| one.state == State::Live), "{health:?}");
    assert!(standby.running.readiness().report("readyz", &[]).passed, "who stands by well is ready");
    assert_eq!(standby.log.count("default/one"), 0, "it looks at nothing");
    (leader, standby)
}

/// What the standby asked for after a moment, when it has taken over and done some work.
async fn takes_over(cluster: &TestCluster, standby: &Replica, since: Instant) -> Vec<Asked> {
    standby.running.leadership().leading().await;
    apply(cluster, "default", "two", json!({"size": 2})).await;
    until(|| is_ready(cluster, "default", "two")).await;
    until(|| standby.log.count("default/one") == 1).await;
    standby.tap.asked().into_iter().filter(|asked| asked.at >= since).collect()
}

fn writes(replica: &Tap) -> Vec<Asked> {
    let definition = |asked: &Asked| asked.path.contains("customresourcedefinitions");
    replica.asked().into_iter().filter(|asked| asked.writes() && !definition(asked)).collect()
}

#[tokio::test(start_paused = true)]
async fn the_standby_is_warm_and_leads_when_the_lease_is_released() {
    let cluster = TestCluster::new().await;
    let (leader, standby) = pair(&cluster).await;
    assert_eq!(writes(&standby.tap).len(), 0, "who stands by writes nothing");
    let stopped = Instant::now();
    leader.running.stop().await.unwrap();
    let asked = takes_over(&cluster, &standby, stopped).await;
    let lists: Vec<_> = asked.iter().filter(|asked| asked.lists()).collect();
    assert!(lists.is_empty(), "it had everything at hand: {lists:?}");
    let (old, new) = (writes(&leader.tap), writes(&standby.tap));
    assert!(!old.is_empty() && !new.is_empty());
    assert!(
        old.iter().all(|old| old.at < new[0].at),
        "the old one wrote last before the new one wrote first"
    );
    assert!(new[0].at - stopped < Duration::from_secs(3), "{:?}", new[0].at - stopped);
    let of_one: Vec<_> = new.iter().filter(|asked| asked.path.contains("/one")).collect();
    assert!(of_one.is_empty(), "what was done is not done again: {of_one:?}");
    standby.running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_standby_leads_when_the_lease_of_a_dead_leader_has_expired() {
    let cluster = TestCluster::new().await;
    let (leader, standby) = pair(&cluster).await;
    let killed = Instant::now();
    let old = leader.tap.clone();
    drop(leader.running);
    let asked = takes_over(&cluster, &standby, killed).await;
    assert!(asked.iter().all(|asked| !asked.lists()), "{asked:?}");
    let new = writes(&standby.tap);
    assert!(writes(&old).iter().all(|old| old.at <= killed));
    let after = new[0].at - killed;
    let allowed = Duration::from_secs(13)..Duration::from_secs(17);
    assert!(allowed.contains(&after), "within 15 s and 2 s, and not before the lease has expired: {after:?}");
    standby.running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_lease_is_taken_ends_and_writes_no_more() {
    let cluster = TestCluster::new().await;
    let leader = replica(&cluster, "a").await;
    leader.running.leadership().leading().await;
    apply(&cluster, "default", "one", json!({"size": 1})).await;
    until(|| is_ready(&cluster, "default", "one")).await;

    let leases: Api<Lease> = Api::default_namespaced(cluster.client());
    let taken = json!({"spec": {"holderIdentity": "b", "leaseTransitions": 7}});
    leases.patch("test-operator", &PatchParams::default(), &Patch::Merge(taken)).await.unwrap();
    let at = Instant::now();
    let ended = leader.running.wait().await.unwrap_err();
    assert!(matches!(ended, Ended::LostLeadership(_)), "{ended}");
    assert!(at.elapsed() < Duration::from_secs(3), "it noticed after {:?}", at.elapsed());
    assert_eq!(Error::from(ended).to_string(), "lost the leadership: the lease is held by b");
    let before = writes(&leader.tap).len();
    apply(&cluster, "default", "two", json!({"size": 2})).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(writes(&leader.tap).len(), before);
}
