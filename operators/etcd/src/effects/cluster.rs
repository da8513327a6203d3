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
    let mut refused = Refused::NobodyToAsk;
    for address in addresses(seen, list.leader, not_itself) {
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
            Ok(()) | Err(EtcdError::MemberExists | EtcdError::MemberNotFound | EtcdError::NotLearner) => {
                return Ok(());
            }
            // Whom it is connected to, each member judges for itself, and one that lost sight of another does so for good,
            // though they talk to each other (etcd-io/etcd#14523). Nothing was begun: the next one sees better.
            Err(error @ EtcdError::UnhealthyCluster) => refused = Refused::Etcd(error),
            Err(error) => return Err(Refused::Etcd(error).into()),
        }
    }
    Err(refused.into())
}

/// Who is asked: the leader, then the voters that follow it; the one that is to go only after all others.
fn addresses(seen: &Seen, leader: u64, not_itself: Option<u64>) -> Vec<String> {
    let follows = |member: &&Member| {
        member.report.as_ref().is_some_and(|report| report.leader == leader && !report.learner)
    };
    let mut voters: Vec<&Member> = seen.view.members.iter().filter(follows).collect();
    voters.sort_by_key(|member| {
        let id = member.report.as_ref().map(|report| report.id);
        (id == not_itself, id != Some(leader))
    });
    let address = |member: &Member| member.pod.as_ref()?.address.as_deref().map(client_url);
    voters.into_iter().filter_map(address).collect()
}
