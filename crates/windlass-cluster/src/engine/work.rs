//! The keys that one controller has to look at.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use windlass::Env;
use windlass_core::queue::{Config, Queue, Verdict, Wake};
use windlass_core::{Moment, ObjectKey};

/// The queue of one controller, and who waits for it.
pub(crate) struct Work {
    pub env: Env,
    queue: Mutex<Queue<ObjectKey>>,
    /// Somebody added something.
    pub woken: Notify,
}

impl Work {
    pub fn new(env: &Env) -> Work {
        Work { env: env.clone(), queue: Mutex::new(Queue::new(Config::default())), woken: Notify::new() }
    }

    /// The queue, for a moment.
    pub fn queue(&self) -> MutexGuard<'_, Queue<ObjectKey>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn wake(&self, key: &ObjectKey, wake: Wake) {
        self.queue().add(self.env.moment(), key, wake);
        self.woken.notify_one();
    }

    pub fn done(&self, key: &ObjectKey, verdict: Verdict) {
        self.queue().done(self.env.moment(), key, verdict, self.env.random());
    }

    pub fn next(&self) -> Option<Moment> {
        self.queue().next(self.env.moment())
    }
}
