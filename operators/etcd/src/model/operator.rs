//! The operator: looks through its cache and at etcd, decides, looks again, acts, and may die anywhere in between.

use std::sync::Arc;

use super::etcd::{CLUSTER, Change, Seat};
use super::kube::{Claim, Pod, Process, Slot};
use super::world::World;
use crate::api::Medium;
use crate::observe::{List, Listed, Member, Name, Object, Observed, Report, Volume};
use crate::plan::{Action, Start, View, Why, decide_by};

impl World {
    /// One pass.
    pub fn operate(&mut self) {
        let seen = self.observe();
        let now = self.now();
        let decision = decide_by(&self.rules, &self.cache.spec, &self.cache.memory, &seen, now);
        self.said = decision.blocked.as_ref().map(|blocked| blocked.reason);
        self.note(|_| {
            let blocked =
                decision.blocked.as_ref().map(|blocked| format!("{}: {}", blocked.reason, blocked.message));
            let action = decision.action.as_ref().map_or("nothing".to_owned(), ToString::to_string);
            format!("{action}   [{}]", blocked.unwrap_or_default())
        });
        // The world does not stand still while it thinks.
        if !self.calm && self.one_in(6) {
            self.fault();
        }
        if self.one_in(4) {
            self.refresh();
        }
        if self.one_in(20) {
            self.note(|_| "  the operator dies before it acts".to_owned());
            return self.refresh();
        }
        if let Some(action) = &decision.action {
            self.perform(action);
        }
        if self.one_in(20) {
            self.note(|_| "  the operator dies after it acted".to_owned());
            return self.refresh();
        }
        // A status is written to the version that was looked at, and to no other.
        if self.cache.version == self.api.version {
            self.api.memory = decision.memory.clone();
            self.cache.memory = decision.memory;
        } else {
            self.refresh();
        }
    }

    /// Looks again, asks the rules again, and acts.
    fn perform(&mut self, action: &Action) {
        let seen = self.observe();
        let memory = self.cache.memory.learn(&seen, self.now());
        let view = View { spec: &self.cache.spec, memory: &memory, seen: &seen, now: self.now() };
        if let Err(rule) = self.rules.permit(action, &view) {
            return self.note(|_| format!("  refused at the last moment: {rule:?}"));
        }
        self.judge(action);
        let now = self.now();
        match action {
            Action::Latch(_) => {}
            Action::CreateMember { serial, seed } => {
                let name: Name = format!("m{serial:04}").into();
                let object =
                    Object { serial: *serial, seed: *seed, joined: None, deleting: false, created: now };
                self.write(&name, |slot| slot.object = Some(object));
            }
            Action::CreateVolume { member } => {
                self.use_up(member);
                self.write(member, |slot| {
                    slot.volume.get_or_insert_with(Claim::default);
                });
            }
            Action::AddLearner { member } => {
                self.use_up(member);
                self.call(Change::Add(Some(member.clone())));
            }
            Action::NoteJoined { member, id } => {
                self.write(member, |slot| {
                    if let Some(object) = &mut slot.object {
                        object.joined = Some(*id);
                    }
                });
            }
            Action::StartPod { member, start } => self.start_pod(member, *start),
            Action::Promote { id, .. } => self.call(Change::Promote(*id)),
            Action::MoveLeader { to, .. } => {
                let target = self.etcd.config.iter().find(|one| one.id == *to && !one.learner).cloned();
                if self.has_quorum() && target.is_some_and(|one| self.is_live(&one)) {
                    self.etcd.leader = *to;
                }
            }
            Action::RemoveMember { member, id, because } => {
                if let (Some(name), Why::Failed(_) | Why::LearnerStuck) = (member, because.why) {
                    let decided = self.api.memory.replacements.iter().find(|(member, _)| member == name);
                    let at = decided.map_or(self.seconds, |(_, at)| at.as_second());
                    self.replaced.retain(|(other, _)| other != name);
                    self.replaced.push((name.clone(), at));
                }
                self.call(Change::Remove(*id));
            }
            Action::DeletePod { member, uid, .. } => {
                let uid = uid.clone();
                self.write(member, |slot| {
                    if let Some(pod) = slot.pod.as_mut().filter(|pod| pod.uid == uid) {
                        pod.deleting = true;
                    }
                });
            }
            Action::DeleteVolume { member, .. } => self.write(member, |slot| {
                if let Some(claim) = &mut slot.volume {
                    claim.going = true;
                }
                if slot.pod.is_none() {
                    slot.volume = None;
                }
            }),
            Action::RetainVolume { member } => self.write(member, |slot| slot.volume = None),
            Action::DeleteMember { member, .. } => {
                self.write(member, |slot| match slot.object.as_mut().filter(|object| !object.deleting) {
                    Some(object) => object.deleting = true,
                    None => slot.object = None,
                })
            }
        }
    }

    /// From here on, a member of this name is more than a name.
    fn use_up(&mut self, member: &Name) {
        let object = self.api.slot(member).and_then(|slot| slot.object.as_ref());
        if let Some(serial) =
            object.map(|object| object.serial).filter(|serial| !self.serials.contains(serial))
        {
            self.serials.push(serial);
        }
    }

    fn start_pod(&mut self, member: &Name, start: Start) {
        self.use_up(member);
        if self.api.slot(member).is_some_and(|slot| slot.pod.is_some()) {
            return;
        }
        self.uids += 1;
        let pod = Pod {
            uid: format!("p{}", self.uids).into(),
            created: self.seconds,
            deleting: false,
            start,
            restarts: 0,
            process: Process::Waiting,
            cut: false,
            slow: self.one_in(12),
            restarts_in_place: self.restarts_in_place,
            data: None,
        };
        self.write(member, |slot| slot.pod = Some(pod));
    }

    /// Asks etcd for a change. The question or the answer may be lost, and what was not answered may come late.
    fn call(&mut self, change: Change) {
        if !self.has_quorum() || self.cut_off || self.etcd.in_flight.is_some() {
            return;
        }
        let is_refused = match &change {
            // Older versions add nobody while a voter is down.
            Change::Add(_) => self.live_voters() < self.etcd.voters(),
            Change::Promote(_) | Change::Remove(_) => false,
        };
        match self.below(12) {
            0 => self.note(|_| "  the call is lost".to_owned()),
            1 => self.etcd.in_flight = Some((self.seconds + 10, change)),
            _ if is_refused => self.note(|_| "  etcd refuses".to_owned()),
            _ => self.commit(&change),
        }
    }

    /// What the operator can know.
    fn observe(&self) -> Observed {
        let reaches = |slot: &&Slot| {
            let (mine, theirs) = (slot.pod.as_ref(), self.api.slot(&slot.name));
            let same =
                mine.map(|pod| &pod.uid) == theirs.and_then(|slot| slot.pod.as_ref()).map(|pod| &pod.uid);
            !self.cut_off && same && theirs.is_some_and(|slot| slot.runs() && slot.data().is_some())
        };
        let quorum = self.has_quorum();
        let members = self.cache.slots.iter().map(|slot| {
            let truth = self.api.slot(&slot.name).filter(|_| reaches(&slot));
            self.member(slot, truth, quorum)
        });
        let members: Vec<Member> = members.collect();
        let answers = |one: &Seat| {
            one.name
                .as_deref()
                .is_some_and(|name| members.iter().any(|m| &*m.name == name && m.report.is_some()))
        };
        let list = (quorum
            && self.etcd.leader != 0
            && self.etcd.config.iter().any(|one| !one.learner && answers(one)))
        .then(|| list(&self.etcd.config, self.etcd.leader));
        let local = match &list {
            Some(_) => None,
            None => {
                let best = self
                    .cache
                    .slots
                    .iter()
                    .filter(reaches)
                    .filter_map(|slot| self.api.slot(&slot.name)?.data());
                best.max_by_key(|data| (data.term, data.index)).map(|data| list_of(&data.config))
            }
        };
        Observed { members, list, local }
    }

    fn member(&self, slot: &Slot, truth: Option<&Slot>, quorum: bool) -> Member {
        let on_disk = self.cache.spec.storage.medium == Medium::Disk;
        let volume = match &slot.volume {
            Some(claim) if claim.lost => Volume::Lost,
            Some(claim) if claim.going => Volume::Going,
            Some(_) => Volume::Present,
            None if !on_disk && slot.pod.as_ref().is_some_and(|pod| pod.process != Process::Ended) => {
                Volume::Present
            }
            None => Volume::Absent,
        };
        let pod = slot.pod.as_ref().map(|pod| crate::observe::Pod {
            uid: pod.uid.clone(),
            created: windlass::jiff::Timestamp::from_second(pod.created).unwrap_or_default(),
            deleting: pod.deleting,
            ended: pod.process == Process::Ended,
            forced: pod.start == Start::Forced,
            restarts: pod.restarts,
            out_of_memory: false,
            voter: None,
            node: None,
            address: None,
        });
        let report = truth.and_then(Slot::data).map(|data| {
            let seat = self.etcd.config.iter().find(|one| one.id == data.id);
            Report {
                id: data.id,
                cluster_id: CLUSTER,
                leader: if quorum && seat.is_some() { self.etcd.leader } else { 0 },
                learner: seat.is_some_and(|one| one.learner),
                term: data.term,
                index: data.index,
                applied: data.index,
                db_size: 0,
                version: version(),
            }
        });
        Member { name: slot.name.clone(), object: slot.object.clone(), pod, volume, report }
    }
}

fn version() -> Arc<str> {
    static VERSION: std::sync::OnceLock<Arc<str>> = std::sync::OnceLock::new();
    VERSION.get_or_init(|| "3.7.3".into()).clone()
}

fn list(config: &[Seat], leader: u64) -> List {
    List { leader, ..list_of(config) }
}

fn list_of(config: &[Seat]) -> List {
    let listed = |one: &Seat| Listed {
        id: one.id,
        member: one.name.clone(),
        url: version(),
        learner: one.learner,
        started: one.started,
    };
    let members = config.iter().map(listed).collect();
    List { cluster_id: CLUSTER, leader: 0, members, corrupt: Vec::new(), no_space: false }
}
