//! How many pods each ReplicaSet of a Deployment should have when the Deployment's own number changes.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use windlass::events::Event;

use super::revision::{self, DESIRED, MAX};
use super::sets::{self, Sets, annotation, by_age, size};
use super::{Step, conditions, limits};

impl Step<'_> {
    /// A paused Deployment says so, and one that goes on says that: while it is paused no time goes by for its deadline.
    pub(super) fn note_pause(&mut self) {
        let paused = self.before.spec.as_ref().and_then(|spec| spec.paused).unwrap_or_default();
        let now = self.now;
        let has_deadline = limits::deadline(&self.deployment).is_some();
        let status = self.status();
        let reason = conditions::reason(status, "Progressing");
        if !has_deadline || reason == Some("ProgressDeadlineExceeded") {
            return;
        }
        let said = match (paused, reason == Some("DeploymentPaused")) {
            (true, false) => ("Progressing", "Unknown", "DeploymentPaused", "Deployment is paused"),
            (false, true) => ("Progressing", "Unknown", "DeploymentResumed", "Deployment is resumed"),
            _ => return,
        };
        conditions::set(status, conditions::new(said, now));
    }

    /// Whether the number of wanted pods has changed since the sets were last resized.
    pub(super) fn is_resized(&self, sets: &Sets) -> bool {
        let wanted = limits::replicas(&self.deployment);
        sets.active().any(|set| number(set, DESIRED).is_some_and(|desired| desired != wanted))
    }

    /// Resizes what there is, without going on with a rollout: each set keeps its share, so that a bad template does not
    /// spread by resizing.
    pub(super) fn resize(&mut self, sets: &Sets) {
        let wanted = limits::replicas(&self.deployment);
        if let Some(only) = only(sets) {
            return self.scale(&only, wanted, false);
        }
        if sets.new.as_ref().is_some_and(|new| is_saturated(&self.deployment, new)) {
            for old in sets.old.iter().filter(|set| size(set) > 0) {
                self.scale(old, 0, false);
            }
        } else if limits::is_rolling(&self.deployment) {
            for (set, size) in proportions(&self.deployment, sets) {
                self.scale(&set, size, true);
            }
        }
    }

    /// Gives a set another size, and notes what the Deployment allows. Where `always`, also if only the note is old.
    pub(super) fn scale(&mut self, set: &ReplicaSet, to: i32, always: bool) {
        self.scale_by(set, &[to], always);
    }

    /// As [`Step::scale`], for more than one reason: each is told, and all are one write.
    pub(super) fn scale_by(&mut self, set: &ReplicaSet, sizes: &[i32], always: bool) {
        let mut from = size(set);
        let to = sizes.last().copied().unwrap_or(from);
        let notes = revision::replica_notes(&self.deployment);
        let noted = notes.iter().all(|(key, value)| annotation(set, key) == value);
        if from == to && (noted || !always) {
            return;
        }
        let mut scaled = set.clone();
        scaled.spec.get_or_insert_default().replicas = Some(to);
        scaled.metadata.annotations.get_or_insert_default().extend(notes);
        self.turn.replace(&scaled);
        for &to in sizes {
            if from != to {
                let (way, action) = if from < to { ("up", "ScaleUp") } else { ("down", "ScaleDown") };
                let note = format!("Scaled {way} replica set {} from {from} to {to}", sets::name(set));
                self.turn.event(&*self.before, Event::normal("ScalingReplicaSet", action, note));
            }
            from = to;
        }
    }

    /// Deletes sets that are older than the history that is kept, once they are empty.
    pub(super) fn clean_up(&mut self, sets: &Sets) {
        let Some(limit) = limits::history(&self.deployment) else { return };
        let mut old: Vec<&Arc<ReplicaSet>> =
            sets.old.iter().filter(|set| set.metadata.deletion_timestamp.is_none()).collect();
        let too_many = old.len().saturating_sub(limit);
        old.sort_by(|a, b| match (revision::of(a), revision::of(b)) {
            (Some(of_a), Some(of_b)) => of_a.cmp(&of_b).then_with(|| by_age(a, b)),
            _ => by_age(a, b),
        });
        for set in old.into_iter().take(too_many) {
            let observed = set.status.as_ref().and_then(|status| status.observed_generation);
            let is_empty = sets::actual(set) == 0 && size(set) == 0;
            if is_empty && set.metadata.generation <= observed {
                self.turn.delete(&**set);
            }
        }
    }
}

/// The set to resize where there is no choice: the only one with pods, or, if none has any, the latest.
fn only(sets: &Sets) -> Option<Arc<ReplicaSet>> {
    let mut active = sets.active();
    match (active.next(), active.next()) {
        (None, _) => sets.new.as_ref().or(sets.old.last()).cloned(),
        (Some(only), None) => Some(only.clone()),
        _ => None,
    }
}

/// Whether the new set has all the pods, and both agree on how many that is.
fn is_saturated(deployment: &Deployment, new: &ReplicaSet) -> bool {
    let wanted = limits::replicas(deployment);
    size(new) == wanted && number(new, DESIRED) == Some(wanted) && sets::available(new) == wanted
}

fn number(set: &ReplicaSet, key: &str) -> Option<i32> {
    annotation(set, key).parse().ok().filter(|number| *number >= 0)
}

/// The size of each set that has pods, where together they may have so many: the larger ones get the more, and of two of
/// a size the newer one grows and the older one shrinks.
fn proportions(deployment: &Deployment, sets: &Sets) -> Vec<(Arc<ReplicaSet>, i32)> {
    let mut active: Vec<Arc<ReplicaSet>> = sets.active().cloned().collect();
    let wanted = limits::replicas(deployment);
    let allowed = if wanted > 0 { wanted + limits::surge(deployment) } else { 0 };
    let to_add = allowed - active.iter().map(|set| size(set)).sum::<i32>();
    active.sort_by(|a, b| {
        let age = if to_add > 0 { by_age(b, a) } else { by_age(a, b) };
        size(b).cmp(&size(a)).then(age)
    });
    let mut added = 0;
    let mut sizes = Vec::new();
    for set in active {
        let part = part(deployment, &set, to_add, added);
        added += part;
        let size = size(&set) + part;
        sizes.push((set, size));
    }
    if let Some((_, largest)) = sizes.first_mut() {
        *largest = (*largest + to_add - added).max(0);
    }
    sizes
}

/// What one set gets of the replicas that are added, or loses of those that are taken away.
fn part(deployment: &Deployment, set: &ReplicaSet, to_add: i32, added: i32) -> i32 {
    let left = to_add - added;
    if to_add == 0 || left == 0 {
        return 0;
    }
    let fraction = fraction(deployment, set);
    if to_add > 0 { fraction.min(left) } else { fraction.max(left) }
}

/// By how much a set changes if it keeps its share of what the Deployment allows.
fn fraction(deployment: &Deployment, set: &ReplicaSet) -> i32 {
    let wanted = limits::replicas(deployment);
    if wanted == 0 {
        return -size(set);
    }
    let actual = deployment.status.as_ref().and_then(|status| status.replicas).unwrap_or_default();
    let before = number(set, MAX).filter(|max| *max > 0).unwrap_or(actual);
    if before == 0 {
        return 0;
    }
    let allowed = wanted + limits::surge(deployment);
    let share = f64::from(size(set)) * f64::from(allowed) / f64::from(before);
    #[expect(clippy::cast_possible_truncation, reason = "a number of pods")]
    let rounded = share.round() as i32;
    rounded - size(set)
}
