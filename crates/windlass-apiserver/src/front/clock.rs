//! What time it is, and when to wake up.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// The clock of a running server.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The machine's.
    System,
    /// The runtime's, counted from a given time. On a paused runtime it moves only when the test says so.
    Runtime {
        /// The time at `origin`.
        start: Timestamp,
        /// When it was started.
        origin: Instant,
    },
}

impl Clock {
    /// A clock that shows `start` now and follows the runtime's time from here.
    pub fn runtime(start: Timestamp) -> Clock {
        Clock::Runtime { start, origin: Instant::now() }
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        match self {
            Clock::System => Timestamp::now(),
            Clock::Runtime { start, origin } => {
                let passed =
                    jiff::SignedDuration::try_from(origin.elapsed()).unwrap_or(jiff::SignedDuration::MAX);
                start.saturating_add(passed).unwrap_or(Timestamp::MAX)
            }
        }
    }

    /// When the runtime has to wake up for a time: never at once, since a wall clock may stand still while the
    /// runtime's goes on, and whoever asks again for the same time would spin.
    pub(super) fn instant(&self, at: Timestamp) -> Instant {
        let rest = at.duration_since(self.now());
        let rest = Duration::try_from(rest).unwrap_or_default();
        Instant::now() + rest.clamp(Duration::from_millis(1), FAR)
    }
}

/// Far enough ahead for any deadline, and near enough for the runtime's arithmetic.
const FAR: Duration = Duration::from_secs(365 * 24 * 3600);

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_runtimes_clock_moves_with_the_runtime() {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let clock = Clock::runtime(start);
        assert_eq!(clock.now(), start);
        tokio::time::advance(Duration::from_secs(90)).await;
        assert_eq!(clock.now().to_string(), "2026-01-01T00:01:30Z");
    }

    #[tokio::test(start_paused = true)]
    async fn a_time_that_is_past_is_not_waited_for() {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let clock = Clock::runtime(start);
        assert_eq!(
            clock.instant(start - jiff::SignedDuration::from_hours(1)) - Instant::now(),
            Duration::from_millis(1)
        );
        assert_eq!(clock.instant(Timestamp::MAX) - Instant::now(), FAR);
    }
}
