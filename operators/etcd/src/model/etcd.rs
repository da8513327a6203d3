//! etcd, as far as membership goes: who votes, who leads, who has which write, and what a process does at its start.

use std::sync::Arc;

use super::kube::{Process, Slot};
use super::world::World;
use crate::observe::Name;
use crate::plan::{Start, quorum};

/// What the members have agreed on.
#[derive(Clone, Debug, Default)]
pub struct Etcd {
    pub formed: bool,
    pub config: Arc<Vec<Seat>>,
    pub leader: u64,
    pub term: u64,
    /// The last write that was acknowledged.
    pub commit: u64,
    pub last_id: u64,
    /// A change that was asked for, not answered, and not made yet.
    pub in_flight: Option<(i64, Change)>,
}

/// A member, as all agreed.
#[derive(Clone, Debug, PartialEq)]
pub struct Seat {
    pub id: u64,
    /// Which of ours it is.
    pub name: Option<Name>,
    pub learner: bool,
    pub started: bool,
}

/// What a member has on its disk.
#[derive(Clone, Debug)]
pub struct Data {
    pub id: u64,
    pub index: u64,
    pub term: u64,
    pub config: Arc<Vec<Seat>>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    Add(Option<Name>),
    Promote(u64),
    Remove(u64),
}

/// The cluster's ID. There is only ever one: a second one would be a rule broken.
pub const CLUSTER: u64 = 77;

impl Etcd {
    pub fn voters(&self) -> usize {
        self.config.iter().filter(|one| !one.learner).count()
    }

    pub fn find(&self, name: &str) -> Option<&Seat> {
        self.config.iter().find(|one| one.name.as_deref() == Some(name))
    }

    fn seat(&mut self, id: u64) -> Option<&mut Seat> {
        Arc::make_mut(&mut self.config).iter_mut().find(|one| one.id == id)
    }

    pub fn make(&mut self, change: &Change) {
        match change {
            Change::Add(name) => {
                let is_there = name.as_deref().is_some_and(|name| self.find(name).is_some());
                if !is_there {
                    self.last_id += 1;
                    let seat = Seat { id: self.last_id, name: name.clone(), learner: true, started: false };
                    Arc::make_mut(&mut self.config).push(seat);
                }
            }
            Change::Promote(id) => {
                if let Some(seat) = self.seat(*id) {
                    seat.learner = false;
                }
            }
            Change::Remove(id) => Arc::make_mut(&mut self.config).retain(|one| one.id != *id),
        }
    }
}

impl World {
    /// Whether a member takes part: its process runs on its data and nothing is between it and the others.
    pub fn is_live(&self, seat: &Seat) -> bool {
        let slot = seat.name.as_ref().and_then(|name| self.api.slot(name));
        slot.is_some_and(|slot| slot.runs() && slot.data().is_some_and(|data| data.id == seat.id))
    }

    /// How many voters take part.
    pub fn live_voters(&self) -> usize {
        self.etcd.config.iter().filter(|one| !one.learner && self.is_live(one)).count()
    }

    pub fn has_quorum(&self) -> bool {
        self.etcd.formed && self.live_voters() >= quorum(self.etcd.voters())
    }

    /// Makes a change, which everybody who takes part then knows of.
    pub fn commit(&mut self, change: &Change) {
        let before = self.etcd.config.clone();
        self.etcd.make(change);
        if !self.has_quorum() {
            self.etcd.leader = 0;
        }
        for seat in before.iter().filter(|one| self.is_live(one)).cloned().collect::<Vec<_>>() {
            let (config, commit) = (self.etcd.config.clone(), self.etcd.commit);
            if let Some(data) = seat.name.as_ref().and_then(|name| self.api.slot_mut(name).data_mut()) {
                data.config = config;
                // What is agreed on, most of those who vote have, and all that went before it.
                if !seat.learner {
                    data.index = commit;
                }
            }
        }
    }

    /// Elects, writes, copies.
    pub fn run_etcd(&mut self) {
        if !self.has_quorum() {
            self.etcd.leader = 0;
            return;
        }
        if let Some((due, change)) = self.etcd.in_flight.clone()
            && due <= self.seconds
        {
            self.etcd.in_flight = None;
            self.commit(&change);
            self.note(|_| format!("  late: {change:?}"));
            if !self.has_quorum() {
                self.etcd.leader = 0;
                return;
            }
        }
        let config = self.etcd.config.clone();
        let leads = |one: &&Seat| one.id == self.etcd.leader && !one.learner && self.is_live(one);
        let leader = config.iter().find(leads).map(|one| one.id);
        self.etcd.leader = leader.unwrap_or_else(|| self.elect(&config));
        self.etcd.commit += 1 + self.random.next() % 3000;
        let (commit, term) = (self.etcd.commit, self.etcd.term);
        let step = 500 + self.random.next() % 20_000;
        for seat in config.iter().filter(|one| self.is_live(one)).cloned().collect::<Vec<_>>() {
            let Some(name) = &seat.name else { continue };
            let slot = self.api.slot_mut(name);
            let is_slow = seat.learner && slot.pod.as_ref().is_some_and(|pod| pod.slow);
            let Some(data) = slot.data_mut() else { continue };
            data.term = term;
            data.config = config.clone();
            data.index = match seat.learner {
                false => commit,
                true if is_slow => data.index.max(1),
                // What is far behind gets a snapshot.
                true => commit.min(data.index + step.max((commit - data.index) / 2)),
            };
            if !seat.started
                && let Some(seat) = self.etcd.seat(seat.id)
            {
                seat.started = true;
            }
        }
    }

    /// The one with the most writes leads. If nobody has all that were acknowledged, some are lost.
    fn elect(&mut self, config: &[Seat]) -> u64 {
        let live = config.iter().filter(|one| !one.learner && self.is_live(one));
        let index = |one: &Seat| {
            let slot = one.name.as_ref().and_then(|name| self.api.slot(name));
            slot.and_then(Slot::data).map_or(0, |data| data.index)
        };
        let best = live.max_by_key(|one| index(one)).map_or((0, 0), |one| (one.id, index(one)));
        if best.1 < self.etcd.commit {
            self.break_rule(99, || "acknowledged writes are lost".to_owned());
        }
        self.etcd.term += 1;
        best.0
    }

    /// A process starts on what it finds.
    pub fn start(&mut self, at: usize) {
        let slot = &self.api.slots[at];
        let name = slot.name.clone();
        let Some(pod) = &slot.pod else { return };
        let (start, uid) = (pod.start, pod.uid.clone());
        let has_data = slot.data().map(|data| data.id);
        let seat = self.etcd.find(&name).cloned();
        let runs = match (has_data, start) {
            (Some(id), Start::Forced) => {
                self.force(&name, id);
                true
            }
            // It knows that it was removed once it hears from the others.
            (Some(id), _) => !self.has_quorum() || seat.as_ref().is_some_and(|seat| seat.id == id),
            // What an earlier seed had begun, nobody ever heard of.
            (None, Start::New) if !self.is_born() => {
                self.etcd.formed = true;
                self.etcd.last_id += 1;
                let id = self.etcd.last_id;
                self.etcd.config =
                    Arc::new(vec![Seat { id, name: Some(name.clone()), learner: false, started: true }]);
                (self.etcd.leader, self.etcd.term, self.etcd.commit) = (id, 1, 1);
                let data = Data { id, index: 1, term: 1, config: self.etcd.config.clone() };
                self.api.slots[at].set_data(data);
                true
            }
            // It takes itself for the whole cluster, under the ID that it had in it: there is nothing that would keep it
            // from clients.
            (None, Start::New) => {
                self.break_rule(8, || format!("{name} begins the cluster a second time"));
                false
            }
            (None, Start::Existing) => match &seat {
                Some(seat) if !seat.started && self.has_quorum() => {
                    let data = Data { id: seat.id, index: 0, term: 0, config: self.etcd.config.clone() };
                    self.api.slots[at].set_data(data);
                    true
                }
                Some(seat) if seat.started => {
                    self.break_rule(7, || format!("{name} starts on an empty volume as {}", seat.id));
                    false
                }
                _ => false,
            },
            (None, _) => false,
        };
        self.note(|_| {
            format!("  pod {uid} of {name} starts ({start}): {}", if runs { "runs" } else { "ends" })
        });
        if let Some(pod) = &mut self.api.slots[at].pod {
            match runs {
                true => pod.process = Process::Running,
                false => pod.end(),
            }
        }
    }

    fn force(&mut self, name: &Name, id: u64) {
        let others = self.api.slots.iter().filter(|slot| slot.name != *name && slot.pod.is_some()).count();
        if others > 0 {
            self.break_rule(24, || format!("{name} goes on alone while {others} other pods are there"));
        }
        let seat = Seat { id, name: Some(name.clone()), learner: false, started: true };
        self.etcd.config = Arc::new(vec![seat]);
        let index = self.api.slot(name).and_then(Slot::data).map_or(0, |data| data.index);
        (self.etcd.leader, self.etcd.commit, self.etcd.in_flight) = (id, index, None);
        self.etcd.term += 1;
        self.recovered = true;
    }
}
