//! What a Deployment says of itself, and whether it gets anywhere.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{
    Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet, ReplicaSetCondition,
};

use super::sets::{self, Sets};
use super::{Step, conditions, limits};

/// The counts, and whether enough pods are available. The other conditions stay.
pub(super) fn counted(deployment: &Deployment, sets: &Sets, now: Timestamp) -> DeploymentStatus {
    let before = deployment.status.clone().unwrap_or_default();
    let available = sets.sum(|status| status.available_replicas.unwrap_or_default());
    // A count of zero is left out, as the server leaves it out.
    let some = |count: i32| Some(count).filter(|count| *count > 0);
    let mut status = DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: some(sets.sum(|status| status.replicas)),
        updated_replicas: some(sets.new.as_ref().map(|set| sets::actual(set)).unwrap_or_default()),
        ready_replicas: some(sets.sum(|status| status.ready_replicas.unwrap_or_default())),
        available_replicas: some(available),
        unavailable_replicas: some(sets.size() - available),
        terminating_replicas: terminating(sets),
        collision_count: before.collision_count,
        conditions: before.conditions,
    };
    let enough = available >= limits::replicas(deployment) - limits::unavailable(deployment);
    let said = match enough {
        true => ("Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability."),
        false => (
            "Available",
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        ),
    };
    conditions::set(&mut status, conditions::new(said, now));
    status
}

/// Nothing is said where one of the sets does not say it.
fn terminating(sets: &Sets) -> Option<i32> {
    let statuses = sets.all().filter_map(|set| set.status.as_ref());
    let known = statuses.filter(|status| {
        status.terminating_replicas.is_some() || status.observed_generation.unwrap_or_default() != 0
    });
    known.map(|status| status.terminating_replicas).sum()
}

/// Whether all pods are of the new template and available, and none is left of another.
pub(super) fn is_complete(deployment: &Deployment, status: &DeploymentStatus) -> bool {
    let all = Some(limits::replicas(deployment));
    let is_all = |count: Option<i32>| Some(count.unwrap_or_default()) == all;
    is_all(status.updated_replicas)
        && is_all(status.replicas)
        && is_all(status.available_replicas)
        && status.observed_generation >= deployment.metadata.generation
}

fn has_progressed(before: &DeploymentStatus, status: &DeploymentStatus) -> bool {
    let count = |count: Option<i32>| count.unwrap_or_default();
    let old = |status: &DeploymentStatus| count(status.replicas) - count(status.updated_replicas);
    count(status.updated_replicas) > count(before.updated_replicas)
        || old(status) < old(before)
        || count(status.ready_replicas) > count(before.ready_replicas)
        || count(status.available_replicas) > count(before.available_replicas)
}

/// When the last sign of progress is too long ago.
fn times_out_at(deployment: &Deployment, progressing: &DeploymentCondition) -> Option<Timestamp> {
    let seconds = limits::deadline(deployment)?.try_into().unwrap_or_default();
    progressing.last_update_time.as_ref()?.0.checked_add(Duration::from_secs(seconds)).ok()
}

impl Step<'_> {
    /// The status of a Deployment that is rolled out, with how that goes.
    pub(super) fn settle_rollout(&mut self, sets: &Sets) {
        let mut status = counted(&self.deployment, sets, self.now);
        match limits::deadline(&self.deployment) {
            None => conditions::remove(&mut status, "Progressing"),
            Some(_) => self.note_progress(&mut status, sets),
        }
        match failure(sets) {
            Some(failure) => conditions::set(&mut status, failure),
            None => conditions::remove(&mut status, "ReplicaFailure"),
        }
        self.look_again(&status);
        self.settle(status);
    }

    fn note_progress(&self, status: &mut DeploymentStatus, sets: &Sets) {
        let before = self.deployment.status.clone().unwrap_or_default();
        let was = conditions::get(&before, "Progressing");
        let was_available = was.is_some_and(|was| was.reason.as_deref() == Some("NewReplicaSetAvailable"));
        if was_available && status.replicas == status.updated_replicas {
            return;
        }
        let subject = match &sets.new {
            Some(set) => format!("ReplicaSet {:?}", sets::name(set)),
            None => format!("Deployment {:?}", self.deployment.metadata.name.as_deref().unwrap_or_default()),
        };
        if is_complete(&self.deployment, status) {
            let message = format!("{subject} has successfully progressed.");
            let said = ("Progressing", "True", "NewReplicaSetAvailable", message.as_str());
            conditions::set(status, conditions::new(said, self.now));
        } else if has_progressed(&before, status) {
            let message = format!("{subject} is progressing.");
            let said = ("Progressing", "True", "ReplicaSetUpdated", message.as_str());
            let mut condition = conditions::new(said, self.now);
            // It is said again with the same reason: its time is what tells of the progress.
            if let Some(was) = was.filter(|was| was.status == "True") {
                condition.last_transition_time = was.last_transition_time.clone();
            }
            conditions::remove(status, "Progressing");
            conditions::set(status, condition);
        } else if self.has_timed_out(status) {
            let message = format!("{subject} has timed out progressing.");
            let said = ("Progressing", "False", "ProgressDeadlineExceeded", message.as_str());
            conditions::set(status, conditions::new(said, self.now));
        }
    }

    fn has_timed_out(&self, status: &DeploymentStatus) -> bool {
        let Some(progressing) = conditions::get(status, "Progressing") else { return false };
        match progressing.reason.as_deref() {
            Some("NewReplicaSetAvailable") => false,
            Some("ProgressDeadlineExceeded") => true,
            _ => times_out_at(&self.deployment, progressing).is_some_and(|time| time < self.now),
        }
    }

    /// A Deployment that is stuck makes no change that would lead to another look.
    fn look_again(&mut self, status: &DeploymentStatus) {
        let Some(progressing) = conditions::get(status, "Progressing") else { return };
        let timed_out = progressing.reason.as_deref() == Some("ProgressDeadlineExceeded");
        if timed_out || is_complete(&self.deployment, status) {
            return;
        }
        // Times in a status have whole seconds: a second later it is past for sure.
        let time = times_out_at(&self.deployment, progressing);
        if let Some(time) = time.and_then(|time| time.checked_add(Duration::from_secs(1)).ok()) {
            self.turn.wake_at(time);
        }
    }
}

/// Why a set has too few pods: the new one's reason, before those of the others.
fn failure(sets: &Sets) -> Option<DeploymentCondition> {
    let of = |set: &ReplicaSet| {
        let conditions = set.status.as_ref()?.conditions.as_deref()?;
        conditions.iter().find(|condition| condition.type_ == "ReplicaFailure").map(promoted)
    };
    let new = sets.new.as_ref().and_then(|set| of(set));
    new.or_else(|| sets.old.iter().find_map(|set| of(set)))
}

fn promoted(condition: &ReplicaSetCondition) -> DeploymentCondition {
    DeploymentCondition {
        type_: condition.type_.clone(),
        status: condition.status.clone(),
        reason: condition.reason.clone(),
        message: condition.message.clone(),
        last_update_time: condition.last_transition_time.clone(),
        last_transition_time: condition.last_transition_time.clone(),
    }
}
