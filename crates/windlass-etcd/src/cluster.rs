//! The members of the cluster.

use crate::client::Leader;
use crate::proto::cluster::{IdRequest, MemberAddRequest, MemberListRequest, MemberUpdateRequest};
use crate::{Added, Client, Error, Members};

impl Client {
    /// The members of the cluster: `linearizable`, or as the asked member knows them, which it tells without a quorum.
    ///
    /// Decide about membership only after a linearizable list: the other may be of before the last change.
    ///
    /// # Errors
    /// The member does not answer; linearizable without a quorum: [`Error::NoLeader`] or [`Error::Timeout`].
    pub async fn member_list(&self, linearizable: bool) -> Result<Members, Error> {
        let leader = if linearizable { Leader::Required } else { Leader::Any };
        self.unary("/etcdserverpb.Cluster/MemberList", MemberListRequest { linearizable }, leader).await
    }

    /// Adds a member that will be at these peer URLs, as a learner or as a voter.
    ///
    /// # Errors
    /// The member does not answer, or refuses; see [`Error::is_definite`]. [`Error::UnhealthyCluster`] is what this one member
    /// thinks of its connections: another one may see better, here and when a member is removed.
    pub async fn member_add(&self, peer_urls: &[&str], learner: bool) -> Result<Added, Error> {
        let add = MemberAddRequest { peer_urls: owned(peer_urls), is_learner: learner };
        self.unary("/etcdserverpb.Cluster/MemberAdd", add, Leader::Required).await
    }

    /// Removes a member.
    ///
    /// # Errors
    /// The member does not answer, or refuses; see [`Error::is_definite`].
    pub async fn member_remove(&self, id: u64) -> Result<Members, Error> {
        self.unary("/etcdserverpb.Cluster/MemberRemove", IdRequest { id }, Leader::Required).await
    }

    /// Gives a member other peer URLs.
    ///
    /// # Errors
    /// The member does not answer, or refuses; see [`Error::is_definite`].
    pub async fn member_update(&self, id: u64, peer_urls: &[&str]) -> Result<Members, Error> {
        let update = MemberUpdateRequest { id, peer_urls: owned(peer_urls) };
        self.unary("/etcdserverpb.Cluster/MemberUpdate", update, Leader::Required).await
    }

    /// Makes a voter of a learner. Ask the leader: it alone knows how far the learner is.
    ///
    /// # Errors
    /// The member does not answer, or refuses. [`Error::LearnerNotReady`]: ask again later, after a list: a voter, too, that is
    /// behind is answered so, and with [`Error::NotLearner`] only when it is not.
    pub async fn member_promote(&self, id: u64) -> Result<Members, Error> {
        self.unary("/etcdserverpb.Cluster/MemberPromote", IdRequest { id }, Leader::Required).await
    }
}

fn owned(urls: &[&str]) -> Vec<String> {
    urls.iter().map(|url| (*url).to_owned()).collect()
}
