//! From pods of an old template to pods of the new one.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{DaemonSet, RollingUpdateDaemonSet};
use k8s_openapi::api::core::v1::Pod;

use super::place::{Place, is_updated, place};
use super::{Step, Wanted, stays};
use crate::controllers::share::{Round, share};
use crate::controllers::{nodes, pods};

/// How long a pod has to be ready to count as available.
pub(super) fn min_ready(set: &DaemonSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.min_ready_seconds).unwrap_or_default()
}

/// Whether the new pod of a node comes before the old one goes.
pub(super) fn surges(set: &DaemonSet) -> bool {
    surge(set, 1) > 0
}

fn strategy(set: &DaemonSet) -> Option<Option<&RollingUpdateDaemonSet>> {
    let strategy = set.spec.as_ref().and_then(|spec| spec.update_strategy.as_ref());
    match strategy.and_then(|strategy| strategy.type_.as_deref()) {
        Some("OnDelete") => None,
        _ => Some(strategy.and_then(|strategy| strategy.rolling_update.as_ref())),
    }
}

fn surge(set: &DaemonSet, nodes: i32) -> i32 {
    let rolling = strategy(set).flatten();
    share(rolling.and_then(|rolling| rolling.max_surge.as_ref()), nodes, Round::Up)
}

/// What one node has: at most one new pod and at most one old one.
struct Pair {
    node: String,
    new: Option<Arc<Pod>>,
    old: Option<Arc<Pod>>,
}

impl Step<'_> {
    /// Which pods go next for a new template, and which come before they do.
    pub(super) fn rolled(&self) -> Wanted {
        let Some(rolling) = strategy(self.set) else { return Wanted::default() };
        let desired = self.nodes.iter().filter(|node| place(self.set, node) == Place::Wanted).count();
        let desired = i32::try_from(desired).unwrap_or(i32::MAX);
        let unavailable = rolling.and_then(|rolling| rolling.max_unavailable.as_ref());
        let unavailable = share(unavailable, desired, Round::Up);
        match surge(self.set, desired) {
            0 if desired > 0 && unavailable == 0 => self.replace(1),
            0 => self.replace(unavailable),
            surge => self.surge(surge, desired),
        }
    }

    fn is_available(&self, pod: &Pod) -> bool {
        pods::is_available(pod, min_ready(self.set), self.now)
    }

    /// What each node has that has pods or should; `None` for one with too many, which is put right first.
    fn pairs(&self) -> Vec<Option<Pair>> {
        let empty = self.nodes.iter().filter(|node| {
            place(self.set, node) == Place::Wanted && !self.pods.contains_key(nodes::name(node))
        });
        let empty = empty.map(|node| Some(Pair { node: nodes::name(node).to_owned(), new: None, old: None }));
        let full = self.pods.iter().map(|(node, pods)| {
            let alive = pods.iter().filter(|pod| stays(pod)).cloned();
            let (mut new, mut old): (Vec<_>, Vec<_>) =
                alive.partition(|pod| is_updated(self.set, pod, self.hash));
            let fits = new.len() <= 1 && old.len() <= 1;
            fits.then(|| Pair { node: node.clone(), new: new.pop(), old: old.pop() })
        });
        full.chain(empty).collect()
    }

    /// Deletes old pods, so many at a time that never too many are missing.
    fn replace(&self, most: i32) -> Wanted {
        let (mut missing, mut useless, mut candidates) = (0, Vec::new(), Vec::new());
        for pair in self.pairs() {
            match pair {
                Some(Pair { new: Some(new), old: None, .. }) => {
                    missing += i32::from(!self.is_available(&new));
                }
                Some(Pair { new: None, old: Some(old), .. }) if self.is_available(&old) => {
                    candidates.push(old)
                }
                Some(Pair { new: None, old: Some(old), .. }) => {
                    missing += 1;
                    useless.push(old);
                }
                _ => missing += 1,
            }
        }
        let more = usize::try_from(most - missing).unwrap_or_default();
        candidates.truncate(more);
        Wanted { nodes: Vec::new(), gone: useless.into_iter().chain(candidates).collect() }
    }

    /// Creates new pods beside old ones, and deletes the old ones when the new ones serve.
    fn surge(&self, most: i32, desired: i32) -> Wanted {
        let mut wanted = Wanted::default();
        let (mut surging, mut available) = (0, 0);
        let (mut candidates, mut misplaced) = (Vec::new(), Vec::new());
        for pair in self.pairs() {
            let Some(Pair { node, new, old }) = pair else {
                surging += 1;
                continue;
            };
            let serves = old.as_ref().or(new.as_ref()).is_some_and(|pod| self.is_available(pod));
            available += i32::from(serves);
            let here = self.nodes.iter().find(|one| nodes::name(one) == node);
            let belongs = here.is_some_and(|node| place(self.set, node) == Place::Wanted);
            match (old, new) {
                (None, _) => {}
                (Some(old), None) if !belongs && !serves => wanted.gone.push(old),
                (Some(old), None) if !belongs => misplaced.push(old),
                (Some(_), None) if serves => candidates.push(node),
                (Some(_), None) => wanted.nodes.push(node),
                (Some(old), Some(new)) if self.is_available(&new) => wanted.gone.push(old),
                (Some(_), Some(_)) => surging += 1,
            }
        }
        misplaced.truncate(usize::try_from(available - desired).unwrap_or_default());
        candidates.truncate(usize::try_from(most - surging).unwrap_or_default());
        wanted.gone.extend(misplaced);
        wanted.nodes.extend(candidates);
        wanted
    }
}
