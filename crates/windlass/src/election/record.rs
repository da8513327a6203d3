//! What a lease says, and for how long it has been saying it. Pure: time comes in.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use windlass_core::Moment;

/// The record of a lease as it was last seen, and when it was first seen so.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    pub(super) spec: LeaseSpec,
    pub(super) since: Moment,
}

impl Observed {
    /// Who holds it, if anybody does.
    pub(super) fn holder(&self) -> Option<&str> {
        self.spec.holder_identity.as_deref().filter(|holder| !holder.is_empty())
    }

    /// When it expires, by the clock of whoever looks. The times in the record are another clock's, and are not read.
    pub(super) fn expires(&self) -> Moment {
        let seconds = self.spec.lease_duration_seconds.unwrap_or_default();
        self.since + Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
    }
}

/// What was seen at `now`, after what was seen before: a record that did not change is as old as it was.
pub(super) fn observe(before: Option<Observed>, spec: LeaseSpec, now: Moment) -> Observed {
    match before {
        Some(before) if before.spec == spec => before,
        _ => Observed { spec, since: now },
    }
}

/// The record of whoever takes or renews the lease. `before` is the record as it is on the server.
pub(super) fn held(before: &LeaseSpec, identity: &str, duration: Duration, now: Timestamp) -> LeaseSpec {
    let renews = before.holder_identity.as_deref() == Some(identity);
    let mut renewed = MicroTime(now);
    let mut acquired = Some(renewed.clone());
    let mut transitions = before.lease_transitions.unwrap_or_default().saturating_add(1);
    if renews {
        acquired.clone_from(&before.acquire_time);
        transitions = before.lease_transitions.unwrap_or_default();
        // A clock that stands still, or that somebody sets back, must not make two renewals the same record: others would
        // take the second for none.
        if let Some(MicroTime(last)) = &before.renew_time {
            let next = last.saturating_add(SignedDuration::from_micros(1)).unwrap_or(Timestamp::MAX);
            renewed = MicroTime(now.max(next));
        }
    }
    LeaseSpec {
        holder_identity: Some(identity.to_owned()),
        lease_duration_seconds: Some(i32::try_from(duration.as_secs()).unwrap_or(i32::MAX)),
        acquire_time: acquired,
        renew_time: Some(renewed),
        lease_transitions: Some(transitions),
        ..before.clone()
    }
}

/// The record of a lease that did not exist.
pub(super) fn first(identity: &str, duration: Duration, now: Timestamp) -> LeaseSpec {
    LeaseSpec { lease_transitions: Some(0), ..held(&LeaseSpec::default(), identity, duration, now) }
}

/// The record of a lease that was given back.
pub(super) fn released(before: &LeaseSpec, now: Timestamp) -> LeaseSpec {
    LeaseSpec {
        holder_identity: None,
        lease_duration_seconds: Some(1),
        acquire_time: Some(MicroTime(now)),
        renew_time: Some(MicroTime(now)),
        ..before.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DURATION: Duration = Duration::from_secs(15);

    fn at(seconds: u64) -> Moment {
        Moment::after_start(Duration::from_secs(seconds))
    }

    fn wall(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_record_expires_by_the_time_for_which_it_did_not_change() {
        let spec = first("a", DURATION, wall("2026-01-01T00:00:00Z"));
        let seen = observe(None, spec.clone(), at(100));
        let again = observe(Some(seen), spec.clone(), at(110));
        assert_eq!(again.expires(), at(115));
        let renewed = held(&spec, "a", DURATION, wall("1999-01-01T00:00:00Z"));
        assert_eq!(observe(Some(again), renewed, at(112)).expires(), at(127), "whatever its clock shows");
    }

    #[test]
    fn transitions_and_times_are_client_gos() {
        let one = first("a", DURATION, wall("2026-01-01T00:00:00Z"));
        assert_eq!(one.lease_transitions, Some(0));
        assert_eq!(one.lease_duration_seconds, Some(15));
        let two = held(&one, "a", DURATION, wall("2026-01-01T00:00:02Z"));
        assert_eq!((&two.acquire_time, two.lease_transitions), (&one.acquire_time, Some(0)));
        assert_eq!(two.renew_time, Some(MicroTime(wall("2026-01-01T00:00:02Z"))));
        let taken = held(&two, "b", DURATION, wall("2026-01-01T00:00:30Z"));
        assert_eq!(taken.acquire_time, Some(MicroTime(wall("2026-01-01T00:00:30Z"))));
        assert_eq!(taken.lease_transitions, Some(1));
        let free = released(&taken, wall("2026-01-01T00:00:40Z"));
        assert_eq!(
            (&free.holder_identity, free.lease_duration_seconds, free.lease_transitions),
            (&None, Some(1), Some(1))
        );
    }

    #[test]
    fn two_renewals_are_never_the_same_record() {
        let now = wall("2026-01-01T00:00:00Z");
        let one = first("a", DURATION, now);
        let two = held(&one, "a", DURATION, now);
        assert_ne!(one, two);
        let three = held(&two, "a", DURATION, wall("2025-01-01T00:00:00Z"));
        assert_ne!(two, three);
    }
}
