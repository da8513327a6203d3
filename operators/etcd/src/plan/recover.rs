//! A lost quorum: waited for while it can come back, recovered by policy when it cannot.

use super::Proposals;
use super::action::{Action, Start, Why};
use super::memory::Latch;
use super::view::{View, quorum};
use crate::observe::{Member, Name, Volume};

/// What is left of a quorum that is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// How many members voted.
    pub voters: usize,
    /// How many of them still have their volume.
    pub with_data: usize,
}

impl Loss {
    /// Whether the rest can never have a quorum again.
    pub fn is_permanent(self) -> bool {
        self.with_data < quorum(self.voters)
    }
}

impl View<'_> {
    /// What is left, where there is no quorum.
    pub fn loss(&self) -> Option<Loss> {
        if !self.is_born() || self.list().is_some() {
            return None;
        }
        let has_data = |member: &Member| member.object.is_some() && member.volume == Volume::Present;
        Some(match self.best() {
            Some(list) => {
                let with_data =
                    list.voters().filter(|listed| self.ours(listed).is_some_and(has_data)).count();
                Loss { voters: list.voters().count(), with_data }
            }
            // Nobody answers: those that have joined are all that we know of.
            None => {
                let joined = || self.seen.members.iter().filter(|member| member.joined().is_some());
                Loss {
                    voters: joined().count(),
                    with_data: joined().filter(|member| has_data(member)).count(),
                }
            }
        })
    }

    /// The first member that has its volume and does not answer. As long as there is one, nobody can tell what is lost: it
    /// may know of members, and of writes, that the others do not.
    pub fn silent(&self) -> Option<&Name> {
        let is_silent = |member: &&Member| {
            member.joined().is_some() && member.volume == Volume::Present && member.report.is_none()
        };
        self.seen.members.iter().find(is_silent).map(|member| &member.name)
    }

    /// The member that knows most, of those that answer and have their volume.
    pub fn survivor(&self) -> Option<&Name> {
        let list = self.best()?;
        let fit = list.voters().filter_map(|listed| {
            let member = self.ours(listed).filter(|m| m.object.is_some() && m.volume == Volume::Present)?;
            let report = member.report.as_ref().filter(|report| report.id == listed.id)?;
            Some(((report.term, report.index, listed.id), &member.name))
        });
        fit.max_by_key(|(known, _)| *known).map(|(_, name)| name)
    }
}

/// Notices that a quorum is lost.
pub(super) fn detect(view: &View<'_>, to: &mut Proposals) {
    let Some(loss) = view.loss() else { return };
    if let Some(survivor) = view.survivor() {
        to.add(Action::Latch(Latch::Rescue(survivor.clone())));
    }
    let Loss { voters, with_data } = loss;
    if with_data == 0 {
        to.wait("AllMembersLost", || {
            "no voter has its volume any more: restore a backup into a new EtcdCluster; this one is never begun anew".to_owned()
        });
    } else if let Some(silent) = view.silent().filter(|_| loss.is_permanent()) {
        to.wait("QuorumLost", || {
            format!(
                "{with_data} of {voters} voters have their volume, which is no quorum, and {silent} does not answer: only \
                 when all that have one do, can be told what is lost; if its data is gone, delete its volume and pod"
            )
        });
    } else if loss.is_permanent() && !view.on_disk() {
        to.wait("QuorumLost", || {
            format!(
                "{with_data} of {voters} voters have their data, which is no quorum, and what was in memory does not come \
                 back: take a snapshot from a pod that is left, and restore it into a new EtcdCluster"
            )
        });
    } else if loss.is_permanent() {
        to.wait("QuorumLost", || {
            format!(
                "{with_data} of {voters} voters have their volume, which is no quorum: bring volumes back, or set \
                 spec.healing.quorumLoss to FromSurvivor to go on with what the best of them has"
            )
        });
    } else {
        to.wait("QuorumLost", || {
            let silent = view.silent().map(|name| {
                format!("; {name} does not answer: if its log says that its data is gone, delete its volume and pod")
            });
            format!(
                "there is no quorum of {voters} voters; enough of them have their volume, and pods are started on it{}",
                silent.unwrap_or_default()
            )
        });
    }
}

/// Goes on with the survivor alone.
pub(super) fn propose(view: &View<'_>, to: &mut Proposals) {
    let Some(rescue) = &view.memory.recovery else { return };
    let survivor = view.seen.member(&rescue.survivor);
    let pod = survivor.and_then(|survivor| survivor.pod.as_ref());
    let is_forced = pod.is_some_and(|pod| pod.forced);
    if !rescue.forced && !is_forced && view.list().is_some() {
        // The quorum came back before anything was done that cannot be undone.
        to.add(Action::Latch(Latch::RescueDone));
        return;
    }
    let delete = |member: &Member, why| {
        let pod = member.pod.as_ref().filter(|pod| !pod.deleting)?;
        let (member, because) = (member.name.clone(), view.because(why));
        Some(Action::DeletePod { member, uid: pod.uid.clone(), because })
    };
    let start = |start| Action::StartPod { member: rescue.survivor.clone(), start };
    let others = view.seen.members.iter().filter(|member| member.name != rescue.survivor);
    match (rescue.forced, survivor) {
        (false, Some(survivor)) => {
            if pod.is_none() {
                to.add(start(Start::Forced));
            }
            others.filter_map(|other| delete(other, Why::Fenced)).for_each(|action| to.add(action));
            if !is_forced {
                delete(survivor, Why::Fenced).into_iter().for_each(|action| to.add(action));
            }
            if is_forced && view.list().is_some_and(|list| is_alone(list, &rescue.survivor)) {
                to.add(Action::Latch(Latch::Rescued));
            }
        }
        (true, Some(survivor)) => {
            for other in others.filter(|other| other.volume == Volume::Present && view.on_disk()) {
                to.add(Action::RetainVolume { member: other.name.clone() });
            }
            match pod {
                Some(_) if is_forced => {
                    delete(survivor, Why::Rescued).into_iter().for_each(|action| to.add(action));
                }
                Some(_) if view.list().is_some() => to.add(Action::Latch(Latch::RescueDone)),
                Some(_) => {}
                None => to.add(start(Start::Rejoin)),
            }
        }
        (_, None) => {}
    }
    to.wait("Recovering", || format!("the quorum is lost for good; {} goes on alone", rescue.survivor));
}

fn is_alone(list: &crate::observe::List, name: &str) -> bool {
    list.members.len() == 1 && list.of(name).is_some()
}
