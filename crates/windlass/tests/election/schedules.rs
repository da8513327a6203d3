//! Whatever happens to replicas and networks, at no moment do two replicas lead, and in the end one does.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::network::{Mood, Network};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use tokio_util::sync::CancellationToken;
use windlass::Env;
use windlass::election::{Election, Leadership, Lost, Settings};
use windlass::env::Task;
use windlass::events::Recorder;
use windlass::metrics::Metrics;
use windlass_testing::TestCluster;

const REPLICAS: usize = 3;

/// Something that happens to a replica, this long after what happened before.
#[derive(Clone, Debug)]
struct Step {
    after: Duration,
    replica: usize,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    Network(Mood),
    /// SIGSTOP.
    Freeze,
    /// SIGCONT.
    Thaw,
    /// SIGKILL, and another process in its place.
    Kill,
    /// SIGTERM, and another process in its place.
    Stop,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let millis = |max: u64| (0..max).prop_map(Duration::from_millis);
    let what = prop_oneof![
        3 => Just(What::Network(Mood::Works)),
        1 => Just(What::Network(Mood::Fails)),
        1 => Just(What::Network(Mood::Hangs)),
        1 => Just(What::Network(Mood::LosesAnswers)),
        2 => (millis(20_000), millis(8_000)).prop_map(|(there, back)| What::Network(Mood::Slow(there, back))),
        2 => Just(What::Freeze),
        2 => Just(What::Thaw),
        1 => Just(What::Kill),
        1 => Just(What::Stop),
    ];
    let step = (millis(12_000), 0..REPLICAS, what);
    proptest::collection::vec(step.prop_map(|(after, replica, what)| Step { after, replica, what }), 1..40)
}

struct Replica {
    leadership: Leadership,
    network: Network,
    frozen: Arc<Mutex<Ice>>,
    stop: CancellationToken,
    run: Task<Result<(), Lost>>,
}

impl Replica {
    fn start(cluster: &TestCluster, name: &str, number: u64) -> Replica {
        // Decades apart, so that whoever compares clocks is found out.
        let clock = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(200_000 * (number as i64 % 4));
        let env = Env::seeded(number, clock);
        let network = Network::new(cluster.client());
        let settings = Settings::new("default", "foobar", name);
        let election =
            Election::new(network.client(), settings, &env, &Metrics::new(), Recorder::off()).unwrap();
        let leadership = election.leadership();
        let stop = CancellationToken::new();
        let frozen = Arc::<Mutex<Ice>>::default();
        let run = Box::pin(election.run(stop.clone()));
        let run = env.spawn("election", Freezing { run, frozen: frozen.clone() });
        Replica { leadership, network, frozen, stop, run }
    }

    fn freeze(&self, on: bool) {
        let mut ice = self.frozen.lock().unwrap();
        ice.on = on;
        if !on && let Some(waker) = ice.waker.take() {
            waker.wake();
        }
    }
}

/// A process that does nothing while it is frozen. What it had sent before goes on without it.
struct Freezing {
    run: Pin<Box<dyn Future<Output = Result<(), Lost>> + Send>>,
    frozen: Arc<Mutex<Ice>>,
}

#[derive(Default)]
struct Ice {
    on: bool,
    waker: Option<Waker>,
}

impl Future for Freezing {
    type Output = Result<(), Lost>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut ice = self.frozen.lock().unwrap();
        if ice.on {
            ice.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        drop(ice);
        self.run.as_mut().poll(cx)
    }
}

struct World {
    cluster: TestCluster,
    replicas: Vec<Replica>,
    started: u64,
}

impl World {
    async fn new() -> World {
        let cluster = TestCluster::builder().seed(1).start().await;
        let mut world = World { cluster, replicas: Vec::new(), started: 0 };
        for _ in 0..REPLICAS {
            let replica = world.next();
            world.replicas.push(replica);
        }
        world
    }

    fn next(&mut self) -> Replica {
        self.started += 1;
        Replica::start(&self.cluster, &format!("replica-{}", self.started), self.started)
    }

    fn apply(&mut self, step: &Step) {
        match step.what {
            What::Network(mood) => self.replicas[step.replica].network.set(mood),
            What::Freeze => self.replicas[step.replica].freeze(true),
            What::Thaw => self.replicas[step.replica].freeze(false),
            What::Kill => self.replicas[step.replica] = self.next(),
            What::Stop => self.replicas[step.replica].stop.cancel(),
        }
    }

    /// Time passes. Processes that ended are started anew. At no moment do two lead.
    async fn pass(&mut self, time: Duration) -> Result<(), TestCaseError> {
        const LOOK: Duration = Duration::from_millis(50);
        let end = tokio::time::Instant::now() + time;
        while tokio::time::Instant::now() < end {
            tokio::time::sleep(LOOK).await;
            prop_assert!(self.leaders().len() <= 1, "{:?} lead at once", self.leaders());
            for index in 0..REPLICAS {
                if self.replicas[index].run.is_finished() {
                    self.replicas[index] = self.next();
                }
            }
        }
        Ok(())
    }

    fn leaders(&self) -> Vec<usize> {
        (0..REPLICAS).filter(|&index| self.replicas[index].leadership.is_leader()).collect()
    }
}

async fn story(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut world = World::new().await;
    world.pass(Duration::from_secs(5)).await?;
    prop_assert_eq!(world.leaders().len(), 1, "nobody leads a quiet world");
    for step in steps {
        world.pass(step.after).await?;
        world.apply(&step);
    }
    for replica in &world.replicas {
        replica.freeze(false);
        replica.network.heal();
    }
    // What is still on its way arrives within 20 seconds, and a lease that it took expires 15 seconds later.
    world.pass(Duration::from_secs(20 + 15 + 5)).await?;
    prop_assert_eq!(world.leaders().len(), 1, "nobody leads after all is well again");
    Ok(())
}

/// A case is minutes of three replicas. `PROPTEST_CASES` asks for more of them.
fn config() -> ProptestConfig {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    if std::env::var_os("PROPTEST_CASES").is_some() { config } else { ProptestConfig { cases: 30, ..config } }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn never_two_and_in_the_end_one(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(story(steps))?;
    }
}
