//! How long to wait after a failure.

use std::time::Duration;

use crate::env::Env;

/// How long to wait after a failure: longer each time, and no two at once.
pub(super) struct Backoff {
    next: Duration,
    failed: bool,
}

impl Backoff {
    const FIRST: Duration = Duration::from_millis(800);
    const MAX: Duration = Duration::from_secs(30);

    pub(super) fn new() -> Backoff {
        Backoff { next: Backoff::FIRST, failed: false }
    }

    pub(super) fn reset(&mut self) {
        *self = Backoff::new();
    }

    pub(super) fn next(&mut self, env: &Env) -> Duration {
        let wait = self.next;
        *self = Backoff { next: (wait * 2).min(Backoff::MAX), failed: true };
        env.jittered(wait, 0.5)
    }

    /// For what is no failure when it happens once.
    pub(super) fn unless_first(&mut self, env: &Env) -> Duration {
        if self.failed {
            return self.next(env);
        }
        self.failed = true;
        Duration::ZERO
    }
}
