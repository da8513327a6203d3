//! How many pods a job has now.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use windlass::events::Event;

use super::backoff::{Backoff, finished_at, over_at};
use super::indexes::Indexes;
use super::pods::{self, failures, index, make, replaces_failed_only, surplus};
use super::status::is_suspended;
use super::tally::Tally;
use super::untrack;
use crate::controllers::pods as any;
use crate::engine::Turn;

/// How many pods are created or deleted in one turn.
const BURST: usize = 500;

/// What a turn does to the pods of a job.
#[derive(Debug, Default)]
pub(super) struct Managed {
    pub created: usize,
    pub deleted: usize,
    pub deleted_ready: usize,
}

/// Creates what is missing, and deletes what is too much.
pub(super) fn manage(
    turn: &mut Turn,
    job: &Job,
    tally: &Tally<'_>,
    backoff: &Backoff,
    now: Timestamp,
) -> Managed {
    let spec = tally.spec;
    let active = tally.active.len();
    if is_suspended(spec) {
        return give_up(turn, job, &surplus(spec, &tally.active, active));
    }
    let succeeded = usize::try_from(tally.succeeded).unwrap_or_default();
    let parallelism = usize::try_from(spec.parallelism.unwrap_or(1)).unwrap_or_default();
    let wanted = match spec.completions {
        // Once one has succeeded, the others may end, and no more are started.
        None if succeeded > 0 => active,
        None => parallelism,
        Some(all) => usize::try_from(all).unwrap_or_default().saturating_sub(succeeded).min(parallelism),
    };
    let mut going = surplus(spec, &tally.active, active.saturating_sub(wanted));
    going.truncate(BURST);
    if !going.is_empty() {
        return give_up(turn, job, &going);
    }
    let ending = if replaces_failed_only(spec) { tally.terminating } else { 0 };
    let missing = wanted.saturating_sub(ending + active).min(BURST);
    if missing == 0 {
        return Managed::default();
    }
    let created = match &tally.indexed {
        Some(_) => create_indexed(turn, job, tally, missing, backoff, now),
        None if waits(turn, backoff.over_at(), now) => 0,
        None => {
            for _ in 0..missing {
                create(turn, job, &make(job, spec, None, None));
            }
            missing
        }
    };
    Managed { created, ..Managed::default() }
}

/// Whether it is too early for a new pod.
fn waits(turn: &mut Turn, until: Option<Timestamp>, now: Timestamp) -> bool {
    let until = until.filter(|until| *until > now);
    if let Some(until) = until {
        turn.wake_at(until);
    }
    until.is_some()
}

fn create_indexed(
    turn: &mut Turn,
    job: &Job,
    tally: &Tally<'_>,
    missing: usize,
    backoff: &Backoff,
    now: Timestamp,
) -> usize {
    let Some(indexed) = &tally.indexed else { return 0 };
    let each = indexed.failed.is_some();
    if !each && waits(turn, backoff.over_at(), now) {
        return 0;
    }
    let active: Indexes = tally.active.iter().filter_map(|pod| index(pod)).collect();
    let mut taken = indexed.succeeded.or(&active);
    if replaces_failed_only(tally.spec) {
        let ending = tally.pods.iter().filter(|pod| any::is_terminating(pod));
        taken = taken.and(ending.filter_map(|pod| index(pod)));
    }
    if let Some(failed) = &indexed.failed {
        taken = taken.or(failed);
    }
    let over = |index: &i32| {
        let last = indexed.held.get(index)?;
        let (counted, ignored) = failures(last);
        over_at(usize::try_from(counted + ignored + 1).unwrap_or(1), finished_at(last))
    };
    let wanted = taken.missing(missing, indexed.completions);
    let (now_due, later): (Vec<i32>, Vec<i32>) =
        wanted.into_iter().partition(|index| over(index).is_none_or(|time| time <= now));
    for index in &now_due {
        let replaced = indexed.held.get(index).map(|pod| &**pod);
        create(turn, job, &make(job, tally.spec, Some(*index), replaced));
    }
    if let Some(time) = later.iter().filter_map(over).min() {
        turn.wake_at(time);
    }
    now_due.len()
}

fn create(turn: &mut Turn, job: &Job, pod: &Pod) {
    let event = Event::normal("SuccessfulCreate", "Create", "Created pod: {name}");
    turn.create_and_tell(pod, job, event);
}

/// Deletes pods that count neither as a success nor as a failure.
fn give_up(turn: &mut Turn, job: &Job, going: &[Arc<Pod>]) -> Managed {
    for pod in going {
        if pods::is_tracked(pod) {
            untrack(turn, pod);
        }
        delete(turn, job, pod);
    }
    deleted(going)
}

/// Deletes the active pods of a job that is over. What they come to is still counted.
pub(super) fn end(turn: &mut Turn, job: &Job, active: &[Arc<Pod>]) -> Managed {
    for pod in active {
        delete(turn, job, pod);
    }
    deleted(active)
}

fn deleted(pods: &[Arc<Pod>]) -> Managed {
    let ready = pods.iter().filter(|pod| any::is_ready(pod)).count();
    Managed { created: 0, deleted: pods.len(), deleted_ready: ready }
}

fn delete(turn: &mut Turn, job: &Job, pod: &Arc<Pod>) {
    turn.delete(&**pod);
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    turn.event(job, Event::normal("SuccessfulDelete", "Delete", format!("Deleted pod: {name}")));
}
