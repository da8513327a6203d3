//! Learners: promoted when they have caught up, given up when they do not.

use super::Proposals;
use super::action::{Action, Why};
use super::health::{Failure, Health};
use super::memory::Latch;
use super::view::View;
use crate::observe::{Listed, Member};

/// Proposes what becomes of learners.
pub(super) fn propose(view: &View<'_>, to: &mut Proposals) {
    let Some(list) = view.best() else { return };
    let (voters, _) = view.count();
    for listed in list.members.iter().filter(|listed| listed.learner) {
        let Some(name) = &listed.member else { continue };
        let remove = |why| Action::RemoveMember {
            member: Some(name.clone()),
            id: listed.id,
            because: view.because(why),
        };
        let Some(member) = view.seen.member(name).filter(|member| member.object.is_some()) else {
            to.add(remove(Why::Orphan));
            continue;
        };
        if view.is_leaving(member) && member.object.as_ref().is_some_and(|object| object.deleting) {
            to.add(remove(Why::Leaving));
            continue;
        }
        if stayers(view) >= view.size() {
            to.add(remove(Why::LearnerUnwanted));
            continue;
        }
        to.add(Action::Promote { member: name.clone(), id: listed.id });
        if let Some(why) = given_up(view, member) {
            to.add(remove(why));
            if !view.memory.is_replaced(name) {
                to.add(Action::Latch(Latch::Replacement(name.clone())));
            }
        }
        to.wait("CatchingUp", || waiting(listed, member, voters));
    }
}

/// Voters that nobody asked to leave.
pub(super) fn stayers(view: &View<'_>) -> usize {
    let stays = |listed: &&Listed| view.ours(listed).is_some_and(|member| !view.is_leaving(member));
    view.best().map_or(0, |list| list.voters().filter(stays).count())
}

/// Why a learner is given up.
pub(super) fn given_up(view: &View<'_>, learner: &Member) -> Option<Why> {
    // It was never healthy, and has until its deadline to become so.
    if let Health::Failed(failure @ (Failure::VolumeLost | Failure::CrashLoop | Failure::Corrupt)) =
        view.health(learner)
    {
        return Some(Why::Failed(failure));
    }
    let created = learner.object.as_ref()?.created;
    let is_late = view.seconds_since(created) >= i64::from(view.spec.healing.learner_deadline_seconds);
    is_late.then_some(Why::LearnerStuck)
}

fn waiting(listed: &Listed, member: &Member, voters: usize) -> String {
    let name = &member.name;
    match &member.report {
        None if listed.started => format!("learner {name} does not answer"),
        None => format!("learner {name} has not started yet"),
        Some(report) => {
            format!("learner {name} is at write {} and catches up with {voters} voters", report.applied)
        }
    }
}
