//! A controller at work: take a key, take a step, send what it wants.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio_util::sync::CancellationToken;
use windlass::cache::Cache;
use windlass::env::Task;
use windlass_core::queue::{Verdict, Wake};
use windlass_core::{Cause, Moment, ObjectKey};

use super::send::{Failure, Sender};
use super::{Answers, Controller, Refusal, Turn, View, Wiring, Work};

/// Runs one controller.
pub(crate) struct Runner {
    pub controller: Arc<dyn Controller>,
    pub work: Arc<Work>,
    pub cache: Cache,
    pub sender: Sender,
    pub stop: CancellationToken,
}

/// How many keys of one controller are looked at together. Steps take no time; this is how many writes are on their way.
const CONCURRENCY: usize = 4;

/// How often one pass may ask the server something. A step asks for what it needs in a few rounds; one that never has enough
/// is wrong.
const QUESTIONS: usize = 8;

impl Runner {
    /// Works until it is told to stop, and then until what it has begun is done.
    pub async fn run(self: Arc<Runner>) {
        let mut running: FuturesUnordered<Task<(ObjectKey, Verdict)>> = FuturesUnordered::new();
        loop {
            while running.len() < CONCURRENCY && !self.stop.is_cancelled() {
                let Some(taken) = self.work.queue().take(self.work.env.moment()) else { break };
                running.push(self.work.env.spawn("step", self.clone().pass(taken.key)));
            }
            if self.stop.is_cancelled() && running.is_empty() {
                return;
            }
            let next = self.work.next();
            let free = running.len() < CONCURRENCY;
            tokio::select! {
                biased;
                Some(ended) = running.next(), if !running.is_empty() => {
                    // A pass catches its own panics: only the end of the runtime ends it from outside.
                    let Ok((key, verdict)) = ended else { continue };
                    self.work.done(&key, verdict);
                }
                () = self.stop.cancelled(), if !self.stop.is_cancelled() => {}
                () = self.work.woken.notified(), if free => {}
                () = self.at(next), if next.is_some() && free => {}
            }
        }
    }

    async fn at(&self, moment: Option<Moment>) {
        match moment {
            Some(moment) => self.work.env.sleep_until(moment).await,
            None => std::future::pending().await,
        }
    }

    async fn pass(self: Arc<Runner>, key: ObjectKey) -> (ObjectKey, Verdict) {
        let verdict = match self.turn(&key, &[]).await {
            Ok(verdict) => verdict,
            // Its namespace goes, and it with that: there is nobody to tell, and nowhere to tell it.
            Err(Failure::Refused(refusal)) if refusal.is_of_an_ending_namespace() => {
                Verdict::Retry { generation: None }
            }
            Err(Failure::Refused(refusal)) => {
                tracing::debug!(controller = self.controller.name(), object = %key, ?refusal, "a write was refused");
                // Once more, so that the refusal is told; what fails then is told by the next one.
                if let Err(error) = self.turn(&key, &[refusal]).await {
                    tracing::debug!(controller = self.controller.name(), object = %key, %error, "a refusal was not told");
                }
                Verdict::Retry { generation: None }
            }
            Err(error @ Failure::Retry { .. }) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
                tracing::debug!(controller = self.controller.name(), object = %key, %error, cause, "will look again");
                Verdict::Retry { generation: None }
            }
        };
        (key, verdict)
    }

    async fn turn(&self, key: &ObjectKey, refused: &[Refusal]) -> Result<Verdict, Failure> {
        let mut answers = Answers::default();
        let mut questions = 0..QUESTIONS;
        let turn = loop {
            let retry = Verdict::Retry { generation: None };
            let Some(turn) = self.step(key, refused, &answers) else { return Ok(retry) };
            if turn.look_ups.is_empty() {
                break turn;
            }
            if questions.next().is_none() {
                tracing::error!(controller = self.controller.name(), object = %key, "a step only asks");
                return Ok(retry);
            }
            for look_up in &turn.look_ups {
                answers.ask(&self.sender.client, &*self.controller, look_up).await?;
            }
        };
        for kind in &turn.watch {
            let mut wiring = Wiring::new(self.cache.clone(), self.work.clone());
            self.controller.watch(kind, &mut wiring);
        }
        for write in turn.writes {
            self.sender.send(write).await?;
        }
        for other in &turn.wake {
            self.work.wake(other, Wake::new(Cause::Requested));
        }
        let now = self.work.env.now();
        Ok(match turn.wake_at {
            Some(time) => Verdict::After(Duration::try_from(time.duration_since(now)).unwrap_or_default()),
            None => Verdict::Settled,
        })
    }

    /// The step; `None` where it panicked, which concerns this key and no other.
    fn step(&self, key: &ObjectKey, refused: &[Refusal], answers: &Answers) -> Option<Turn> {
        let view = View::new(&self.cache, refused, answers);
        let now = self.work.env.now();
        let step = || self.controller.step(key, &view, now);
        catch_unwind(AssertUnwindSafe(step))
            .inspect_err(|panic| {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let panic = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no text");
                tracing::error!(controller = self.controller.name(), object = %key, panic, "a step panicked");
            })
            .ok()
    }
}
