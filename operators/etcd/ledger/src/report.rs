//! What is kept of a run.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::load::Ended;
use crate::{Verdict, check, read};

/// How many violations are told in words: the first ones say what went wrong, the file has all.
const SHOWN: usize = 20;

/// The figures of a run, and the verdict.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Whether nothing is lost and nothing reordered.
    pub holds: bool,
    /// How long the load ran, in seconds.
    pub seconds: f64,
    /// Writes that were acknowledged: each of them was looked for.
    pub acknowledged: usize,
    /// Writes without an answer.
    pub maybe: u64,
    /// How many of these are there.
    pub done_without_answer: usize,
    /// Writes that were refused.
    pub refused: u64,
    /// The longest time without an acknowledgement, in seconds.
    pub longest_pause_seconds: f64,
    /// How long half of the acknowledged writes took at most, in milliseconds.
    pub p50_ms: f64,
    /// The same for 99 of 100.
    pub p99_ms: f64,
    /// How many members said the same hash of their keys.
    pub members: usize,
    /// What etcd broke, in words.
    pub violations: Vec<String>,
}

impl Report {
    /// Reads what etcd has after a load, and checks it.
    ///
    /// # Errors
    /// The history cannot be read.
    pub async fn of(ended: &Ended, ran: Duration) -> Result<Self, read::Error> {
        let history = read::history(&ended.options, &ended.endpoints).await?;
        let verdict = check(&ended.ledger, &history);
        Ok(Self::new(ended, ran, &verdict, history.hashes.len()))
    }

    fn new(ended: &Ended, ran: Duration, verdict: &Verdict, members: usize) -> Self {
        let at = |part: usize| {
            let index = (ended.latencies.len() * part / 100).min(ended.latencies.len().saturating_sub(1));
            ended.latencies.get(index).map_or(0.0, |latency| latency.as_secs_f64() * 1000.0)
        };
        Self {
            holds: verdict.holds(),
            seconds: ran.as_secs_f64(),
            acknowledged: verdict.acknowledged,
            maybe: ended.progress.maybe,
            done_without_answer: verdict.done_without_answer,
            refused: ended.progress.refused,
            longest_pause_seconds: ended.progress.longest_pause.as_secs_f64(),
            p50_ms: at(50),
            p99_ms: at(99),
            members,
            violations: verdict.violations.iter().map(ToString::to_string).collect(),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.holds { "none lost, none reordered" } else { "BROKEN" };
        write!(
            f,
            "{verdict}: {} acknowledged writes in {:.1} s ({} without an answer, {} of them done; {} refused), \
             longest pause {:.2} s, p50 {:.1} ms, p99 {:.1} ms, {} members with the same data",
            self.acknowledged,
            self.seconds,
            self.maybe,
            self.done_without_answer,
            self.refused,
            self.longest_pause_seconds,
            self.p50_ms,
            self.p99_ms,
            self.members
        )?;
        for violation in self.violations.iter().take(SHOWN) {
            write!(f, "\n  {violation}")?;
        }
        match self.violations.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more"),
        }
    }
}
