//! Many sequences against two servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::answer::Transcript;
use crate::client::Endpoint;
use crate::compare::{Comparison, Difference, compare};
use crate::run;
use crate::sequence::Sequence;

/// Sequences under way at once: most of them wait for a watch or for the reference.
const AT_ONCE: usize = 12;

/// A sequence that differs is tried again: in whole seconds of managedFields and in timers of watches even two real
/// servers differ now and then. A fault differs each time.
const TRIES: usize = 3;

/// What became of a sequence.
pub struct Outcome {
    /// The sequence.
    pub sequence: Sequence,
    /// What the reference answered.
    pub reference: Transcript,
    /// What we answered.
    pub ours: Transcript,
    /// What differs.
    pub comparison: Comparison,
    /// What differed first, each time that it was tried before.
    pub before: Vec<Difference>,
    /// How long the slower of the two took.
    pub took: Duration,
}

/// Runs all sequences against both servers; the outcomes are in the order of the sequences.
///
/// # Errors
/// When a server cannot be reached.
pub async fn run_all(
    reference: Arc<dyn Endpoint>,
    ours: Arc<dyn Endpoint>,
    sequences: Vec<Sequence>,
    prefix: &str,
) -> Result<Vec<Outcome>> {
    let total = sequences.len();
    let permits = Arc::new(Semaphore::new(AT_ONCE));
    let done = Arc::new(AtomicUsize::new(0));
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for (index, sequence) in sequences.into_iter().enumerate() {
        let (reference, ours) = (reference.clone(), ours.clone());
        let (permits, done, id) = (permits.clone(), done.clone(), format!("{prefix}{index}"));
        tasks.spawn(async move {
            let _permit = permits.acquire_owned().await?;
            let begun = Instant::now();
            let mut before = Vec::new();
            let (reference, ours, comparison) = loop {
                let id = format!("{id}{}", "x".repeat(before.len()));
                let (a, b) =
                    tokio::join!(run::run(&*reference, &sequence, &id), run::run(&*ours, &sequence, &id));
                let (a, b) = (a?, b?);
                let mut comparison = compare(&a, &b).about(&sequence.rule);
                if comparison.differences.is_empty() || before.len() + 1 == TRIES {
                    break (a, b, comparison);
                }
                before.push(comparison.differences.swap_remove(0));
            };
            let count = done.fetch_add(1, Ordering::Relaxed) + 1;
            if count.is_multiple_of(250) || count == total {
                eprintln!("  {count} of {total} after {:.0} s", started.elapsed().as_secs_f64());
            }
            let took = begun.elapsed();
            anyhow::Ok((index, Outcome { sequence, reference, ours, comparison, before, took }))
        });
    }
    let mut outcomes = Vec::with_capacity(total);
    while let Some(outcome) = tasks.join_next().await {
        outcomes.push(outcome??);
    }
    outcomes.sort_by_key(|(index, _)| *index);
    Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
}
