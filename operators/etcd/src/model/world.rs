//! The truth: what is in the API server, what runs, what etcd has agreed on.

use windlass::core::Random;
use windlass::jiff::Timestamp;

use super::etcd::Etcd;
use super::kube::Api;
use crate::api::{EtcdClusterSpec, Healing, Medium, QuorumLoss, ReclaimPolicy};
use crate::goal::Rules;
use crate::observe::Name;
use crate::plan::Start;

/// How a schedule ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// The size is reached and all are well.
    Healthy,
    /// The same, after a quorum was lost for good.
    Recovered,
    /// Too much was lost, and the operator says so.
    Lost,
}

pub struct World {
    pub random: Random,
    pub rules: Rules,
    /// Which processes are started again in their pods.
    pub restarts_in_place: fn(Start) -> bool,
    pub seconds: i64,
    /// What the API server has.
    pub api: Api,
    /// What the operator has of it.
    pub cache: Api,
    pub etcd: Etcd,
    /// Serials that were ever used.
    pub serials: Vec<u64>,
    /// When members were removed because they had failed.
    pub replaced: Vec<(Name, i64)>,
    pub uids: u64,
    /// Whether the operator reaches no member.
    pub cut_off: bool,
    /// Whether faults may take a quorum of volumes.
    pub harsh: bool,
    /// Whether nothing goes wrong any more.
    pub calm: bool,
    pub recovered: bool,
    /// What the operator said last.
    pub said: Option<&'static str>,
    pub wrong: Option<String>,
    pub traced: bool,
    pub trace: Vec<String>,
}

impl World {
    pub fn new(seed: u64, rules: Rules, traced: bool) -> World {
        let mut random = Random::from_seed(seed);
        let spec = spec(&mut random);
        let api = Api::new(spec);
        World {
            rules,
            restarts_in_place: Start::restarts_in_place,
            seconds: 1_000_000,
            cache: api.clone(),
            api,
            etcd: Etcd::default(),
            serials: Vec::new(),
            replaced: Vec::new(),
            uids: 0,
            cut_off: false,
            harsh: random.next().is_multiple_of(5),
            calm: false,
            recovered: false,
            said: None,
            wrong: None,
            traced,
            trace: Vec::new(),
            random,
        }
    }

    /// Lives through faults, then through their end, and says how it ended.
    pub fn live(&mut self) -> Result<Ending, String> {
        // Half of the clusters are whole before anything goes wrong.
        self.calm = self.one_in(2);
        for _ in 0..200 {
            if !self.calm || self.is_well() {
                break;
            }
            self.turn()?;
        }
        self.calm = false;
        for _ in 0..20 + self.random.next() % 30 {
            if self.one_in(3) {
                self.fault();
            }
            self.turn()?;
        }
        self.end_of_faults();
        let mut lost_for = 0;
        for _ in 0..900 {
            self.turn()?;
            if self.is_well() {
                return Ok(if self.recovered { Ending::Recovered } else { Ending::Healthy });
            }
            let says_so =
                matches!(self.said, Some("QuorumLost" | "AllMembersLost" | "Recovering" | "Bootstrapping"));
            let is_lost = says_so && !self.can_go_on() && !self.can_recover();
            lost_for = if is_lost { lost_for + 1 } else { 0 };
            if lost_for > 30 {
                return Ok(Ending::Lost);
            }
        }
        Err(format!("it never got well, and the operator says {:?}", self.said))
    }

    /// A while passes, and the operator looks once.
    fn turn(&mut self) -> Result<(), String> {
        self.seconds += [1, 5, 20, 60][self.below(4)];
        self.run_pods();
        self.run_etcd();
        if !self.one_in(4) {
            self.refresh();
        }
        self.operate();
        match self.wrong.take() {
            Some(wrong) => Err(wrong),
            None => Ok(()),
        }
    }

    /// Whether everything is as asked for, in truth.
    fn is_well(&self) -> bool {
        let size = self.api.spec.size as usize;
        let voters = self.etcd.voters();
        let stray = |slot: &super::kube::Slot| self.etcd.find(&slot.name).is_none() && !slot.is_stuck();
        self.etcd.config.len() == size
            && voters == size
            && self.etcd.config.iter().all(|one| self.is_live(one))
            && self.api.memory.recovery.is_none()
            && !self.api.slots.iter().any(stray)
            && !self
                .api
                .slots
                .iter()
                .any(|slot| slot.object.as_ref().is_some_and(|object| object.deleting) && !slot.is_stuck())
    }

    /// Whether what is left could be a cluster again.
    fn can_go_on(&self) -> bool {
        if !self.is_born() {
            return !self.api.slots.iter().any(super::kube::Slot::is_stuck);
        }
        let holds = |one: &&super::etcd::Seat| {
            let slot = one.name.as_ref().and_then(|name| self.api.slot(name));
            slot.is_some_and(|slot| {
                slot.data().is_some_and(|data| data.id == one.id)
                    && (slot.object.is_some() || slot.runs())
                    && !slot.is_stuck()
            })
        };
        let voters = self.etcd.voters();
        let with_data = self.etcd.config.iter().filter(|one| !one.learner).filter(holds).count();
        with_data >= crate::plan::quorum(voters)
    }

    /// Whether the policy, and what is left, ask for a recovery.
    fn can_recover(&self) -> bool {
        // It has to know that it votes, and its volume has to survive the end of its pod.
        let holds = |slot: &&super::kube::Slot| {
            let votes =
                |data: &super::etcd::Data| data.config.iter().any(|one| one.id == data.id && !one.learner);
            slot.object.as_ref().is_some_and(|object| object.joined.is_some())
                && slot.volume.as_ref().is_none_or(|claim| !claim.going)
                && slot.data().is_some_and(votes)
        };
        let is_silent =
            |slot: &super::kube::Slot| (slot.volume.is_some() || slot.pod.is_some()) && !slot.runs();
        self.api.spec.healing.quorum_loss == crate::api::QuorumLoss::FromSurvivor
            && self.api.spec.storage.medium == Medium::Disk
            && self.api.slots.iter().any(|slot| holds(&slot))
            && !self.api.slots.iter().any(is_silent)
    }

    pub fn now(&self) -> Timestamp {
        Timestamp::from_second(self.seconds).unwrap_or_default()
    }

    pub fn below(&mut self, many: u64) -> usize {
        (self.random.next() % many) as usize
    }

    pub fn one_in(&mut self, many: u64) -> bool {
        self.random.next().is_multiple_of(many)
    }

    pub fn note(&mut self, what: impl FnOnce(&World) -> String) {
        if self.traced {
            let what = what(self);
            if !self.trace.last().is_some_and(|last| last.ends_with(&what)) {
                self.trace.push(format!("{:>7} {what}", self.seconds - 1_000_000));
            }
        }
    }
}

fn spec(random: &mut Random) -> EtcdClusterSpec {
    let mut spec = EtcdClusterSpec { size: [1, 3, 3, 5][(random.next() % 4) as usize], ..Default::default() };
    spec.healing = Healing {
        suspect_after_seconds: 60,
        failed_after_seconds: 240,
        learner_deadline_seconds: 300,
        quorum_loss_grace_seconds: 120,
        max_replacements_per_hour: 4,
        ..Healing::default()
    };
    if random.next().is_multiple_of(2) {
        spec.healing.quorum_loss = QuorumLoss::FromSurvivor;
    }
    if random.next().is_multiple_of(8) {
        spec.storage.medium = Medium::Memory;
    }
    if random.next().is_multiple_of(4) {
        spec.storage.reclaim_policy = ReclaimPolicy::Retain;
    }
    spec
}
