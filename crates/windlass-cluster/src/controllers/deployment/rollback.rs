//! The rollback that old clients ask for by an annotation. `kubectl rollout undo` puts the old template into the
//! Deployment itself, and needs nothing of this.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use windlass::events::Event;

use super::Step;
use super::revision::{self, ROLLBACK, is_own};
use super::sets::{HASH, Sets, is_same, template};

/// The revision that is asked for; zero means the one before this.
pub(super) fn wanted(deployment: &Deployment) -> Option<i64> {
    deployment.metadata.annotations.as_ref()?.get(ROLLBACK)?.parse().ok()
}

impl Step<'_> {
    pub(super) fn roll_back(&mut self, revision: i64, sets: &Sets) {
        if sets.new.is_none() {
            return self.create(sets);
        }
        let name = self.before.metadata.name.clone().unwrap_or_default();
        let revision = if revision == 0 { last(sets) } else { revision };
        let found = sets.all().find(|set| revision != 0 && revision::of(set) == Some(revision)).cloned();
        let (event, target) = match found {
            None if revision == 0 => (not_found("Unable to find last revision."), None),
            None => (not_found("Unable to find the revision to rollback to."), None),
            Some(set) if is_same(template(&set), self.before.spec.as_ref().map(|spec| &spec.template)) => {
                let note = format!(
                    "The rollback revision contains the same template as current deployment {name:?}"
                );
                (Event::warning("DeploymentRollbackTemplateUnchanged", "Rollback", note), None)
            }
            Some(set) => {
                let note = format!("Rolled back deployment {name:?} to revision {revision}");
                (Event::normal("DeploymentRollback", "Rollback", note), Some(set))
            }
        };
        let mut next = Deployment::clone(&self.before);
        if let Some(set) = target {
            restore(&mut next, &set);
        }
        if let Some(annotations) = &mut next.metadata.annotations {
            annotations.remove(ROLLBACK);
        }
        self.turn.replace(&next);
        self.turn.event(&*self.before, event);
    }
}

/// The template of a set, and the annotations that its Deployment had then.
fn restore(deployment: &mut Deployment, set: &ReplicaSet) {
    let (Some(spec), Some(template)) = (&mut deployment.spec, template(set)) else { return };
    spec.template = template.clone();
    if let Some(labels) = spec.template.metadata.as_mut().and_then(|metadata| metadata.labels.as_mut()) {
        labels.remove(HASH);
    }
    let own = deployment.metadata.annotations.take().unwrap_or_default();
    let mut annotations: BTreeMap<String, String> = own.into_iter().filter(|(key, _)| is_own(key)).collect();
    let then = set.metadata.annotations.iter().flatten().filter(|(key, _)| !is_own(key));
    annotations.extend(then.map(|(key, value)| (key.clone(), value.clone())));
    deployment.metadata.annotations = Some(annotations);
}

/// The revision before the latest one; zero where there is none.
fn last(sets: &Sets) -> i64 {
    let mut all: Vec<i64> = sets.all().filter_map(|set| revision::of(set)).collect();
    all.sort_unstable();
    all.iter().rev().nth(1).copied().unwrap_or_default()
}

fn not_found(note: &str) -> Event {
    Event::warning("DeploymentRollbackRevisionNotFound", "Rollback", note)
}
