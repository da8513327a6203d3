//! Clock, randomness and tasks: everything that makes two runs differ, in one value.

mod task;

pub(crate) use task::panic_message;

pub use task::{Died, Task};

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;
use windlass_core::{Moment, Random};

/// Where the framework takes the time, random numbers and tasks from. Clones are the same environment.
///
/// On a paused single-threaded runtime, a [seeded](Env::seeded) environment makes the same requests in the same order.
#[derive(Clone)]
pub struct Env(Arc<Inner>);

struct Inner {
    clock: Clock,
    /// When this environment was made: the start of its [`Moment`]s.
    start: Instant,
    random: Mutex<Random>,
    on_crash_point: Option<CrashHook>,
}

enum Clock {
    Machine,
    /// The runtime's clock, which showed this when the environment was made.
    Runtime(Timestamp),
}

type CrashHook = Box<dyn Fn(&str) + Send + Sync>;

impl Env {
    /// The machine's clock and randomness.
    ///
    /// # Panics
    /// When the machine has no randomness to give, which no program can go on from.
    pub fn system() -> Env {
        let mut seed = [0; 8];
        getrandom::fill(&mut seed).expect("the machine gives random bytes");
        Env::new(Clock::Machine, u64::from_le_bytes(seed), None)
    }

    /// Random numbers from a seed, and a clock that shows `now` and follows the runtime's from here.
    pub fn seeded(seed: u64, now: Timestamp) -> Env {
        Env::new(Clock::Runtime(now), seed, None)
    }

    /// The same kind of environment with a start of its own, which tells `hook` of every point where a crash is of
    /// interest: after each write, by its name.
    #[must_use]
    pub fn with_crash_points(&self, hook: impl Fn(&str) + Send + Sync + 'static) -> Env {
        let clock = match self.0.clock {
            Clock::Machine => Clock::Machine,
            Clock::Runtime(_) => Clock::Runtime(self.now()),
        };
        Env::new(clock, self.random(), Some(Box::new(hook)))
    }

    fn new(clock: Clock, seed: u64, on_crash_point: Option<CrashHook>) -> Env {
        let random = Mutex::new(Random::from_seed(seed));
        Env(Arc::new(Inner { clock, start: Instant::now(), random, on_crash_point }))
    }

    /// The time on the wall.
    pub fn now(&self) -> Timestamp {
        match self.0.clock {
            Clock::Machine => Timestamp::now(),
            Clock::Runtime(start) => {
                let passed = SignedDuration::try_from(self.0.start.elapsed()).unwrap_or(SignedDuration::MAX);
                start.saturating_add(passed).unwrap_or(Timestamp::MAX)
            }
        }
    }

    /// The time that only goes forward. It goes on while the process is stopped.
    pub fn moment(&self) -> Moment {
        Moment::after_start(self.0.start.elapsed())
    }

    /// Waits.
    pub async fn sleep(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// Waits for a moment; a moment that is past waits for nothing.
    pub async fn sleep_until(&self, moment: Moment) {
        let far = self.0.start + FAR;
        tokio::time::sleep_until(
            self.0.start.checked_add(moment.since_start()).map_or(far, |at| at.min(far)),
        )
        .await;
    }

    /// Waits for a future, but not longer than this.
    pub async fn within<F: Future>(&self, time: Duration, future: F) -> Option<F::Output> {
        tokio::time::timeout(time, future).await.ok()
    }

    /// The next random number.
    pub fn random(&self) -> u64 {
        self.0.random.lock().unwrap_or_else(PoisonError::into_inner).next()
    }

    /// A duration with up to `fraction` of it added at random, so that many do not come at once.
    pub fn jittered(&self, time: Duration, fraction: f64) -> Duration {
        let random = self.0.random.lock().unwrap_or_else(PoisonError::into_inner).fraction();
        time.mul_f64(1.0 + fraction * random)
    }

    /// Starts a task. Whoever holds it awaits it; dropping it ends it.
    pub fn spawn<F>(&self, name: &'static str, future: F) -> Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        Task::new(name, tokio::spawn(future))
    }

    /// A point where a crash is of interest.
    pub fn crash_point(&self, name: &str) {
        if let Some(hook) = &self.0.on_crash_point {
            hook(name);
        }
    }
}

/// Far enough ahead for any timer, and near enough for the runtime's arithmetic.
const FAR: Duration = Duration::from_secs(365 * 24 * 3600);

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Env").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_seeded_environment_follows_the_runtime() {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let env = Env::seeded(1, start);
        env.sleep(Duration::from_secs(90)).await;
        assert_eq!(env.now().to_string(), "2026-01-01T00:01:30Z");
        assert_eq!(env.moment(), Moment::after_start(Duration::from_secs(90)));
        env.sleep_until(Moment::START).await;
        assert_eq!(env.moment(), Moment::after_start(Duration::from_secs(90)));
        assert_eq!(env.random(), Env::seeded(1, start).random());
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_in_a_task_is_its_owners_to_handle() {
        let env = Env::seeded(1, Timestamp::UNIX_EPOCH);
        let task = env.spawn("doomed", async { panic!("oh no") });
        assert_eq!(task.await.unwrap_err().to_string(), "task doomed panicked: oh no");
    }
}
