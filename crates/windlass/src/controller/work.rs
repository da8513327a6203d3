//! The queue of one controller, and what wakes it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use windlass_core::queue::{Config, Queue, Verdict, Wake};
use windlass_core::{Cause, ObjectKey, Origin};

use crate::context::Shared;
use crate::env::Env;
use crate::metrics::{ControllerMetrics, QueueState};

/// The work of one controller. Informers and timers add to it, its workers take from it.
pub(crate) struct Work {
    pub name: Arc<str>,
    pub metrics: ControllerMetrics,
    env: Env,
    queue: Mutex<Queue<ObjectKey>>,
    /// Somebody added something.
    pub woken: Notify,
}

impl Work {
    pub fn new(name: Arc<str>, shared: &Shared, config: Config) -> Arc<Work> {
        let metrics = shared.metrics.controller(&name);
        let queue = Mutex::new(Queue::new(config));
        let work = Arc::new(Work { name, metrics, env: shared.env.clone(), queue, woken: Notify::new() });
        let observed = Arc::downgrade(&work);
        work.metrics.observe_queue(move || observed.upgrade().map(|work| work.state()).unwrap_or_default());
        work
    }

    fn state(&self) -> QueueState {
        let figures = self.queue().figures(self.env.moment());
        QueueState {
            depth: figures.depth.iter().map(|(priority, count)| (i64::from(priority.0), *count)).collect(),
            unfinished: figures.unfinished,
            longest: figures.longest,
        }
    }

    /// The queue, for a moment.
    pub fn queue(&self) -> MutexGuard<'_, Queue<ObjectKey>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a look at an object.
    pub fn wake(&self, key: ObjectKey, wake: Wake) {
        self.queue().add(self.env.moment(), &key, wake);
        self.metrics.added();
        self.woken.notify_one();
    }

    /// Asks for a look at an object, unless the asking is an echo of what this controller wrote while it looked at it.
    pub fn wake_unless_own(&self, key: ObjectKey, origin: Option<&Origin>, wake: Wake) {
        if !origin.is_some_and(|origin| origin.controller == self.name && origin.key == key) {
            self.wake(key, wake);
        }
    }

    /// An event that was already handed on was this controller's own write: takes the wake-up back.
    pub fn take_back(&self, kind: &str, object: &ObjectKey, version: u64, origin: &Origin) {
        if origin.controller == self.name {
            self.queue().disown(self.env.moment(), &origin.key, |cause| match cause {
                Cause::Changed { kind: k, object: o, version: v }
                | Cause::Deleted { kind: k, object: o, version: v } => {
                    **k == *kind && o == object && *v == version
                }
                _ => false,
            });
        }
    }

    /// A pass has ended.
    pub fn done(&self, key: &ObjectKey, verdict: Verdict) {
        let took = self.queue().done(self.env.moment(), key, verdict, self.env.random());
        if let Verdict::Retry { .. } = verdict {
            self.metrics.retried();
        }
        self.metrics.finished(took.unwrap_or_default());
    }

    /// The object is gone: nothing is left to do for it.
    pub fn forget(&self, key: &ObjectKey) {
        self.queue().forget(key);
    }
}
