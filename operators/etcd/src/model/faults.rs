//! What goes wrong, and what users do.

use super::etcd::{Change, Seat};
use super::kube::{Process, Slot};
use super::world::World;
use crate::api::{Medium, QuorumLoss};
use crate::observe::Name;
use crate::plan::quorum;

impl World {
    /// One thing goes wrong, or somebody does something.
    pub fn fault(&mut self) {
        if self.one_in(4) {
            self.fault();
        }
        let kind = self.below(19);
        let Some(name) = self.some_member() else { return };
        match kind {
            0 => self.tell("its process is killed", &name, |slot, _| {
                if let Some(pod) = &mut slot.pod
                    && pod.process == Process::Running
                {
                    pod.end();
                }
            }),
            1 | 2 => {
                self.hang(&name);
                if let Some(other) = self.some_member().filter(|_| kind == 2) {
                    self.hang(&other);
                }
            }
            3 if self.api.spec.storage.medium == Medium::Disk || self.may_lose(&name) => {
                self.tell("its pod is deleted", &name, |slot, _| {
                    if let Some(pod) = &mut slot.pod {
                        pod.deleting = true;
                    }
                });
            }
            4 | 5 if self.may_lose(&name) => self.wipe(&name),
            6 if self.may_lose(&name) => self.tell("its volume and pod are deleted", &name, |slot, _| {
                if let Some(claim) = &mut slot.volume {
                    claim.going = true;
                }
                if let Some(pod) = &mut slot.pod {
                    pod.deleting = true;
                }
            }),
            7 if self.may_lose(&name) => self.tell("its volume is lost", &name, |slot, _| {
                if let Some(claim) = &mut slot.volume {
                    claim.lost = true;
                }
                if let Some(pod) = &mut slot.pod {
                    pod.end();
                }
            }),
            8 if self.may_lose(&name) => self.cut(&name),
            9 => self.mend_nodes(),
            10 => self.tell("its EtcdMember is deleted", &name, |slot, _| {
                if let Some(object) = &mut slot.object {
                    object.deleting = true;
                }
            }),
            11 if self.may_lose(&name) && self.one_in(3) => {
                self.tell("its EtcdMember is torn out", &name, |slot, _| slot.object = None);
            }
            12 if self.may_lose(&name) => self.remove_behind(&name),
            13 if self.harsh && self.one_in(4) => self.tear_all(),
            14 | 15 => {
                let size = [1, 3, 3, 5, 5, 7][self.below(6)];
                self.note(|_| format!("  size {size}"));
                self.api.spec.size = size;
                self.api.version += 1;
            }
            16 => {
                self.cut_off = self.one_in(2);
                let cut_off = self.cut_off;
                self.note(|_| format!("  the operator reaches nobody: {cut_off}"));
            }
            17 => {
                self.api.spec.paused = self.one_in(3);
                self.api.version += 1;
                let paused = self.api.spec.paused;
                self.note(|_| format!("  paused: {paused}"));
            }
            18 if self.harsh && self.one_in(2) => self.spare_one(&name),
            _ => {}
        }
        self.api.tidy();
    }

    fn hang(&mut self, name: &Name) {
        self.tell("its process hangs", name, |slot, now| {
            if let Some(pod) = slot.pod.as_mut().filter(|pod| pod.process != Process::Ended) {
                pod.process = Process::Hung { until: now + 400 };
            }
        });
    }

    /// Every volume is lost but one.
    fn spare_one(&mut self, name: &Name) {
        self.note(|_| format!("  every volume is lost but that of {name}"));
        let survivor = name.clone();
        for at in 0..self.api.slots.len() {
            let stays = self.one_in(2);
            let slot = &mut self.api.slots[at];
            if slot.name == survivor {
                continue;
            }
            if let Some(claim) = &mut slot.volume {
                claim.lost = true;
            }
            if let Some(pod) = &mut slot.pod {
                pod.end();
                pod.deleting |= !stays || slot.volume.is_none();
            }
        }
    }

    /// Nothing goes wrong any more, and everybody lets the operator do its work.
    pub fn end_of_faults(&mut self) {
        self.note(|_| "faults end".to_owned());
        self.calm = true;
        self.cut_off = false;
        self.api.spec.paused = false;
        self.api.version += 1;
        for at in 0..self.api.slots.len() {
            let name = self.api.slots[at].name.clone();
            let stays_cut = self.one_in(2) && self.quorum_without_cut();
            if let Some(pod) = &mut self.api.slots[at].pod {
                pod.slow = false;
                if pod.cut && stays_cut {
                    pod.deleting = true;
                } else {
                    pod.cut = false;
                }
            }
            self.note(|_| format!("  {name} stays cut off: {stays_cut}"));
        }
        // What the operator does not touch, its user has to.
        let strangers: Vec<u64> =
            self.etcd.config.iter().filter(|one| one.name.is_none()).map(|one| one.id).collect();
        strangers.into_iter().for_each(|id| self.etcd.make(&Change::Remove(id)));
    }

    fn some_member(&mut self) -> Option<Name> {
        let count = self.api.slots.len() as u64;
        if count == 0 {
            return None;
        }
        let at = self.below(count);
        Some(self.api.slots[at].name.clone())
    }

    fn tell(&mut self, what: &str, name: &Name, change: impl FnOnce(&mut Slot, i64)) {
        self.note(|_| format!("  {name}: {what}"));
        let now = self.seconds;
        change(self.api.slot_mut(name), now);
    }

    /// Whether a member may lose its data: in a gentle world, a quorum of voters keeps theirs.
    fn may_lose(&self, name: &Name) -> bool {
        if self.harsh {
            return true;
        }
        let Some(seat) = self.etcd.find(name) else { return true };
        let safe = |one: &&Seat| !one.learner && one.id != seat.id && self.is_sound(one);
        let left = self.etcd.config.iter().filter(safe).count();
        seat.learner || left >= quorum(self.etcd.voters())
    }

    /// Whether a member has its data, its EtcdMember and its node.
    fn is_sound(&self, seat: &Seat) -> bool {
        let slot = seat.name.as_ref().and_then(|name| self.api.slot(name));
        slot.is_some_and(|slot| {
            let stays = slot.volume.as_ref().is_none_or(|claim| !claim.going);
            slot.object.is_some() && slot.data().is_some() && stays && !slot.is_stuck()
        })
    }

    fn quorum_without_cut(&self) -> bool {
        let sound = self.etcd.config.iter().filter(|one| !one.learner && self.is_sound(one)).count();
        sound >= quorum(self.etcd.voters())
    }

    fn wipe(&mut self, name: &Name) {
        self.tell("its data is wiped", name, |slot, _| {
            if let Some(claim) = &mut slot.volume {
                claim.data = None;
            }
            // A pod in memory loses everything when its node is started again, and stays where it is.
            if let Some(pod) = &mut slot.pod {
                pod.data = None;
                pod.end();
            }
        });
    }

    fn cut(&mut self, name: &Name) {
        let evicted = self.one_in(2);
        self.tell("its node is cut off", name, |slot, _| {
            if let Some(pod) = &mut slot.pod {
                pod.cut = true;
                pod.deleting |= evicted;
            }
        });
    }

    fn mend_nodes(&mut self) {
        self.note(|_| "  all nodes are back".to_owned());
        for slot in &mut self.api.slots {
            if let Some(pod) = &mut slot.pod {
                pod.cut = false;
            }
        }
    }

    fn remove_behind(&mut self, name: &Name) {
        // etcd itself refuses what would leave no quorum.
        let seat = self.etcd.find(name).map(|one| (one.id, usize::from(!one.learner && self.is_live(one))));
        let fits = |live: usize, voters: usize| voters > 0 && live >= quorum(voters);
        let voters = self.etcd.voters();
        let refused = |(id, lives): &(u64, usize)| {
            let votes = self.etcd.config.iter().any(|one| one.id == *id && !one.learner);
            votes && !fits(self.live_voters() - lives, voters - 1)
        };
        if let Some((id, _)) = seat.filter(|seat| self.has_quorum() && !refused(seat)) {
            self.note(|_| format!("  {name} is removed behind our back"));
            self.commit(&Change::Remove(id));
        } else if self.has_quorum() && self.one_in(4) {
            self.note(|_| "  somebody adds a member of their own".to_owned());
            self.commit(&Change::Add(None));
        }
    }

    /// Somebody tears out every EtcdMember, pods and all.
    fn tear_all(&mut self) {
        if self.api.spec.healing.quorum_loss == QuorumLoss::FromSurvivor && self.one_in(2) {
            return;
        }
        self.note(|_| "  every EtcdMember, pod and volume is torn out".to_owned());
        self.api.slots.clear();
    }
}
