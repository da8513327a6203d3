//! The load: writers that send each write once, at a rate, and write down what came of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use windlass_etcd::Error;

use crate::Ticks;
use crate::endpoints::Endpoints;
use crate::ledger::{Key, Ledger, Outcome, Write};

/// What is written, and how fast.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where etcd is at the beginning; the load follows the cluster from there.
    pub endpoints: Vec<String>,
    /// Begins all its keys: two loads on one cluster need two.
    pub prefix: String,
    /// Writes in a second, of all writers together. A writer that waits for an answer sends nothing, and does not make up for it.
    pub rate: u32,
    /// Writers. Each has its own keys and waits for an answer before it sends the next.
    pub writers: u32,
    /// Keys of each writer.
    pub keys: u32,
    /// How large a value is, in bytes: its number, and filling.
    pub value_bytes: usize,
    /// How clients reach a member, and how long a write waits for its answer.
    pub client: windlass_etcd::Options,
    /// Whether members are asked that the cluster names, beside `endpoints`.
    pub follow: bool,
}

impl Options {
    /// The load of 200 puts/s by 8 writers on 40 keys, with a deadline of 2 s.
    #[must_use]
    pub fn new(endpoints: Vec<String>, prefix: impl Into<String>) -> Self {
        Self {
            endpoints,
            prefix: prefix.into(),
            rate: 200,
            writers: 8,
            keys: 5,
            value_bytes: 100,
            client: windlass_etcd::Options::default().deadline(Duration::from_secs(2)),
            follow: true,
        }
    }

    pub(crate) fn key(&self, key: Key) -> String {
        format!("{}/k{key}", self.prefix)
    }
}

/// How a load is getting on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Writes that were acknowledged.
    pub acknowledged: u64,
    /// Writes without an answer.
    pub maybe: u64,
    /// Writes that were refused.
    pub refused: u64,
    /// The longest time without an acknowledgement so far, the present one included.
    pub longest_pause: Duration,
}

/// A load under way. Dropped, it ends without a ledger.
#[derive(Debug)]
pub struct Load {
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    writers: JoinSet<Vec<Write>>,
    follower: JoinSet<()>,
}

#[derive(Debug)]
struct Shared {
    options: Options,
    endpoints: Endpoints,
    ticks: Ticks,
    numbers: AtomicU64,
    seen: Mutex<Seen>,
}

#[derive(Debug)]
struct Seen {
    progress: Progress,
    last: Instant,
    latencies: Vec<Duration>,
}

/// What a load leaves.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Its writes.
    pub ledger: Ledger,
    /// Its last figures.
    pub progress: Progress,
    /// How long each acknowledged write took, shortest first.
    pub latencies: Vec<Duration>,
    /// The members that it asked at its end.
    pub endpoints: Vec<String>,
    /// How it was made.
    pub options: Options,
}

impl Load {
    /// Starts writing.
    ///
    /// # Errors
    /// An endpoint is no address.
    pub fn start(options: Options) -> Result<Self, Error> {
        let endpoints = Endpoints::new(&options.endpoints, options.client.clone())?;
        let seen = Seen { progress: Progress::default(), last: Instant::now(), latencies: Vec::new() };
        let shared = Arc::new(Shared {
            endpoints,
            ticks: Ticks::default(),
            numbers: AtomicU64::new(0),
            seen: Mutex::new(seen),
            options,
        });
        let (stop, stopped) = watch::channel(false);
        let mut writers = JoinSet::new();
        for writer in 0..shared.options.writers {
            writers.spawn(write(Arc::clone(&shared), writer, stopped.clone()));
        }
        let mut follower = JoinSet::new();
        if shared.options.follow {
            follower.spawn(follow(Arc::clone(&shared)));
        }
        Ok(Self { shared, stop, writers, follower })
    }

    /// How it is getting on.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let seen = self.shared.seen();
        let pause = seen.last.elapsed();
        Progress { longest_pause: seen.progress.longest_pause.max(pause), ..seen.progress }
    }

    /// Waits until `more` writes have been acknowledged from now on: then etcd serves, however it looked before.
    pub async fn acknowledged(&self, more: u64) {
        let goal = self.progress().acknowledged + more;
        while self.progress().acknowledged < goal {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Ends it: writes that are under way get their answer, or their deadline.
    ///
    /// # Panics
    /// When a writer panicked: its writes are unknown.
    pub async fn stop(mut self) -> Ended {
        let progress = self.progress();
        // Nobody hears it if all writers have panicked, which is found next.
        let _ = self.stop.send(true);
        let mut writes = Vec::new();
        while let Some(written) = self.writers.join_next().await {
            writes.extend(written.expect("a writer ends by itself"));
        }
        self.follower.shutdown().await;
        writes.sort_unstable_by_key(|write| write.number);
        let mut latencies = std::mem::take(&mut self.shared.seen().latencies);
        latencies.sort_unstable();
        Ended {
            ledger: Ledger { writes },
            progress: Progress { longest_pause: progress.longest_pause, ..self.progress() },
            latencies,
            endpoints: self.shared.endpoints.addresses(),
            options: self.shared.options.clone(),
        }
    }
}

impl Shared {
    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, outcome: &Outcome, took: Duration) {
        let mut seen = self.seen();
        match outcome {
            Outcome::Acknowledged { .. } => {
                seen.progress.acknowledged += 1;
                seen.progress.longest_pause = seen.progress.longest_pause.max(seen.last.elapsed());
                seen.last = Instant::now();
                seen.latencies.push(took);
            }
            Outcome::Maybe => seen.progress.maybe += 1,
            Outcome::Refused => seen.progress.refused += 1,
        }
    }
}

/// One writer. It stays with a member as long as that answers, and goes to the next when it does not. What was not answered is
/// not sent again: the next write has the next number, so that each is done at most once.
async fn write(shared: Arc<Shared>, writer: u32, mut stopped: watch::Receiver<bool>) -> Vec<Write> {
    let options = &shared.options;
    let every = Duration::from_secs(1) * options.writers / options.rate.max(1);
    let mut clock =
        tokio::time::interval_at(tokio::time::Instant::now() + every * writer / options.writers, every);
    clock.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut member = writer as usize;
    let mut writes = Vec::new();
    for turn in 0.. {
        tokio::select! {
            biased;
            _ = stopped.wait_for(|stopped| *stopped) => break,
            _ = clock.tick() => {}
        }
        let Some(client) = shared.endpoints.at(member) else { continue };
        let number = shared.numbers.fetch_add(1, Ordering::Relaxed);
        let key = writer * options.keys + turn % options.keys;
        let value = format!("{number:<width$}", width = options.value_bytes);
        let (sent, started) = (shared.ticks.next(), Instant::now());
        let outcome = match client.put(options.key(key), value).await {
            Ok(header) => Outcome::Acknowledged { revision: header.revision, at: shared.ticks.next() },
            Err(error) if error.is_definite() => Outcome::Refused,
            Err(_) => Outcome::Maybe,
        };
        shared.note(&outcome, started.elapsed());
        if !matches!(outcome, Outcome::Acknowledged { .. }) {
            member += 1;
        }
        writes.push(Write { number, key, sent, outcome });
    }
    writes
}

async fn follow(shared: Arc<Shared>) {
    let mut clock = tokio::time::interval(Duration::from_millis(500));
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        clock.tick().await;
        shared.endpoints.follow().await;
    }
}
