//! Jobs: pods that end.
//!
//! ```text
//! pods ─► Tally (what has ended, what counts) ─► verdict (failed? succeeded?) ─► manage (create, delete) ─► status, finalizers
//! ```
//!
//! A pod that has ended is counted once: its uid goes into the status, then its finalizer goes, then the uid becomes a
//! number. A crash in between is an ordinary state of these three.

mod backoff;
mod indexes;
mod manage;
mod pods;
mod policy;
mod status;
mod sync;
mod tally;
mod verdict;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use windlass::cache::Index;
use windlass_core::select::LabelSelector;
use windlass_core::{ObjectKey, owner};

use self::backoff::Backoff;
pub(super) use self::status::finished;
use super::claim::selector;
use crate::engine::{Controller, Turn, View, Wiring};

/// Runs pods until enough of them have succeeded.
#[derive(Default)]
pub(super) struct Jobs {
    /// By the uid of the job. It is only how long to wait: who starts anew waits a little less.
    backoff: Mutex<BTreeMap<String, Backoff>>,
}

/// The index of tracked pods by the key of the job that owns them.
const TRACKED: &str = "tracked-by-job";
/// How the keys of pods begin that are tracked and belong to nobody: no job has a slash in its name.
const ORPHAN: &str = "pod/";

impl Controller for Jobs {
    fn name(&self) -> &'static str {
        "job-controller"
    }

    fn declare(&self, wiring: &mut Wiring) {
        wiring.keys::<Job>();
        wiring.children::<Pod, Job>(selects);
        wiring.index::<Pod>(Index::new(TRACKED, |pod: &Pod| {
            let job = owning_job(pod).filter(|_| pods::is_tracked(pod));
            job.map(|job| job.to_string()).into_iter().collect()
        }));
        wiring.maps::<Pod>(|pod, _| {
            let lost = pods::is_tracked(pod) && owner::controller_of(&pod.metadata).is_none();
            let name = format!("{ORPHAN}{}", pod.metadata.name.as_deref().unwrap_or_default());
            lost.then(|| ObjectKey::new(pod.metadata.namespace.as_deref(), &name)).into_iter().collect()
        });
    }

    fn step(&self, key: &ObjectKey, view: &View<'_>, now: Timestamp) -> Turn {
        if let Some(name) = key.name().strip_prefix(ORPHAN) {
            return release_orphan(&ObjectKey::new(key.namespace(), name), view);
        }
        let job = view.get::<Job>(key);
        let uid = job.as_ref().and_then(|job| job.metadata.uid.clone()).unwrap_or_default();
        if job.as_ref().is_some_and(|job| is_managed_elsewhere(job)) {
            return Turn::nothing();
        }
        let mut backoff = self.backoff.lock().unwrap_or_else(PoisonError::into_inner);
        match job.filter(|job| !status::is_finished(job)) {
            Some(job) => sync::sync(&job, view, backoff.entry(uid).or_default(), now),
            None => {
                backoff.remove(&uid);
                untrack_rest(key, view)
            }
        }
    }
}

fn selects(job: &Job) -> LabelSelector {
    let wanted = job.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    wanted.map_or_else(LabelSelector::nothing, selector)
}

fn is_managed_elsewhere(job: &Job) -> bool {
    let manager = job.spec.as_ref().and_then(|spec| spec.managed_by.as_deref());
    manager.is_some_and(|manager| manager != "kubernetes.io/job-controller")
}

/// The key of the job that owns a pod.
fn owning_job(pod: &Pod) -> Option<ObjectKey> {
    let owner = owner::controller_of(&pod.metadata)?;
    let is_job = owner.kind == "Job" && owner.api_version == "batch/v1";
    is_job.then(|| ObjectKey::new(pod.metadata.namespace.as_deref(), &owner.name))
}

/// A job that has ended or is gone counts nothing: its pods are held for nothing.
fn untrack_rest(key: &ObjectKey, view: &View<'_>) -> Turn {
    let mut turn = Turn::default();
    for pod in view.by_index::<Pod>(TRACKED, &key.to_string()) {
        untrack(&mut turn, &pod);
    }
    turn
}

fn release_orphan(key: &ObjectKey, view: &View<'_>) -> Turn {
    let mut turn = Turn::default();
    let pod = view.get::<Pod>(key).filter(|pod| owner::controller_of(&pod.metadata).is_none());
    if let Some(pod) = pod.filter(|pod| pods::is_tracked(pod)) {
        untrack(&mut turn, &pod);
    }
    turn
}

/// Takes the finalizer away.
fn untrack(turn: &mut Turn, pod: &Arc<Pod>) {
    let meta = &pod.metadata;
    let others: Vec<&String> =
        meta.finalizers.iter().flatten().filter(|finalizer| *finalizer != pods::TRACKING).collect();
    let patch = json!({"metadata": {
        "uid": meta.uid, "resourceVersion": meta.resource_version, "finalizers": others,
    }});
    turn.patch::<Pod>(&ObjectKey::of(meta), patch);
}
