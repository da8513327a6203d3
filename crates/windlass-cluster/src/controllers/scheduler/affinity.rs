//! Pods that want to be near others, or far from them.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Namespace, Node, Pod, PodAffinityTerm};
use windlass_core::select::LabelSelector;

use super::memory::{Memory, Placed};
use crate::controllers::claim::selector;
use crate::controllers::nodes::label;
use crate::engine::View;

/// The pods that a pod wants near it, or not, by where they are.
pub(super) struct Neighbours {
    near: Vec<Near>,
    far: Vec<Places>,
    /// Where others do not want this one.
    unwanted: Vec<(String, String)>,
    /// What is better than nothing: weight and places.
    preferred: Vec<(i64, Places)>,
}

/// A label of nodes, and for each of its values how many of the pods are there.
struct Places {
    topology: String,
    counts: BTreeMap<String, i64>,
}

struct Near {
    places: Places,
    /// Whether the pod is one of those that it wants near: the first of a group needs no other.
    itself: bool,
}

/// Why a node will not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    Near,
    Far,
    Unwanted,
}

/// Whether a pod does not want some others near it.
pub(super) fn repels(pod: &Pod) -> bool {
    !far_terms(pod).is_empty()
}

/// Whether pods near it matter to a pod.
pub(super) fn has_terms(pod: &Pod) -> bool {
    let affinity = pod.spec.as_ref().and_then(|spec| spec.affinity.as_ref());
    affinity.is_some_and(|one| one.pod_affinity.is_some() || one.pod_anti_affinity.is_some())
}

fn near_terms(pod: &Pod) -> &[PodAffinityTerm] {
    let affinity = pod.spec.as_ref().and_then(|spec| spec.affinity.as_ref()?.pod_affinity.as_ref());
    affinity
        .and_then(|one| one.required_during_scheduling_ignored_during_execution.as_deref())
        .unwrap_or_default()
}

fn far_terms(pod: &Pod) -> &[PodAffinityTerm] {
    let affinity = pod.spec.as_ref().and_then(|spec| spec.affinity.as_ref()?.pod_anti_affinity.as_ref());
    affinity
        .and_then(|one| one.required_during_scheduling_ignored_during_execution.as_deref())
        .unwrap_or_default()
}

fn preferred_terms(pod: &Pod) -> Vec<(i64, &PodAffinityTerm)> {
    let affinity = pod.spec.as_ref().and_then(|spec| spec.affinity.as_ref());
    let near = affinity.and_then(|one| one.pod_affinity.as_ref());
    let far = affinity.and_then(|one| one.pod_anti_affinity.as_ref());
    let near = near.and_then(|one| one.preferred_during_scheduling_ignored_during_execution.as_ref());
    let far = far.and_then(|one| one.preferred_during_scheduling_ignored_during_execution.as_ref());
    let near = near.into_iter().flatten().map(|one| (i64::from(one.weight), &one.pod_affinity_term));
    let far = far.into_iter().flatten().map(|one| (-i64::from(one.weight), &one.pod_affinity_term));
    near.chain(far).collect()
}

impl Neighbours {
    pub fn of(pod: &Pod, view: &View<'_>, memory: &Memory, nodes: &BTreeMap<&str, &Node>) -> Neighbours {
        let places = |term: &PodAffinityTerm| Places::of(term, pod, view, memory, nodes);
        let near = near_terms(pod)
            .iter()
            .map(|term| Near { places: places(term), itself: Group::of(term, pod, view).has(pod) });
        let mut unwanted = Vec::new();
        for other in memory.repelling() {
            for term in far_terms(&other.pod) {
                let place = nodes.get(&*other.node).and_then(|node| label(node, &term.topology_key));
                if let Some(place) = place.filter(|_| Group::of(term, &other.pod, view).has(pod)) {
                    unwanted.push((term.topology_key.clone(), place.to_owned()));
                }
            }
        }
        Neighbours {
            near: near.collect(),
            far: far_terms(pod).iter().map(places).collect(),
            unwanted,
            preferred: preferred_terms(pod)
                .into_iter()
                .map(|(weight, term)| (weight, places(term)))
                .collect(),
        }
    }

    /// Whether a node will do.
    pub fn check(&self, node: &Node) -> Result<(), Wrong> {
        let has_labels = self.near.iter().all(|near| label(node, &near.places.topology).is_some());
        let first = self.near.iter().all(|near| near.itself && near.places.counts.is_empty());
        let near = self.near.iter().all(|near| near.places.at(node) > 0);
        if !has_labels || !(near || first) {
            return Err(Wrong::Near);
        }
        if self.far.iter().any(|places| places.at(node) > 0) {
            return Err(Wrong::Far);
        }
        let here = |(key, value): &(String, String)| label(node, key) == Some(value);
        if self.unwanted.iter().any(here) { Err(Wrong::Unwanted) } else { Ok(()) }
    }

    /// How good a node is; to be compared with the others.
    pub fn score(&self, node: &Node) -> i64 {
        self.preferred.iter().map(|(weight, places)| weight * places.at(node)).sum()
    }
}

impl Places {
    fn of(
        term: &PodAffinityTerm,
        pod: &Pod,
        view: &View<'_>,
        memory: &Memory,
        nodes: &BTreeMap<&str, &Node>,
    ) -> Places {
        let group = Group::of(term, pod, view);
        let mut counts = BTreeMap::new();
        for placed in group.candidates(memory).into_iter().filter(|placed| group.has(&placed.pod)) {
            let place = nodes.get(&*placed.node).and_then(|node| label(node, &term.topology_key));
            if let Some(place) = place {
                *counts.entry(place.to_owned()).or_default() += 1;
            }
        }
        Places { topology: term.topology_key.clone(), counts }
    }

    fn at(&self, node: &Node) -> i64 {
        label(node, &self.topology).and_then(|value| self.counts.get(value)).copied().unwrap_or_default()
    }
}

/// The pods that a term is about.
struct Group {
    labels: LabelSelector,
    /// `None` is all of them.
    namespaces: Option<BTreeSet<String>>,
}

impl Group {
    fn of(term: &PodAffinityTerm, pod: &Pod, view: &View<'_>) -> Group {
        let labels = term.label_selector.as_ref().map_or_else(LabelSelector::nothing, selector);
        let mut namespaces: BTreeSet<String> = term.namespaces.iter().flatten().cloned().collect();
        let by_labels = term.namespace_selector.as_ref().map(selector);
        match by_labels {
            None if namespaces.is_empty() => namespaces.extend(pod.metadata.namespace.clone()),
            None => {}
            Some(all) if all.is_everything() => return Group { labels, namespaces: None },
            Some(some) => {
                let takes = |namespace: &Namespace| {
                    some.matches(namespace.metadata.labels.as_ref().unwrap_or(&BTreeMap::new()))
                };
                let taken = view.list::<Namespace>(None).into_iter().filter(|one| takes(one));
                namespaces.extend(taken.filter_map(|one| one.metadata.name.clone()));
            }
        }
        Group { labels, namespaces: Some(namespaces) }
    }

    fn has(&self, pod: &Pod) -> bool {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        self.namespaces.as_ref().is_none_or(|some| some.contains(namespace))
            && self.labels.matches(pod.metadata.labels.as_ref().unwrap_or(&BTreeMap::new()))
    }

    fn candidates<'m>(&self, memory: &'m Memory) -> Vec<&'m Placed> {
        match &self.namespaces {
            None => memory.placed().collect(),
            Some(some) => some.iter().flat_map(|namespace| memory.placed_in(namespace)).collect(),
        }
    }
}
