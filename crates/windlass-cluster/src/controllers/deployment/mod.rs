//! Deployments: ReplicaSets that take over from each other.
//!
//! ```text
//! Deployment ─► claim its ReplicaSets ─► which one has its template? ─► rolling, recreate, or only resize ─► status
//! ```
//!
//! One step does one thing, such as to create the new ReplicaSet or to shift some replicas, and the change of that
//! ReplicaSet leads to the next step. So what a step decides stands on what the server has said of the step before.

mod conditions;
mod limits;
mod resize;
mod revision;
mod rollback;
mod rollout;
mod sets;
mod status;

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use windlass::events::Event;
use windlass_core::select::LabelSelector;
use windlass_core::{ObjectKey, owner};

use self::sets::Sets;
use super::claim::{claim, selector};
use crate::engine::{Controller, Refusal, Turn, View, Wiring};

/// Moves a Deployment's pods to its template.
pub(super) struct Deployments;

/// One step of one Deployment.
struct Step<'a> {
    view: &'a View<'a>,
    now: Timestamp,
    /// As the server has it.
    before: Arc<Deployment>,
    /// As it should be: its status and annotations are worked on.
    deployment: Deployment,
    turn: Turn,
}

impl Controller for Deployments {
    fn name(&self) -> &'static str {
        "deployment-controller"
    }

    fn declare(&self, wiring: &mut Wiring) {
        wiring.keys::<Deployment>();
        wiring.children::<ReplicaSet, Deployment>(selects);
        wiring.owned::<Pod>();
        // Who recreates waits until the old pods are gone, and not only until they are no longer counted.
        wiring.maps::<Pod>(|pod, view| recreated_by(pod, view).into_iter().collect());
    }

    fn step(&self, key: &ObjectKey, view: &View<'_>, now: Timestamp) -> Turn {
        let Some(before) = view.get::<Deployment>(key) else { return Turn::nothing() };
        let deployment = Deployment::clone(&before);
        let mut step = Step { view, now, before, deployment, turn: Turn::default() };
        if let Some(refusal) = view.refused().first() {
            step.report(refusal);
        } else {
            step.take();
        }
        step.turn
    }
}

fn selects(deployment: &Deployment) -> LabelSelector {
    deployment.spec.as_ref().map_or_else(LabelSelector::nothing, |spec| selector(&spec.selector))
}

fn recreated_by(pod: &Pod, view: &View<'_>) -> Option<ObjectKey> {
    let namespace = pod.metadata.namespace.as_deref();
    let set = owner::controller_of(&pod.metadata).filter(|owner| owner.kind == "ReplicaSet")?;
    let set = view.get::<ReplicaSet>(&ObjectKey::new(namespace, &set.name))?;
    let parent = owner::controller_of(&set.metadata).filter(|owner| owner.kind == "Deployment")?;
    let key = ObjectKey::new(namespace, &parent.name);
    let deployment = view.get::<Deployment>(&key)?;
    (!limits::is_rolling(&deployment)).then_some(key)
}

impl Step<'_> {
    fn take(&mut self) {
        let before = self.before.clone();
        let claimed = claim(&mut self.turn, self.view, &*before, &selects(&before), |_: &ReplicaSet| true);
        if !self.turn.is_empty() {
            return;
        }
        let sets = Sets::new(claimed, &self.deployment);
        if before.metadata.deletion_timestamp.is_some() {
            return self.settle(status::counted(&self.deployment, &sets, self.now));
        }
        self.note_pause();
        let rollback = rollback::wanted(&self.deployment);
        let paused = before.spec.as_ref().and_then(|spec| spec.paused).unwrap_or_default();
        if let Some(new) = &sets.new
            && !self.follow(new, &sets)
        {
            return;
        }
        if paused {
            self.resize(&sets);
            self.clean_up(&sets);
            self.settle_unless_busy(&sets);
        } else if let Some(revision) = rollback {
            self.roll_back(revision, &sets);
        } else if self.is_resized(&sets) {
            self.resize(&sets);
            self.settle_unless_busy(&sets);
        } else if limits::is_rolling(&before) {
            self.roll(&sets);
        } else {
            self.recreate(&sets);
        }
    }

    /// What was refused is said where people look for it.
    fn report(&mut self, refusal: &Refusal) {
        // A namespace that goes needs no new sets, and its end needs no warning.
        let ending = refusal.message.contains("because it is being terminated");
        if refusal.verb != "create" || refusal.kind != "ReplicaSet" || ending {
            return;
        }
        let message = format!("Failed to create new replica set {:?}: {}", refusal.name, refusal.message);
        if limits::deadline(&self.deployment).is_some() {
            let failed = ("Progressing", "False", "ReplicaSetCreateError", message.as_str());
            let condition = conditions::new(failed, self.now);
            conditions::set(self.status(), condition);
            self.write();
        }
        self.turn.event(&*self.before, Event::warning("ReplicaSetCreateError", "Create", message));
    }

    /// The status that is worked on.
    fn status(&mut self) -> &mut DeploymentStatus {
        self.deployment.status.get_or_insert_default()
    }

    /// Writes the status, and with it the annotations, if they changed.
    fn write(&mut self) {
        let same = self.before.status.clone().unwrap_or_default()
            == self.deployment.status.clone().unwrap_or_default()
            && self.before.metadata.annotations == self.deployment.metadata.annotations;
        if !same {
            self.turn.status(&self.deployment);
        }
    }

    fn settle(&mut self, status: DeploymentStatus) {
        self.deployment.status = Some(status);
        self.write();
    }

    /// What was written to a ReplicaSet leads to another step, which sees what became of it.
    fn settle_unless_busy(&mut self, sets: &Sets) {
        if self.turn.is_empty() {
            let status = status::counted(&self.deployment, sets, self.now);
            self.settle(status);
        }
    }
}
