//! How long a node waits for the next pod after one that failed there.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

/// After the first failure,
const FIRST: Duration = Duration::from_secs(1);
/// and twice as long each time, up to this.
const LONGEST: Duration = Duration::from_secs(15 * 60);

/// A DaemonSet by its uid and generation, and a node.
pub(super) type Key = (String, i64, String);

/// The failures of late.
#[derive(Default)]
pub(super) struct Backoff(BTreeMap<Key, (Timestamp, Duration)>);

impl Backoff {
    /// Until when a failed pod is left; `None` lets it go now, and counts that.
    pub fn hold(&mut self, key: Key, now: Timestamp) -> Option<Timestamp> {
        let until = |(since, wait): &(Timestamp, Duration)| since.checked_add(*wait).unwrap_or(*since);
        let before = self.0.get(&key);
        if let Some(until) = before.map(until).filter(|until| *until > now) {
            return Some(until);
        }
        // Who has had peace for long enough begins anew.
        let rested =
            |(since, _): &&(Timestamp, Duration)| since.checked_add(2 * LONGEST).is_ok_and(|end| end < now);
        let wait = match before.filter(|one| !rested(one)) {
            Some((_, wait)) => (*wait * 2).min(LONGEST),
            None => FIRST,
        };
        self.0.retain(|_, one| !rested(&&*one));
        self.0.insert(key, (now, wait));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_longer_each_time() {
        let mut backoff = Backoff::default();
        let key = || ("uid".to_owned(), 1, "node".to_owned());
        let at = |seconds: i64| Timestamp::from_second(seconds).unwrap();
        assert_eq!(backoff.hold(key(), at(0)), None);
        assert_eq!(backoff.hold(key(), at(0)), Some(at(1)));
        assert_eq!(backoff.hold(key(), at(1)), None);
        assert_eq!(backoff.hold(key(), at(2)), Some(at(3)));
        assert_eq!(backoff.hold(("uid".to_owned(), 2, "node".to_owned()), at(2)), None);
        assert_eq!(backoff.hold(key(), at(100_000)), None);
        assert_eq!(backoff.hold(key(), at(100_000)), Some(at(100_001)));
    }
}
