//! What a StatefulSet does next: pods come in order, leave in reverse order, and are replaced from the last one on.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec, StatefulSetUpdateStrategy};
use k8s_openapi::api::core::v1::Pod;
use windlass::events::Event;

use super::revisions::{Revisions, name};
use super::{claims, identity, is_available, is_running};
use crate::controllers::pods;
use crate::engine::{Turn, View};

/// The next writes of a set.
pub(super) struct Plan<'a> {
    set: &'a StatefulSet,
    spec: StatefulSetSpec,
    revisions: &'a Revisions,
    view: &'a View<'a>,
    now: Timestamp,
    /// Those that the set should have, by ordinal.
    replicas: Vec<Slot>,
    /// Those that it should not have, the last one first.
    condemned: Vec<Arc<Pod>>,
    /// What is to be done.
    pub turn: Turn,
}

/// The place of a pod.
enum Slot {
    There(Arc<Pod>),
    Missing(Box<Pod>),
}

/// Whether the next pod may be looked at.
#[derive(PartialEq, Eq)]
enum Flow {
    Go,
    Stop,
}

impl<'a> Plan<'a> {
    pub fn new(
        set: &'a StatefulSet,
        revisions: &'a Revisions,
        pods: &[Arc<Pod>],
        view: &'a View<'a>,
        now: Timestamp,
    ) -> Plan<'a> {
        let spec = set.spec.clone().unwrap_or_default();
        let range = identity::range(&spec);
        let mut there: BTreeMap<i32, Arc<Pod>> = BTreeMap::new();
        let mut condemned = Vec::new();
        for pod in pods {
            match identity::ordinal(pod) {
                Some(ordinal) if range.contains(&ordinal) => drop(there.insert(ordinal, pod.clone())),
                Some(_) => condemned.push(pod.clone()),
                None => {}
            }
        }
        condemned.sort_by_key(|pod| Reverse(identity::ordinal(pod)));
        let (current, update) = revisions.templates();
        let old_until = range.start.saturating_add(kept(set, &spec));
        let slot = |ordinal: i32| match there.remove(&ordinal) {
            Some(pod) => Slot::There(pod),
            None => {
                let old = ordinal < old_until;
                let (template, revision) =
                    if old { (&current, &revisions.current) } else { (&update, &revisions.update) };
                Slot::Missing(Box::new(identity::make(set, template, name(revision), ordinal)))
            }
        };
        let replicas = range.map(slot).collect();
        Plan { set, spec, revisions, view, now, replicas, condemned, turn: Turn::default() }
    }

    /// Decides. Gives back how many pods are deleted for the sake of the new revision.
    pub fn go(&mut self) -> i32 {
        let ordered = self.spec.pod_management_policy.as_deref() != Some("Parallel");
        for at in 0..self.replicas.len() {
            if self.replica(at, ordered) == Flow::Stop && ordered {
                return 0;
            }
        }
        for pod in self.condemned.clone() {
            if !claims::are_owned(self.view, self.set, &pod) {
                claims::own(&mut self.turn, self.view, self.set, &pod);
            }
        }
        let first = self.first_unavailable();
        for pod in self.condemned.clone() {
            if self.condemn(&pod, first.as_deref(), ordered) == Flow::Stop && ordered {
                return 0;
            }
        }
        if strategy(&self.spec).type_.as_deref() == Some("OnDelete") { 0 } else { self.update() }
    }

    /// One of the pods that the set should have.
    fn replica(&mut self, at: usize, ordered: bool) -> Flow {
        let pod = match &self.replicas[at] {
            Slot::There(pod) => pod.clone(),
            Slot::Missing(pod) => {
                let pod = pod.clone();
                return self.create(&pod, ordered);
            }
        };
        let leaving = pod.metadata.deletion_timestamp.is_some();
        if matches!(pods::phase(&pod), "Failed" | "Succeeded") {
            // A new one comes when this one is gone, whatever its exit code was.
            if !leaving {
                self.delete(&pod);
            }
            return Flow::Stop;
        }
        if pods::phase(&pod) == "Pending" {
            if claims::create(&mut self.turn, self.view, self.set, &pod).is_err() {
                return Flow::Stop;
            }
            claims::own(&mut self.turn, self.view, self.set, &pod);
        }
        if ordered && (leaving || !is_running(&pod) || !is_available(self.set, &pod, self.now)) {
            return Flow::Stop;
        }
        self.mend(&pod);
        Flow::Go
    }

    fn create(&mut self, pod: &Pod, ordered: bool) -> Flow {
        if claims::is_stale(self.view, self.set, pod) {
            return Flow::Stop;
        }
        if let Err(why) = claims::create(&mut self.turn, self.view, self.set, pod) {
            let note = format!(
                "Create Pod {} in StatefulSet {} failed error: {why}",
                identity::name(pod),
                self.own_name()
            );
            self.turn.event(self.set, Event::warning("FailedCreate", "Create", note));
            return Flow::Stop;
        }
        let event = Event::normal("SuccessfulCreate", "Create", self.done("Create", pod));
        self.turn.create_and_tell(pod, self.set, event);
        claims::own(&mut self.turn, self.view, self.set, pod);
        if ordered { Flow::Stop } else { Flow::Go }
    }

    /// Gives a pod back what makes it one of the set's.
    fn mend(&mut self, pod: &Pod) {
        let (identified, stored) = (identity::is_identified(pod), identity::is_stored(self.set, pod));
        if identified && stored && claims::are_owned(self.view, self.set, pod) {
            return;
        }
        let mut mended = pod.clone();
        identity::identify(&mut mended);
        if !stored {
            identity::store(self.set, &mut mended);
            if claims::create(&mut self.turn, self.view, self.set, pod).is_err() {
                return;
            }
        }
        claims::own(&mut self.turn, self.view, self.set, pod);
        self.turn.replace(&mended);
        let event = Event::normal("SuccessfulUpdate", "Update", self.done("Update", pod));
        self.turn.event(self.set, event);
    }

    /// One of the pods that the set should not have.
    fn condemn(&mut self, pod: &Pod, first_unavailable: Option<&Pod>, ordered: bool) -> Flow {
        if pod.metadata.deletion_timestamp.is_some() {
            return Flow::Stop;
        }
        let is_first = first_unavailable.is_some_and(|first| first.metadata.uid == pod.metadata.uid);
        let well = is_running(pod) && is_available(self.set, pod, self.now);
        if ordered && !well && !is_first {
            return Flow::Stop;
        }
        self.delete(pod);
        Flow::Stop
    }

    /// The first pod that does not serve: those that the set should have, then those that it should not.
    fn first_unavailable(&self) -> Option<Arc<Pod>> {
        let there = self.replicas.iter().filter_map(|slot| match slot {
            Slot::There(pod) => Some(pod),
            Slot::Missing(_) => None,
        });
        there.chain(self.condemned.iter().rev()).find(|pod| self.is_unavailable(pod)).cloned()
    }

    fn is_unavailable(&self, pod: &Pod) -> bool {
        !is_available(self.set, pod, self.now) || pod.metadata.deletion_timestamp.is_some()
    }

    /// Deletes the last pod that is not of the new revision, once those after it serve.
    fn update(&mut self) -> i32 {
        let from = usize::try_from(partition(&self.spec)).unwrap_or_default();
        for at in (from..self.replicas.len()).rev() {
            let Slot::There(pod) = &self.replicas[at] else { return 0 };
            let pod = pod.clone();
            let old = identity::revision(&pod) != name(&self.revisions.update);
            if old && pod.metadata.deletion_timestamp.is_none() {
                let counted = identity::revision(&pod) == name(&self.revisions.current);
                self.delete(&pod);
                return i32::from(counted);
            }
            if self.is_unavailable(&pod) {
                return 0;
            }
        }
        0
    }

    fn delete(&mut self, pod: &Pod) {
        self.turn.delete(pod);
        let event = Event::normal("SuccessfulDelete", "Delete", self.done("Delete", pod));
        self.turn.event(self.set, event);
    }

    fn done(&self, verb: &str, pod: &Pod) -> String {
        format!("{verb} Pod {} in StatefulSet {} successful", identity::name(pod), self.own_name())
    }

    fn own_name(&self) -> &str {
        identity::set_name(self.set)
    }
}

fn strategy(spec: &StatefulSetSpec) -> StatefulSetUpdateStrategy {
    spec.update_strategy.clone().unwrap_or_default()
}

fn partition(spec: &StatefulSetSpec) -> i32 {
    strategy(spec).rolling_update.and_then(|rolling| rolling.partition).unwrap_or_default()
}

/// How many pods from the first on are still made from the current revision.
fn kept(set: &StatefulSet, spec: &StatefulSetSpec) -> i32 {
    let strategy = strategy(spec);
    match strategy.rolling_update {
        Some(rolling) => rolling.partition.unwrap_or_default(),
        None if strategy.type_.as_deref() == Some("OnDelete") => 0,
        None => set.status.as_ref().and_then(|status| status.current_replicas).unwrap_or_default(),
    }
}
