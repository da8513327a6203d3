//! What a job says of itself.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobSpec, JobStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// A condition of a job.
pub(super) fn condition<'a>(job: &'a Job, kind: &str) -> Option<&'a JobCondition> {
    job.status.as_ref()?.conditions.as_deref()?.iter().find(|condition| condition.type_ == kind)
}

/// Whether a job has ended.
pub(in crate::controllers) fn is_finished(job: &Job) -> bool {
    finished(job).is_some()
}

/// The condition by which a job has ended.
pub(in crate::controllers) fn finished(job: &Job) -> Option<&JobCondition> {
    let is = |kind| condition(job, kind).filter(|condition| condition.status == "True");
    is("Complete").or_else(|| is("Failed"))
}

/// Whether a job is put aside.
pub(super) fn is_suspended(spec: &JobSpec) -> bool {
    spec.suspend == Some(true)
}

/// A new condition.
pub(super) fn new(kind: &str, status: bool, reason: &str, message: &str, now: Timestamp) -> JobCondition {
    JobCondition {
        type_: kind.to_owned(),
        status: if status { "True" } else { "False" }.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_probe_time: Some(Time(now)),
        last_transition_time: Some(Time(now)),
    }
}

/// Puts a condition in its place; whether that changes something. One that was never there is not said to be false.
pub(super) fn ensure(status: &mut JobStatus, condition: JobCondition) -> bool {
    let all = status.conditions.get_or_insert_default();
    match all.iter_mut().find(|old| old.type_ == condition.type_) {
        Some(old) if same(old, &condition) => false,
        Some(old) => {
            *old = condition;
            true
        }
        None if condition.status == "False" => {
            status.conditions = status.conditions.take().filter(|all| !all.is_empty());
            false
        }
        None => {
            all.push(condition);
            true
        }
    }
}

fn same(a: &JobCondition, b: &JobCondition) -> bool {
    (&a.status, &a.reason, &a.message) == (&b.status, &b.reason, &b.message)
}

/// A count as the server writes it: none is left out.
pub(super) fn some(count: i32) -> Option<i32> {
    Some(count).filter(|count| *count > 0)
}
