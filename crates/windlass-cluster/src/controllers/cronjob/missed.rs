//! Which time has come, and when the next one does.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{CronJob, CronJobSpec, CronJobStatus};
use windlass_core::cron::Schedule;

/// A time that has come.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Due {
    pub time: Timestamp,
    /// Whether more than a hundred have come since anybody looked.
    pub many: bool,
}

/// It is looked a little after the time: clocks differ.
const DELTA: Duration = Duration::from_millis(100);

/// From when on times count.
fn earliest(cron: &CronJob, status: &CronJobStatus) -> Timestamp {
    let created = cron.metadata.creation_timestamp.as_ref();
    let since = status.last_schedule_time.as_ref().or(created);
    since.map_or(Timestamp::UNIX_EPOCH, |time| time.0)
}

/// The latest time that has come and was not acted on.
pub(super) fn due(
    cron: &CronJob,
    status: &CronJobStatus,
    schedule: &Schedule,
    now: Timestamp,
) -> Option<Due> {
    let mut since = earliest(cron, status);
    if let Some(limit) = deadline(&cron.spec) {
        since = since.max(now.checked_sub(limit).ok()?);
    }
    latest(since, schedule, now)
}

fn deadline(spec: &CronJobSpec) -> Option<Duration> {
    spec.starting_deadline_seconds.map(|seconds| Duration::from_secs(seconds.try_into().unwrap_or_default()))
}

/// Whether a time has come too long ago.
pub(super) fn is_too_late(spec: &CronJobSpec, time: Timestamp, now: Timestamp) -> bool {
    deadline(spec).is_some_and(|limit| time.checked_add(limit).is_ok_and(|last| last < now))
}

fn latest(since: Timestamp, schedule: &Schedule, now: Timestamp) -> Option<Due> {
    let first = schedule.next(since)?;
    if now < first {
        return None;
    }
    let Some(second) = schedule.next(first).filter(|second| *second <= now) else {
        return Some(Due { time: first, many: false });
    };
    // How many it may be by the distance of the first two; near the end they are looked at one by one.
    let between = second.duration_since(first).as_secs().max(1);
    let missed = now.duration_since(first).as_secs() / between + 1;
    let near =
        first.checked_add(Duration::from_secs(u64::try_from((missed - 2) * between).unwrap_or_default()));
    let mut time = None;
    let mut next = schedule.next(near.ok()?.min(now));
    while let Some(come) = next.filter(|come| *come <= now) {
        time = Some(come);
        next = schedule.next(come);
    }
    Some(Due { time: time?, many: missed > 100 })
}

/// When to look next.
pub(super) fn next_look(
    cron: &CronJob,
    status: &CronJobStatus,
    schedule: &Schedule,
    now: Timestamp,
) -> Option<Timestamp> {
    let since = earliest(cron, status);
    let last = latest(since, schedule, now).map_or(since, |due| due.time);
    schedule.next(last)?.checked_add(DELTA).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::TimeZone;
    use serde_json::json;

    fn check(
        schedule: &str,
        since: &str,
        deadline: Option<i64>,
        now: &str,
    ) -> (Option<(String, bool)>, String) {
        let cron: CronJob = serde_json::from_value(json!({
            "metadata": {"creationTimestamp": since},
            "spec": {"schedule": schedule, "startingDeadlineSeconds": deadline, "jobTemplate": {}},
        }))
        .unwrap();
        let schedule = Schedule::parse(schedule, |_| Ok(TimeZone::UTC)).unwrap();
        let (status, now) = (CronJobStatus::default(), now.parse().unwrap());
        let due = due(&cron, &status, &schedule, now).map(|due| (due.time.to_string(), due.many));
        (due, next_look(&cron, &status, &schedule, now).unwrap().to_string())
    }

    #[test]
    fn the_latest_time_counts() {
        let since = "2026-01-01T00:00:30Z";
        assert_eq!(
            check("*/5 * * * *", since, None, "2026-01-01T00:04:59Z"),
            (None, "2026-01-01T00:05:00.1Z".into())
        );
        let one = Some(("2026-01-01T00:05:00Z".to_owned(), false));
        assert_eq!(
            check("*/5 * * * *", since, None, "2026-01-01T00:05:00Z"),
            (one, "2026-01-01T00:10:00.1Z".into())
        );
        let few = Some(("2026-01-01T00:15:00Z".to_owned(), false));
        assert_eq!(check("*/5 * * * *", since, None, "2026-01-01T00:17:00Z").0, few);
        let many = Some(("2026-01-02T00:00:00Z".to_owned(), true));
        assert_eq!(check("*/5 * * * *", since, None, "2026-01-02T00:00:01Z").0, many);
        assert_eq!(check("0 * * * *", since, Some(60), "2026-01-01T05:30:00Z").0, None, "too long ago");
    }
}
