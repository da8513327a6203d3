//! Changes of who is a member of etcd, who votes and who leads.

use kube::ResourceExt as _;
use windlass::{Context, Error};
use windlass_etcd::Error as EtcdError;

use super::Refused;
use crate::api::{EtcdCluster, names};
use crate::observe::{Asked, Member, Seen, client_url};
use crate::plan::Action;

/// Asks etcd for a change. What is so already is as good as done.
pub(super) async fn change(
    ctx: &Context,
    cluster: &EtcdCluster,
    seen: &Seen,
    action: &Action,
) -> Result<(), Error> {
    let asked = ctx.state::<Asked>();
    let etcd = &*asked.0;
    let list = seen.view.list.as_ref().ok_or(Refused::NobodyToAsk)?;
    let not_itself = match action {
        Action::RemoveMember { id, .. } => Some(*id),
        _ => None,
    };
    let address = address(seen, list.leader, not_itself).ok_or(Refused::NobodyToAsk)?;
    let done = match action {
        Action::AddLearner { member } => {
            let namespace = cluster.namespace().unwrap_or_default();
            let url = names::peer_url(&cluster.name_any(), &namespace, member);
            etcd.add_learner(&address, &url).await
        }
        Action::Promote { id, .. } => etcd.promote(&address, *id).await,
        Action::MoveLeader { to, .. } => etcd.move_leader(&address, *to).await,
        Action::RemoveMember { id, .. } => etcd.remove(&address, *id).await,
        _ => Ok(()),
    };
    match done {
        Ok(()) | Err(EtcdError::MemberExists | EtcdError::MemberNotFound | EtcdError::NotLearner) => Ok(()),
        Err(error) => Err(Refused::Etcd(error).into()),
    }
}

/// Who is asked: the leader, else any voter that follows it; not the one that is to go, where there is another.
fn address(seen: &Seen, leader: u64, not_itself: Option<u64>) -> Option<String> {
    let voters = seen.view.members.iter().filter(|member| {
        member.report.as_ref().is_some_and(|report| report.leader == leader && !report.learner)
    });
    let order = |member: &&Member| {
        let id = member.report.as_ref().map(|report| report.id);
        (id == not_itself, id != Some(leader))
    };
    let best = voters.min_by_key(order)?;
    best.pod.as_ref()?.address.as_deref().map(client_url)
}
