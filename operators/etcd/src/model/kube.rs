//! Kubernetes, as far as a cluster sees it: objects, pods that run where they can, volumes that outlive them.

use std::sync::Arc;

use super::etcd::Data;
use super::world::World;
use crate::api::{EtcdClusterSpec, Medium};
use crate::observe::{Name, Object};
use crate::plan::{Memory, Start};

/// What the API server has. A clone is what somebody saw of it.
#[derive(Clone, Debug)]
pub struct Api {
    /// Counts the user's changes of the EtcdCluster.
    pub version: u64,
    pub spec: EtcdClusterSpec,
    pub memory: Memory,
    /// By name.
    pub slots: Vec<Slot>,
}

/// Everything that has the name of one member.
#[derive(Clone, Debug)]
pub struct Slot {
    pub name: Name,
    pub object: Option<Object>,
    pub pod: Option<Pod>,
    pub volume: Option<Claim>,
}

#[derive(Clone, Debug)]
pub struct Pod {
    pub uid: Arc<str>,
    pub created: i64,
    pub deleting: bool,
    pub start: Start,
    pub restarts: u32,
    pub process: Process,
    /// Whether its node is cut off from everything.
    pub cut: bool,
    /// Whether it never catches up as a learner.
    pub slow: bool,
    pub restarts_in_place: fn(Start) -> bool,
    /// What a pod in memory holds.
    pub data: Option<Data>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    /// It has yet to start, or to start again.
    Waiting,
    Running,
    /// It does not answer, until the kubelet ends it.
    Hung {
        until: i64,
    },
    /// It has ended, and nobody starts it again in this pod.
    Ended,
}

#[derive(Clone, Debug, Default)]
pub struct Claim {
    pub data: Option<Data>,
    pub going: bool,
    pub lost: bool,
}

impl Api {
    pub fn new(spec: EtcdClusterSpec) -> Api {
        Api { version: 0, spec, memory: Memory::default(), slots: Vec::new() }
    }

    pub fn slot(&self, name: &str) -> Option<&Slot> {
        self.slots.iter().find(|slot| &*slot.name == name)
    }

    pub fn slot_mut(&mut self, name: &Name) -> &mut Slot {
        let at = match self.slots.iter().position(|slot| slot.name >= *name) {
            Some(at) if self.slots[at].name == *name => return &mut self.slots[at],
            Some(at) => at,
            None => self.slots.len(),
        };
        self.slots.insert(at, Slot { name: name.clone(), object: None, pod: None, volume: None });
        &mut self.slots[at]
    }

    pub fn tidy(&mut self) {
        self.slots.retain(|slot| slot.object.is_some() || slot.pod.is_some() || slot.volume.is_some());
    }
}

impl Pod {
    /// Its process ends, and is started again in place, where its start allows that.
    pub fn end(&mut self) {
        if (self.restarts_in_place)(self.start) {
            self.process = Process::Waiting;
            self.restarts += 1;
        } else {
            self.process = Process::Ended;
            self.data = None;
        }
    }
}

impl Slot {
    /// What it holds, if that can be read.
    pub fn data(&self) -> Option<&Data> {
        match &self.volume {
            Some(claim) if !claim.lost => claim.data.as_ref(),
            Some(_) => None,
            None => self.pod.as_ref().and_then(|pod| pod.data.as_ref()),
        }
    }

    pub fn data_mut(&mut self) -> Option<&mut Data> {
        match &mut self.volume {
            Some(claim) if !claim.lost => claim.data.as_mut(),
            Some(_) => None,
            None => self.pod.as_mut().and_then(|pod| pod.data.as_mut()),
        }
    }

    pub fn set_data(&mut self, data: Data) {
        match (&mut self.volume, &mut self.pod) {
            (Some(claim), _) => claim.data = Some(data),
            (None, Some(pod)) => pod.data = Some(data),
            (None, None) => {}
        }
    }

    /// Whether its process runs where others reach it.
    pub fn runs(&self) -> bool {
        self.pod.as_ref().is_some_and(|pod| pod.process == Process::Running && !pod.cut)
    }

    /// Whether it waits for a node that does not come back.
    pub fn is_stuck(&self) -> bool {
        self.pod.as_ref().is_some_and(|pod| pod.cut)
    }
}

impl World {
    /// Lets pods start, end and go.
    pub fn run_pods(&mut self) {
        for at in 0..self.api.slots.len() {
            let now = self.seconds;
            let slot = &mut self.api.slots[at];
            if let Some(pod) = &mut slot.pod
                && !pod.cut
            {
                if pod.deleting {
                    slot.pod = None;
                } else if let Process::Hung { until } = pod.process
                    && until <= now
                {
                    pod.end();
                }
            }
            if slot.pod.is_none() && slot.volume.as_ref().is_some_and(|claim| claim.going) {
                slot.volume = None;
            }
            let waits = slot.pod.as_ref().is_some_and(|pod| pod.process == Process::Waiting && !pod.cut);
            let on_disk = self.api.spec.storage.medium == Medium::Disk;
            let has_volume = slot.volume.as_ref().is_some_and(|claim| !claim.lost);
            if waits && (has_volume || !on_disk) {
                self.start(at);
            }
        }
        self.api.tidy();
    }

    /// Somebody else's changes reach the operator.
    pub fn refresh(&mut self) {
        self.cache.clone_from(&self.api);
    }

    /// Something that the operator wrote: it sees that at once.
    pub fn write(&mut self, name: &Name, change: impl FnOnce(&mut Slot)) {
        let slot = self.api.slot_mut(name);
        change(slot);
        let slot = slot.clone();
        *self.cache.slot_mut(name) = slot;
        self.api.tidy();
        self.cache.tidy();
    }
}
