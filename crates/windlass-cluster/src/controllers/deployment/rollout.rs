//! From the old pods to the new ones.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{DeploymentStatus, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;

use super::sets::{self, Sets, available, size};
use super::status::is_complete;
use super::{Step, limits};
use crate::controllers::pods;

impl Step<'_> {
    /// Some new pods, then fewer old ones, and again, with never too many and never too few.
    pub(super) fn roll(&mut self, sets: &Sets) {
        let Some(new) = &sets.new else { return self.create(sets) };
        let wanted = limits::replicas(&self.deployment);
        if size(new) > wanted {
            self.scale(new, wanted, false);
        } else if size(new) < wanted {
            let to = self.new_size(size(new), sets.size());
            self.scale(new, to, false);
        }
        if self.turn.is_empty() {
            self.shrink_old(new, sets);
        }
        self.finish(sets);
    }

    /// No old pods, then new ones.
    pub(super) fn recreate(&mut self, sets: &Sets) {
        for old in sets.old.iter().filter(|set| size(set) > 0) {
            self.scale(old, 0, false);
        }
        if !self.turn.is_empty() {
            return;
        }
        if self.has_old_pods(sets) {
            return self.settle_rollout(sets);
        }
        let Some(new) = &sets.new else { return self.create(sets) };
        self.scale(new, limits::replicas(&self.deployment), false);
        self.finish(sets);
    }

    /// How many pods the new set should have, if it has so many and all sets together so many.
    pub(super) fn new_size(&self, size: i32, all: i32) -> i32 {
        let wanted = limits::replicas(&self.deployment);
        if !limits::is_rolling(&self.deployment) {
            return wanted;
        }
        let room = wanted + limits::surge(&self.deployment) - all;
        size + room.max(0).min(wanted - size)
    }

    /// What was written to a ReplicaSet leads to another step; where nothing was to write, this is how it stands.
    fn finish(&mut self, sets: &Sets) {
        if !self.turn.is_empty() {
            return;
        }
        let observed: DeploymentStatus = self.before.status.clone().unwrap_or_default();
        if is_complete(&self.before, &observed) {
            self.clean_up(sets);
        }
        self.settle_rollout(sets);
    }

    fn shrink_old(&mut self, new: &ReplicaSet, sets: &Sets) {
        let old: Vec<&Arc<ReplicaSet>> = sets.old.iter().filter(|set| size(set) > 0).collect();
        let least = limits::replicas(&self.deployment) - limits::unavailable(&self.deployment);
        // Pods of the new set that are not available yet must not cost more of the old ones.
        let mut room = sets.size() - least - (size(new) - available(new));
        if room <= 0 {
            return;
        }
        let serving = old.iter().map(|set| available(set)).sum::<i32>() + available(new);
        let mut spare = (serving - least).max(0);
        for set in old {
            // First those that serve nobody: they would only stand in the way.
            let useless = (size(set) - available(set)).max(0).min(room);
            room -= useless;
            let serving = size(set) - useless;
            let less = serving.min(spare);
            spare -= less;
            self.scale_by(set, &[serving, serving - less], false);
        }
    }

    /// Whether a pod of an old set may still be running, also one that is no longer counted.
    fn has_old_pods(&self, sets: &Sets) -> bool {
        let runs = |set: &Arc<ReplicaSet>| {
            let uid = set.metadata.uid.as_deref().unwrap_or_default();
            let pods = self.view.children::<Pod>(uid);
            sets::actual(set) > 0
                || pods.iter().any(|pod| !matches!(pods::phase(pod), "Succeeded" | "Failed"))
        };
        sets.old.iter().any(runs)
    }
}
