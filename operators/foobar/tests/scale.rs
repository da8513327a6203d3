//! Many FooBars: each gets its turn, and what is as it should be is left alone.

mod support;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use foobar_operator::api::FooBar;
use foobar_operator::observe::Observed;
use foobar_operator::{FooBarPlanner, goal};
use futures_util::future::join_all;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use serde_json::json;
use support::World;
use tokio::sync::{Notify, OnceCell};
use windlass::core::Plan;
use windlass::core::plan::NoEffect;
use windlass::jiff::Timestamp;
use windlass::metrics::Format;
use windlass::{Context, Controller, Env, Error, Operator, Planner, Running, Settings};
use windlass_testing::TestCluster;

/// Of ten thousand, `make bench ARGS='--only operator'` shows the same: unoptimised, to make them would take minutes.
const MANY: usize = 500;

fn name(n: usize) -> String {
    format!("many-{n:05}")
}

/// A cluster where an operator has made everything as it should be. Most of the time goes into it, so it is made once.
async fn settled() -> World {
    static SETTLED: OnceCell<TestCluster> = OnceCell::const_new();
    World::of(SETTLED.get_or_init(settle).await.fork())
}

async fn settle() -> TestCluster {
    let world = World::of(TestCluster::new().await);
    let settings = Settings::for_tests(Env::system());
    let running = foobar_operator::operator().start(world.cluster.client(), settings).await.unwrap();
    for n in 0..MANY {
        world.create(&name(n), "example.com").await;
    }
    let all_ready = || {
        let foobars = world.cluster.world().list::<FooBar>(None);
        foobars.len() == MANY && foobars.iter().all(goal::is_ready)
    };
    world.until("all are ready", async || all_ready()).await;
    running.stop().await.unwrap();
    world.cluster
}

/// Which passes there were, in their order.
#[derive(Clone, Default)]
struct Passes {
    names: Arc<Mutex<Vec<String>>>,
    another: Arc<Notify>,
}

impl Passes {
    fn all(&self) -> Vec<String> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn until(&self, holds: impl Fn(&[String]) -> bool) -> Vec<String> {
        loop {
            let another = self.another.notified();
            if holds(&self.names.lock().unwrap_or_else(PoisonError::into_inner)) {
                return self.all();
            }
            another.await;
        }
    }
}

/// FooBar's own planner, whose passes are counted.
struct Counted(Passes);

impl Planner for Counted {
    type Object = FooBar;
    type Observed = Observed;
    type Effect = NoEffect;

    const FINALIZER: Option<&'static str> = FooBarPlanner::FINALIZER;

    async fn observe(&self, ctx: &Context, foobar: &FooBar) -> Result<Observed, Error> {
        self.0.names.lock().unwrap_or_else(PoisonError::into_inner).push(foobar.name_any());
        self.0.another.notify_waiters();
        FooBarPlanner.observe(ctx, foobar).await
    }

    fn plan(&self, foobar: &FooBar, seen: &Observed, now: Timestamp) -> Plan<FooBar> {
        FooBarPlanner.plan(foobar, seen, now)
    }
}

/// The operator starts anew on a cluster where its kinds are.
async fn start(cluster: &TestCluster) -> (Running, Passes) {
    let passes = Passes::default();
    let controller = Controller::new(Counted(passes.clone())).owns::<ConfigMap>();
    let settings = Settings { install_crds: false, ..Settings::for_tests(Env::system()) };
    let operator = Operator::new("foobar-operator", "0").controller(controller);
    (operator.start(cluster.client(), settings).await.unwrap(), passes)
}

#[tokio::test(start_paused = true)]
async fn a_start_looks_at_each_once_and_writes_nothing() {
    let world = settled().await;
    let (running, passes) = start(&world.cluster).await;
    passes.until(|names| names.len() >= MANY).await;
    tokio::time::sleep(Duration::from_secs(600)).await;

    let mut counts = BTreeMap::new();
    for name in passes.all() {
        *counts.entry(name).or_insert(0) += 1;
    }
    let expected: BTreeMap<_, _> = (0..MANY).map(|n| (name(n), 1)).collect();
    assert_eq!(counts, expected, "each is looked at once");
    assert_eq!(world.writes(), Vec::<String>::new(), "nothing is written");
    let metrics = running.metrics().render(Format::Text);
    let total =
        format!("controller_runtime_reconcile_total{{controller=\"foobar\",result=\"success\"}} {MANY}");
    assert!(metrics.contains(&total), "{metrics}");
    running.stop().await.unwrap();
}

/// More of them than there are workers.
const BUSY: usize = 8;

#[tokio::test(start_paused = true)]
async fn who_comes_later_waits_for_nobody_and_starves_nobody() {
    let world = settled().await;
    let (running, passes) = start(&world.cluster).await;
    passes.until(|names| names.len() >= MANY / 10).await;
    world.create("newcomer", "example.com").await;
    let names = passes.until(|names| names.iter().any(|name| name == "newcomer")).await;
    // While its event is on its way, the others go on.
    assert!(names.len() < MANY - MANY / 4, "{} were looked at before", names.len());

    // From now on there is always something that goes first.
    let listed = AtomicBool::new(false);
    let busy = join_all((0..BUSY).map(async |which| {
        for n in 0..MANY / 2 {
            if listed.load(Ordering::Relaxed) {
                break;
            }
            world.apply(&format!("busy-{which}"), json!({"target": format!("example-{n}.com")})).await;
        }
    }));
    let list = async {
        let is_of_list = |name: &&String| name.starts_with("many-");
        let names = passes.until(|names| names.iter().filter(is_of_list).count() == MANY).await;
        listed.store(true, Ordering::Relaxed);
        names
    };
    let (_, names) = tokio::join!(busy, list);
    let others = names.iter().filter(|name| !name.starts_with("many-")).count();
    assert!(others > MANY / 4, "only {others} passes were for others");
    assert!(others <= MANY + BUSY, "{others} passes were for others: more than every second one");
    running.stop().await.unwrap();
}
