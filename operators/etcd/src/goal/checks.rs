//! The checks behind the rules. Each answers one question: may this step be taken, in this view?

use crate::api::QuorumLoss;
use crate::observe::{Listed, Member, Volume};
use crate::plan::{Action, Health, Latch, Start, View, Why, quorum};

/// A learner that is this many writes behind is caught up: it is as far behind as any follower under load.
const LAG_MAX: u64 = 1000;

pub(super) fn not_paused(_: &Action, view: &View<'_>) -> bool {
    !view.spec.paused
}

pub(super) fn begun_once(action: &Action, view: &View<'_>) -> bool {
    !matches!(action, Action::CreateMember { seed: true, .. }) || !view.is_born()
}

/// Before the cluster has come to life there is nobody to ask, and a recovery is what is done when nobody can be.
pub(super) fn by_a_quorum(action: &Action, view: &View<'_>) -> bool {
    let needs = match action {
        Action::AddLearner { .. }
        | Action::Promote { .. }
        | Action::RemoveMember { .. }
        | Action::MoveLeader { .. }
        | Action::NoteJoined { .. }
        | Action::Latch(Latch::Replacement(_)) => true,
        Action::DeletePod { because, .. }
        | Action::DeleteVolume { because, .. }
        | Action::DeleteMember { because, .. } => {
            !matches!(because.why, Why::StillBorn | Why::Ended | Why::Fenced | Why::Rescued)
        }
        Action::RetainVolume { .. } => view.memory.recovery.is_none(),
        _ => false,
    };
    !needs || view.list().is_some()
}

/// Whether the reason that a step carries is still there.
pub(super) fn justified(action: &Action, view: &View<'_>) -> bool {
    let Some(because) = action.because() else { return true };
    let member = action.member().and_then(|name| view.seen.member(name));
    let (voters, _) = view.count();
    match because.why {
        Why::Removed | Why::Withdrawn if matches!(action, Action::DeleteMember { .. }) => {
            member.is_some_and(|member| view.is_removed(member) || member.joined().is_none())
        }
        Why::Removed | Why::Withdrawn => member.is_some_and(|member| view.is_removed(member)),
        Why::Failed(_) => member.is_some_and(|member| matches!(view.health(member), Health::Failed(_))),
        Why::Suspect => member.is_some_and(|member| !view.is_healthy(member)),
        Why::Ended => member.and_then(|member| member.pod.as_ref()).is_some_and(|pod| pod.ended),
        Why::Leaving => member.is_none_or(|member| view.is_leaving(member)),
        Why::Surplus => voters > view.size(),
        Why::LearnerStuck => member.is_some_and(|member| is_learner(view, member)),
        Why::LearnerUnwanted => {
            member.is_some_and(|member| is_learner(view, member) && voters >= view.size())
        }
        Why::Orphan => member.is_none_or(|member| member.object.is_none()),
        Why::Fenced => view.memory.recovery.as_ref().is_some_and(|rescue| !rescue.forced),
        Why::Rescued => view.memory.recovery.as_ref().is_some_and(|rescue| rescue.forced),
        Why::StillBorn => !view.is_born(),
    }
}

fn is_learner(view: &View<'_>, member: &Member) -> bool {
    view.list().and_then(|list| list.of(&member.name)).is_some_and(|listed| listed.learner)
}

/// A member that is to be added is a change on its way, until its ID is noted or it is gone: a call that was not answered
/// may have been heard.
pub(super) fn one_change(action: &Action, view: &View<'_>) -> bool {
    !action.is_membership() || view.pending().all(|pending| Some(&pending.name) == action.member())
}

pub(super) fn one_disruption(action: &Action, view: &View<'_>) -> bool {
    let Action::DeletePod { member, because, .. } = action else { return true };
    if because.why != Why::Suspect {
        return true;
    }
    others(view, |listed| listed.member.as_ref() == Some(member))
        .is_some_and(|(voters, healthy)| healthy == voters)
}

pub(super) fn rest_has_quorum(action: &Action, view: &View<'_>) -> bool {
    let Action::RemoveMember { id, .. } = action else { return true };
    if !votes(view, *id) {
        return true;
    }
    others(view, |listed| listed.id == *id)
        .is_some_and(|(voters, healthy)| voters > 0 && healthy >= quorum(voters))
}

pub(super) fn healthy_goes_last(action: &Action, view: &View<'_>) -> bool {
    let Action::RemoveMember { id, .. } = action else { return true };
    let victim = view.best().and_then(|list| list.voters().find(|listed| listed.id == *id));
    if !victim.is_some_and(|listed| view.is_listed_healthy(listed)) {
        return true;
    }
    others(view, |listed| listed.id == *id).is_some_and(|(voters, healthy)| healthy == voters)
}

/// How many voters there are but for one, and how many of them are healthy.
fn others(view: &View<'_>, is_it: impl Fn(&Listed) -> bool) -> Option<(usize, usize)> {
    let rest = view.best()?.voters().filter(|listed| !is_it(listed));
    Some(rest.fold((0, 0), |(voters, healthy), listed| {
        (voters + 1, healthy + usize::from(view.is_listed_healthy(listed)))
    }))
}

fn votes(view: &View<'_>, id: u64) -> bool {
    view.best().is_some_and(|list| list.voters().any(|listed| listed.id == id))
}

pub(super) fn fresh_name(action: &Action, view: &View<'_>) -> bool {
    let Action::CreateMember { serial, .. } = action else { return true };
    let is_used = |member: &Member| member.object.as_ref().is_some_and(|object| object.serial == *serial);
    view.memory.reserved && view.memory.serial == *serial && !view.seen.members.iter().any(is_used)
}

pub(super) fn data_is_there(action: &Action, view: &View<'_>) -> bool {
    match action {
        Action::CreateVolume { member } => {
            view.seen.member(member).is_some_and(|member| member.joined().is_none())
        }
        Action::StartPod { member, start } => {
            let Some(member) = view.seen.member(member) else { return false };
            let has_volume = member.volume == Volume::Present;
            match start {
                Start::New => has_volume || !view.on_disk(),
                // Only a list that is not old can say that a member was never started.
                Start::Existing => {
                    let listed = view.list().and_then(|list| list.of(&member.name));
                    listed.is_some_and(|listed| !listed.started) && (has_volume || !view.on_disk())
                }
                // A member that was never started has to be told whom to join.
                Start::Rejoin => {
                    let listed = view.list().and_then(|list| list.of(&member.name));
                    has_volume && listed.is_none_or(|listed| listed.started)
                }
                Start::Forced => has_volume,
            }
        }
        _ => true,
    }
}

pub(super) fn new_only_once(action: &Action, view: &View<'_>) -> bool {
    let Action::StartPod { member, start: Start::New } = action else { return true };
    let is_seed = view.seen.member(member).and_then(|member| member.object.as_ref()).is_some_and(|o| o.seed);
    is_seed && !view.is_born()
}

pub(super) fn caught_up(action: &Action, view: &View<'_>) -> bool {
    let Action::Promote { member, id } = action else { return true };
    let Some(list) = view.best() else { return false };
    let leads = |member: &&Member| member.report.as_ref().is_some_and(|report| report.id == list.leader);
    let leader = view.seen.members.iter().find(leads).and_then(|member| member.report.as_ref());
    let learner = view.seen.member(member).and_then(|member| member.report.as_ref());
    let (Some(leader), Some(learner)) = (leader, learner) else { return false };
    list.of(member).is_some_and(|listed| listed.started && listed.id == *id)
        && learner.id == *id
        && learner.leader != 0
        && learner.applied > 0
        && learner.applied + LAG_MAX >= leader.applied
}

pub(super) fn one_learner(action: &Action, view: &View<'_>) -> bool {
    let Action::AddLearner { member } = action else { return true };
    let is_other = |listed: &Listed| listed.learner && listed.member.as_ref() != Some(member);
    !view.best().is_some_and(|list| list.members.iter().any(is_other))
}

pub(super) fn out_of_use(action: &Action, view: &View<'_>) -> bool {
    let (Action::DeleteVolume { member, .. } | Action::DeleteMember { member, .. }) = action else {
        return true;
    };
    let Some(found) = view.seen.member(member) else { return false };
    let is_unknown = !view.is_born() || view.list().is_some_and(|list| list.of(member).is_none());
    match action {
        Action::DeleteVolume { .. } => is_unknown && found.pod.is_none(),
        _ => is_unknown && (found.pod.is_none() || !view.is_born()),
    }
}

pub(super) fn within_budget(action: &Action, view: &View<'_>) -> bool {
    let budget = usize::try_from(view.spec.healing.max_replacements_per_hour).unwrap_or(0);
    match action {
        Action::Latch(Latch::Replacement(_)) => view.memory.replacements.len() < budget,
        Action::RemoveMember { member: Some(member), because, .. } => {
            !matches!(because.why, Why::Failed(_) | Why::LearnerStuck) || view.memory.is_replaced(member)
        }
        _ => true,
    }
}

pub(super) fn recovery_is_wanted(action: &Action, view: &View<'_>) -> bool {
    let healing = &view.spec.healing;
    match action {
        Action::Latch(Latch::Rescue(_)) => {
            let grace = i64::from(healing.quorum_loss_grace_seconds);
            let is_over = view.memory.quorum_lost_since.is_some_and(|at| view.seconds_since(at) >= grace);
            let is_permanent = view.loss().is_some_and(|loss| loss.is_permanent()) && view.silent().is_none();
            // In memory, what the survivor has goes with its pod, and its pod has to be another one.
            healing.quorum_loss == QuorumLoss::FromSurvivor && is_permanent && is_over && view.on_disk()
        }
        Action::StartPod { member, start: Start::Forced } => {
            view.memory.recovery.as_ref().is_some_and(|rescue| !rescue.forced && rescue.survivor == *member)
        }
        _ => true,
    }
}

pub(super) fn fenced(action: &Action, view: &View<'_>) -> bool {
    let Action::StartPod { member, start: Start::Forced } = action else { return true };
    view.seen.members.iter().all(|other| other.name == *member || other.pod.is_none())
}
