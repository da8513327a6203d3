//! The beginning: one member, the seed, until etcd says that it is the only one of a cluster.

use super::action::{Action, Start, Why};
use super::memory::Latch;
use super::view::View;
use super::{Proposals, start};
use crate::observe::{Member, Volume};

/// Proposes the steps to a cluster of one.
pub(super) fn propose(view: &View<'_>, to: &mut Proposals) {
    let is_going =
        |member: &Member| member.object.as_ref().is_none_or(|object| object.deleting || !object.seed);
    let mut going = view.seen.members.iter().filter(|member| is_going(member)).peekable();
    // Two seeds at once would be two clusters: the first one has to be gone to its last pod.
    if let Some(first) = going.peek() {
        let name = first.name.clone();
        to.wait("Bootstrapping", || {
            format!("what is left of {name} has to go before another member begins the cluster")
        });
        going.for_each(|member| end(view, member, to));
        return;
    }
    match view.seen.members.first() {
        Some(seed) => raise(view, seed, to),
        None => {
            to.add(Action::CreateMember { serial: view.memory.serial, seed: true });
            to.add(Action::Latch(Latch::Serial(view.memory.serial + 1)));
        }
    }
}

fn raise(view: &View<'_>, seed: &Member, to: &mut Proposals) {
    let member = seed.name.clone();
    let listed = view.list().filter(|list| list.members.len() == 1).and_then(|list| list.of(&seed.name));
    if let Some(listed) = listed {
        to.add(Action::NoteJoined { member, id: listed.id });
        return;
    }
    if matches!(seed.volume, Volume::Lost | Volume::Going) {
        to.add(Action::DeleteMember { member, because: view.because(Why::StillBorn) });
        return;
    }
    if seed.volume == Volume::Absent && view.on_disk() {
        to.add(Action::CreateVolume { member: member.clone() });
    }
    if seed.pod.is_none() {
        to.add(Action::StartPod { member, start: Start::New });
    } else {
        start::replace_ended(view, seed, to);
        to.wait("Bootstrapping", || format!("the first member, {}, has not answered yet", seed.name));
    }
}

/// What is left of a seed that never began.
fn end(view: &View<'_>, seed: &Member, to: &mut Proposals) {
    let member = seed.name.clone();
    let because = view.because(Why::StillBorn);
    if seed.object.as_ref().is_some_and(|object| !object.deleting) {
        to.add(Action::DeleteMember { member, because });
        return;
    }
    if let Some(pod) = seed.pod.as_ref().filter(|pod| !pod.deleting) {
        let (uid, because) = (pod.uid.clone(), because.clone());
        to.add(Action::DeletePod { member: member.clone(), uid, because });
    }
    if matches!(seed.volume, Volume::Present | Volume::Lost) && view.on_disk() {
        to.add(Action::DeleteVolume { member: member.clone(), because: because.clone() });
    }
    if seed.object.is_some() && seed.pod.is_none() && seed.volume == Volume::Absent {
        to.add(Action::DeleteMember { member, because });
    }
}
