//! The end: passes that run may end, for so long; nothing new begins.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::time::Instant;
use windlass::core::Outcome;
use windlass::operator::Ended;
use windlass::{Controller, Env, Operator, Running, Settings, election};
use windlass_testing::TestCluster;

use crate::support::{Log, config_map, until};

/// An operator whose passes take so long, one at a time.
async fn slow(cluster: &TestCluster, log: &Log, pass: Duration, settings: Settings) -> Running {
    let log = log.clone();
    let controller = Controller::raw(move |ctx, _: Arc<ConfigMap>| {
        let log = log.clone();
        async move {
            log.begin(ctx.key());
            ctx.env().sleep(pass).await;
            log.end(ctx.key());
            Ok(Outcome::Again)
        }
    });
    let operator = Operator::new("test-operator", "0.0.0").controller(controller.concurrency(1));
    operator.start(cluster.client(), settings).await.unwrap()
}

fn settings(shutdown_timeout: u64) -> Settings {
    let env = Env::system();
    let election = election::Settings::new("default", "test-operator", "me");
    let shutdown_timeout = Duration::from_secs(shutdown_timeout);
    Settings { shutdown_timeout, election: Some(election), ..Settings::for_tests(env) }
}

fn holder(cluster: &TestCluster) -> Option<String> {
    let lease: Lease = cluster.world().get("default", "test-operator")?;
    lease.spec?.holder_identity.filter(|holder| !holder.is_empty())
}

#[tokio::test(start_paused = true)]
async fn a_pass_that_runs_may_end_and_no_other_begins() {
    let cluster = TestCluster::new().await;
    config_map(&cluster, "a", "1").await;
    config_map(&cluster, "b", "1").await;
    let log = Log::default();
    let running = slow(&cluster, &log, Duration::from_secs(10), settings(30)).await;
    until(|| log.count("default/a") == 1).await;
    let told = Instant::now();
    running.stop().await.unwrap();
    assert!((9..11).contains(&told.elapsed().as_secs()), "it took {:?}", told.elapsed());
    assert!(!log.is_running("default/a"), "the pass has come to its end");
    assert_eq!((log.count("default/a"), log.count("default/b")), (1, 0), "and nothing began");
    assert_eq!(holder(&cluster), None, "the lease is given back");
}

#[tokio::test(start_paused = true)]
async fn a_pass_that_does_not_end_in_time_is_ended_and_the_lease_is_left_to_expire() {
    let cluster = TestCluster::new().await;
    config_map(&cluster, "a", "1").await;
    let log = Log::default();
    let running = slow(&cluster, &log, Duration::from_secs(3600), settings(5)).await;
    until(|| log.count("default/a") == 1).await;
    let told = Instant::now();
    let ended = running.stop().await.unwrap_err();
    assert!(matches!(ended, Ended::Unfinished), "{ended}");
    assert_eq!(ended.to_string(), "some reconciles did not end within the graceful shutdown timeout");
    assert!((5..7).contains(&told.elapsed().as_secs()), "it took {:?}", told.elapsed());
    assert_eq!(holder(&cluster).as_deref(), Some("me"), "its last write may be on its way");
    tokio::time::sleep(Duration::from_secs(7200)).await;
    assert!(log.is_running("default/a"), "it never came to its end: it was cut off");
    assert_eq!(log.count("default/a"), 1);

    // The next one waits for the lease to expire, by its own clock.
    let before = Instant::now();
    let mut settings = settings(5);
    settings.election =
        settings.election.map(|old| election::Settings { identity: "next".to_owned(), ..old });
    let next = slow(&cluster, &log, Duration::from_secs(1), settings).await;
    next.leadership().leading().await;
    assert!((14..=18).contains(&before.elapsed().as_secs()), "it led after {:?}", before.elapsed());
    next.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn long_work_is_told_to_stop() {
    let cluster = TestCluster::new().await;
    config_map(&cluster, "a", "1").await;
    let (begun, told) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let controller = {
        let (begun, told) = (begun.clone(), told.clone());
        Controller::raw(move |ctx, _: Arc<ConfigMap>| {
            let (begun, told) = (begun.clone(), told.clone());
            async move {
                begun.store(true, Ordering::SeqCst);
                ctx.stopping().await;
                told.store(true, Ordering::SeqCst);
                Ok(Outcome::AwaitChange)
            }
        })
    };
    let operator = Operator::new("test-operator", "0.0.0").controller(controller);
    let running = operator.start(cluster.client(), settings(30)).await.unwrap();
    until(|| begun.load(Ordering::SeqCst)).await;
    assert!(!told.load(Ordering::SeqCst));
    running.stop().await.unwrap();
    assert!(told.load(Ordering::SeqCst));
}
