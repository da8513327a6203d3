//! What has become of the pods of a job.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::Pod;

use super::backoff::{Backoff, finished_at};
use super::indexes::Indexes;
use super::pods::{failures, index, is_failed, is_tracked};
use super::policy::{self, Judged};
use crate::controllers::pods as any;

/// The pods of a job, sorted by what they mean, and what they come to.
pub(super) struct Tally<'a> {
    pub spec: &'a JobSpec,
    pub pods: Vec<Arc<Pod>>,
    pub active: Vec<Arc<Pod>>,
    pub terminating: usize,
    pub succeeded: i32,
    pub failed: i32,
    /// The uids that the status names.
    pub uncounted_succeeded: BTreeSet<String>,
    pub uncounted_failed: BTreeSet<String>,
    /// Where indexes count.
    pub indexed: Option<Indexed>,
}

/// What has become of the indexes of a job.
pub(super) struct Indexed {
    pub completions: i32,
    /// Those that the status names.
    pub before: Indexes,
    pub succeeded: Indexes,
    /// Where each index has a limit of its own.
    pub failed: Option<Indexes>,
    /// The last failed pod of each index that has no other: it is held until there is one, which carries on its count.
    pub held: BTreeMap<i32, Arc<Pod>>,
}

impl<'a> Tally<'a> {
    pub fn new(job: &'a Job, spec: &'a JobSpec, pods: Vec<Arc<Pod>>, backoff: &mut Backoff) -> Tally<'a> {
        let status = job.status.clone().unwrap_or_default();
        let uncounted = status.uncounted_terminated_pods.unwrap_or_default();
        let set = |uids: Option<Vec<String>>| uids.unwrap_or_default().into_iter().collect::<BTreeSet<_>>();
        let mut tally = Tally {
            spec,
            active: pods.iter().filter(|pod| any::is_active(pod)).cloned().collect(),
            terminating: pods.iter().filter(|pod| any::is_terminating(pod)).count(),
            pods,
            succeeded: 0,
            failed: 0,
            uncounted_succeeded: set(uncounted.succeeded),
            uncounted_failed: set(uncounted.failed),
            indexed: None,
        };
        tally.indexed = tally.indexes(status.completed_indexes.as_deref(), status.failed_indexes.as_deref());
        let new_succeeded = tally.fresh(&tally.uncounted_succeeded, |pod| any::phase(pod) == "Succeeded");
        let new_failed = tally.fresh(&tally.uncounted_failed, |pod| is_failed(pod, spec));
        new_succeeded.iter().for_each(|pod| backoff.succeeded(pod));
        new_failed.iter().for_each(|pod| backoff.failed(pod));
        let counted = new_failed.iter().filter(|pod| policy::judge(spec, pod) != Judged::Ignored).count();
        let sum = |before: Option<i32>, more: usize| {
            before.unwrap_or_default().saturating_add(i32::try_from(more).unwrap_or(i32::MAX))
        };
        tally.failed = sum(status.failed, counted + tally.uncounted_failed.len());
        tally.succeeded = match &tally.indexed {
            Some(indexed) => indexed.succeeded.total(),
            None => sum(status.succeeded, new_succeeded.len() + tally.uncounted_succeeded.len()),
        };
        tally
    }

    /// The tracked pods that are so and are not in the status yet.
    fn fresh(&self, uncounted: &BTreeSet<String>, is: impl Fn(&Pod) -> bool) -> Vec<Arc<Pod>> {
        let fits = |pod: &Arc<Pod>| {
            is_tracked(pod) && !uncounted.contains(uid(pod)) && self.has_valid_index(pod) && is(pod)
        };
        self.pods.iter().filter(|pod| fits(pod)).cloned().collect()
    }

    /// Whether a pod has an index that the job wants, or needs none.
    pub fn has_valid_index(&self, pod: &Pod) -> bool {
        let completions = self.spec.completions.unwrap_or_default();
        !is_indexed(self.spec) || index(pod).is_some_and(|index| index < completions)
    }

    fn indexes(&self, completed: Option<&str>, failed: Option<&str>) -> Option<Indexed> {
        if !is_indexed(self.spec) {
            return None;
        }
        let completions = self.spec.completions.unwrap_or_default();
        let tracked = || self.pods.iter().filter(|pod| is_tracked(pod) && self.has_valid_index(pod));
        let before = Indexes::parse(completed.unwrap_or_default(), completions);
        let succeeded: Indexes =
            tracked().filter(|pod| any::phase(pod) == "Succeeded").filter_map(|pod| index(pod)).collect();
        let succeeded = before.or(&succeeded);
        let limit = self.spec.backoff_limit_per_index;
        let failed = limit.map(|limit| {
            // What the status names was looked at when it was named: since then it may have been deleted for other reasons.
            let fresh = tracked().filter(|pod| !self.uncounted_failed.contains(uid(pod)));
            let new: Indexes =
                fresh.filter(|pod| self.index_failed(pod, limit)).filter_map(|pod| index(pod)).collect();
            Indexes::parse(failed.unwrap_or_default(), completions).or(&new)
        });
        let held = failed.as_ref().map(|failed| self.held(&succeeded, failed)).unwrap_or_default();
        Some(Indexed { completions, before, succeeded, failed, held })
    }

    /// Whether this pod was the last try of its index.
    fn index_failed(&self, pod: &Pod, limit: i32) -> bool {
        is_failed(pod, self.spec)
            && match policy::judge(self.spec, pod) {
                Judged::FailsIndex => true,
                Judged::Ignored => false,
                Judged::Counted | Judged::FailsJob(_) => failures(pod).0 >= limit,
            }
    }

    fn held(&self, succeeded: &Indexes, failed: &Indexes) -> BTreeMap<i32, Arc<Pod>> {
        let active: BTreeSet<i32> = self.active.iter().filter_map(|pod| index(pod)).collect();
        let mut held: BTreeMap<i32, Arc<Pod>> = BTreeMap::new();
        let all = self.pods.iter().filter(|pod| is_tracked(pod) && is_failed(pod, self.spec));
        for pod in all.filter(|pod| self.has_valid_index(pod)) {
            let Some(index) = index(pod) else { continue };
            if succeeded.has(index) || failed.has(index) || active.contains(&index) {
                continue;
            }
            let rank = |pod: &Pod| (failures(pod).0 + failures(pod).1, finished_at(pod));
            match held.get(&index) {
                Some(other) if rank(other) > rank(pod) => {}
                _ => {
                    held.insert(index, pod.clone());
                }
            }
        }
        held
    }
}

/// Whether a job has indexes.
pub(super) fn is_indexed(spec: &JobSpec) -> bool {
    spec.completion_mode.as_deref() == Some("Indexed")
}

/// The uid of a pod.
pub(super) fn uid(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap_or_default()
}
