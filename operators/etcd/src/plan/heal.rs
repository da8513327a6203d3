//! The ladder: a voter that is not well is waited for, then restarted, then replaced.

use super::Proposals;
use super::action::{Action, Why};
use super::health::Health;
use super::memory::Latch;
use super::view::View;
use crate::observe::{Listed, Member};

/// Proposes what is done about voters that are not well.
pub(super) fn propose(view: &View<'_>, to: &mut Proposals) {
    let Some(list) = view.best() else { return };
    let before = to.actions.len();
    for listed in list.voters() {
        match view.ours(listed) {
            Some(member) => mend(view, listed, member, to),
            None => stranger(view, listed, to),
        }
    }
    // What is about to be added is in the way of a removal: two changes at once are one too many.
    if to.actions.len() > before {
        withdraw(view, to);
    }
}

fn mend(view: &View<'_>, listed: &Listed, member: &Member, to: &mut Proposals) {
    let name = &member.name;
    let remove =
        |why| Action::RemoveMember { member: Some(name.clone()), id: listed.id, because: view.because(why) };
    let health = view.health(member);
    if health == Health::Healthy {
        return;
    }
    // Nobody has to wait for a member that is unwell and was to go anyway.
    if member.object.is_none() {
        to.add(remove(Why::Orphan));
        return;
    }
    if member.object.as_ref().is_some_and(|object| object.deleting) {
        to.add(remove(Why::Leaving));
        return;
    }
    match health {
        Health::Failed(failure) => {
            to.add(remove(Why::Failed(failure)));
            if !view.memory.is_replaced(name) {
                to.add(Action::Latch(Latch::Replacement(name.clone())));
            }
        }
        Health::Suspect => restart(view, member, to),
        _ => {}
    }
    to.wait("MemberUnhealthy", || {
        let seconds = view.unhealthy_seconds(member);
        match &member.pod {
            Some(pod) if pod.out_of_memory => {
                format!("member {name} ends for lack of memory: raise spec.podTemplate.resources.limits.memory")
            }
            _ => format!(
                "member {name} is not healthy for {} minutes; it is restarted after {} s and replaced after {} s",
                seconds / 60,
                view.spec.healing.suspect_after_seconds,
                view.spec.healing.failed_after_seconds
            ),
        }
    });
}

/// Restarts a pod once, where its data survives that.
fn restart(view: &View<'_>, member: &Member, to: &mut Proposals) {
    let since = view.memory.unhealthy_since(&member.name);
    let Some(pod) = member.pod.as_ref().filter(|pod| !pod.deleting && view.on_disk()) else { return };
    if since.is_some_and(|since| pod.created < since) {
        let because = view.because(Why::Suspect);
        to.add(Action::DeletePod { member: member.name.clone(), uid: pod.uid.clone(), because });
    }
}

/// A voter that we have nothing of. If its URL is one of ours, its EtcdMember was lost, and its place is taken by another.
/// One that somebody else added is left alone, and keeps us from changing who votes.
fn stranger(view: &View<'_>, listed: &Listed, to: &mut Proposals) {
    match &listed.member {
        Some(name) => to.add(Action::RemoveMember {
            member: Some(name.clone()),
            id: listed.id,
            because: view.because(Why::Orphan),
        }),
        None => to.wait("UnknownMember", || {
            format!(
                "etcd has a member {:x} at {} that this operator did not add: remove it with etcdctl member remove",
                listed.id, listed.url
            )
        }),
    }
}

/// Takes back what is about to be added.
pub(super) fn withdraw(view: &View<'_>, to: &mut Proposals) {
    let is_free = |member: &&Member| member.object.as_ref().is_some_and(|object| !object.deleting);
    for member in view.pending().filter(is_free) {
        if view.best().is_some_and(|list| list.of(&member.name).is_none()) {
            let because = view.because(Why::Withdrawn);
            to.add(Action::DeleteMember { member: member.name.clone(), because });
        }
    }
}
