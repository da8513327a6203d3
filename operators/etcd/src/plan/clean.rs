//! Tidies up: notes who has joined, and ends what is left of members that etcd knows no more.

use super::Proposals;
use super::action::{Action, Why};
use super::view::View;
use crate::api::ReclaimPolicy;
use crate::observe::{Member, Volume};

/// Proposes what is left to do for members that have joined or left.
pub(super) fn propose(view: &View<'_>, to: &mut Proposals) {
    for member in view.pending() {
        if let Some(listed) = view.list().and_then(|list| list.of(&member.name)) {
            to.add(Action::NoteJoined { member: member.name.clone(), id: listed.id });
        }
    }
    for member in view.seen.members.iter().filter(|member| view.is_removed(member)) {
        end(view, member, to);
    }
}

fn end(view: &View<'_>, gone: &Member, to: &mut Proposals) {
    let member = gone.name.clone();
    let why = if gone.joined().is_some() || gone.object.is_none() { Why::Removed } else { Why::Withdrawn };
    let because = view.because(why);
    if matches!(gone.volume, Volume::Present | Volume::Lost) && view.on_disk() {
        let member = member.clone();
        to.add(match view.spec.storage.reclaim_policy {
            ReclaimPolicy::Delete => Action::DeleteVolume { member, because: because.clone() },
            ReclaimPolicy::Retain => Action::RetainVolume { member },
        });
    }
    match &gone.pod {
        Some(pod) if !pod.deleting => {
            to.add(Action::DeletePod { member, uid: pod.uid.clone(), because });
        }
        None if gone.volume == Volume::Absent && gone.object.is_some() => {
            to.add(Action::DeleteMember { member, because });
        }
        _ => {}
    }
}
