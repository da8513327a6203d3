//! The workers of a controller: take a key, run a pass, tell the queue what came of it.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tracing::Instrument as _;
use windlass_core::queue::{Causes, Priority, Taken, Verdict};
use windlass_core::{Kind, Moment, ObjectKey, Origin, Outcome};

use super::Target;
use super::reconcile::Reconcile;
use super::wire::{PAUSED, annotation, generation};
use super::work::Work;
use crate::Error;
use crate::cache::{Cached, Informer};
use crate::context::{Context, Pass, Shared};
use crate::env::{Task, panic_message};
use crate::events::{Event, reference};
use crate::executor::Executor;
use crate::metrics::Ended;

/// A controller at work.
pub(super) struct Worker<K> {
    pub work: Arc<Work>,
    pub kind: Kind,
    pub informer: Informer<K>,
    pub reconciler: Arc<dyn Reconcile<K>>,
    pub shared: Arc<Shared>,
    pub executor: Arc<Executor>,
    pub concurrency: usize,
    pub timeout: Option<Duration>,
    pub every: Option<Duration>,
}

/// How many passes in a row may write something before it is called a loop, and slowed down like a failure.
const WRITES_IN_A_ROW_MAX: u32 = 20;

impl<K: Cached> Worker<K> {
    /// Works until the operator is told to stop, and then until running passes have ended.
    pub async fn run(self: Arc<Self>) {
        let stop = self.shared.shutdown.clone();
        let mut running: FuturesUnordered<Task<(ObjectKey, Verdict)>> = FuturesUnordered::new();
        let mut unsettled: BTreeMap<ObjectKey, u32> = BTreeMap::new();
        self.work.metrics.workers(self.concurrency);
        loop {
            while running.len() < self.concurrency && !stop.is_cancelled() {
                let Some(taken) = self.work.queue().take(self.shared.env.moment()) else { break };
                let worker = self.clone();
                running.push(self.shared.env.spawn("reconcile", worker.pass(taken)));
            }
            if stop.is_cancelled() && running.is_empty() {
                return;
            }
            let next = self.work.queue().next(self.shared.env.moment());
            tokio::select! {
                biased;
                Some(ended) = running.next(), if !running.is_empty() => {
                    // A pass catches its own panics: only the end of the runtime ends it from outside.
                    let Ok((key, verdict)) = ended else { continue };
                    self.settle(&mut unsettled, &key, verdict);
                }
                () = stop.cancelled(), if !stop.is_cancelled() => {}
                () = self.work.woken.notified(), if running.len() < self.concurrency => {}
                () = self.at(next), if next.is_some() && running.len() < self.concurrency => {}
            }
        }
    }

    async fn at(&self, moment: Option<Moment>) {
        match moment {
            Some(moment) => self.shared.env.sleep_until(moment).await,
            None => std::future::pending().await,
        }
    }

    /// Tells the queue. One that writes in every pass is a loop of its own making, and is slowed down.
    fn settle(&self, unsettled: &mut BTreeMap<ObjectKey, u32>, key: &ObjectKey, verdict: Verdict) {
        let verdict = if verdict == Verdict::Again {
            let times = unsettled.entry(key.clone()).or_default();
            *times += 1;
            if *times == WRITES_IN_A_ROW_MAX {
                let (controller, object) = (&*self.work.name, key);
                tracing::warn!(controller, %object, "every pass writes something: is the plan stable? slowing down");
            }
            let generation = self.informer.get(key).and_then(|object| generation(&*object));
            if *times >= WRITES_IN_A_ROW_MAX { Verdict::Retry { generation } } else { verdict }
        } else {
            unsettled.remove(key);
            verdict
        };
        self.work.done(key, verdict);
    }

    async fn pass(self: Arc<Self>, taken: Taken<ObjectKey>) -> (ObjectKey, Verdict) {
        let key = taken.key.clone();
        let _busy = self.work.metrics.busy();
        self.work.metrics.started(taken.waited);
        // An object that is gone, or that somebody paused, is left alone until something happens to it.
        let object = self.informer.get(&key).filter(|object| annotation(&**object, PAUSED) != Some("true"));
        let Some(object) = object else { return (key, Verdict::Settled) };
        let id = format!("{:016x}", self.shared.env.random());
        let span = tracing::info_span!(
            "reconcile",
            controller = &*self.work.name,
            object = %key,
            cause = %taken.causes,
            id,
        );
        let ctx = self.context(taken);
        let verdict = self.judge(ctx, object).instrument(span).await;
        (key, verdict)
    }

    fn context(&self, taken: Taken<ObjectKey>) -> Context {
        let origin = Origin { controller: self.work.name.clone(), key: taken.key };
        let pass =
            Pass { origin, causes: taken.causes, attempt: taken.attempt, executor: self.executor.clone() };
        Context::new(self.shared.clone(), pass)
    }

    /// What would be done for an object, line by line.
    pub async fn preview(self: Arc<Self>, target: Target) -> Result<Vec<String>, Error> {
        let (key, object) = match target {
            Target::Named(key) => {
                let object = self.informer.get(&key);
                let missing = || Error::retry(format!("there is no {} {key}", self.kind));
                let object = object.ok_or_else(missing)?;
                (key, object)
            }
            Target::Written(value) => {
                let object: K = serde_json::from_value(value)
                    .map_err(|error| Error::retry(format!("this is no {}: {error}", self.kind)))?;
                (ObjectKey::of(object.meta()), Arc::new(object))
            }
        };
        let taken = Taken {
            key,
            causes: Causes::default(),
            attempt: 1,
            waited: Duration::ZERO,
            priority: Priority::NORMAL,
        };
        self.reconciler.preview(self.context(taken), object).await
    }

    /// Runs the pass, and turns whatever it does into a verdict.
    async fn judge(&self, ctx: Context, object: Arc<K>) -> Verdict {
        let started = self.shared.env.moment();
        let generation = generation(&*object);
        // A function may panic before it gives a future: the call is part of what is caught.
        let pass = async { self.reconciler.reconcile(ctx.clone(), object.clone()).await };
        let pass = AssertUnwindSafe(pass).catch_unwind();
        let ended = match self.timeout {
            Some(limit) => self.shared.env.within(limit, pass).await,
            None => Some(pass.await),
        };
        let (ended, verdict) = match ended {
            Some(Ok(Ok(outcome))) => self.outcome(&object, outcome, generation),
            Some(Ok(Err(error))) => match error.problem() {
                Some(problem) => self.stalled(&object, &problem.reason, &error.to_string(), generation),
                None => {
                    let attempt = ctx.attempt();
                    // A kind that cannot be read is told of once, by its informer, and not by everyone who reads it.
                    match error.is_of_cache() {
                        true => tracing::debug!(attempt, %error, "reconcile failed"),
                        false => tracing::warn!(attempt, %error, "reconcile failed"),
                    }
                    self.failed(&object, "ReconcileFailed", error.to_string(), generation)
                }
            },
            Some(Err(panic)) => {
                let panic = panic_message(&*panic);
                tracing::error!(panic, "reconcile panicked");
                self.work.metrics.panicked();
                self.failed(
                    &object,
                    "ReconcilePanicked",
                    format!("the operator panicked: {panic}"),
                    generation,
                )
            }
            None => {
                let limit = self.timeout.unwrap_or_default();
                tracing::warn!(?limit, "reconcile took too long, and was ended");
                self.work.metrics.timed_out();
                self.failed(
                    &object,
                    "ReconcileTimedOut",
                    format!("it took longer than {limit:?}"),
                    generation,
                )
            }
        };
        let took = self.shared.env.moment() - started;
        tracing::debug!(?ended, ?took, "reconciled");
        self.work.metrics.reconciled(ended, took);
        verdict
    }

    fn outcome(&self, object: &K, outcome: Outcome, generation: Option<i64>) -> (Ended, Verdict) {
        match outcome {
            Outcome::AwaitChange => match self.every {
                Some(every) => (Ended::Success, Verdict::After(self.shared.env.jittered(every, 0.1))),
                None => (Ended::Success, Verdict::Settled),
            },
            Outcome::Again => (Ended::Requeue, Verdict::Again),
            Outcome::After(delay) => (Ended::RequeueAfter, Verdict::After(delay)),
            Outcome::At(time) => {
                let rest = Duration::try_from(time.duration_since(self.shared.env.now())).unwrap_or_default();
                (Ended::RequeueAfter, Verdict::After(rest))
            }
            Outcome::Terminal(problem) => self.stalled(object, &problem.reason, &problem.message, generation),
        }
    }

    fn failed(&self, object: &K, reason: &str, note: String, generation: Option<i64>) -> (Ended, Verdict) {
        self.tell(object, reason, note);
        (Ended::Error, Verdict::Retry { generation })
    }

    fn stalled(&self, object: &K, reason: &str, message: &str, generation: Option<i64>) -> (Ended, Verdict) {
        tracing::error!(reason, message, "reconcile cannot go on until the spec changes");
        self.tell(object, "ReconcileStalled", format!("{reason}: {message}"));
        (Ended::Terminal, Verdict::Terminal { generation })
    }

    fn tell(&self, object: &K, reason: &str, note: String) {
        let regarding = reference(&self.kind, object.meta());
        self.shared.recorder.publish(&regarding, Event::warning(reason, "Reconcile", note));
    }
}
