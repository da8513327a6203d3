//! One look at a job.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobStatus, UncountedTerminatedPods};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;
use windlass::events::Event;
use windlass_core::{ObjectKey, owner};

use super::backoff::Backoff;
use super::manage::{self, Managed};
use super::pods::{index, is_failed, is_tracked};
use super::policy::{self, Judged};
use super::status::{ensure, is_suspended, new, some};
use super::tally::{Tally, uid};
use super::verdict::{Verdict, completed, deadline, verdict};
use super::{selects, untrack};
use crate::controllers::claim::claim;
use crate::controllers::pods as any;
use crate::engine::{Refusal, Turn, View};

/// How many uids the status may name: it has to stay small.
const UNCOUNTED_MAX: usize = 500;

pub(super) fn sync(job: &Job, view: &View<'_>, backoff: &mut Backoff, now: Timestamp) -> Turn {
    let mut turn = Turn::default();
    let Some(spec) = &job.spec else { return turn };
    if !matches!(spec.completion_mode.as_deref(), None | Some("NonIndexed" | "Indexed")) {
        let note = "Skipped Job sync because completion mode is unknown";
        turn.event(job, Event::warning("UnknownCompletionMode", "", note));
        return turn;
    }
    let pods = own_pods(&mut turn, job, view);
    let tally = Tally::new(job, spec, pods, backoff);
    let mut status = job.status.clone().unwrap_or_default();
    if status.start_time.is_none() && !is_suspended(spec) {
        status.start_time = Some(Time(now));
    }
    let started = status.start_time.as_ref().map(|time| time.0);
    let mut verdict = verdict(job, &tally, started, now);
    if let Some(time) = deadline(spec, started).filter(|_| verdict.is_none()) {
        turn.wake_at(time);
    }
    let refused = view.refused().first();
    let mut told = Vec::new();
    let managed = match (&verdict, refused) {
        (_, Some(refusal)) => {
            tell(&mut turn, job, refusal);
            Managed::default()
        }
        (Some(_), None) => manage::end(&mut turn, job, &tally.active),
        (None, None) if job.metadata.deletion_timestamp.is_some() => Managed::default(),
        (None, None) => {
            let managed = manage::manage(&mut turn, job, &tally, backoff, now);
            let active = tally.active.len() + managed.created - managed.deleted;
            if is_complete(&tally, active) {
                verdict = Some(completed());
            } else {
                suspend(&mut status, &mut told, is_suspended(spec), now);
            }
            managed
        }
    };
    let ready = tally.active.iter().filter(|pod| any::is_ready(pod)).count() - managed.deleted_ready;
    let terminating = tally.terminating + managed.deleted;
    let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    status.active = some(count(tally.active.len() + managed.created - managed.deleted));
    status.ready = Some(count(ready));
    status.terminating = Some(count(terminating));
    let counted = track(&mut status, job, &tally, verdict.as_ref());
    if let Some(verdict) = &verdict {
        let announced = ensure_first(&mut status, verdict, now);
        if announced && counted.is_empty() && is_all_counted(&status) && terminating == 0 {
            finish(&mut status, &mut told, job, verdict, now);
        }
    }
    if job.status.as_ref() != Some(&status) {
        turn.status(&Job { status: Some(status), ..job.clone() });
    }
    // Only what the status names may go; what was deleted just now is another version, and goes next time.
    let is_deleted = |pod: &Arc<Pod>| managed.deleted > 0 && any::is_active(pod);
    counted.iter().filter(|pod| !is_deleted(pod)).for_each(|pod| untrack(&mut turn, pod));
    told.into_iter().for_each(|event| turn.event(job, event));
    turn
}

/// The pods of a job. Those that it adopts are tracked from then on.
fn own_pods(turn: &mut Turn, job: &Job, view: &View<'_>) -> Vec<Arc<Pod>> {
    let selector = selects(job);
    let mut pods = claim::<_, Pod>(turn, view, job, &selector, |_| false);
    if job.metadata.deletion_timestamp.is_some() {
        return pods;
    }
    let namespace = job.metadata.namespace.as_deref().unwrap_or_default();
    for orphan in view.orphans::<Pod>(namespace) {
        let labels = orphan.metadata.labels.clone().unwrap_or_default();
        if !selector.matches(&labels) || orphan.metadata.deletion_timestamp.is_some() {
            continue;
        }
        let Some(reference) = owner::reference_to(job) else { continue };
        let mut pod = Pod::clone(&orphan);
        pod.metadata.owner_references.get_or_insert_default().push(reference);
        if !is_tracked(&pod) {
            pod.metadata.finalizers.get_or_insert_default().push(super::pods::TRACKING.to_owned());
        }
        let meta = &pod.metadata;
        let patch = json!({"metadata": {
            "uid": meta.uid, "resourceVersion": meta.resource_version,
            "ownerReferences": meta.owner_references, "finalizers": meta.finalizers,
        }});
        turn.patch::<Pod>(&ObjectKey::of(meta), patch);
        pods.push(Arc::new(pod));
    }
    pods
}

fn is_complete(tally: &Tally<'_>, active: usize) -> bool {
    let enough = match tally.spec.completions {
        None => tally.succeeded > 0,
        Some(completions) => tally.succeeded >= completions,
    };
    enough && active == 0
}

/// Says whether a job is put aside. Its time begins anew when it is resumed.
fn suspend(status: &mut JobStatus, told: &mut Vec<Event>, suspended: bool, now: Timestamp) {
    let condition = match suspended {
        true => new("Suspended", true, "JobSuspended", "Job suspended", now),
        false => new("Suspended", false, "JobResumed", "Job resumed", now),
    };
    if ensure(status, condition) {
        status.start_time = (!suspended).then_some(Time(now));
        told.push(match suspended {
            true => Event::normal("Suspended", "Suspended", "Job suspended"),
            false => Event::normal("Resumed", "Resumed", "Job resumed"),
        });
    }
}

/// Counts: what is in the status and no longer held becomes a number, and what has ended and is held goes into the status.
/// The answer is what may be let go once the status is written.
fn track(status: &mut JobStatus, job: &Job, tally: &Tally<'_>, verdict: Option<&Verdict>) -> Vec<Arc<Pod>> {
    let held: BTreeSet<&str> = tally.pods.iter().filter(|pod| is_tracked(pod)).map(|pod| uid(pod)).collect();
    let mut uncounted = status.uncounted_terminated_pods.take().unwrap_or_default();
    let settle = |uids: &mut Option<Vec<String>>, total: &mut Option<i32>| {
        let before = uids.take().unwrap_or_default();
        let (still, done): (Vec<_>, Vec<_>) = before.into_iter().partition(|uid| held.contains(uid.as_str()));
        let done = i32::try_from(done.len()).unwrap_or(i32::MAX);
        *total = some(total.unwrap_or_default().saturating_add(done));
        *uids = Some(still);
    };
    settle(&mut uncounted.succeeded, &mut status.succeeded);
    settle(&mut uncounted.failed, &mut status.failed);
    let (mut succeeded, mut failed) =
        (uncounted.succeeded.unwrap_or_default(), uncounted.failed.unwrap_or_default());
    let mut pods: Vec<&Arc<Pod>> = tally.pods.iter().filter(|pod| is_tracked(pod)).collect();
    if tally.indexed.is_some() {
        pods.sort_by_key(|pod| index(pod));
    }
    let mut release = Vec::new();
    let mut new_indexes = Vec::new();
    for pod in pods {
        let is_failed = is_failed(pod, tally.spec);
        if !may_go(pod, job, tally, verdict, is_failed) {
            continue;
        }
        release.push(pod.clone());
        let id = uid(pod).to_owned();
        if any::phase(pod) == "Succeeded" && !tally.uncounted_failed.contains(&id) {
            match &tally.indexed {
                Some(indexed) => {
                    let index = index(pod).filter(|index| *index < indexed.completions);
                    new_indexes.extend(index.filter(|index| !indexed.before.has(*index)));
                }
                None if tally.uncounted_succeeded.contains(&id) => {}
                None => succeeded.push(id),
            }
        } else if (is_failed || verdict.is_some_and(|verdict| !verdict.success))
            && !tally.uncounted_failed.contains(&id)
            && tally.has_valid_index(pod)
            && policy::judge(tally.spec, pod) != Judged::Ignored
        {
            failed.push(id);
        }
        if new_indexes.len() + succeeded.len() + failed.len() >= UNCOUNTED_MAX {
            break;
        }
    }
    if let Some(indexed) = &tally.indexed {
        let completed = indexed.before.and(new_indexes);
        status.succeeded = some(completed.total());
        status.completed_indexes = Some(completed.to_string()).filter(|text| !text.is_empty());
        status.failed_indexes = indexed.failed.as_ref().map(ToString::to_string);
    }
    let list = |uids: Vec<String>| Some(uids).filter(|uids| !uids.is_empty());
    status.uncounted_terminated_pods =
        Some(UncountedTerminatedPods { succeeded: list(succeeded), failed: list(failed) });
    release
}

/// Whether a pod need not be held once it is counted.
fn may_go(pod: &Arc<Pod>, job: &Job, tally: &Tally<'_>, verdict: Option<&Verdict>, is_failed: bool) -> bool {
    if job.metadata.deletion_timestamp.is_some() || verdict.is_some() || any::phase(pod) == "Succeeded" {
        return true;
    }
    let held = tally.indexed.as_ref().map(|indexed| &indexed.held);
    is_failed && !held.is_some_and(|held| held.values().any(|other| uid(other) == uid(pod)))
}

fn is_all_counted(status: &JobStatus) -> bool {
    let uncounted = status.uncounted_terminated_pods.as_ref();
    uncounted.is_none_or(|all| all.succeeded.is_none() && all.failed.is_none())
}

/// Announces the end; whether it was announced before.
fn ensure_first(status: &mut JobStatus, verdict: &Verdict, now: Timestamp) -> bool {
    let all = status.conditions.iter().flatten();
    let known = all.clone().any(|condition| condition.type_ == verdict.interim());
    if !known {
        ensure(status, new(verdict.interim(), true, &verdict.reason, &verdict.message, now));
    }
    known
}

fn finish(status: &mut JobStatus, told: &mut Vec<Event>, job: &Job, verdict: &Verdict, now: Timestamp) {
    ensure(status, new(verdict.terminal(), true, &verdict.reason, &verdict.message, now));
    if !verdict.success {
        told.push(Event::warning(&verdict.reason, &verdict.reason, verdict.message.clone()));
        return;
    }
    status.completion_time = Some(Time(now));
    let wanted = job.spec.as_ref().and_then(|spec| spec.completions);
    if wanted.is_some_and(|wanted| status.succeeded.unwrap_or_default() > wanted) {
        let note = "Too many succeeded pods running after completion count reached";
        told.push(Event::warning("TooManySucceededPods", "TooManySucceededPods", note));
    }
    told.push(Event::normal("Completed", "Completed", "Job completed"));
}

/// Whoever looks at the job should know why it has no pods.
fn tell(turn: &mut Turn, job: &Job, refusal: &Refusal) {
    let (reason, doing) = match refusal.verb {
        "create" => ("FailedCreate", "creating"),
        "delete" => ("FailedDelete", "deleting"),
        _ => return,
    };
    turn.event(job, Event::warning(reason, reason, format!("Error {doing}: {}", refusal.message)));
}
