//! Starts the pods of members that etcd knows: on the volume that they have, and never on an empty one.

use super::Proposals;
use super::action::{Action, Start};
use super::view::View;
use crate::observe::Volume;

/// Proposes pods for members that have none. Membership is not touched, so this is done without a quorum, too.
pub(super) fn propose(view: &View<'_>, to: &mut Proposals) {
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
