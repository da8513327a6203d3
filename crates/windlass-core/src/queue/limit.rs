//! The token bucket at work.

use std::time::Duration;

use super::Bucket;
use crate::Moment;

/// A bucket as the moment at which it would be full again: no count that has to be filled up as time goes by.
#[derive(Clone, Debug)]
pub(super) struct Limit {
    every: Duration,
    /// How far ahead of the clock `full` may be while there is still a token.
    reserve: Duration,
    full: Moment,
}

impl Limit {
    pub(super) fn new(bucket: Bucket) -> Limit {
        let reserve = bucket.every.saturating_mul(bucket.burst.saturating_sub(1));
        Limit { every: bucket.every, reserve, full: Moment::START }
    }

    /// When there is a token: now, or later.
    pub(super) fn when(&self, now: Moment) -> Moment {
        let ahead = self.full - now;
        now + ahead.saturating_sub(self.reserve)
    }

    /// Takes a token, which has to be there.
    pub(super) fn spend(&mut self, now: Moment) {
        self.full = self.full.max(now) + self.every;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::after_start(Duration::from_millis(millis))
    }

    #[test]
    fn a_burst_and_then_a_steady_pace() {
        let mut limit = Limit::new(Bucket::per_second(10.0, 3));
        let mut spent = Vec::new();
        let mut now = at(1000);
        for _ in 0..5 {
            now = limit.when(now);
            limit.spend(now);
            spent.push(now);
        }
        assert_eq!(spent, [1000, 1000, 1000, 1100, 1200].map(at));
        // What nobody asked for is kept, up to the burst.
        let later = at(60_000);
        for _ in 0..3 {
            assert_eq!(limit.when(later), later);
            limit.spend(later);
        }
        assert_eq!(limit.when(later), at(60_100));
    }
}
