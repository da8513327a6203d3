//! One replica leads, and another soon after it is gone.

mod network;
mod schedules;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use network::Network;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use windlass::Env;
use windlass::client::{Fence as _, Settings as ClientSettings, layered};
use windlass::election::{Election, Invalid, Leadership, Lost, Settings};
use windlass::env::Task;
use windlass::events::Recorder;
use windlass::metrics::{Format, Metrics};
use windlass_testing::TestCluster;

/// A process that would like to lead.
struct Replica {
    env: Env,
    metrics: Metrics,
    network: Network,
    leadership: Leadership,
    stop: CancellationToken,
    run: Task<Result<(), Lost>>,
    _events: Task<()>,
}

impl Replica {
    fn start(cluster: &TestCluster, name: &str, clock: &str) -> Replica {
        let env = Env::seeded(name.len() as u64, clock.parse::<Timestamp>().unwrap());
        let metrics = Metrics::new();
        let network = Network::new(cluster.client());
        let stop = CancellationToken::new();
        let (recorder, events) = Recorder::start(
            cluster.client(),
            &env,
            &metrics,
            "foobar-operator",
            name,
            CancellationToken::new(),
        );
        let settings = Settings::new("default", "foobar", name);
        let election = Election::new(network.client(), settings, &env, &metrics, recorder).unwrap();
        let leadership = election.leadership();
        let run = env.spawn("election", election.run(stop.clone()));
        Replica { env, metrics, network, leadership, stop, run, _events: events }
    }

    fn leads(&self) -> bool {
        self.leadership.is_leader()
    }

    fn master_status(&self) -> bool {
        self.metrics.render(Format::Text).contains("leader_election_master_status{name=\"foobar\"} 1\n")
    }

    async fn led_after(&self) -> Duration {
        let start = self.env.moment();
        self.env.within(Duration::from_secs(100), self.leadership.leading()).await.expect("it never leads");
        self.env.moment() - start
    }
}

const NOW: &str = "2026-01-01T00:00:00Z";

async fn lease(cluster: &TestCluster) -> Lease {
    Api::namespaced(cluster.client(), "default").get("foobar").await.unwrap()
}

async fn holder(cluster: &TestCluster) -> Option<String> {
    lease(cluster).await.spec.unwrap().holder_identity
}

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn one_leads_and_the_other_follows_when_it_is_stopped() {
    let cluster = TestCluster::new().await;
    let a = Replica::start(&cluster, "a", NOW);
    assert!(!a.leads() && !a.master_status());
    a.led_after().await;
    let b = Replica::start(&cluster, "bb", NOW);
    seconds(120).await;
    assert!(a.leads() && a.master_status());
    assert!(!b.leads() && !b.master_status() && !b.leadership.may_write());
    let spec = lease(&cluster).await.spec.unwrap();
    assert_eq!(spec.holder_identity.as_deref(), Some("a"));
    assert_eq!((spec.lease_duration_seconds, spec.lease_transitions), (Some(15), Some(0)));
    assert_eq!(spec.acquire_time.unwrap().0.to_string(), NOW);
    let renewals = cluster.count("update", "leases");
    assert!((55..=60).contains(&renewals), "{renewals} renewals in two minutes");
    assert_eq!(cluster.count("create", "leases"), 1);

    a.stop.cancel();
    let after = b.led_after().await;
    assert!(after <= Duration::from_millis(1500), "led {after:?} after the lease was given back");
    assert!(a.run.await.unwrap().is_ok());
    assert!(!a.leadership.is_leader());
    let spec = lease(&cluster).await.spec.unwrap();
    assert_eq!((spec.holder_identity.as_deref(), spec.lease_transitions), (Some("bb"), Some(1)));
    assert!(!a.leadership.has_lost(), "who gave the lease back has not lost it");
    assert_eq!(
        notes(&cluster).await,
        [
            "Lease foobar: LeaderElection: a became leader",
            "Lease foobar: LeaderElection: a stopped leading",
            "Lease foobar: LeaderElection: bb became leader"
        ]
    );
}

/// All Events, a second from now.
async fn notes(cluster: &TestCluster) -> Vec<String> {
    seconds(1).await;
    let events: Api<Event> = Api::namespaced(cluster.client(), "default");
    let mut notes: Vec<String> =
        events.list(&ListParams::default()).await.unwrap().into_iter().map(told).collect();
    notes.sort();
    notes
}

fn told(event: Event) -> String {
    let regarding = event.regarding.unwrap();
    let of = format!("{} {}", regarding.kind.unwrap(), regarding.name.unwrap());
    format!("{of}: {}: {}", event.reason.unwrap(), event.note.unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_killed_leader_is_followed_within_the_lease_and_two_seconds() {
    for phase in 0..20 {
        let cluster = TestCluster::new().await;
        let a = Replica::start(&cluster, "a", NOW);
        a.led_after().await;
        let b = Replica::start(&cluster, "bb", NOW);
        tokio::time::sleep(Duration::from_secs(60) + Duration::from_millis(phase * 100)).await;
        assert!(a.leads());
        drop(a);
        let after = b.led_after().await;
        assert!(after <= Duration::from_secs(17), "led {after:?} after the kill");
        assert!(after >= Duration::from_secs(13), "led {after:?} after the kill");
    }
}

#[tokio::test(start_paused = true)]
async fn clocks_of_machines_do_not_matter() {
    let cluster = TestCluster::new().await;
    let a = Replica::start(&cluster, "a", "1990-01-01T00:00:00Z");
    a.led_after().await;
    let b = Replica::start(&cluster, "bb", "2040-01-01T00:00:00Z");
    seconds(300).await;
    assert!(a.leads() && !b.leads());
    drop(a);
    let after = b.led_after().await;
    assert!((13..=17).contains(&after.as_secs()), "led {after:?} after the kill");
    let c = Replica::start(&cluster, "ccc", "1980-01-01T00:00:00Z");
    seconds(300).await;
    assert!(b.leads() && !c.leads());
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_reach_the_server_has_lost_at_the_deadline() {
    for hangs in [false, true] {
        let cluster = TestCluster::new().await;
        let a = Replica::start(&cluster, "a", NOW);
        a.led_after().await;
        let b = Replica::start(&cluster, "bb", NOW);
        seconds(30).await;
        if hangs {
            a.network.hang()
        } else {
            a.network.fail()
        }
        let start = a.env.moment();
        let lost = a.run.await.unwrap().unwrap_err();
        let after = a.env.moment() - start;
        assert!(matches!(lost, Lost::Deadline { .. }), "{lost}");
        assert!((8..=10).contains(&after.as_secs()), "lost after {after:?}");
        assert!(!a.leadership.may_write());
        assert!(!b.leads(), "the next one waits for the lease");
        b.led_after().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_short_outage_is_no_loss() {
    let cluster = TestCluster::new().await;
    let a = Replica::start(&cluster, "a", NOW);
    a.led_after().await;
    for _ in 0..5 {
        seconds(20).await;
        a.network.fail();
        tokio::time::sleep(Duration::from_millis(6500)).await;
        assert!(a.leads());
        a.network.heal();
    }
    seconds(20).await;
    assert!(a.leads() && !a.run.is_finished());
    assert_eq!(lease(&cluster).await.spec.unwrap().lease_transitions, Some(0));
}

#[tokio::test(start_paused = true)]
async fn an_edit_of_the_lease_by_hand_is_no_loss_and_a_renewal_whose_answer_is_lost_is_none() {
    let cluster = TestCluster::new().await;
    let a = Replica::start(&cluster, "a", NOW);
    a.led_after().await;
    let leases: Api<Lease> = Api::namespaced(cluster.client(), "default");
    let label = Patch::Merge(json!({"metadata": {"labels": {"seen": "yes"}}}));
    leases.patch("foobar", &PatchParams::default(), &label).await.unwrap();
    seconds(10).await;
    assert!(a.leads());
    let labels = lease(&cluster).await.metadata.labels.unwrap();
    assert_eq!(labels["seen"], "yes", "the renewal keeps what it does not know");
    a.network.lose_answers();
    seconds(5).await;
    a.network.heal();
    seconds(20).await;
    assert!(a.leads() && !a.run.is_finished());
    let text = a.metrics.render(Format::Text);
    assert!(text.contains("leader_election_slowpath_total{name=\"foobar\"} 2\n"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_lease_was_taken_has_lost_at_once() {
    let cluster = TestCluster::new().await;
    let a = Replica::start(&cluster, "a", NOW);
    a.led_after().await;
    let leases: Api<Lease> = Api::namespaced(cluster.client(), "default");
    let theft = Patch::Merge(json!({"spec": {"holderIdentity": "thief"}}));
    leases.patch("foobar", &PatchParams::default(), &theft).await.unwrap();
    let start = a.env.moment();
    let lost = a.run.await.unwrap().unwrap_err();
    assert_eq!(lost.to_string(), "the lease is held by thief");
    assert!(a.env.moment() - start <= Duration::from_secs(2));
    assert_eq!(holder(&cluster).await.as_deref(), Some("thief"), "it does not take it back");
    assert!(a.leadership.has_lost());
    assert_eq!(notes(&cluster).await, ["Lease foobar: LeaderElection: a became leader"], "and is silent");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_is_made_anew_by_its_holder() {
    let cluster = TestCluster::new().await;
    let a = Replica::start(&cluster, "a", NOW);
    a.led_after().await;
    let b = Replica::start(&cluster, "bb", NOW);
    seconds(10).await;
    let leases: Api<Lease> = Api::namespaced(cluster.client(), "default");
    leases.delete("foobar", &Default::default()).await.unwrap();
    for _ in 0..200 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(a.leads() && !b.leads());
    }
    assert_eq!(holder(&cluster).await.as_deref(), Some("a"));
}

/// What SIGSTOP and SIGCONT do: the process does nothing for a while, and time goes on.
#[tokio::test(start_paused = true)]
async fn a_leader_that_was_stopped_writes_nothing_and_ends() {
    let cluster = TestCluster::new().await;
    let network = Network::new(cluster.client());
    let env = Env::seeded(1, NOW.parse().unwrap());
    let metrics = Metrics::new();
    let settings = Settings::new("default", "foobar", "a");
    let election = Election::new(network.client(), settings, &env, &metrics, Recorder::off()).unwrap();
    let leadership = election.leadership();
    let mut fenced = ClientSettings::new(&env, &metrics);
    fenced.fence = Some(Arc::new(leadership.clone()));
    let writer = layered(cluster.client(), fenced);
    let mut run = Box::pin(election.run(CancellationToken::new()));
    tokio::select! {
        biased;
        lost = &mut run => panic!("it ended: {lost:?}"),
        () = seconds(60) => {}
    }
    let maps: Api<k8s_openapi::api::core::v1::ConfigMap> = Api::namespaced(writer, "default");
    let label = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
    let write = || async { maps.patch("kube-root-ca.crt", &PatchParams::default(), &label).await };
    assert!(write().await.unwrap_err().to_string().contains("not found"), "the write is sent");
    assert!(leadership.is_leader());

    seconds(11).await;
    let before = cluster.requests().len();
    assert!(!leadership.is_leader());
    assert!(write().await.unwrap_err().to_string().contains("this process does not lead"));
    let lost = run.await.unwrap_err();
    assert!(matches!(lost, Lost::Deadline { .. }));
    assert_eq!(cluster.requests().len(), before, "it asked for something");
}

#[test]
fn times_have_to_go_together() {
    let check = |lease, renew, retry| {
        let mut settings = Settings::new("default", "foobar", "a");
        settings.lease_duration = Duration::from_millis(lease);
        settings.renew_deadline = Duration::from_millis(renew);
        settings.retry_period = Duration::from_millis(retry);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let cluster = TestCluster::new().await;
            let env = Env::seeded(1, NOW.parse().unwrap());
            Election::new(cluster.client(), settings, &env, &Metrics::new(), Recorder::off()).err()
        })
    };
    assert_eq!(check(15_000, 10_000, 2_000), None);
    assert_eq!(check(10_000, 10_000, 2_000), Some(Invalid::LeaseDuration));
    assert_eq!(check(15_500, 10_000, 2_000), Some(Invalid::WholeSeconds));
    assert_eq!(check(15_000, 2_400, 2_000), Some(Invalid::RenewDeadline));
    assert_eq!(check(15_000, 10_000, 0), Some(Invalid::RenewDeadline));
}
