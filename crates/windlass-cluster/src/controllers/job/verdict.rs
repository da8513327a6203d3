//! Whether a job is over, and how.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobSpec};

use super::pods::is_failed;
use super::policy::{self, Judged};
use super::status::{condition, is_suspended};
use super::tally::Tally;
use crate::controllers::pods as any;

/// How a job ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub success: bool,
    pub reason: String,
    pub message: String,
}

impl Verdict {
    pub fn new(success: bool, reason: &str, message: &str) -> Verdict {
        Verdict { success, reason: reason.to_owned(), message: message.to_owned() }
    }

    /// The condition that announces the end, while pods are still at it.
    pub fn interim(&self) -> &'static str {
        if self.success { "SuccessCriteriaMet" } else { "FailureTarget" }
    }

    /// The condition that says it has come.
    pub fn terminal(&self) -> &'static str {
        if self.success { "Complete" } else { "Failed" }
    }
}

/// That there were enough successes.
pub(super) fn completed() -> Verdict {
    Verdict::new(true, "CompletionsReached", "Reached expected number of succeeded pods")
}

/// What is decided whatever pods are still active: what was decided before counts, then failures, then the success policy.
pub(super) fn verdict(
    job: &Job,
    tally: &Tally<'_>,
    started: Option<Timestamp>,
    now: Timestamp,
) -> Option<Verdict> {
    announced(job)
        .or_else(|| failed_by_policy(tally))
        .or_else(|| failed(tally, started, now))
        .or_else(|| failed_by_indexes(tally))
        .or_else(|| succeeded_by_policy(tally))
}

fn announced(job: &Job) -> Option<Verdict> {
    let of = |kind: &str, success: bool| {
        let condition = condition(job, kind).filter(|condition| condition.status == "True")?;
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Some(Verdict { success, reason: text(&condition.reason), message: text(&condition.message) })
    };
    of("SuccessCriteriaMet", true).or_else(|| of("FailureTarget", false))
}

fn failed_by_policy(tally: &Tally<'_>) -> Option<Verdict> {
    let failed = tally.pods.iter().filter(|pod| is_failed(pod, tally.spec));
    failed
        .filter_map(|pod| match policy::judge(tally.spec, pod) {
            Judged::FailsJob(message) => Some(Verdict::new(false, "PodFailurePolicy", &message)),
            _ => None,
        })
        .next()
}

fn failed(tally: &Tally<'_>, started: Option<Timestamp>, now: Timestamp) -> Option<Verdict> {
    let spec = tally.spec;
    if tally.failed > spec.backoff_limit.unwrap_or(6) || restarted_too_often(tally) {
        let message = "Job has reached the specified backoff limit";
        return Some(Verdict::new(false, "BackoffLimitExceeded", message));
    }
    let due = deadline(spec, started).is_some_and(|deadline| deadline <= now);
    due.then(|| Verdict::new(false, "DeadlineExceeded", "Job was active longer than specified deadline"))
}

/// When a job has been active for too long.
pub(super) fn deadline(spec: &JobSpec, started: Option<Timestamp>) -> Option<Timestamp> {
    let seconds = spec.active_deadline_seconds.filter(|_| !is_suspended(spec))?;
    started?.checked_add(Duration::from_secs(seconds.try_into().unwrap_or_default())).ok()
}

/// Containers that restart in their pods fail, too.
fn restarted_too_often(tally: &Tally<'_>) -> bool {
    let template = tally.spec.template.spec.as_ref();
    if template.and_then(|template| template.restart_policy.as_deref()) != Some("OnFailure") {
        return false;
    }
    let alive = tally.pods.iter().filter(|pod| matches!(any::phase(pod), "Running" | "Pending"));
    let statuses = alive
        .filter_map(|pod| pod.status.as_ref())
        .flat_map(|status| status.init_container_statuses.iter().chain(&status.container_statuses).flatten());
    let restarts: i32 = statuses.map(|status| status.restart_count).sum();
    restarts > 0 && restarts >= tally.spec.backoff_limit.unwrap_or(6)
}

fn failed_by_indexes(tally: &Tally<'_>) -> Option<Verdict> {
    let indexed = tally.indexed.as_ref()?;
    let failed = indexed.failed.as_ref()?.total();
    if tally.spec.max_failed_indexes.is_some_and(|most| failed > most) {
        let message = "Job has exceeded the specified maximal number of failed indexes";
        return Some(Verdict::new(false, "MaxFailedIndexesExceeded", message));
    }
    let all = failed > 0 && failed + indexed.succeeded.total() >= indexed.completions;
    all.then(|| Verdict::new(false, "FailedIndexes", "Job has failed indexes"))
}

fn succeeded_by_policy(tally: &Tally<'_>) -> Option<Verdict> {
    let indexed = tally.indexed.as_ref()?;
    let message = policy::success(tally.spec, indexed.completions, &indexed.succeeded)?;
    Some(Verdict::new(true, "SuccessPolicy", &message))
}
