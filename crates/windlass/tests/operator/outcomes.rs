//! What a pass wants next: a look after a while, a look at a time, another try.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use windlass::core::Outcome;
use windlass::jiff::{SignedDuration, Timestamp};
use windlass::{Controller, Env, Error, Operator, Settings};
use windlass_testing::TestCluster;

use crate::support::config_map;

/// When each pass over the one object began, in seconds from the start.
type Times = Arc<Mutex<Vec<i64>>>;

/// Runs a function for a while on one ConfigMap.
async fn times<F>(seconds: u64, next: F) -> Vec<i64>
where
    F: Fn(usize, Timestamp) -> Result<Outcome, Error> + Send + Sync + 'static,
{
    let cluster = TestCluster::new().await;
    config_map(&cluster, "one", "1").await;
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let times = Times::default();
    let noted = times.clone();
    let controller = Controller::raw(move |ctx, _: Arc<ConfigMap>| {
        if ctx.key().name() != "one" {
            return std::future::ready(Ok(Outcome::AwaitChange));
        }
        let now = ctx.now();
        let passed = now.duration_since(start).as_secs();
        let count = {
            let mut noted = noted.lock().unwrap();
            noted.push(passed);
            noted.len()
        };
        std::future::ready(next(count, now))
    });
    let operator = Operator::new("test-operator", "0.0.0").controller(controller);
    let settings = Settings::for_tests(Env::seeded(1, start));
    let running = operator.start(cluster.client(), settings).await.unwrap();
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    running.stop().await.unwrap();
    times.lock().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn after_a_while_means_after_a_while_each_time() {
    let after = |_, _| Ok(Outcome::After(Duration::from_secs(100)));
    assert_eq!(times(350, after).await, [0, 100, 200, 300]);
}

#[tokio::test(start_paused = true)]
async fn waiting_until_a_time_is_one_pass_then_and_no_failure() {
    // The next full hour, then nothing more.
    let hour: Timestamp = "2026-01-01T01:00:00Z".parse().unwrap();
    let at = move |count, now: Timestamp| {
        assert_eq!(count == 1, now < hour, "it is woken when the time has come, not before");
        Ok(if now < hour { Outcome::At(hour) } else { Outcome::AwaitChange })
    };
    assert_eq!(times(100_000, at).await, [0, 3600]);
}

#[tokio::test(start_paused = true)]
async fn a_time_that_is_past_is_now() {
    let past = |count, now: Timestamp| {
        let hour = SignedDuration::from_hours(1);
        Ok(if count == 1 { Outcome::At(now - hour) } else { Outcome::AwaitChange })
    };
    assert_eq!(times(100, past).await, [0, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_tried_again_ever_later_and_success_forgets_it() {
    // Twelve failures take 5 ms × (2¹² − 1), less some jitter; after a success the first one takes 5 ms again.
    let next = |count, _| match count {
        1..=12 => Err(Error::retry("not yet")),
        13 => Ok(Outcome::After(Duration::from_secs(1000))),
        14 => Err(Error::retry("not again")),
        _ => Ok(Outcome::AwaitChange),
    };
    let times = times(10_000, next).await;
    assert_eq!(times.len(), 15, "{times:?}");
    assert!((16..=20).contains(&times[12]), "{times:?}");
    assert_eq!(times[13], times[12] + 1000, "{times:?}");
    assert_eq!(times[14], times[13], "5 ms later: {times:?}");
}
