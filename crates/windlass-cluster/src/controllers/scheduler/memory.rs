//! What is on each node: kept as pods come and go, so that to place one pod costs nothing for all others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use windlass_core::{ObjectKey, owner};

use super::affinity;
use super::requests::{self, Amounts, Port};
use crate::controllers::pods;

/// What the scheduler knows of pods: those that have a node, those that it has just given one, those that wait for one.
#[derive(Default)]
pub(super) struct Memory {
    nodes: BTreeMap<String, Load>,
    pods: BTreeMap<ObjectKey, Placed>,
    /// Pods that do not want others near them.
    repelling: BTreeSet<ObjectKey>,
    waiting: BTreeMap<ObjectKey, Waiting>,
    /// Those of the waiting that need neighbours, and those that need volumes: most changes concern nobody else.
    near: BTreeSet<ObjectKey>,
    stored: BTreeSet<ObjectKey>,
}

/// What a node carries.
#[derive(Default)]
pub(super) struct Load {
    /// What its pods ask for.
    pub requested: Amounts,
    /// What they will likely use, of processors and memory.
    pub likely: (i64, i64),
    /// How many there are.
    pub pods: i64,
    /// The ports that they take.
    pub ports: BTreeMap<Port, usize>,
    /// How many have the same controller.
    pub kin: BTreeMap<String, i64>,
}

/// A pod on its node.
pub(super) struct Placed {
    pub pod: Arc<Pod>,
    pub node: String,
    /// Whether we only asked for it.
    assumed: bool,
}

/// A pod that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub needs: Needs,
    /// How often it was said that it waits,
    pub told: u32,
    /// and until when it is not said again.
    pub quiet_until: Timestamp,
}

/// What beside nodes a waiting pod may wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    /// Pods near it.
    pub neighbours: bool,
    /// Volumes.
    pub volumes: bool,
}

impl Memory {
    /// What a node carries; `None` if it is empty.
    pub fn load(&self, node: &str) -> Option<&Load> {
        self.nodes.get(node)
    }

    /// The pods that have a node, in one namespace.
    pub fn placed_in(&self, namespace: &str) -> impl Iterator<Item = &Placed> {
        let from = ObjectKey::namespaced(namespace, "");
        let namespace = namespace.to_owned();
        let here = self.pods.range(from..).take_while(move |(key, _)| key.namespace() == Some(&namespace));
        here.map(|(_, placed)| placed)
    }

    /// All pods that have a node.
    pub fn placed(&self) -> impl Iterator<Item = &Placed> {
        self.pods.values()
    }

    /// The pods with a node that do not want others near them.
    pub fn repelling(&self) -> impl Iterator<Item = &Placed> {
        self.repelling.iter().filter_map(|key| self.pods.get(key))
    }

    /// Takes in what the server says of a pod. Whether that makes room for another.
    pub fn hear(&mut self, key: &ObjectKey, pod: Option<&Arc<Pod>>) -> bool {
        let counts = |pod: &&Arc<Pod>| !matches!(pods::phase(pod), "Succeeded" | "Failed");
        match pod.filter(counts) {
            None => {
                self.waits_no_more(key);
                self.remove(key)
            }
            Some(pod) if pods::node(pod).is_empty() => false,
            Some(pod) => {
                self.waits_no_more(key);
                self.remove(key);
                self.place(key, pod, pods::node(pod), false);
                false
            }
        }
    }

    /// A pod is on its way to a node: what it asks for is taken.
    pub fn assume(&mut self, key: &ObjectKey, pod: &Arc<Pod>, node: &str) {
        self.remove(key);
        self.place(key, pod, node, true);
    }

    /// A pod is not on its way anywhere; how it waited.
    pub fn forget(&mut self, key: &ObjectKey) -> Option<Waiting> {
        if self.pods.get(key).is_some_and(|placed| placed.assumed) {
            self.remove(key);
        }
        self.waits_no_more(key)
    }

    /// A pod waits for something to change.
    pub fn wait(&mut self, key: &ObjectKey, waiting: Waiting) {
        if waiting.needs.neighbours {
            self.near.insert(key.clone());
        }
        if waiting.needs.volumes {
            self.stored.insert(key.clone());
        }
        self.waiting.insert(key.clone(), waiting);
    }

    fn waits_no_more(&mut self, key: &ObjectKey) -> Option<Waiting> {
        self.near.remove(key);
        self.stored.remove(key);
        self.waiting.remove(key)
    }

    /// All pods that wait.
    pub fn waiting(&self) -> Vec<ObjectKey> {
        self.waiting.keys().cloned().collect()
    }

    /// The pods that wait for others near them.
    pub fn waiting_for_neighbours(&self) -> Vec<ObjectKey> {
        self.near.iter().cloned().collect()
    }

    /// The pods that wait for volumes, of one namespace or of all.
    pub fn waiting_for_volumes(&self, namespace: Option<&str>) -> Vec<ObjectKey> {
        let here = |key: &&ObjectKey| namespace.is_none() || key.namespace() == namespace;
        self.stored.iter().filter(here).cloned().collect()
    }

    fn place(&mut self, key: &ObjectKey, pod: &Arc<Pod>, node: &str, assumed: bool) {
        let load = self.nodes.entry(node.to_owned()).or_default();
        requests::add(&mut load.requested, &requests::requests(pod));
        let (cpu, memory) = requests::likely(pod);
        load.likely.0 += cpu;
        load.likely.1 += memory;
        load.pods += 1;
        for port in requests::ports(pod) {
            *load.ports.entry(port).or_default() += 1;
        }
        if let Some(owner) = owner::controller_of(&pod.metadata) {
            *load.kin.entry(owner.uid.clone()).or_default() += 1;
        }
        if affinity::repels(pod) {
            self.repelling.insert(key.clone());
        }
        let node = node.to_owned();
        self.pods.insert(key.clone(), Placed { pod: pod.clone(), node, assumed });
    }

    /// Whether there was such a pod.
    fn remove(&mut self, key: &ObjectKey) -> bool {
        let Some(Placed { pod, node, .. }) = self.pods.remove(key) else { return false };
        self.repelling.remove(key);
        let Some(load) = self.nodes.get_mut(&node) else { return true };
        requests::subtract(&mut load.requested, &requests::requests(&pod));
        let (cpu, memory) = requests::likely(&pod);
        load.likely.0 -= cpu;
        load.likely.1 -= memory;
        load.pods -= 1;
        for port in requests::ports(&pod) {
            if let Some(count) = load.ports.get_mut(&port) {
                *count -= 1;
            }
        }
        load.ports.retain(|_, count| *count > 0);
        if let Some(owner) = owner::controller_of(&pod.metadata)
            && let Some(count) = load.kin.get_mut(&owner.uid)
        {
            *count -= 1;
            if *count == 0 {
                load.kin.remove(&owner.uid);
            }
        }
        if load.pods == 0 {
            self.nodes.remove(&node);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, node: &str, phase: &str) -> Arc<Pod> {
        Arc::new(
            serde_json::from_value(json!({
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"nodeName": node, "containers": [{
                    "name": "c", "ports": [{"containerPort": 80, "hostPort": 80}],
                    "resources": {"requests": {"cpu": "100m"}},
                }]},
                "status": {"phase": phase},
            }))
            .unwrap(),
        )
    }

    #[test]
    fn a_node_carries_what_is_on_it_and_on_its_way() {
        let mut memory = Memory::default();
        let (one, two) = (ObjectKey::namespaced("default", "one"), ObjectKey::namespaced("default", "two"));
        memory.assume(&one, &pod("one", "", "Pending"), "a");
        assert_eq!(memory.load("a").unwrap().requested["cpu"], 100);
        // The server says the same: it does not count twice.
        memory.hear(&one, Some(&pod("one", "a", "Pending")));
        memory.hear(&two, Some(&pod("two", "a", "Running")));
        let load = memory.load("a").unwrap();
        assert_eq!((load.requested["cpu"], load.pods, load.ports.len()), (200, 2, 1));
        memory.forget(&one);
        assert_eq!(memory.load("a").unwrap().pods, 2, "what the server says is not forgotten");
        assert!(memory.hear(&one, Some(&pod("one", "a", "Succeeded"))), "there is room");
        assert!(memory.hear(&two, None));
        assert!(memory.load("a").is_none() && memory.placed().next().is_none());
    }
}
