//! Errors and waits as values: try again, give up until the spec changes, look again at a time.
//!
//! ```console
//! $ cargo run -p windlass --example errors
//! ```
//!
//! - An error by `?` is tried again: after 5 ms, then ever later.
//! - [`windlass::Error::terminal`] and [`Plan::terminal`] are not, until the spec changes. They show as the condition
//!   `Stalled`, so the status of the kind has conditions.
//! - [`Plan::wait_until`] and [`Plan::requeue_after`] are no failures.

use std::error::Error;
use std::sync::atomic::{AtomicU32, Ordering};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{Api, Patch, PatchParams};
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};
use windlass::core::plan::NoEffect;
use windlass::core::{Plan, condition};
use windlass::executor::STALLED;
use windlass::jiff::Timestamp;
use windlass::{Context, Controller, Env, Operator, Planner, Settings};
use windlass_testing::TestCluster;

/// A bell that rings at a time.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "example.com", version = "v1", kind = "Alarm", namespaced, status = "AlarmStatus")]
pub struct AlarmSpec {
    /// When: a time such as `2026-01-01T12:00:00Z`.
    pub at: String,
}

/// What became of it.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default)]
pub struct AlarmStatus {
    /// Whether it has rung.
    #[serde(default)]
    pub rung: bool,
    /// What is wrong with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

#[derive(Default)]
struct Clock {
    tries: AtomicU32,
}

impl Planner for Clock {
    type Object = Alarm;
    type Observed = Timestamp;
    type Effect = NoEffect;

    async fn observe(&self, _: &Context, alarm: &Alarm) -> Result<Timestamp, windlass::Error> {
        // The first tries fail for a reason that may pass.
        if self.tries.fetch_add(1, Ordering::SeqCst) < 3 {
            return Err(windlass::Error::retry("the clock is being wound up"));
        }
        // No retry makes a time of what is none.
        let no_time = |error| windlass::Error::terminal("NoTime", format!("spec.at: {error}"));
        alarm.spec.at.parse().map_err(no_time)
    }

    fn plan(&self, _: &Alarm, at: &Timestamp, now: Timestamp) -> Plan<Alarm> {
        let rung = now >= *at;
        let plan = Plan::new().status(AlarmStatus { rung, ..AlarmStatus::default() });
        if rung { plan } else { plan.wait_until(*at) }
    }
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let now: Timestamp = "2026-01-01T11:00:00Z".parse()?;
    let cluster = TestCluster::new().await;
    let operator =
        Operator::new("clock", "0.1.0").crd::<Alarm>().controller(Controller::new(Clock::default()));
    // On this runtime an hour takes no time.
    let env = Env::seeded(1, now);
    let running = operator.start(cluster.client(), Settings::for_tests(env.clone())).await?;
    let cluster = cluster.with_timeout(std::time::Duration::from_secs(7200));

    let alarms: Api<Alarm> = Api::default_namespaced(cluster.client());
    let set = async |at: &str| {
        let alarm = Alarm::new("one", AlarmSpec { at: at.to_owned() });
        alarms.patch("one", &PatchParams::apply("me").force(), &Patch::Apply(&alarm)).await
    };
    set("noon").await?;
    let is_stalled = |alarm: &Alarm| {
        alarm.status.as_ref().is_some_and(|status| condition::is_true(&status.conditions, STALLED))
    };
    let alarm = cluster.wait_for("default", "one", "it says that this is no time", is_stalled).await?;
    let stalled = condition::find(&alarm.status.as_ref().ok_or("a status")?.conditions, STALLED).cloned();
    println!("stalled: {}", stalled.ok_or("a condition")?.message);

    set("2026-01-01T12:00:00Z").await?;
    let has_rung =
        |alarm: &Alarm| !is_stalled(alarm) && alarm.status.as_ref().is_some_and(|status| status.rung);
    cluster.wait_for("default", "one", "it has rung", has_rung).await?;
    println!("rung at {}", env.now());
    assert!(env.now() >= "2026-01-01T12:00:00Z".parse()?);
    running.stop().await?;
    Ok(())
}
