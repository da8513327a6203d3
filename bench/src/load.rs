//! Load: as many connections as asked for, each with one request under way at any time.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures_util::TryStreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::runtime::Builder;

use crate::client::{Connection, Connector};

/// When a load is over.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// After this many requests.
    Count(usize),
    /// After this time.
    Passed(Duration),
}

/// What to send, and how.
pub struct Load<'a, F> {
    /// To whom.
    pub connector: &'a Connector,
    /// Over how many connections.
    pub connections: usize,
    /// Until when.
    pub until: Until,
    /// The status that every answer must have.
    pub expect: u16,
    /// Writes the n-th request into the buffer.
    pub request: F,
}

/// What came of a load.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How many requests were answered.
    pub count: usize,
    /// How long it took.
    pub took: Duration,
    /// 99 of 100 answers took no longer.
    pub p99: Duration,
}

impl Outcome {
    /// Answers per second.
    pub fn rate(&self) -> f64 {
        self.count as f64 / self.took.as_secs_f64()
    }
}

impl<F: Fn(usize, &mut Vec<u8>) + Sync> Load<'_, F> {
    /// Runs it, on one thread per core. The connections stand before the clock starts.
    pub fn run(&self) -> Result<Outcome> {
        let threads = thread::available_parallelism()?.get().min(self.connections);
        let gate =
            Gate { ready: Barrier::new(threads), next: AtomicUsize::new(0), failed: AtomicBool::new(false) };
        let runs: Vec<Result<Run>> = thread::scope(|scope| {
            let handles: Vec<_> = (0..threads)
                .map(|thread| {
                    let connections = (self.connections + threads - 1 - thread) / threads;
                    let gate = &gate;
                    scope.spawn(move || self.run_thread(connections, gate))
                })
                .collect();
            handles.into_iter().map(|handle| handle.join().expect("a load thread panicked")).collect()
        });
        let runs = runs.into_iter().collect::<Result<Vec<_>>>()?;
        let started = runs.iter().map(|run| run.started).min().expect("there is a thread");
        let ended = runs.iter().map(|run| run.ended).max().expect("there is a thread");
        let mut micros: Vec<u32> = runs.into_iter().flat_map(|run| run.micros).collect();
        ensure!(!micros.is_empty(), "no request was answered");
        micros.sort_unstable();
        let p99 = Duration::from_micros(micros[micros.len() * 99 / 100].into());
        Ok(Outcome { count: micros.len(), took: ended - started, p99 })
    }

    fn run_thread(&self, connections: usize, gate: &Gate) -> Result<Run> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let opened: Result<_> = runtime.block_on(async {
            let mut opened = Vec::with_capacity(connections);
            for _ in 0..connections {
                opened.push(self.connector.open().await?);
            }
            Ok(opened)
        });
        if opened.is_err() {
            gate.failed.store(true, Ordering::Relaxed);
        }
        gate.ready.wait();
        let opened: Vec<Connection> = opened?;
        let started = Instant::now();
        let ends = match self.until {
            Until::Count(_) => None,
            Until::Passed(time) => Some(started + time),
        };
        let driven: FuturesUnordered<_> =
            opened.into_iter().map(|connection| self.drive(connection, gate, ends)).collect();
        let micros: Vec<Vec<u32>> = runtime.block_on(driven.try_collect())?;
        Ok(Run { started, ended: Instant::now(), micros: micros.concat() })
    }

    /// Sends on one connection until it is over.
    async fn drive(
        &self,
        mut connection: Connection,
        gate: &Gate,
        ends: Option<Instant>,
    ) -> Result<Vec<u32>> {
        let mut micros = Vec::new();
        let mut request = Vec::new();
        let mut before = Instant::now();
        while ends.is_none_or(|ends| before < ends) && !gate.failed.load(Ordering::Relaxed) {
            let n = gate.next.fetch_add(1, Ordering::Relaxed);
            if matches!(self.until, Until::Count(count) if n >= count) {
                break;
            }
            (self.request)(n, &mut request);
            let answered = connection.exchange(&request).await;
            let after = Instant::now();
            let wrong = match answered {
                Ok((status, _)) if status == self.expect => None,
                Ok((status, _)) => Some(anyhow::anyhow!("request {n} was answered with {status}")),
                Err(error) => Some(error),
            };
            if let Some(error) = wrong {
                gate.failed.store(true, Ordering::Relaxed);
                return Err(error);
            }
            micros.push((after - before).as_micros().min(u32::MAX.into()) as u32);
            before = after;
        }
        Ok(micros)
    }
}

/// What the threads of a load share.
struct Gate {
    ready: Barrier,
    next: AtomicUsize,
    failed: AtomicBool,
}

/// What one thread saw.
struct Run {
    started: Instant,
    ended: Instant,
    micros: Vec<u32>,
}
