//! How a queue is set up.

use std::num::NonZeroU32;
use std::time::Duration;

/// How a [`Queue`](super::Queue) behaves.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// How long a key that failed waits.
    pub backoff: Backoff,
    /// How many keys are handed out in a time, over all; `None` does not limit it.
    pub bucket: Option<Bucket>,
    /// Every so many-th turn goes by age: to the priority whose key has been ready the longest, however low it is.
    /// The others go to the highest priority. By default every second one.
    ///
    /// This is counted in turns and not in time, so that it holds for slow passes and for a clock that stands still: of
    /// `n` keys that are ready, each is handed out within `n × oldest_every` turns, whatever else comes.
    pub oldest_every: NonZeroU32,
}

/// How long a key that failed waits: twice as long after each failure in a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// After the first failure. By default 5 ms.
    pub base: Duration,
    /// At the most. By default 1000 s.
    pub max: Duration,
    /// Up to this fraction of the wait is left out at random, so that what failed together does not come back
    /// together. By default 0.2.
    pub jitter: f64,
}

/// A token bucket: keys are handed out at a steady pace, with some in reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// A token comes this often.
    pub every: Duration,
    /// So many tokens are kept while nobody asks; at least one.
    pub burst: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config { backoff: Backoff::default(), bucket: None, oldest_every: NonZeroU32::MIN.saturating_add(1) }
    }
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff { base: Duration::from_millis(5), max: Duration::from_secs(1000), jitter: 0.2 }
    }
}

impl Backoff {
    /// The wait after so many failures in a row; `random` is any number.
    pub fn wait(&self, failures: u32, random: u64) -> Duration {
        let doublings = failures.saturating_sub(1);
        let factor = 1u32.checked_shl(doublings).unwrap_or(u32::MAX);
        let full = self.base.saturating_mul(factor).min(self.max);
        // 53 bits are what a double holds exactly.
        let fraction = (random >> 11) as f64 / (1u64 << 53) as f64;
        full.mul_f64(1.0 - self.jitter.clamp(0.0, 1.0) * fraction)
    }
}

impl Bucket {
    /// So many keys in a second, after a burst.
    ///
    /// # Panics
    /// When the rate is not a positive number.
    pub fn per_second(rate: f64, burst: u32) -> Bucket {
        assert!(rate > 0.0 && rate.is_finite(), "a rate of {rate} in a second hands out nothing");
        Bucket { every: Duration::from_secs_f64(1.0 / rate), burst }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_maximum() {
        let backoff = Backoff { jitter: 0.0, ..Backoff::default() };
        let millis = |failures| backoff.wait(failures, u64::MAX).as_millis();
        assert_eq!([1, 2, 3, 11].map(millis), [5, 10, 20, 5120]);
        assert_eq!(
            [18, 19, 32, 33, u32::MAX].map(millis),
            [655_360, 1_000_000, 1_000_000, 1_000_000, 1_000_000]
        );
    }

    #[test]
    fn jitter_only_shortens() {
        let backoff = Backoff { jitter: 0.5, ..Backoff::default() };
        assert_eq!(backoff.wait(2, 0), Duration::from_millis(10));
        let shortest = backoff.wait(2, u64::MAX);
        assert!((Duration::from_millis(5)..Duration::from_micros(5001)).contains(&shortest), "{shortest:?}");
    }
}
