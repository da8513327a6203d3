//! How long to wait before something that failed is tried again: ten seconds, doubled each time, up to five minutes.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// The first wait, and the longest one.
pub const FIRST: Duration = Duration::from_secs(10);
const MAX: Duration = Duration::from_secs(300);

/// The waits of one container, or of one image of one pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backoff(Option<Entry>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    wait: Duration,
    updated: Timestamp,
}

impl Backoff {
    /// Until when to wait after something that ended `since`; `None` if it may be tried at once. What went well for
    /// twice the longest wait starts afresh.
    pub fn until(&self, since: Timestamp) -> Option<Timestamp> {
        let entry = self.0.filter(|entry| !entry.is_over(since))?;
        Some(later(since, entry.wait))
    }

    /// How long the wait is.
    pub fn wait(&self) -> Duration {
        self.0.map_or(Duration::ZERO, |entry| entry.wait)
    }

    /// It is tried again now, after it ended `since`: the next wait is longer.
    pub fn next(&mut self, since: Timestamp, now: Timestamp) {
        let wait = match self.0.filter(|entry| !entry.is_over(since)) {
            Some(entry) => (entry.wait * 2).min(MAX),
            None => FIRST,
        };
        self.0 = Some(Entry { wait, updated: now });
    }
}

impl Entry {
    fn is_over(&self, since: Timestamp) -> bool {
        since.duration_since(self.updated) > SignedDuration::try_from(MAX * 2).unwrap_or(SignedDuration::MAX)
    }
}

/// A time that is this much later, or the last one there is.
pub fn later(time: Timestamp, by: Duration) -> Timestamp {
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
    time.saturating_add(by).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        later(Timestamp::UNIX_EPOCH, Duration::from_secs(seconds))
    }

    #[test]
    fn waits_double_up_to_five_minutes_and_start_afresh_after_ten() {
        let mut backoff = Backoff::default();
        assert_eq!(backoff.until(at(0)), None, "the first time nothing is waited for");
        let mut now = 0;
        for expected in [10, 20, 40, 80, 160, 300, 300] {
            backoff.next(at(now), at(now));
            let until = backoff.until(at(now + 1)).unwrap();
            assert_eq!(until, at(now + 1 + expected));
            now += 1 + expected;
        }
        assert!(backoff.until(at(now + 299)).is_some());
        assert_eq!(backoff.until(at(now + 300)), None);
        backoff.next(at(now + 700), at(now + 700));
        assert_eq!(backoff.wait(), FIRST);
    }
}
