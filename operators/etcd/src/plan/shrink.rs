//! Fewer members: one at a time, those first that are missed least.

use super::Proposals;
use super::action::{Action, Why};
use super::heal::withdraw;
use super::learner::stayers;
use super::view::View;
use crate::observe::{List, Listed};

/// Proposes the removal of a voter where there are more than asked for. Members that somebody asked to leave go first, once
/// others have taken their place.
pub(super) fn propose(view: &View<'_>, to: &mut Proposals) {
    let Some(list) = view.best() else { return };
    let (voters, _) = view.count();
    let learners = list.members.iter().filter(|listed| listed.learner).count();
    if stayers(view) + learners >= view.size() {
        withdraw(view, to);
    }
    if voters <= view.size() && stayers(view) > 0 {
        return;
    }
    let Some(victim) = list.voters().min_by_key(|listed| order(view, list, listed)) else { return };
    if victim.id == list.leader
        && let Some(heir) = heir(view, list)
    {
        to.add(Action::MoveLeader { from: victim.id, to: heir.id });
        return;
    }
    let leaves = view.ours(victim).is_none_or(|member| view.is_leaving(member));
    let why = if leaves { Why::Leaving } else { Why::Surplus };
    to.add(Action::RemoveMember { member: victim.member.clone(), id: victim.id, because: view.because(why) });
}

/// Who goes first: the unhealthy, those who were asked to, those who do not lead, the newest.
fn order(view: &View<'_>, list: &List, listed: &Listed) -> (bool, bool, bool, std::cmp::Reverse<u64>) {
    let member = view.ours(listed);
    let serial = member.and_then(|member| member.object.as_ref()).map_or(0, |object| object.serial);
    (
        listed.member.is_none() || view.is_listed_healthy(listed),
        !member.is_some_and(|member| view.is_leaving(member)),
        listed.id == list.leader,
        std::cmp::Reverse(serial),
    )
}

/// Who leads next: a healthy voter that stays and has the most.
fn heir<'a>(view: &View<'_>, list: &'a List) -> Option<&'a Listed> {
    let fit = list.voters().filter(|listed| listed.id != list.leader && view.is_listed_healthy(listed));
    let applied = |listed: &&Listed| {
        let member = view.ours(listed);
        let stays = member.is_some_and(|member| !view.is_leaving(member));
        (stays, member.and_then(|member| member.report.as_ref()).map_or(0, |report| report.applied))
    };
    fit.max_by_key(applied)
}
