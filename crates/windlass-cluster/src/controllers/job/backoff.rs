//! How long to wait after failures before the next pod.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

use crate::controllers::pods;

/// After one failure,
const FIRST: Duration = Duration::from_secs(10);
/// and at the most. Each failure doubles it.
const LONGEST: Duration = Duration::from_secs(600);

/// What is remembered of the pods of a job that have ended: also of those that are gone by now.
#[derive(Clone, Debug, Default)]
pub(super) struct Backoff {
    /// By uid: a pod that is seen to have failed twice has failed once.
    failed: BTreeMap<String, Timestamp>,
    succeeded: Option<Timestamp>,
}

impl Backoff {
    /// A pod has failed.
    pub fn failed(&mut self, pod: &Pod) {
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        self.failed.entry(uid).or_insert_with(|| finished_at(pod));
    }

    /// A pod has succeeded: what failed before it is forgiven.
    pub fn succeeded(&mut self, pod: &Pod) {
        self.succeeded = self.succeeded.max(Some(finished_at(pod)));
    }

    /// When the next pod may be made.
    pub fn over_at(&self) -> Option<Timestamp> {
        let since = self.failed.values().filter(|time| self.succeeded.is_none_or(|success| **time > success));
        let last = since.clone().max().copied()?;
        over_at(since.count(), last)
    }
}

/// When the next pod may be made after so many failures, the last of them at this time.
pub(super) fn over_at(failures: usize, last: Timestamp) -> Option<Timestamp> {
    let doublings = u32::try_from(failures).unwrap_or(u32::MAX).checked_sub(1)?.min(16);
    last.checked_add((FIRST * 2u32.pow(doublings)).min(LONGEST)).ok()
}

/// When a pod ended: by its containers, by what is said of it, or by when it was deleted.
pub(super) fn finished_at(pod: &Pod) -> Timestamp {
    let meta = &pod.metadata;
    let by_readiness = || {
        let ready = pods::condition(pod, "Ready").filter(|ready| ready.status == "False")?;
        ready.last_transition_time.as_ref().map(|time| time.0)
    };
    let by_deletion = || {
        let grace = meta.deletion_grace_period_seconds.unwrap_or_default();
        let grace = Duration::from_secs(grace.try_into().unwrap_or_default());
        meta.deletion_timestamp.as_ref()?.0.checked_sub(grace).ok()
    };
    let by_creation = || meta.creation_timestamp.as_ref().map(|time| time.0);
    let found = by_containers(pod).or_else(by_readiness).or_else(by_deletion).or_else(by_creation);
    found.unwrap_or(Timestamp::UNIX_EPOCH)
}

/// The last of the containers, if all have ended; sidecars are containers.
fn by_containers(pod: &Pod) -> Option<Timestamp> {
    let status = pod.status.as_ref()?;
    let sidecar = |container: &&ContainerStatus| {
        let inits = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
        inits
            .filter(|init| init.restart_policy.as_deref() == Some("Always"))
            .any(|init| init.name == container.name)
    };
    let sidecars = status.init_container_statuses.iter().flatten().filter(sidecar);
    let ended = |container: &ContainerStatus| {
        Some(container.state.as_ref()?.terminated.as_ref()?.finished_at.as_ref()?.0)
    };
    let all = status.container_statuses.iter().flatten().chain(sidecars);
    all.map(ended).collect::<Option<Vec<_>>>()?.into_iter().max()
}
