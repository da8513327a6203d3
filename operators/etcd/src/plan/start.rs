//! Starts the pods of members that etcd knows: on the volume that they have, and never on an empty one. A pod that has ended
//! makes room for the next one.

use super::Proposals;
use super::action::{Action, Start, Why};
use super::view::View;
use crate::observe::{Member, Volume};

/// A pod that ended is not replaced before this age: what ends at once is not started over and over.
const PAUSE_SECONDS: i64 = 5;

/// Proposes pods for members that have none. Membership is not touched, so this is done without a quorum, too.
pub(super) fn propose(view: &View<'_>, to: &mut Proposals) {
    view.seen.members.iter().for_each(|member| replace_ended(view, member, to));
    for member in view.seen.members.iter().filter(|member| member.pod.is_none()) {
        let Some(object) = member.object.as_ref().filter(|object| object.joined.is_some()) else { continue };
        if view.is_removed(member) {
            continue;
        }
        let name = &member.name;
        if member.volume == Volume::Absent && view.on_disk() {
            to.add(Action::CreateVolume { member: name.clone() });
        }
        if object.seed {
            to.add(Action::StartPod { member: name.clone(), start: Start::New });
        }
        for start in [Start::Existing, Start::Rejoin] {
            to.add(Action::StartPod { member: name.clone(), start });
        }
    }
}

/// Proposes the end of a pod whose process has ended and is not started again in it.
pub(super) fn replace_ended(view: &View<'_>, member: &Member, to: &mut Proposals) {
    let Some(pod) = member.pod.as_ref().filter(|pod| pod.ended && !pod.deleting) else { return };
    // A pod from the future is of a server whose clock is ahead: better no pause than no pod.
    if !(0..PAUSE_SECONDS).contains(&view.seconds_since(pod.created)) {
        let because = view.because(Why::Ended);
        to.add(Action::DeletePod { member: member.name.clone(), uid: pod.uid.clone(), because });
    } else {
        to.wait("Restarting", || {
            format!("the process of {} has ended, and is started again soon", member.name)
        });
    }
}
