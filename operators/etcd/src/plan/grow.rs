//! More members: one at a time, each as a learner first.

use super::Proposals;
use super::action::Action;
use super::heal::withdraw;
use super::learner::stayers;
use super::memory::Latch;
use super::view::View;
use crate::observe::{Listed, Volume};

/// etcd refuses a new member until all voters have been connected for so long.
pub const SETTLE_SECONDS: i64 = 5;

/// Proposes a member where there are fewer than asked for.
pub(super) fn propose(view: &View<'_>, to: &mut Proposals) {
    let Some(list) = view.best() else {
        if view.seen.members.iter().all(|member| member.object.is_none()) {
            to.add(Action::CreateMember { serial: view.memory.serial, seed: true });
        }
        return;
    };
    let learners = list.members.iter().filter(|listed| listed.learner).count();
    let pending = view.pending().find(|member| list.of(&member.name).is_none());
    if learners > 0 {
        // A call that was thought lost may have come late: then there is a learner, and another member that waits to be
        // one. It cannot be added, and would keep the learner from its vote.
        if let Some(member) = pending {
            to.add(Action::AddLearner { member: member.name.clone() });
            withdraw(view, to);
        }
        return;
    }
    if stayers(view) >= view.size() || !is_settled(view, to) {
        return;
    }
    match pending {
        Some(member) if member.object.as_ref().is_some_and(|object| object.deleting) => {}
        Some(member) => {
            let member_name = member.name.clone();
            if member.volume == Volume::Absent && view.on_disk() {
                to.add(Action::CreateVolume { member: member_name });
            } else {
                to.add(Action::AddLearner { member: member_name });
            }
        }
        None => {
            to.add(Action::CreateMember { serial: view.memory.serial, seed: false });
            to.add(Action::Latch(Latch::Serial(view.memory.serial + 1)));
        }
    }
}

/// Whether everybody has been well for a while.
fn is_settled(view: &View<'_>, to: &mut Proposals) -> bool {
    let Some(list) = view.best() else { return false };
    if list.no_space {
        to.wait("NoSpace", || "a database is full: compact, defragment and disarm the alarm".to_owned());
        return false;
    }
    let (voters, healthy) = view.count();
    if healthy < voters {
        let message = || format!("{healthy} of {voters} voters are healthy: a member is added when all are");
        to.wait("MemberUnhealthy", message);
        return false;
    }
    let is_settled = |listed: &Listed| {
        let since = listed.member.as_deref().and_then(|name| view.memory.healthy_since(name));
        since.is_some_and(|since| view.seconds_since(since) >= SETTLE_SECONDS)
    };
    if voters > 1 && !list.voters().all(is_settled) {
        to.wait("Settling", || {
            format!("all {voters} voters are healthy; the next member comes when they stay so")
        });
        return false;
    }
    true
}
