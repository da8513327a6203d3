//! Of controllers and their queues.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use super::Metrics;
use super::family::Family;

type Seconds = Gauge<f64, AtomicU64>;

/// The buckets of controller-runtime and client-go for things that take from milliseconds to a minute.
pub(super) const SECONDS: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25,
    1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0,
    50.0, 60.0,
];

/// How a pass ended, as controller-runtime tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Well, with nothing to do until something changes.
    Success,
    /// By an error that is tried again.
    Error,
    /// By an error that is not tried again until the spec changes.
    Terminal,
    /// Well, with another look at once.
    Requeue,
    /// Well, with another look after a while.
    RequeueAfter,
}

/// What is in a queue at the time of asking.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueState {
    /// How many keys wait, by their priority.
    pub depth: BTreeMap<i64, usize>,
    /// How long the passes that run have taken so far, together.
    pub unfinished: Duration,
    /// How long the longest of them has taken so far.
    pub longest: Duration,
}

/// The metrics of one controller. Clones are the same metrics.
#[derive(Clone, Debug)]
pub struct ControllerMetrics {
    name: Arc<str>,
    metrics: Metrics,
    success: Counter,
    error: Counter,
    requeue: Counter,
    requeue_after: Counter,
    errors: Counter,
    terminal: Counter,
    panics: Counter,
    timeouts: Counter,
    time: Histogram,
    workers: Gauge,
    active: Gauge,
    adds: Counter,
    retries: Counter,
    queued: Histogram,
    worked: Histogram,
}

impl ControllerMetrics {
    /// How many passes may run at once.
    pub fn workers(&self, count: usize) {
        self.workers.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// One more worker is busy, until the answer is dropped.
    #[must_use = "the worker counts as busy until this is dropped"]
    pub fn busy(&self) -> Busy {
        self.active.inc();
        Busy(self.active.clone())
    }

    /// A pass ended, after this time.
    pub fn reconciled(&self, ended: Ended, took: Duration) {
        self.time.observe(took.as_secs_f64());
        match ended {
            Ended::Success => &self.success,
            Ended::Error | Ended::Terminal => &self.error,
            Ended::Requeue => &self.requeue,
            Ended::RequeueAfter => &self.requeue_after,
        }
        .inc();
        if matches!(ended, Ended::Error | Ended::Terminal) {
            self.errors.inc();
        }
        if ended == Ended::Terminal {
            self.terminal.inc();
        }
    }

    /// A pass panicked. It ended by an error as well, which is [counted](Self::reconciled) of its own.
    pub fn panicked(&self) {
        self.panics.inc();
    }

    /// A pass took longer than it may. It ended by an error as well, which is [counted](Self::reconciled) of its own.
    pub fn timed_out(&self) {
        self.timeouts.inc();
    }

    /// A key was added to the queue.
    pub fn added(&self) {
        self.adds.inc();
    }

    /// A key was added to the queue to be tried again.
    pub fn retried(&self) {
        self.retries.inc();
    }

    /// A worker took a key that had waited for this long.
    pub fn started(&self, waited: Duration) {
        self.queued.observe(waited.as_secs_f64());
    }

    /// A worker is done with a key, after this time.
    pub fn finished(&self, took: Duration) {
        self.worked.observe(took.as_secs_f64());
    }

    /// Where to see what is in the queue, whenever metrics are shown. It stays as long as the metrics do, so it should
    /// hold the queue weakly.
    pub fn observe_queue(&self, state: impl Fn() -> QueueState + Send + Sync + 'static) {
        let families = self.metrics.0.controller.clone();
        let name = self.name.clone();
        let unfinished = families.unfinished.of([&name, &name]);
        let longest = families.longest.of([&name, &name]);
        self.metrics.on_collect(move || {
            let state = state();
            unfinished.set(state.unfinished.as_secs_f64());
            longest.set(state.longest.as_secs_f64());
            // A priority that nobody waits with any more is shown as empty, not with what it once was.
            for (_, depth) in families.depth.all().into_iter().filter(|([series, ..], _)| **series == *name) {
                depth.set(0);
            }
            for (priority, count) in state.depth {
                let depth = families.depth.of([&name, &name, &priority.to_string()]);
                depth.set(i64::try_from(count).unwrap_or(i64::MAX));
            }
        });
    }
}

/// A worker that is busy.
#[derive(Debug)]
pub struct Busy(Gauge);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[derive(Clone, Debug)]
pub(super) struct ControllerFamilies {
    results: Family<2, Counter>,
    errors: Family<1, Counter>,
    terminal: Family<1, Counter>,
    panics: Family<1, Counter>,
    timeouts: Family<1, Counter>,
    time: Family<1, Histogram>,
    workers: Family<1, Gauge>,
    active: Family<1, Gauge>,
    depth: Family<3, Gauge>,
    adds: Family<2, Counter>,
    queued: Family<2, Histogram>,
    worked: Family<2, Histogram>,
    unfinished: Family<2, Seconds>,
    longest: Family<2, Seconds>,
    retries: Family<2, Counter>,
}

impl ControllerFamilies {
    pub(super) fn register(to: &mut Registry) -> ControllerFamilies {
        let queue = || Histogram::new(exponential_buckets(10e-9, 10.0, 12));
        let of_controller = ["controller"];
        let of_queue = ["name", "controller"];
        let all = ControllerFamilies {
            results: Family::new(["controller", "result"], Counter::default),
            errors: Family::new(of_controller, Counter::default),
            terminal: Family::new(of_controller, Counter::default),
            panics: Family::new(of_controller, Counter::default),
            timeouts: Family::new(of_controller, Counter::default),
            time: Family::new(of_controller, || Histogram::new(SECONDS)),
            workers: Family::new(of_controller, Gauge::default),
            active: Family::new(of_controller, Gauge::default),
            depth: Family::new(["name", "controller", "priority"], Gauge::default),
            adds: Family::new(of_queue, Counter::default),
            queued: Family::new(of_queue, queue),
            worked: Family::new(of_queue, queue),
            unfinished: Family::new(of_queue, Seconds::default),
            longest: Family::new(of_queue, Seconds::default),
            retries: Family::new(of_queue, Counter::default),
        };
        let shown = all.clone();
        to.register("controller_runtime_reconcile", "Passes by controller and result", shown.results);
        to.register("controller_runtime_reconcile_errors", "Passes that ended by an error", shown.errors);
        to.register(
            "controller_runtime_terminal_reconcile_errors",
            "Passes that ended by an error that is not tried again",
            shown.terminal,
        );
        to.register("controller_runtime_reconcile_panics", "Passes that panicked", shown.panics);
        to.register("controller_runtime_reconcile_timeouts", "Passes that took too long", shown.timeouts);
        to.register("controller_runtime_reconcile_time_seconds", "How long passes take", shown.time);
        to.register("controller_runtime_max_concurrent_reconciles", "How many passes may run", shown.workers);
        to.register("controller_runtime_active_workers", "How many passes run now", shown.active);
        to.register("workqueue_depth", "How many keys wait, by priority", shown.depth);
        to.register("workqueue_adds", "Keys that were added", shown.adds);
        to.register("workqueue_queue_duration_seconds", "How long keys wait", shown.queued);
        to.register("workqueue_work_duration_seconds", "How long keys are worked on", shown.worked);
        to.register(
            "workqueue_unfinished_work_seconds",
            "How long the passes that run have taken so far, together; what grows for long is stuck",
            shown.unfinished,
        );
        to.register(
            "workqueue_longest_running_processor_seconds",
            "How long the longest of the passes that run has taken so far",
            shown.longest,
        );
        to.register("workqueue_retries", "Keys that were added to be tried again", shown.retries);
        all
    }

    /// All series of a controller are there from the start, at zero: a rate over a series that appears with its first
    /// error does not see that error.
    pub(super) fn of(&self, name: &str, metrics: &Metrics) -> ControllerMetrics {
        let of_queue = [name, name];
        ControllerMetrics {
            name: name.into(),
            metrics: metrics.clone(),
            success: self.results.of([name, "success"]),
            error: self.results.of([name, "error"]),
            requeue: self.results.of([name, "requeue"]),
            requeue_after: self.results.of([name, "requeue_after"]),
            errors: self.errors.of([name]),
            terminal: self.terminal.of([name]),
            panics: self.panics.of([name]),
            timeouts: self.timeouts.of([name]),
            time: self.time.of([name]),
            workers: self.workers.of([name]),
            active: self.active.of([name]),
            adds: self.adds.of(of_queue),
            retries: self.retries.of(of_queue),
            queued: self.queued.of(of_queue),
            worked: self.worked.of(of_queue),
        }
    }
}
