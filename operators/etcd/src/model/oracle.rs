//! What must never be done, judged by the truth.

use super::etcd::Seat;
use super::kube::{Process, Slot};
use super::world::World;
use crate::api::{Medium, QuorumLoss};
use crate::plan::{Action, HOUR_SECONDS, Latch, Start, Why, quorum};

impl World {
    /// Notes that a rule was broken. The first one counts.
    pub fn break_rule(&mut self, number: u8, what: impl FnOnce() -> String) {
        if self.wrong.is_none() {
            self.wrong = Some(format!("rule {number}: {}", what()));
        }
    }

    /// Judges a step that the operator is about to take.
    pub fn judge(&mut self, action: &Action) {
        let broken = self.find_broken(action);
        for number in broken {
            self.break_rule(number, || action.to_string());
        }
    }

    /// Whether anybody knows that the cluster has come to life.
    pub fn is_born(&self) -> bool {
        let has_joined = |slot: &Slot| slot.object.as_ref().is_some_and(|object| object.joined.is_some());
        self.api.memory.cluster_id.is_some() || self.api.slots.iter().any(has_joined)
    }

    fn find_broken(&self, action: &Action) -> Vec<u8> {
        let mut broken = Vec::new();
        let mut check = |number, keeps: bool| {
            if !keeps {
                broken.push(number);
            }
        };
        let reaches_quorum = self.has_quorum() && !self.cut_off;
        let is_born = self.is_born();
        check(25, !self.cache.spec.paused);
        if action.is_membership() {
            check(5, reaches_quorum);
            let is_other = |slot: &Slot| {
                slot.object.as_ref().is_some_and(|object| object.joined.is_none())
                    && Some(&slot.name) != action.member()
            };
            check(1, !self.api.slots.iter().any(is_other));
        }
        match action {
            Action::CreateMember { serial, seed } => {
                check(6, !self.serials.contains(serial));
                check(15, !(*seed && is_born));
            }
            Action::StartPod { member, start } => {
                check(8, *start != Start::New || !is_born);
                let is_manual = self.cache.spec.healing.quorum_loss == QuorumLoss::Manual;
                check(21, *start != Start::Forced || !is_manual || self.api.memory.recovery.is_some());
                let is_other = |slot: &Slot| slot.name != *member && slot.pod.is_some();
                check(24, *start != Start::Forced || !self.api.slots.iter().any(is_other));
            }
            Action::Latch(Latch::Rescue(_)) => {
                check(21, self.cache.spec.healing.quorum_loss == QuorumLoss::FromSurvivor);
                check(21, self.voters_with_volume() < quorum(self.etcd.voters()));
                check(21, self.cache.spec.storage.medium == Medium::Disk);
            }
            Action::AddLearner { member } => {
                let is_other = |one: &Seat| one.learner && one.name.as_ref() != Some(member);
                check(11, !self.etcd.config.iter().any(is_other));
            }
            Action::Promote { member, .. } => {
                let slot = self.api.slot(member);
                let is_ready = slot.is_some_and(|slot| {
                    slot.pod.as_ref().is_some_and(|pod| pod.process == Process::Running)
                        && slot.data().is_some_and(|data| data.index + 1000 >= self.etcd.commit)
                });
                check(9, is_ready && self.etcd.find(member).is_some_and(|one| one.started));
            }
            Action::RemoveMember { id, because, .. } => self.judge_removal(*id, because.why, &mut check),
            Action::DeletePod { member, because, .. } if because.why == Why::Suspect => {
                let others = || self.etcd.config.iter().filter(|one| one.name.as_ref() != Some(member));
                check(2, others().filter(|one| !one.learner).all(|one| self.is_live(one)));
            }
            Action::DeletePod { member, because, .. } if because.why == Why::Removed => {
                check(5, reaches_quorum);
                check(0, self.etcd.find(member).is_none());
            }
            Action::DeleteVolume { member, .. } => {
                let slot = self.api.slot(member);
                let is_member = is_born && self.etcd.find(member).is_some();
                check(12, !is_member && slot.is_none_or(|slot| slot.pod.is_none()));
            }
            Action::DeleteMember { member, .. } => {
                let is_last =
                    self.api.slot(member).is_some_and(|s| s.object.as_ref().is_some_and(|o| o.deleting));
                check(12, !is_last || !is_born || self.etcd.find(member).is_none());
            }
            _ => {}
        }
        broken
    }

    fn judge_removal(&self, id: u64, why: Why, check: &mut impl FnMut(u8, bool)) {
        let Some(victim) = self.etcd.config.iter().find(|one| one.id == id) else { return };
        let is_live = self.is_live(victim) && !self.cut_off;
        let size = self.cache.spec.size as usize;
        match why {
            Why::Failed(_) => check(0, !is_live),
            Why::Surplus => check(0, self.etcd.voters() > size),
            Why::LearnerUnwanted => check(0, victim.learner && self.etcd.voters() >= size),
            Why::LearnerStuck => check(0, victim.learner),
            _ => {}
        }
        if matches!(why, Why::Failed(_) | Why::LearnerStuck) {
            let recent = |at: &i64| self.seconds - at < HOUR_SECONDS;
            let others =
                self.replaced.iter().filter(|(name, at)| recent(at) && victim.name.as_ref() != Some(name));
            check(23, (others.count() as i32) < self.cache.spec.healing.max_replacements_per_hour);
        }
        if victim.learner {
            return;
        }
        let rest = || self.etcd.config.iter().filter(|one| one.id != id && !one.learner);
        let live = rest().filter(|one| self.is_live(one)).count();
        check(3, rest().count() > 0 && live >= quorum(rest().count()));
        check(4, !is_live || live == rest().count());
    }

    /// How many voters still have a volume.
    fn voters_with_volume(&self) -> usize {
        let has_volume = |one: &&Seat| {
            let slot = one.name.as_ref().and_then(|name| self.api.slot(name));
            slot.is_some_and(|slot| {
                let claimed = slot.volume.as_ref().is_some_and(|claim| !claim.lost && !claim.going);
                slot.object.is_some() && (claimed || slot.pod.as_ref().is_some_and(|pod| pod.data.is_some()))
            })
        };
        self.etcd.config.iter().filter(|one| !one.learner).filter(has_volume).count()
    }
}
